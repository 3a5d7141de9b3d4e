#include "gate/admission.h"

#include "gate/gate_core.h"

namespace leasehold::gate {

std::string_view RefusalName(Refusal reason) {
  switch (reason) {
    case Refusal::kClosed: return "closed";
    case Refusal::kDraining: return "draining";
    case Refusal::kExpired: return "expired";
    case Refusal::kHoldFull: return "hold_full";
    case Refusal::kHoldTimeout: return "hold_timeout";
    case Refusal::kMaxConnections: return "max_connections";
    case Refusal::kLeaving: return "leaving";
  }
  return "unknown";
}

Ticket& Ticket::operator=(Ticket&& other) noexcept {
  if (this != &other) {
    Finish();
    core_ = other.core_;
    other.core_ = nullptr;
  }
  return *this;
}

void Ticket::Finish() {
  if (core_ != nullptr) {
    GateCore* core = core_;
    core_ = nullptr;
    core->Finished();
  }
}

}  // namespace leasehold::gate

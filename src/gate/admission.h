// The words of admission: verdicts, the closed list of refusals, and Ticket, the count of one piece
// of work in flight. Values of gate_core.h, which decides; nothing here does. Invariant: a Ticket
// counts once, until it is finished or destroyed, however often it is moved.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "lease/permit.h"

namespace leasehold::gate {

// Why something was refused. Closed list; the names are a metric's label and part of problem
// bodies.
enum class Refusal : uint8_t {
  kClosed,          // the lease is not held here
  kDraining,        // stepping down
  kExpired,         // the permit ran out; nobody had told the gate yet
  kHoldFull,        // max_held wait already
  kHoldTimeout,     // waited for hold_timeout
  kMaxConnections,  // max_connections are open already
  kLeaving,         // the process is going away, and nobody else took the lease in time
};
inline constexpr size_t kRefusalCount = 7;
std::string_view RefusalName(Refusal reason);  // "closed", "draining", "expired", "hold_full", ...

class GateCore;

// One admitted piece of work (a request, a connection, a tunnel). In flight as long as it lives and
// is not finished. Movable. Must not outlive its core while admitted.
class Ticket {
 public:
  Ticket() = default;
  Ticket(Ticket&& other) noexcept : core_(other.core_) { other.core_ = nullptr; }
  Ticket& operator=(Ticket&& other) noexcept;
  Ticket(const Ticket&) = delete;
  Ticket& operator=(const Ticket&) = delete;
  ~Ticket() { Finish(); }

  bool admitted() const { return core_ != nullptr; }
  // The work is done. Nothing happens the second time. Ask the core's TakeBecameEmpty() afterwards.
  void Finish();

 private:
  friend class GateCore;
  GateCore* core_ = nullptr;
};

enum class Verdict : uint8_t {
  kAdmit,
  kHold,
  kForward,  // to the holder's gate; the core's route says whether as a probe
  kRefuse,
};

struct Decision {
  Verdict verdict = Verdict::kRefuse;
  Refusal refusal = Refusal::kClosed;  // meaningful for kRefuse
};

}  // namespace leasehold::gate

#include "lease/events.h"

namespace leasehold::lease {

std::string_view StateName(State state) {
  switch (state) {
    case State::kStandby: return "standby";
    case State::kAcquiring: return "acquiring";
    case State::kActive: return "active";
    case State::kDraining: return "draining";
    case State::kReleasing: return "releasing";
    case State::kHoldOff: return "hold_off";
    case State::kStopped: return "stopped";
  }
  return "stopped";
}

std::string_view ValveName(Valve valve) {
  switch (valve) {
    case Valve::kClosed: return "closed";
    case Valve::kHolding: return "holding";
    case Valve::kOpen: return "open";
    case Valve::kDraining: return "draining";
  }
  return "unknown";
}

std::string_view ReasonName(Reason reason) {
  switch (reason) {
    case Reason::kNone: return "";
    case Reason::kRequested: return "requested";
    case Reason::kShutdown: return "shutdown";
    case Reason::kRenewalsFailed: return "renewals_failed";
    case Reason::kSuperseded: return "superseded";
    case Reason::kAbsent: return "absent";
    case Reason::kExpired: return "expired";
    case Reason::kHostFrozen: return "host_frozen";
    case Reason::kAppUnready: return "app_unready";
    case Reason::kHandoff: return "handoff";
    case Reason::kStoreRegressed: return "store_regressed";
    case Reason::kTokenRegression: return "token_regression";
    case Reason::kStartFailed: return "start_failed";
  }
  return "";
}

std::string_view NoticeName(Notice notice) {
  switch (notice) {
    case Notice::kAcquired: return "lease.acquired";
    case Notice::kAtRisk: return "lease.at_risk";
    case Notice::kRestored: return "lease.restored";
    case Notice::kDraining: return "lease.draining";
    case Notice::kReleased: return "lease.released";
    case Notice::kLost: return "lease.lost";
    case Notice::kObserved: return "lease.observed";
    case Notice::kStoreDegraded: return "store.degraded";
    case Notice::kStoreRecovered: return "store.recovered";
    case Notice::kDuplicateId: return "node.duplicate_id";
    case Notice::kTokenRegression: return "lease.token_regression";
    case Notice::kTokenExhausted: return "lease.token_exhausted";
    case Notice::kRecordUnusable: return "lease.record_unusable";
  }
  return "";
}

std::string_view OutcomeName(StepDownDone::Outcome outcome) {
  switch (outcome) {
    case StepDownDone::Outcome::kFailedPrecondition: return "failed_precondition";
    case StepDownDone::Outcome::kNotHolder: return "not_holder";
    case StepDownDone::Outcome::kTakenOver: return "taken_over_by_another_process";
    case StepDownDone::Outcome::kTakenBack: return "taken_back_by_this_process";
    case StepDownDone::Outcome::kUnknown: return "unknown";
  }
  return "unknown";
}

}  // namespace leasehold::lease

// What goes into the engine (Event) and what comes out (Effect): plain values, one struct each, so
// that a run can be written down, compared and replayed byte for byte (DESIGN 2, LAYOUT "the pure
// engine").
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/time.h"
#include "lease/permit.h"
#include "lease/record.h"

namespace leasehold::lease {

// ---- words ----

enum class State {
  kStandby,    // observes; competes when it may
  kAcquiring,  // an acquisition is under way or unconfirmed
  kActive,     // holds; a permit runs
  kDraining,   // holds and renews; admits nothing new
  kReleasing,  // the permit is over; the release is being sent or confirmed
  kHoldOff,    // released; observes, does not compete yet
  kStopped,    // ended for good
};
std::string_view StateName(State state);  // "standby", "acquiring", ..., "hold_off", "stopped"

std::string_view ValveName(Valve valve);  // "closed", "holding", "open", "draining"

// The closed list of reasons (DESIGN 2.4). kNone prints as "".
enum class Reason {
  kNone,
  kRequested,
  kShutdown,
  kRenewalsFailed,
  kSuperseded,
  kAbsent,
  kExpired,
  kHostFrozen,
  kAppUnready,
  kHandoff,
  kStoreRegressed,
  kTokenRegression,
  kStartFailed,
};
std::string_view ReasonName(Reason reason);

// Event names, the same in socket, stream, audit and log (DESIGN 2.4).
enum class Notice {
  kAcquired,         // lease.acquired
  kAtRisk,           // lease.at_risk
  kRestored,         // lease.restored
  kDraining,         // lease.draining
  kReleased,         // lease.released
  kLost,             // lease.lost
  kObserved,         // lease.observed: the holder seen changed
  kStoreDegraded,    // store.degraded
  kStoreRecovered,   // store.recovered
  kDuplicateId,      // node.duplicate_id
  kTokenRegression,  // lease.token_regression: a lower token than was seen before, or one handed
                     // out twice
  kTokenExhausted,   // lease.token_exhausted
  kRecordUnusable,   // lease.record_unusable: higher format or bad ttl_ms; never overwritten
};
std::string_view NoticeName(Notice notice);

// ---- events ----

// One store call's answer. `op` is the number the effect carried; answers to abandoned calls are
// dropped.
struct ReadAnswer {
  enum class Outcome { kAbsent, kRecord, kAmbiguous, kRefused };
  uint64_t op = 0;
  Outcome outcome = Outcome::kAmbiguous;
  std::optional<Record> record;  // kRecord
  Version version;               // kRecord
  bool holder_dead =
      false;          // the adapter PROVED the process named in the record dead (DESIGN 3, file)
  std::string error;  // kAmbiguous, kRefused: one sentence
};
struct CasAnswer {
  enum class Outcome { kApplied, kConflict, kAmbiguous, kRefused };
  uint64_t op = 0;
  Outcome outcome = Outcome::kAmbiguous;
  Version version;               // kApplied: the new one; kConflict: the current one if `record`
  std::optional<Record> record;  // kConflict: the current record, if the store gave it
  bool absent = false;           // kConflict: the store said there is no record
  std::string error;
};
// The record may have changed. Urgent: it may have changed hands (released, acquired), so read at
// once; otherwise it was probably a renewal, and a read may wait for poll_interval since the last
// one.
struct Hint {
  bool urgent = false;
};
// Whether push works now. Without it a standby polls at poll_interval.
struct PushState {
  bool working = false;
};
struct AppState {  // what the health check last said; with no check configured, ready once at start
  bool ready = false;
};
// The application has been unready for app.unready_after: step down.
struct AppUnreadyTooLong {};
struct Precondition {
  std::string node_id;
  uint64_t token = 0;
};
struct StepDownRequest {
  uint64_t request = 0;  // number chosen by the asker; its StepDownDone carries it
  Precondition expected;
  Reason reason = Reason::kRequested;
  bool take_back = true;
};
struct Drained {  // every gate is empty and every registered listener has said drained, for this
                  // token
  uint64_t token = 0;
};
struct StartFailed {  // something needed to act could not start under this token
  uint64_t token = 0;
  std::string why;
};
struct LostTime {};  // the machine lost time that our boot clock did not count (DESIGN 2.2)
// SIGTERM: step down, release, stop. `watch_on`: after the release go on observing, without
// competing, until a Shutdown without it comes (gates still send what they held to the next
// holder).
struct Shutdown {
  bool watch_on = false;
};
struct Tick {};  // NextDeadline() has passed

using Event =
    std::variant<Tick, ReadAnswer, CasAnswer, Hint, PushState, AppState, AppUnreadyTooLong,
                 StepDownRequest, Drained, StartFailed, LostTime, Shutdown>;

// ---- effects: carried out by the driver in order, synchronously ----

struct ReadEffect {
  uint64_t op = 0;
  base::Duration timeout;
};
struct CasEffect {
  enum class Purpose { kAcquire, kRenew, kRelease };
  uint64_t op = 0;
  Purpose purpose = Purpose::kRenew;
  std::optional<Version> expected;  // nullopt: absent
  Record record;
  base::Duration timeout;
};
// The valve changed; the permit already says so.
struct ValveEffect {
  Valve valve = Valve::kClosed;
  Reason reason = Reason::kNone;
  bool lost = false;  // kClosed: by loss or expiry rather than by a finished drain or a release
  base::MonoTime drain_end;  // kDraining: when what is left is shut; the permit may end sooner
  uint64_t token = 0;
};
struct NoticeEffect {
  Notice notice = Notice::kObserved;
  Reason reason = Reason::kNone;
  uint64_t token = 0;
  std::string holder_node_id;
  std::string holder_process_id;
  base::Duration grace;          // kDraining
  base::Duration unchanged_for;  // kAcquired: since this process last saw the record change
  std::string detail;            // one sentence for people, may be empty
};
struct StepDownDone {
  enum class Outcome {
    kFailedPrecondition,
    kNotHolder,
    kTakenOver,  // taken_over_by_another_process
    kTakenBack,  // taken_back_by_this_process
    kUnknown,    // with detail
  };
  uint64_t request = 0;
  Outcome outcome = Outcome::kUnknown;
  Precondition expected;        // as sent
  uint64_t released_token = 0;  // 0: nothing was released
  base::Duration hold_off;
  uint64_t token = 0;  // of whoever holds now; 0 unknown
  std::string node_id;
  std::string process_id;
  std::string detail;
};
std::string_view OutcomeName(StepDownDone::Outcome outcome);
// The engine is done: exit. ok=false: it refused to start (fail_if_held).
struct StoppedEffect {
  bool ok = true;
  std::string why;
};

using Effect =
    std::variant<ReadEffect, CasEffect, ValveEffect, NoticeEffect, StepDownDone, StoppedEffect>;
using Effects = std::vector<Effect>;

}  // namespace leasehold::lease

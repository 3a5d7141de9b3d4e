// ServiceClock: what time a service thinks it is, as far as signatures need to know: our wall clock
// plus a correction, measured at an answer's Date. Pure. A service refuses what is signed for more
// than 5 (some: 15) minutes from its own time, so a machine whose clock is off would be locked out
// although all else is well. Never for lease logic. Invariant: an answer that came in time for our
// clock corrects nothing.
#pragma once

#include <cstdint>

#include "base/time.h"

namespace leasehold::aws {

class ServiceClock {
 public:
  // One answer with a Date. It was made at some instant between sending and now.
  struct Answer {
    int64_t date_unix_seconds = 0;
    base::WallTime now;      // ours, at its arrival
    base::Duration elapsed;  // since the request was sent, by the boot clock
    bool refused = false;    // the service refused because of the time
  };

  // True: the correction changed. It does when the Date is more than 4 minutes outside of the span
  // in which the answer was made, or at all outside after a refusal.
  bool Note(const Answer& answer);

  int64_t UnixSeconds(base::WallTime now) const { return (now.unix_ms + skew_ms_) / 1000; }
  // The service's clock less ours.
  base::Duration skew() const { return base::Duration::Millis(skew_ms_); }

 private:
  int64_t skew_ms_ = 0;
};

}  // namespace leasehold::aws

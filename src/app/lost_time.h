// LostTime detector: has this machine lost time that its boot clock did not count (a paused virtual
// machine)? Two witnesses (DESIGN 2.2): the wall clock jumping forward against the boot clock, and
// the store's clock. Pure: readings come in, a verdict goes out. A false alarm costs one renewal
// and a short hold, so it errs that way.
#pragma once

#include <cstdint>
#include <optional>

#include "base/time.h"

namespace leasehold::app {

class LostTimeDetector {
 public:
  // More than this, unseen by the boot clock, counts (DESIGN 2.2: 2 s).
  static constexpr base::Duration kThreshold = base::Duration::Seconds(2);

  // True once for each jump. Wall clock readings may step backwards freely.
  bool SeeWall(base::MonoTime now, base::WallTime wall);
  // The store's clock in a reply, with when the reply was processed. A late reply only makes it
  // look older.
  bool SeeStore(base::MonoTime now, int64_t store_unix_ms);

 private:
  std::optional<int64_t> wall_offset_ms_;   // wall - boot, as last seen
  std::optional<int64_t> store_offset_ms_;  // store - boot, the largest seen since the last alarm
};

}  // namespace leasehold::app

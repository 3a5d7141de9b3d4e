// BootClock: one node's CLOCK_BOOTTIME as a function of true time: an offset, a rate within the
// drift bound, and stops (a virtual machine paused without the clock counting it). True time is
// known to the simulator and its checkers only; engines see nothing but readings of this clock.
//
// Invariant: readings never go back, and At(TrueAt(m)) >= m.
#pragma once

#include <cstdint>

#include "base/time.h"

namespace leasehold::simulation {

// True nanoseconds since the start of the run. A plain number on purpose: it must not be mistaken
// for a MonoTime, which only a node's own clock makes.
using TrueNs = int64_t;

inline constexpr TrueNs kMillisecond = 1'000'000;
inline constexpr TrueNs kSecond = 1'000'000'000;

class BootClock {
 public:
  // `rate_ppb`: how much faster than true time, in parts per 10^9 (0.1 % = 1'000'000).
  BootClock(int64_t offset_ns, int64_t rate_ppb) : base_boot_(offset_ns), rate_ppb_(rate_ppb) {}

  base::MonoTime At(TrueNs at) const;
  // The earliest true instant at which the clock shows `reading` or more, if it does not stop
  // again. For a clock that stands still now: as if it ran on at once.
  TrueNs TrueAt(base::MonoTime reading) const;

  void Stop(TrueNs at);    // it stands still from `at` on
  void Resume(TrueNs at);  // it runs on from the reading it stopped at
  void SetRate(TrueNs at, int64_t rate_ppb);
  bool stopped() const { return stopped_; }

 private:
  int64_t Ran(TrueNs at) const;

  TrueNs base_true_ = 0;
  int64_t base_boot_ = 0;
  int64_t rate_ppb_ = 0;
  bool stopped_ = false;
};

}  // namespace leasehold::simulation

#include "simulation/clock.h"

namespace leasehold::simulation {

int64_t BootClock::Ran(TrueNs at) const {
  const int64_t span = at - base_true_;
  // The correction is at most 0.1 % of a run of hours: a double holds it to the nanosecond.
  return span +
         static_cast<int64_t>(static_cast<double>(span) * static_cast<double>(rate_ppb_) * 1e-9);
}

base::MonoTime BootClock::At(TrueNs at) const {
  return base::MonoTime::FromNanos(stopped_ ? base_boot_ : base_boot_ + Ran(at));
}

TrueNs BootClock::TrueAt(base::MonoTime reading) const {
  const int64_t span = reading.nanos() - base_boot_;
  TrueNs at = base_true_ + static_cast<int64_t>(static_cast<double>(span) /
                                                (1.0 + static_cast<double>(rate_ppb_) * 1e-9));
  while (base_boot_ + Ran(at) < reading.nanos()) ++at;
  while (base_boot_ + Ran(at - 1) >= reading.nanos()) --at;
  return at;
}

void BootClock::Stop(TrueNs at) {
  base_boot_ = At(at).nanos();
  base_true_ = at;
  stopped_ = true;
}

void BootClock::Resume(TrueNs at) {
  base_true_ = at;
  stopped_ = false;
}

void BootClock::SetRate(TrueNs at, int64_t rate_ppb) {
  if (!stopped_) {
    base_boot_ = At(at).nanos();
    base_true_ = at;
  }
  rate_ppb_ = rate_ppb;
}

}  // namespace leasehold::simulation

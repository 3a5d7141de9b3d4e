#include "aws/service_clock.h"

#include <cstdlib>

namespace leasehold::aws {
namespace {

// Below what a service tolerates (5 min, the strictest), with room for what a measurement is off.
constexpr int64_t kToleratedMs = int64_t{4} * 60 * 1000;
// A Date has whole seconds.
constexpr int64_t kDateResolutionMs = 1000;
// The middle of a longer span may be off by more than is tolerated: such an answer measures nothing
// (a process that was stopped meanwhile, mostly).
constexpr base::Duration kElapsedMax = base::Duration::Seconds(4 * 60);
// A clock that starts at 1970 is off by some 60 years; a Date beyond this is no time of anybody's.
constexpr int64_t kSkewMsMax = int64_t{100} * 366 * 24 * 3600 * 1000;

}  // namespace

bool ServiceClock::Note(const Answer& answer) {
  if (answer.elapsed > kElapsedMax || answer.elapsed < base::Duration::Zero()) return false;
  const int64_t elapsed_ms = answer.elapsed.millis();
  const int64_t date_ms = answer.date_unix_seconds * 1000;
  const int64_t arrived_ms = answer.now.unix_ms + skew_ms_;
  int64_t outside_ms = 0;
  if (date_ms > arrived_ms) {
    outside_ms = date_ms - arrived_ms;
  } else if (date_ms + kDateResolutionMs < arrived_ms - elapsed_ms) {
    outside_ms = arrived_ms - elapsed_ms - date_ms - kDateResolutionMs;
  }
  if (outside_ms <= (answer.refused ? kDateResolutionMs : kToleratedMs)) return false;
  const int64_t skew_ms = date_ms + kDateResolutionMs / 2 - (answer.now.unix_ms - elapsed_ms / 2);
  if (std::llabs(skew_ms) > kSkewMsMax) return false;
  skew_ms_ = skew_ms;
  return true;
}

}  // namespace leasehold::aws

#include "app/lost_time.h"

#include <algorithm>

namespace leasehold::app {
namespace {

int64_t Millis(base::MonoTime t) { return t.nanos() / 1000000; }

}  // namespace

bool LostTimeDetector::SeeWall(base::MonoTime now, base::WallTime wall) {
  const int64_t offset = wall.unix_ms - Millis(now);
  const bool jumped = wall_offset_ms_ && offset - *wall_offset_ms_ > kThreshold.millis();
  wall_offset_ms_ = offset;
  return jumped;
}

bool LostTimeDetector::SeeStore(base::MonoTime now, int64_t store_unix_ms) {
  const int64_t offset = store_unix_ms - Millis(now);
  const bool jumped = store_offset_ms_ && offset - *store_offset_ms_ > kThreshold.millis();
  store_offset_ms_ = jumped || !store_offset_ms_ ? offset : std::max(*store_offset_ms_, offset);
  return jumped;
}

}  // namespace leasehold::app

// Timer: one-shot on the boot clock. Never fires early (re-arms itself if libuv's monotonic clock
// woke it before the boot clock reached the instant); may be late by a stalled loop, which is why
// permits are checked elsewhere.
#pragma once

#include <functional>
#include <memory>

#include "base/time.h"
#include "loop/loop.h"

namespace leasehold::loop {

class Timer {
 public:
  Timer(Loop& loop, std::function<void()> on_fire);
  ~Timer();  // stops it; safe inside its own callback
  Timer(const Timer&) = delete;
  Timer& operator=(const Timer&) = delete;

  void StartAt(base::MonoTime at);  // replaces an earlier start; Never() stops
  void StartAfter(base::Duration d);
  void Stop();
  bool armed() const;

 private:
  struct Impl;
  Impl* impl_;  // outlives this object until libuv has closed the handle
};

}  // namespace leasehold::loop

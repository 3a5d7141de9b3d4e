// LoopFixture: a gtest fixture that owns a loop::Loop and runs it until a condition holds or a
// limit passes. For every test that needs real sockets, timers or processes. Not a clock to play
// with: time is real here. Objects that borrow the loop must be destroyed before the fixture, so
// declare them in the test (or in a derived fixture), where they die first.
#pragma once

#include <gtest/gtest.h>

#include <functional>

#include "base/time.h"
#include "loop/loop.h"
#include "loop/timer.h"

namespace leasehold::testing {

class LoopFixture : public ::testing::Test {
 protected:
  // Long enough for a loaded build machine; a test that passes never waits for it.
  static constexpr base::Duration kLimit = base::Duration::Seconds(10);

  // Runs the loop until `condition` holds (asked after every turn, and every 50 ms for what the
  // loop cannot see, such as a process that ends). False: `limit` passed first.
  bool RunUntil(const std::function<bool()>& condition, base::Duration limit = kLimit) {
    const base::MonoTime end = loop::Loop::Now() + limit;
    loop::Timer tick(loop_, [] {});
    while (!condition()) {
      const base::MonoTime now = loop::Loop::Now();
      if (now >= end) return condition();
      if (!tick.armed()) tick.StartAt(base::Min(end, now + base::Duration::Millis(50)));
      loop_.RunOnce();
    }
    return true;
  }

  // Runs the loop for a fixed time: only to show that something does NOT happen in it.
  void RunFor(base::Duration d) {
    RunUntil([] { return false; }, d);
  }

  loop::Loop loop_;
};

}  // namespace leasehold::testing

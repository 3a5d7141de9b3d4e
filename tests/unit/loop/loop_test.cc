#include "loop/loop.h"

#include <gtest/gtest.h>

#include <future>
#include <memory>
#include <thread>
#include <vector>

#include "lib/loop_fixture.h"
#include "loop/timer.h"

namespace leasehold::loop {
namespace {

using base::Duration;
using base::MonoTime;

class LoopTest : public testing::LoopFixture {};

TEST_F(LoopTest, PostedTasksRunLaterAndInOrder) {
  std::vector<int> order;
  for (int i = 0; i < 3; ++i) loop_.Post([&order, i] { order.push_back(i); });
  EXPECT_TRUE(order.empty());
  ASSERT_TRUE(RunUntil([&] { return order.size() == 3; }));
  EXPECT_EQ(order, (std::vector<int>{0, 1, 2}));
}

TEST_F(LoopTest, TaskPostedByATaskRunsOnALaterTurn) {
  bool inner = false;
  bool inner_ran_inside = true;
  loop_.Post([&] {
    loop_.Post([&] { inner = true; });
    inner_ran_inside = inner;
  });
  ASSERT_TRUE(RunUntil([&] { return inner; }));
  EXPECT_FALSE(inner_ran_inside);
}

TEST_F(LoopTest, RunEndsWhenNothingIsLeft) {
  bool ran = false;
  loop_.Post([&] { ran = true; });
  loop_.Run();
  EXPECT_TRUE(ran);
  EXPECT_FALSE(loop_.RunOnce());
}

TEST_F(LoopTest, StopEndsRunAndRunMayBeCalledAgain) {
  Timer far(loop_, [] {});
  far.StartAfter(Duration::Seconds(1000));
  loop_.Post([&] { loop_.Stop(); });
  loop_.Run();
  EXPECT_TRUE(far.armed());
  bool again = false;
  loop_.Post([&] {
    again = true;
    loop_.Stop();
  });
  loop_.Run();
  EXPECT_TRUE(again);
}

TEST_F(LoopTest, WorkRunsOnAnotherThreadAndItsDoneOnTheLoop) {
  const std::thread::id here = std::this_thread::get_id();
  std::thread::id worker = here;
  std::thread::id finisher;
  loop_.Work([&] { worker = std::this_thread::get_id(); },
             [&] { finisher = std::this_thread::get_id(); });
  ASSERT_TRUE(RunUntil([&] { return finisher != std::thread::id(); }));
  EXPECT_NE(worker, here);
  EXPECT_EQ(finisher, here);
}

TEST(LoopLifeTest, WorkUnderWayWhenTheLoopIsDestroyedCallsNobody) {
  auto done = std::make_shared<bool>(false);
  {
    Loop loop;
    loop.Work([] {}, [done] { *done = true; });
  }
  EXPECT_FALSE(*done);
}

TEST(LoopLifeTest, WorkThatHangsDoesNotHoldUpTheEndOfTheLoop) {
#if defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "what stays for the worker is a leak to the sanitizer";
#endif
  auto release = std::make_shared<std::promise<void>>();
  auto done = std::make_shared<bool>(false);
  base::MonoTime start;
  {
    Loop loop;
    loop.Work([gate = release->get_future().share()] { gate.wait(); }, [done] { *done = true; });
    start = Loop::Now();
  }
  EXPECT_LT(Loop::Now() - start, Duration::Seconds(5));
  release->set_value();
  EXPECT_FALSE(*done);
}

TEST(LoopLifeTest, TaskNeverRunIsDroppedWithTheLoop) {
  auto captured = std::make_shared<int>(1);
  {
    Loop loop;
    loop.Post([captured] { FAIL() << "the loop never ran"; });
  }
  EXPECT_EQ(captured.use_count(), 1);
}

TEST_F(LoopTest, CachedClockIsReadOncePerWakeUp) {
  MonoTime first;
  MonoTime second;
  loop_.Post([&] {
    first = loop_.CachedNow();
    while (Loop::Now() - first < Duration::Millis(3)) {
    }
    EXPECT_EQ(loop_.CachedNow(), first);
    loop_.Post([&] { second = loop_.CachedNow(); });
  });
  ASSERT_TRUE(RunUntil([&] { return second != MonoTime(); }));
  EXPECT_GE(second - first, Duration::Millis(3));
}

TEST_F(LoopTest, StalledTurnShowsInLateness) {
  bool done = false;
  loop_.TakeLateness();
  loop_.Post([&] {
    const MonoTime start = Loop::Now();
    while (Loop::Now() - start < Duration::Millis(30)) {
    }
    loop_.Post([&] { done = true; });
  });
  ASSERT_TRUE(RunUntil([&] { return done; }));
  EXPECT_GE(loop_.TakeLateness(), Duration::Millis(30));
  EXPECT_EQ(loop_.TakeLateness(), Duration::Zero());
}

TEST_F(LoopTest, EntropyDiffersFromCallToCall) { EXPECT_NE(Loop::Entropy(), Loop::Entropy()); }

class TimerTest : public testing::LoopFixture {};

TEST_F(TimerTest, NeverFiresEarlyEvenWhenRearmedManyTimes) {
  int fired = 0;
  Duration earliest = Duration::Max();
  MonoTime due;
  Timer* self = nullptr;
  Timer timer(loop_, [&] {
    earliest = base::Min(earliest, Loop::Now() - due);
    if (++fired == 100) return;
    // Fractions of a millisecond: libuv alone would round some of these down.
    due = Loop::Now() + Duration::Micros(137 + 61 * fired % 2000);
    self->StartAt(due);
  });
  self = &timer;
  due = Loop::Now() + Duration::Micros(500);
  timer.StartAt(due);
  ASSERT_TRUE(RunUntil([&] { return fired == 100; }));
  EXPECT_GE(earliest, Duration::Zero());
}

TEST_F(TimerTest, StalledTurnBeforeTheStartDoesNotShortenTheWait) {
  MonoTime fired_at;
  MonoTime started_at;
  Timer timer(loop_, [&] { fired_at = Loop::Now(); });
  loop_.Post([&] {
    const MonoTime start = Loop::Now();
    while (Loop::Now() - start < Duration::Millis(50)) {
    }
    started_at = Loop::Now();
    timer.StartAfter(Duration::Millis(40));
  });
  ASSERT_TRUE(RunUntil([&] { return fired_at != MonoTime(); }));
  EXPECT_GE(fired_at - started_at, Duration::Millis(40));
}

TEST_F(TimerTest, StartReplacesTheEarlierStartAndStopEndsIt) {
  int fired = 0;
  Timer timer(loop_, [&] { ++fired; });
  timer.StartAfter(Duration::Millis(1));
  timer.StartAfter(Duration::Seconds(1000));
  RunFor(Duration::Millis(20));
  EXPECT_EQ(fired, 0);
  EXPECT_TRUE(timer.armed());
  timer.StartAt(MonoTime::Never());
  EXPECT_FALSE(timer.armed());
  timer.StartAfter(Duration::Zero());
  ASSERT_TRUE(RunUntil([&] { return fired == 1; }));
  EXPECT_FALSE(timer.armed());
}

TEST_F(TimerTest, InstantInThePastFiresOnALaterTurnNotInsideStart) {
  bool fired = false;
  Timer timer(loop_, [&] { fired = true; });
  timer.StartAt(MonoTime::FromNanos(1));
  EXPECT_FALSE(fired);
  ASSERT_TRUE(RunUntil([&] { return fired; }));
}

TEST_F(TimerTest, MayBeDestroyedInsideItsOwnCallback) {
  bool fired = false;
  auto captured = std::make_shared<int>(0);
  std::unique_ptr<Timer> timer;
  timer = std::make_unique<Timer>(loop_, [&, captured] {
    timer.reset();
    fired = true;
  });
  timer->StartAfter(Duration::Zero());
  ASSERT_TRUE(RunUntil([&] { return fired; }));
  EXPECT_EQ(captured.use_count(), 1);  // nothing captured outlives the timer
}

TEST_F(TimerTest, DestroyedTimerDoesNotFire) {
  bool fired = false;
  {
    Timer timer(loop_, [&] { fired = true; });
    timer.StartAfter(Duration::Zero());
  }
  RunFor(Duration::Millis(10));
  EXPECT_FALSE(fired);
}

}  // namespace
}  // namespace leasehold::loop

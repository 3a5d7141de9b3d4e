#include "store/worker_calls.h"

#include <gtest/gtest.h>

#include <semaphore>

#include "loop/timer.h"

namespace leasehold::store {
namespace {

using base::Duration;

class WorkerCallsTest : public ::testing::Test {
 protected:
  void SetUp() override { calls_ = std::make_unique<WorkerCalls>(loop_); }
  void TearDown() override { calls_.reset(); }

  bool RunUntil(const std::function<bool()>& condition, Duration limit = Duration::Seconds(20)) {
    const base::MonoTime end = loop::Loop::Now() + limit;
    loop::Timer* again = nullptr;
    loop::Timer ticker(loop_, [&] {
      if (condition() || loop::Loop::Now() >= end) return loop_.Stop();
      again->StartAfter(Duration::Millis(1));
    });
    again = &ticker;
    ticker.StartAfter(Duration::Zero());
    loop_.Run();
    return condition();
  }

  // A call that counts its answers, whose work is `work`.
  WorkerCalls::Call Counted(std::function<WorkerCalls::Attempt()> work) {
    WorkerCalls::Call call;
    call.work = [work = std::move(work)](const std::atomic<bool>&) { return work(); };
    call.settle = [this] { ++settled_; };
    call.finish = [this] { ++finished_; };
    call.give_up = [this](const std::string& why) {
      ++given_up_;
      why_ = why;
    };
    return call;
  }

  loop::Loop loop_;
  std::unique_ptr<WorkerCalls> calls_;
  int settled_ = 0;
  int finished_ = 0;
  int given_up_ = 0;
  std::string why_;
};

TEST_F(WorkerCallsTest, WorkThatEndsInTimeFinishesOnceAndLater) {
  calls_->Start(Duration::Seconds(5), Counted([] { return WorkerCalls::Attempt{}; }));
  EXPECT_EQ(finished_, 0);
  EXPECT_EQ(calls_->outstanding(), 1U);
  ASSERT_TRUE(RunUntil([this] { return finished_ > 0; }));
  EXPECT_EQ(finished_, 1);
  EXPECT_EQ(given_up_, 0);
  EXPECT_EQ(settled_, 1);
  EXPECT_EQ(calls_->outstanding(), 0U);
  EXPECT_EQ(calls_->running(), 0U);
}

TEST_F(WorkerCallsTest, ALateEndAnswersNobodyButSettles) {
  std::binary_semaphore gate(0);
  calls_->Start(Duration::Millis(30), Counted([&gate] {
                  gate.acquire();
                  return WorkerCalls::Attempt{};
                }));
  ASSERT_TRUE(RunUntil([this] { return given_up_ > 0; }));
  EXPECT_NE(why_.find("30ms"), std::string::npos) << why_;
  EXPECT_EQ(calls_->outstanding(), 0U);
  EXPECT_EQ(calls_->running(), 1U);
  gate.release();
  ASSERT_TRUE(RunUntil([this] { return calls_->running() == 0; }));
  EXPECT_EQ(settled_, 1);
  EXPECT_EQ(finished_, 0);
  EXPECT_EQ(given_up_, 1);
}

TEST_F(WorkerCallsTest, WorkIsToldThatItsTimeIsOver) {
  std::binary_semaphore gate(0);
  bool told = false;
  WorkerCalls::Call call = Counted([] { return WorkerCalls::Attempt{}; });
  call.work = [&](const std::atomic<bool>& cancelled) {
    gate.acquire();
    told = cancelled.load();
    return WorkerCalls::Attempt{};
  };
  calls_->Start(Duration::Millis(10), std::move(call));
  ASSERT_TRUE(RunUntil([this] { return given_up_ > 0; }));
  gate.release();
  ASSERT_TRUE(RunUntil([this] { return calls_->running() == 0; }));
  EXPECT_TRUE(told);
}

TEST_F(WorkerCallsTest, BusyWorkIsTriedAgainUntilItIsDone) {
  std::atomic<int> attempts{0};
  calls_->Start(Duration::Seconds(20), Counted([&attempts] {
                  return WorkerCalls::Attempt{++attempts < 4, "the lock"};
                }));
  ASSERT_TRUE(RunUntil([this] { return finished_ > 0; }));
  EXPECT_EQ(attempts, 4);
  EXPECT_EQ(settled_, 4);
  EXPECT_EQ(given_up_, 0);
}

TEST_F(WorkerCallsTest, WorkThatStaysBusyIsGivenUpWithWhatItWaitedFor) {
  calls_->Start(Duration::Millis(60), Counted([] {
                  return WorkerCalls::Attempt{true, "the lock did not come free"};
                }));
  ASSERT_TRUE(RunUntil([this] { return given_up_ > 0; }));
  EXPECT_EQ(why_, "the lock did not come free within 60ms");
  EXPECT_EQ(finished_, 0);
  const int settled = settled_;
  RunUntil([] { return false; }, Duration::Millis(60));
  EXPECT_LE(settled_, settled + 1) << "it is still being tried";
}

TEST_F(WorkerCallsTest, GivingUpAllAnswersEachOnce) {
  std::binary_semaphore gate(0);
  for (int i = 0; i < 3; ++i) {
    calls_->Start(Duration::Seconds(20), Counted([&gate, i] {
                    if (i == 0) gate.acquire();
                    return WorkerCalls::Attempt{true, ""};
                  }));
  }
  calls_->GiveUpAll("closing");
  EXPECT_EQ(given_up_, 3);
  EXPECT_EQ(why_, "closing");
  gate.release();
  ASSERT_TRUE(RunUntil([this] { return calls_->running() == 0; }));
  EXPECT_EQ(given_up_, 3);
  EXPECT_EQ(finished_, 0);
}

TEST_F(WorkerCallsTest, AnAnswerMayEndTheCalls) {
  WorkerCalls::Call call = Counted([] { return WorkerCalls::Attempt{}; });
  call.finish = [this] {
    ++finished_;
    calls_.reset();
  };
  calls_->Start(Duration::Seconds(5), std::move(call));
  EXPECT_TRUE(RunUntil([this] { return finished_ == 1; }));
}

TEST_F(WorkerCallsTest, EndedCallsAnswerNobodyThoughTheirWorkGoesOn) {
  std::binary_semaphore gate(0);
  calls_->Start(Duration::Millis(20), Counted([&gate] {
                  gate.acquire();
                  return WorkerCalls::Attempt{};
                }));
  calls_.reset();
  gate.release();
  ASSERT_TRUE(RunUntil([this] { return settled_ == 1; }));
  RunUntil([] { return false; }, Duration::Millis(40));
  EXPECT_EQ(finished_ + given_up_, 0);
}

}  // namespace
}  // namespace leasehold::store

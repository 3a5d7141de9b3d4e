// LostTimeDetector: which clock readings mean that this machine lost time (DESIGN 2.2).

#include "app/lost_time.h"

#include <gtest/gtest.h>

namespace leasehold::app {
namespace {

class LostTime : public ::testing::Test {
 protected:
  void SetUp() override {}
  static base::MonoTime Boot(int64_t ms) { return base::MonoTime::FromNanos(ms * 1000000); }
  LostTimeDetector detector_;
};

TEST_F(LostTime, ClocksThatRunTogetherSayNothing) {
  for (int64_t ms = 0; ms < 100000; ms += 500) {
    EXPECT_FALSE(detector_.SeeWall(Boot(ms), {1700000000000 + ms}));
    EXPECT_FALSE(detector_.SeeStore(Boot(ms), 1700000000000 + ms));
  }
}

TEST_F(LostTime, AWallClockThatJumpsForwardMoreThanTwoSecondsIsLostTimeOnce) {
  EXPECT_FALSE(detector_.SeeWall(Boot(0), {1000}));
  EXPECT_TRUE(detector_.SeeWall(Boot(500), {4000}));
  EXPECT_FALSE(detector_.SeeWall(Boot(1000), {4500}));
}

TEST_F(LostTime, AWallClockThatJumpsBackSaysNothing) {
  EXPECT_FALSE(detector_.SeeWall(Boot(0), {3600000}));
  EXPECT_FALSE(detector_.SeeWall(Boot(500), {0}));
  EXPECT_FALSE(detector_.SeeWall(Boot(1000), {500}));
}

TEST_F(LostTime, AStoreClockAheadByMoreThanTwoSecondsIsLostTimeOnce) {
  EXPECT_FALSE(detector_.SeeStore(Boot(0), 1000));
  EXPECT_TRUE(detector_.SeeStore(Boot(500), 4000));
  EXPECT_FALSE(detector_.SeeStore(Boot(1000), 4500));
}

TEST_F(LostTime, ALateAnswerOnlyMakesTheStoreLookOlderAndIsNoJumpAfterwards) {
  EXPECT_FALSE(detector_.SeeStore(Boot(0), 10000));
  EXPECT_FALSE(detector_.SeeStore(Boot(5000), 10100));  // waited 4.9 s in the socket
  EXPECT_FALSE(detector_.SeeStore(Boot(5500), 15500));
}

}  // namespace
}  // namespace leasehold::app

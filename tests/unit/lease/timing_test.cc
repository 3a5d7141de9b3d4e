// The derived timings of DESIGN 2.2, 2.3 and 2.6, with the seed's worked numbers, and the
// combinations that are refused.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <string>

#include "lease/options.h"

namespace leasehold::lease {
namespace {

using base::Duration;

class TimingTest : public ::testing::Test {
 protected:
  void SetUp() override { options_.name = "orders"; }

  // The one error, or what went wrong instead.
  std::string OnlyError() const {
    const std::vector<base::Error> errors = Validate(options_);
    if (errors.size() != 1) return std::to_string(errors.size()) + " errors";
    return errors[0].message;
  }
  void ExpectError(const std::string& part) const {
    EXPECT_NE(OnlyError().find(part), std::string::npos) << OnlyError();
  }

  Options options_;
};

TEST_F(TimingTest, SeedExampleOf300SecondsRenewsEvery62Seconds) {
  options_.ttl = Duration::Seconds(300);
  ASSERT_TRUE(Validate(options_).empty()) << Validate(options_)[0].message;
  const Timing t = Derive(options_);
  EXPECT_EQ(t.budget, Duration::Seconds(75));
  EXPECT_EQ(t.call_timeout, Duration::Seconds(5));
  EXPECT_EQ(t.renew_interval, Duration::Nanos(62222222222));
  EXPECT_EQ(t.margin, Duration::Seconds(1));
  EXPECT_EQ(t.forced_drain_after, Duration::Seconds(279));  // 300 - 1 - 20
  EXPECT_EQ(t.poll_interval, Duration::Seconds(5));
  EXPECT_EQ(t.frozen_after, Duration::Seconds(1));
}

TEST_F(TimingTest, DefaultsOfTenSeconds) {
  ASSERT_TRUE(Validate(options_).empty());
  const Timing t = Derive(options_);
  EXPECT_EQ(t.ttl, Duration::Seconds(10));
  EXPECT_EQ(t.margin, Duration::Millis(200));
  EXPECT_EQ(t.budget, Duration::Millis(2500));
  EXPECT_EQ(t.call_timeout, Duration::Millis(2500) / 3);
  EXPECT_EQ(t.renew_interval, (t.budget - t.call_timeout) * 8 / 9);
  EXPECT_EQ(t.forced_drain_after, Duration::Millis(8750));
  EXPECT_EQ(t.hold_off, Duration::Seconds(5));
  EXPECT_EQ(t.poll_interval, Duration::Seconds(1));
  EXPECT_EQ(t.frozen_after, Duration::Millis(200));
  EXPECT_EQ(t.grace, Duration::Seconds(20));
  EXPECT_EQ(t.Window(Duration::Seconds(10)), Duration::Millis(10010));
}

TEST_F(TimingTest, ShortestTtlHasTheMarginFloorAndThePollFloor) {
  options_.ttl = Duration::Millis(500);
  ASSERT_TRUE(Validate(options_).empty());
  const Timing t = Derive(options_);
  EXPECT_EQ(t.margin, Duration::Millis(20));
  EXPECT_EQ(t.poll_interval, Duration::Millis(250));
  EXPECT_EQ(t.frozen_after, Duration::Millis(100));
  EXPECT_EQ(t.call_timeout, Duration::Millis(125) / 3);
}

TEST_F(TimingTest, TwiceTheDriftOfTheTtlWinsOverTheMarginCeiling) {
  options_.ttl = Duration::Seconds(60);
  options_.max_clock_drift = 0.02;
  EXPECT_EQ(Derive(options_).margin, Duration::Millis(2400));
  options_.max_clock_drift = 0.05;  // the largest allowed still fits before the forced drain
  ASSERT_TRUE(Validate(options_).empty());
  EXPECT_LT(Derive(options_).forced_drain_after, options_.ttl - Derive(options_).margin);
}

TEST_F(TimingTest, EveryAllowedTtlAndFailCountDerivesAnOrderedSchedule) {
  for (const int64_t ttl_ms : {500, 700, 1000, 3000, 10000, 30000, 61000, 300000, 86400000}) {
    for (int fails = 1; fails <= 20; ++fails) {
      options_.ttl = Duration::Millis(ttl_ms);
      options_.max_renew_fails = fails;
      if (!Validate(options_).empty()) continue;
      const Timing t = Derive(options_);
      EXPECT_GE(t.renew_interval, Duration::Millis(10)) << ttl_ms << " " << fails;
      EXPECT_LE(t.renew_interval + t.renew_interval / 8 + t.call_timeout, t.budget);
      EXPECT_LT(t.budget * fails, t.forced_drain_after);
      EXPECT_LT(t.forced_drain_after, t.ttl - t.margin);
      EXPECT_GT(t.hold_off, t.poll_interval + t.call_timeout);
    }
  }
}

TEST_F(TimingTest, HoldOffGrowsByItselfWherePollsAndCallsAreSlow) {
  options_.ttl = Duration::Seconds(300);  // poll 5 s, call 5 s
  EXPECT_EQ(Derive(options_).hold_off, Duration::Seconds(11));
}

TEST_F(TimingTest, ExplicitHoldOffThatNoStandbyCanUseIsRefused) {
  options_.step_down_hold_off = Duration::Millis(1500);  // poll 1 s + call 0.833 s
  ExpectError("step_down_hold_off = 1500ms");
  ExpectError("must exceed poll_interval + renew_call_timeout = 1834ms");
  options_.step_down_hold_off = Duration::Seconds(2);
  EXPECT_TRUE(Validate(options_).empty());
}

TEST_F(TimingTest, MarginBelowTheClockErrorIsRefused) {
  options_.safety_margin = Duration::Millis(19);
  ExpectError("safety_margin = 19ms: must be at least 20ms");
  options_.ttl = Duration::Seconds(60);
  options_.safety_margin = Duration::Millis(119);
  ExpectError("must be at least 120ms");
  options_.safety_margin = Duration::Millis(120);
  EXPECT_TRUE(Validate(options_).empty());
}

TEST_F(TimingTest, MarginThatWouldEndThePermitBeforeTheForcedDrainIsRefused) {
  options_.safety_margin = Duration::Millis(1251);
  ExpectError("must be at most 1250ms");
  options_.safety_margin = Duration::Millis(1250);
  EXPECT_TRUE(Validate(options_).empty());
}

TEST_F(TimingTest, ExplicitIntervalMustLeaveRoomForJitterAndOneCall) {
  options_.renew_call_timeout = Duration::Millis(700);
  options_.renew_interval = Duration::Millis(1601);  // (2.5 - 0.7) * 8 / 9 = 1.6 s
  ExpectError("renew_interval = 1601ms: leaves no room");
  ExpectError("at most 1600ms");
  options_.renew_interval = Duration::Millis(1600);
  EXPECT_TRUE(Validate(options_).empty());
  EXPECT_EQ(Derive(options_).renew_interval, Duration::Millis(1600));
}

TEST_F(TimingTest, CallTimeoutLongerThanHalfARoundIsRefused) {
  options_.renew_call_timeout = Duration::Millis(1251);
  ExpectError("renew_call_timeout = 1251ms: must be from 10ms to 1250ms");
}

TEST_F(TimingTest, IntervalsThatAreMostlyTimerAreRefused) {
  options_.renew_interval = Duration::Millis(9);
  ExpectError("renew_interval = 9ms: must be from 10ms to ");
  options_.renew_interval.reset();
  options_.poll_interval = Duration::Millis(9);
  ExpectError("poll_interval = 9ms: must be from 10ms to ");
}

TEST_F(TimingTest, APollSlowerThanTheTtlIsRefused) {
  options_.poll_interval = Duration::Millis(10001);
  ExpectError("poll_interval = 10001ms: must be from 10ms to 10");
}

TEST_F(TimingTest, AHoldOffOfMoreThanAnHourIsRefused) {
  options_.step_down_hold_off = Duration::Seconds(3601);
  ExpectError("step_down_hold_off = 3601s: must be at most ");
}

TEST_F(TimingTest, ATtlThatTheRecordWouldRoundIsRefused) {
  options_.ttl = Duration::Nanos(10'000'000'001);
  ExpectError("must be whole milliseconds");
}

TEST_F(TimingTest, RoundsTooShortToRenewInAreRefusedWithTheLargestFailCount) {
  options_.ttl = Duration::Millis(500);
  options_.max_renew_fails = 20;
  ExpectError("max_renew_fails = 20");
  ExpectError("at most 12");
  options_.max_renew_fails = 12;
  EXPECT_TRUE(Validate(options_).empty());
}

TEST_F(TimingTest, TtlOutsideItsRangeIsRefused) {
  options_.ttl = Duration::Millis(499);
  ExpectError("ttl = 499ms: must be from 500ms to 24h");
  options_.ttl = Duration::Seconds(24 * 3600 + 1);
  ExpectError("must be from 500ms to 24h");
  options_.ttl = Duration::Micros(1000500);
  ExpectError("whole milliseconds");
}

TEST_F(TimingTest, BasicsOutsideTheirRangesAreRefused) {
  options_.max_renew_fails = 0;
  ExpectError("max_renew_fails = 0: must be from 1 to 20");
  options_.max_renew_fails = 3;
  options_.max_clock_drift = std::nan("");
  ExpectError("max_clock_drift = nan");
  options_.max_clock_drift = 0.051;
  ExpectError("max_clock_drift = 0.051");
  options_.max_clock_drift = 0.001;
  options_.poll_interval = Duration::Seconds(11);
  ExpectError("poll_interval = 11s: must be from 10ms to 10s");
  options_.poll_interval.reset();
  options_.step_down_grace = Duration::Seconds(3601);
  ExpectError("step_down_grace = 3601s: must be from 0s to 1h");
}

TEST_F(TimingTest, NamesThatCannotBeFileNamesOrKeysAreRefused) {
  for (const std::string name : {"", ".hidden", "a/b", "a b", "gr\xc3\xbcn"}) {
    options_.name = name;
    ExpectError("must be 1 to 128 letters");
  }
  options_.name = std::string(129, 'a');
  ExpectError("must be 1 to 128 letters");
  options_.name = std::string(128, 'a');
  EXPECT_TRUE(Validate(options_).empty());
}

TEST_F(TimingTest, AllErrorsComeAtOnce) {
  options_.name = "a b";
  options_.safety_margin = Duration::Millis(1);
  options_.renew_interval = Duration::Seconds(9);
  options_.step_down_hold_off = Duration::Millis(1);
  EXPECT_EQ(Validate(options_).size(), 4u);
}

TEST_F(TimingTest, DefaultsRaiseNoWarning) { EXPECT_TRUE(Warnings(options_).empty()); }

TEST_F(TimingTest, RiskyButAllowedOptionsAreWarnedOf) {
  struct Case {
    std::function<void(Options&)> set;
    std::string begins;
  };
  const Case cases[] = {
      {[](Options& o) { o.ttl = Duration::Millis(1999); }, "ttl = 1999ms: "},
      {[](Options& o) { o.ttl = Duration::Seconds(121); }, "ttl = 121s: "},
      {[](Options& o) { o.max_clock_drift = 0; }, "max_clock_drift = 0: "},
      {[](Options& o) { o.max_renew_fails = 1; }, "max_renew_fails = 1: "},
      {[](Options& o) { o.renew_call_timeout = Duration::Millis(49); }, "renew_call_timeout = "},
      {[](Options& o) { o.drain_tunnels = Duration::Seconds(21); }, "drain_tunnels = 21s: "},
      {[](Options& o) { o.step_down_grace = Duration::Zero(); }, "step_down_grace = 0s: "},
  };
  for (const Case& c : cases) {
    Options options = options_;
    c.set(options);
    ASSERT_TRUE(Validate(options).empty()) << c.begins;
    const std::vector<std::string> warnings = Warnings(options);
    ASSERT_EQ(warnings.size(), 1u) << c.begins;
    EXPECT_EQ(warnings[0].rfind(c.begins, 0), 0u) << warnings[0];
  }
}

}  // namespace
}  // namespace leasehold::lease

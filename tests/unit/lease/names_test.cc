// The words that logs, metrics, the socket and the API show are those of DESIGN 1 and 2.4: scripts
// and alerts are written against them. And every event and effect of a trace has a text that tells
// it from the others, or two different runs would look the same.

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lease/events.h"
#include "lease/trace.h"

namespace leasehold::lease {
namespace {

using base::Duration;

TEST(NamesTest, StatesAreNamedAsInTheDesign) {
  const std::pair<State, std::string_view> names[] = {
      {State::kStandby, "standby"},     {State::kAcquiring, "acquiring"},
      {State::kActive, "active"},       {State::kDraining, "draining"},
      {State::kReleasing, "releasing"}, {State::kHoldOff, "hold_off"},
      {State::kStopped, "stopped"}};
  for (const auto& [state, name] : names) EXPECT_EQ(StateName(state), name);
}

TEST(NamesTest, ValvesAreNamedByWhatTheyDo) {
  EXPECT_EQ(ValveName(Valve::kClosed), "closed");
  EXPECT_EQ(ValveName(Valve::kHolding), "holding");
  EXPECT_EQ(ValveName(Valve::kOpen), "open");
  EXPECT_EQ(ValveName(Valve::kDraining), "draining");
}

TEST(NamesTest, ReasonsAreTheClosedListOfTheDesign) {
  const std::pair<Reason, std::string_view> names[] = {
      {Reason::kNone, ""},
      {Reason::kRequested, "requested"},
      {Reason::kShutdown, "shutdown"},
      {Reason::kRenewalsFailed, "renewals_failed"},
      {Reason::kSuperseded, "superseded"},
      {Reason::kAbsent, "absent"},
      {Reason::kExpired, "expired"},
      {Reason::kHostFrozen, "host_frozen"},
      {Reason::kAppUnready, "app_unready"},
      {Reason::kHandoff, "handoff"},
      {Reason::kStoreRegressed, "store_regressed"},
      {Reason::kTokenRegression, "token_regression"},
      {Reason::kStartFailed, "start_failed"}};
  for (const auto& [reason, name] : names) EXPECT_EQ(ReasonName(reason), name);
}

TEST(NamesTest, NoticesAreTheEventNamesOfTheDesign) {
  const std::pair<Notice, std::string_view> names[] = {
      {Notice::kAcquired, "lease.acquired"},
      {Notice::kAtRisk, "lease.at_risk"},
      {Notice::kRestored, "lease.restored"},
      {Notice::kDraining, "lease.draining"},
      {Notice::kReleased, "lease.released"},
      {Notice::kLost, "lease.lost"},
      {Notice::kObserved, "lease.observed"},
      {Notice::kStoreDegraded, "store.degraded"},
      {Notice::kStoreRecovered, "store.recovered"},
      {Notice::kDuplicateId, "node.duplicate_id"},
      {Notice::kTokenRegression, "lease.token_regression"},
      {Notice::kTokenExhausted, "lease.token_exhausted"},
      {Notice::kRecordUnusable, "lease.record_unusable"}};
  for (const auto& [notice, name] : names) EXPECT_EQ(NoticeName(notice), name);
}

TEST(NamesTest, OutcomesAreThoseOfTheStepDownAnswer) {
  using Outcome = StepDownDone::Outcome;
  EXPECT_EQ(OutcomeName(Outcome::kFailedPrecondition), "failed_precondition");
  EXPECT_EQ(OutcomeName(Outcome::kNotHolder), "not_holder");
  EXPECT_EQ(OutcomeName(Outcome::kTakenOver), "taken_over_by_another_process");
  EXPECT_EQ(OutcomeName(Outcome::kTakenBack), "taken_back_by_this_process");
  EXPECT_EQ(OutcomeName(Outcome::kUnknown), "unknown");
}

class TraceTextTest : public ::testing::Test {
 protected:
  void SetUp() override {
    record_.lease = "orders";
    record_.node_id = "n1";
    record_.process_id = "p1";
    record_.token = 7;
    record_.beat = 3;
    record_.ttl_ms = 10000;
  }
  // No two of these texts are the same, and none is empty.
  static void AllDiffer(const std::vector<std::string>& texts) {
    std::set<std::string> seen;
    for (const std::string& text : texts) {
      EXPECT_FALSE(text.empty());
      EXPECT_TRUE(seen.insert(text).second) << "twice: " << text;
    }
  }
  Record record_;
};

TEST_F(TraceTextTest, NoTwoEventsLookTheSame) {
  using Read = ReadAnswer::Outcome;
  using Cas = CasAnswer::Outcome;
  AllDiffer({EventText(Tick{}),
             EventText(ReadAnswer{4, Read::kAbsent, {}, {}, false, ""}),
             EventText(ReadAnswer{4, Read::kRecord, record_, "v", false, ""}),
             EventText(ReadAnswer{4, Read::kRecord, record_, "v", true, ""}),
             EventText(ReadAnswer{4, Read::kAmbiguous, {}, {}, false, ""}),
             EventText(ReadAnswer{4, Read::kRefused, {}, {}, false, ""}),
             EventText(CasAnswer{4, Cas::kApplied, "v", {}, false, ""}),
             EventText(CasAnswer{4, Cas::kConflict, "v", record_, false, ""}),
             EventText(CasAnswer{4, Cas::kConflict, {}, {}, true, ""}),
             EventText(CasAnswer{4, Cas::kConflict, {}, {}, false, ""}),
             EventText(CasAnswer{4, Cas::kAmbiguous, {}, {}, false, ""}),
             EventText(CasAnswer{4, Cas::kRefused, {}, {}, false, ""}),
             EventText(Hint{true}),
             EventText(Hint{false}),
             EventText(PushState{true}),
             EventText(PushState{false}),
             EventText(AppState{true}),
             EventText(AppState{false}),
             EventText(AppUnreadyTooLong{}),
             EventText(StepDownRequest{4, {"n1", 7}, Reason::kRequested, true}),
             EventText(StepDownRequest{4, {"n1", 7}, Reason::kRequested, false}),
             EventText(StepDownRequest{4, {"n1", 8}, Reason::kRequested, true}),
             EventText(Drained{7}),
             EventText(StartFailed{7, "x"}),
             EventText(LostTime{}),
             EventText(Shutdown{false}),
             EventText(Shutdown{true})});
}

TEST_F(TraceTextTest, NoTwoEffectsLookTheSame) {
  using Purpose = CasEffect::Purpose;
  const Duration second = Duration::Seconds(1);
  NoticeEffect at_risk;
  at_risk.notice = Notice::kAtRisk;
  NoticeEffect with_reason = at_risk;
  with_reason.reason = Reason::kHostFrozen;
  NoticeEffect draining;
  draining.notice = Notice::kDraining;
  NoticeEffect draining_longer = draining;
  draining_longer.grace = second;
  AllDiffer({EffectText(ReadEffect{4, second}), EffectText(ReadEffect{4, second * 2}),
             EffectText(CasEffect{4, Purpose::kAcquire, {}, record_, second}),
             EffectText(CasEffect{4, Purpose::kAcquire, "v", record_, second}),
             EffectText(CasEffect{4, Purpose::kRenew, "v", record_, second}),
             EffectText(CasEffect{4, Purpose::kRelease, "v", record_, second}),
             EffectText(ValveEffect{Valve::kOpen, Reason::kNone, false, {}, 7}),
             EffectText(ValveEffect{Valve::kHolding, Reason::kNone, false, {}, 7}),
             EffectText(ValveEffect{Valve::kClosed, Reason::kShutdown, false, {}, 7}),
             EffectText(ValveEffect{Valve::kClosed, Reason::kExpired, true, {}, 7}),
             EffectText(at_risk), EffectText(with_reason), EffectText(draining),
             EffectText(draining_longer), EffectText(StepDownDone{}),
             EffectText(StoppedEffect{true, ""}), EffectText(StoppedEffect{false, ""})});
}

}  // namespace
}  // namespace leasehold::lease

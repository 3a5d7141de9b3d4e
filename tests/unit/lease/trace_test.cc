// Golden traces: whole lives of an engine, event by event, compared as text with tests/trace/*.txt.
// A change of the protocol shows as a diff of those files. To rewrite them:
// LEASEHOLD_REWRITE_TRACES=1 build/.../test_lease, then review.

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "base/text.h"
#include "lib/engine_fixture.h"

namespace leasehold::test {
namespace {

class Trace : public EngineFixture {
 protected:
  // Feeds and writes down; effects stay in place for the answers.
  void Do(const Event& event) {
    Note("<- " + EventText(event));
    lease::Effects before;
    before.swap(engine_effects_);
    Feed(event);
    for (const Effect& effect : engine_effects_) Note("   -> " + EffectText(effect));
    before.insert(before.end(), engine_effects_.begin(), engine_effects_.end());
    engine_effects_ = std::move(before);
  }
  void DoTick() {
    now_ = Max(now_, engine_->NextDeadline());
    Do(Tick{});
  }
  void DoApplied() {
    const CasEffect cas = MustLast<CasEffect>();
    Do(CasAnswer{cas.op, CasAnswer::Outcome::kApplied, MakeVersion(cas.record), {}, false, ""});
    last_write_ = cas.record;
  }
  CasEffect DoAmbiguous() {
    CasEffect cas = MustLast<CasEffect>();
    Do(CasAnswer{cas.op, CasAnswer::Outcome::kAmbiguous, {}, {}, false, "no answer"});
    return cas;
  }
  void DoRead(const std::optional<Record>& record) {
    const ReadEffect read = MustLast<ReadEffect>();
    const auto outcome = record ? ReadAnswer::Outcome::kRecord : ReadAnswer::Outcome::kAbsent;
    Do(ReadAnswer{read.op, outcome, record, record ? MakeVersion(*record) : "", false, ""});
  }
  void DoReadFailed() {
    Do(ReadAnswer{
        MustLast<ReadEffect>().op, ReadAnswer::Outcome::kAmbiguous, {}, {}, false, "no answer"});
  }
  void Begin() {
    Make();
    start_ = now_;
    Do(AppState{true});
    DoRead(std::nullopt);
    DoApplied();
  }
  void Note(const std::string& line) {
    char time[32];
    std::snprintf(time, sizeof time, "%9.3f ", (now_ - start_).seconds());
    text_ += time + line + "\n";
  }
  // Compares with tests/trace/<name>.txt, or rewrites it when asked to.
  void Compare(const std::string& name) {
    const std::string path = std::string(LEASEHOLD_TEST_DIR) + "/trace/" + name + ".txt";
    if (std::getenv("LEASEHOLD_REWRITE_TRACES") != nullptr) {
      std::ofstream(path) << text_;
    }
    std::ifstream file(path);
    std::stringstream golden;
    golden << file.rdbuf();
    ASSERT_TRUE(file) << path << " cannot be read; write it with LEASEHOLD_REWRITE_TRACES=1";
    EXPECT_EQ(golden.str(), text_)
        << "the protocol changed; if that is meant, rewrite the trace and review the diff";
  }

  MonoTime start_;
  std::string text_;
};

TEST_F(Trace, AFirstStartAndThreeRenewals) {
  Begin();
  for (int i = 0; i < 3; ++i) {
    DoTick();
    Advance(Duration::Millis(3));
    DoApplied();
  }
  Compare("first_start");
}

TEST_F(Trace, ARenewalWhoseReplyWasLost) {
  Begin();
  DoTick();
  Advance(Duration::Millis(200));
  const CasEffect lost = DoAmbiguous();
  DoRead(lost.record);
  DoTick();
  DoApplied();
  Compare("lost_reply");
}

TEST_F(Trace, AStoreOutageUntilTheDrainAndItsHealing) {
  Begin();
  while (state() == State::kActive) {
    DoTick();
    if (!None<CasEffect>()) DoAmbiguous();
    if (!None<ReadEffect>()) DoReadFailed();
  }
  DoTick();
  DoApplied();
  Compare("outage_healed");
}

TEST_F(Trace, AStoreOutageUntilExpiry) {
  Begin();
  for (int i = 0; i < 200 && state() != State::kStandby; ++i) {
    DoTick();
    if (!None<CasEffect>()) DoAmbiguous();
    if (!None<ReadEffect>()) DoReadFailed();
  }
  Compare("outage_expired");
}

TEST_F(Trace, APlannedStepDownThatAnotherTakes) {
  Begin();
  Advance(Duration::Millis(500));
  Do(StepDownRequest{1, {"n1", 1}, Reason::kRequested, true});
  Do(Drained{1});
  DoApplied();
  Do(Hint{true});
  DoRead(Other(2, 1));
  Compare("step_down_taken_over");
}

TEST_F(Trace, APlannedStepDownThatIsTakenBack) {
  Begin();
  Do(StepDownRequest{1, {"n1", 1}, Reason::kRequested, true});
  Do(Drained{1});
  DoApplied();
  const Record released = last_write_;
  while (state() == State::kHoldOff) {
    DoTick();
    if (!None<ReadEffect>()) DoRead(released);
  }
  DoApplied();
  Compare("step_down_taken_back");
}

TEST_F(Trace, AStandbyThatTakesOverOneWindowAfterTheLastRenewal) {
  Make();
  start_ = now_;
  Do(AppState{true});
  DoRead(Other(4, 9));
  while (None<CasEffect>()) {
    DoTick();
    if (!None<ReadEffect>() && None<CasEffect>()) DoRead(Other(4, 9));
  }
  DoApplied();
  Compare("standby_takes_over");
}

TEST_F(Trace, AFrozenHostWhoseLeaseWasTaken) {
  Begin();
  Advance(Duration::Seconds(12));
  Do(Tick{});
  while (None<ReadEffect>()) DoTick();
  DoRead(Other(2, 3));
  Compare("host_frozen");
}

TEST_F(Trace, SigtermOfAHolder) {
  Begin();
  Do(Shutdown{});
  Do(Drained{1});
  DoApplied();
  Compare("sigterm");
}

}  // namespace
}  // namespace leasehold::test

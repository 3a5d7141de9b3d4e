// DESIGN 2.5, the release itself: whatever the store answers to it, it ends, it never confirms what
// is not so, and who asked for it is told what became of the lease.

#include <functional>

#include "lib/engine_fixture.h"

namespace leasehold::test {
namespace {

class Releasing : public EngineFixture {
 protected:
  // Holds token 1, was asked to step down by request 1, and has sent its release.
  void BeginRelease() {
    Hold();
    Feed(StepDownRequest{1, {"n1", 1}, Reason::kRequested, true});
    Feed(Drained{1});
    ASSERT_EQ(state(), State::kReleasing) << Effects();
    ASSERT_FALSE(None<CasEffect>());
    ASSERT_FALSE(MayAct());
  }
  // The next release that is sent, after whatever pause.
  CasEffect NextRelease() {
    for (int i = 0; i < 20 && None<CasEffect>(); ++i) TickNext();
    CasEffect cas = Must<CasEffect>();
    EXPECT_EQ(cas.purpose, CasEffect::Purpose::kRelease);
    return cas;
  }
  std::string DetailOfReleased() {
    while (const auto told = Take<NoticeEffect>()) {
      if (told->notice == Notice::kReleased) return told->detail;
    }
    return "not told";
  }
};

TEST_F(Releasing, AConflictWithoutARecordIsReadAndTheReleaseRepeatedOnWhatIsThere) {
  BeginRelease();
  AnswerConflictBlind();
  ASSERT_EQ(state(), State::kReleasing);
  Record own = last_write_;
  own.beat += 1;  // a renewal whose answer was lost
  AnswerRecord(own);
  EXPECT_EQ(*NextRelease().expected, MakeVersion(own));
}

TEST_F(Releasing, AConflictThatShowsAnotherHolderEndsItAndNamesThatHolder) {
  BeginRelease();
  AnswerConflict(Other(2, 1));
  EXPECT_EQ(state(), State::kStandby) << "no hold-off: somebody has it";
  const StepDownDone done = Must<StepDownDone>();
  EXPECT_EQ(done.outcome, StepDownDone::Outcome::kTakenOver);
  EXPECT_EQ(done.process_id, "p2");
  EXPECT_NE(DetailOfReleased().find("p2"), std::string::npos);
}

TEST_F(Releasing, AConflictThatShowsNoRecordEndsItAndSaysSo) {
  BeginRelease();
  AnswerConflictAbsent();
  EXPECT_EQ(state(), State::kHoldOff);
  EXPECT_EQ(DetailOfReleased(), "the store has no record of it");
}

TEST_F(Releasing, AReleaseThatTookThoughItsAnswerWasLostIsFoundByTheReadAndNotRepeated) {
  BeginRelease();
  const CasEffect lost = AnswerAmbiguous();
  AnswerRecord(lost.record);
  EXPECT_EQ(state(), State::kHoldOff);
  EXPECT_EQ(DetailOfReleased(), "");
  while (state() == State::kHoldOff) {
    ASSERT_TRUE(None<CasEffect>());
    if (!None<ReadEffect>()) AnswerRecord(lost.record);
    TickNext();
  }
  EXPECT_EQ(Must<CasEffect>().purpose, CasEffect::Purpose::kAcquire) << "the take-back";
}

TEST_F(Releasing, WithWaitReplicasAReadDoesNotConfirmTheReleaseAndItIsSentAgain) {
  options_.reads_confirm = false;
  BeginRelease();
  const CasEffect lost = AnswerAmbiguous();
  AnswerRecord(lost.record);
  ASSERT_EQ(state(), State::kReleasing) << "the replica may not have it yet";
  const CasEffect again = NextRelease();
  EXPECT_EQ(*again.expected, MakeVersion(lost.record));
  Feed(CasAnswer{again.op, CasAnswer::Outcome::kApplied, MakeVersion(again.record), {}, false, ""});
  EXPECT_EQ(state(), State::kHoldOff);
}

TEST_F(Releasing, ARefusedReleaseIsTriedAgainWithPausesForOneTtlAndThenGivenUpWithItsReason) {
  BeginRelease();
  const MonoTime began = now_;
  int tries = 0;
  while (state() == State::kReleasing && tries < 1000) {
    if (!None<CasEffect>()) {
      AnswerRefused("NOAUTH");
      ++tries;
    }
    if (state() == State::kReleasing) TickNext();
  }
  EXPECT_EQ(state(), State::kHoldOff);
  EXPECT_GE(now_ - began, timing().ttl);
  EXPECT_LE(now_ - began, timing().ttl + timing().call_timeout * 2);
  EXPECT_GT(tries, 3);
  EXPECT_LT(tries, 100) << "a store that refuses at once is not asked again at once";
  const std::string detail = DetailOfReleased();
  EXPECT_NE(detail.find("NOAUTH"), std::string::npos) << detail;
  EXPECT_NE(detail.find("runs out by itself"), std::string::npos) << detail;
}

TEST_F(Releasing, TheRenewalUnderWayMayFailInAnyWayAndTheReleaseFollows) {
  const std::function<void()> failures[] = {[this] { AnswerAmbiguous(); },
                                            [this] { AnswerConflictBlind(); },
                                            [this] { AnswerRefused("READONLY"); }};
  for (const auto& fail : failures) {
    Hold();
    TickToRenewal();
    Feed(StepDownRequest{1, {"n1", 1}, Reason::kRequested, true});
    Feed(Drained{1});
    ASSERT_EQ(state(), State::kReleasing);
    fail();
    EXPECT_FALSE(Told(Notice::kLost)) << "a release under way finds out by itself";
    const CasEffect release = NextRelease();
    EXPECT_EQ(*release.expected, MakeVersion(last_write_));
  }
}

TEST_F(Releasing, TheRenewalUnderWayThatShowsAnotherHolderIsTheEndOfTheRelease) {
  Hold();
  TickToRenewal();
  Feed(StepDownRequest{1, {"n1", 1}, Reason::kRequested, true});
  Feed(Drained{1});
  AnswerConflict(Other(2, 1));
  EXPECT_EQ(Must<StepDownDone>().outcome, StepDownDone::Outcome::kTakenOver);
  EXPECT_TRUE(None<CasEffect>()) << "nothing is written over another holder's record";
}

TEST_F(Releasing, SigtermLetsTheReleaseEndAndStopsThen) {
  BeginRelease();
  Feed(Shutdown{});
  EXPECT_EQ(state(), State::kReleasing);
  AnswerApplied();
  EXPECT_EQ(state(), State::kStopped);
  EXPECT_EQ(Must<StepDownDone>().outcome, StepDownDone::Outcome::kUnknown);
  EXPECT_TRUE(Must<StoppedEffect>().ok);
}

TEST_F(Releasing, ARequestForTheTermThatIsBeingReleasedJoins) {
  BeginRelease();
  Feed(StepDownRequest{2, {"n1", 1}, Reason::kRequested, true});
  EXPECT_TRUE(None<StepDownDone>());
  AnswerApplied();
  Feed(StepDownRequest{3, {"n1", 1}, Reason::kRequested, true});
  EXPECT_TRUE(None<StepDownDone>()) << "in the hold-off too";
  TickNext();
  AnswerRecord(Other(2, 1));
  for (uint64_t request = 1; request <= 3; ++request) {
    const StepDownDone done = Must<StepDownDone>();
    EXPECT_EQ(done.request, request);
    EXPECT_EQ(done.outcome, StepDownDone::Outcome::kTakenOver);
  }
}

TEST_F(Releasing, ARequestForAnotherTermIsRefusedDuringTheReleaseAndTheHoldOff) {
  BeginRelease();
  Feed(StepDownRequest{2, {"n1", 2}, Reason::kRequested, true});
  EXPECT_EQ(Must<StepDownDone>().outcome, StepDownDone::Outcome::kFailedPrecondition);
  AnswerApplied();
  Feed(StepDownRequest{3, {"n1", 2}, Reason::kRequested, true});
  const StepDownDone done = Must<StepDownDone>();
  EXPECT_EQ(done.outcome, StepDownDone::Outcome::kFailedPrecondition);
  EXPECT_NE(done.detail.find("does not hold the lease"), std::string::npos) << done.detail;
}

TEST_F(Releasing, AskersAreBoundedAndTheOneTooManyIsToldTheLimit) {
  Hold();
  for (uint64_t request = 1; request <= 64; ++request) {
    Feed(StepDownRequest{request, {"n1", 1}, Reason::kRequested, true});
  }
  ASSERT_TRUE(None<StepDownDone>());
  Feed(StepDownRequest{65, {"n1", 1}, Reason::kRequested, true});
  const StepDownDone refused = Must<StepDownDone>();
  EXPECT_EQ(refused.request, 65u);
  EXPECT_NE(refused.detail.find("limit 64"), std::string::npos) << refused.detail;
  Feed(Drained{1});
  AnswerApplied();
  TickNext();
  AnswerRecord(Other(2, 1));
  for (uint64_t request = 1; request <= 64; ++request) {
    EXPECT_EQ(Must<StepDownDone>().request, request);
  }
}

TEST_F(Releasing, OneAskerWithoutTakeBackIsEnoughForAllWhoJoined) {
  BeginRelease();
  Feed(StepDownRequest{2, {"n1", 1}, Reason::kRequested, false});
  const Record released = AnswerApplied().record;
  for (int i = 0; i < 40; ++i) {
    if (!None<ReadEffect>()) AnswerRecord(released);
    ASSERT_TRUE(None<CasEffect>());
    TickNext();
  }
  EXPECT_EQ(Must<StepDownDone>().outcome, StepDownDone::Outcome::kUnknown);
}

TEST_F(Releasing, ATakeBackThatAnotherWinsIsAnsweredWithTheWinner) {
  BeginRelease();
  const Record released = AnswerApplied().record;
  while (state() == State::kHoldOff) {
    if (!None<ReadEffect>()) AnswerRecord(released);
    TickNext();
  }
  ASSERT_EQ(state(), State::kAcquiring);
  AnswerConflict(Other(2, 1));
  const StepDownDone done = Must<StepDownDone>();
  EXPECT_EQ(done.outcome, StepDownDone::Outcome::kTakenOver);
  EXPECT_EQ(done.process_id, "p2");
  EXPECT_EQ(done.released_token, 1u);
}

TEST_F(Releasing, ATakeBackThatTheStoreRefusesIsAnsweredWithItsReason) {
  BeginRelease();
  const Record released = AnswerApplied().record;
  while (state() == State::kHoldOff) {
    if (!None<ReadEffect>()) AnswerRecord(released);
    TickNext();
  }
  AnswerRefused("OOM command not allowed");
  const StepDownDone done = Must<StepDownDone>();
  EXPECT_EQ(done.outcome, StepDownDone::Outcome::kUnknown);
  EXPECT_NE(done.detail.find("OOM command not allowed"), std::string::npos) << done.detail;
}

TEST_F(Releasing, AStartThatFailedUnderAnotherTokenChangesNothing) {
  Hold();
  Feed(StartFailed{2, "port in use"});
  EXPECT_EQ(state(), State::kActive);
  EXPECT_TRUE(MayAdmit());
}

}  // namespace
}  // namespace leasehold::test

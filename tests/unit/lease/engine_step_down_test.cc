// DESIGN 2.5: stepping down, releasing, the hold-off, preconditions; and what SIGTERM does in every
// state.

#include "lib/engine_fixture.h"

namespace leasehold::test {
namespace {

class SteppingDown : public EngineFixture {
 protected:
  void Ask(uint64_t request = 1, bool take_back = true, uint64_t token = 1,
           const std::string& node = "n1") {
    Feed(StepDownRequest{request, {node, token}, Reason::kRequested, take_back});
  }
  void HoldAndAsk(bool take_back = true) {
    Hold();
    Ask(1, take_back);
    ASSERT_EQ(state(), State::kDraining);
  }
  // Steps down and has the release confirmed; in hold-off afterwards.
  void Release(bool take_back = true) {
    HoldAndAsk(take_back);
    Feed(Drained{1});
    const CasEffect cas = AnswerApplied();
    ASSERT_EQ(cas.purpose, CasEffect::Purpose::kRelease);
    released_ = cas.record;
    ASSERT_EQ(state(), State::kHoldOff);
    Forget();
  }
  // Lets the hold-off pass, answering polls with the released record.
  void PassHoldOff() {
    while (state() == State::kHoldOff) {
      if (!None<ReadEffect>()) AnswerRecord(released_);
      TickNext();
    }
  }
  Record released_;
};

TEST_F(SteppingDown, ListenersAreToldBeforeTheGatesDrain) {
  HoldAndAsk();
  ASSERT_GE(engine_effects_.size(), 2u);
  EXPECT_EQ(std::get<NoticeEffect>(engine_effects_[0]).notice, Notice::kDraining);
  EXPECT_EQ(std::get<NoticeEffect>(engine_effects_[0]).reason, Reason::kRequested);
  EXPECT_EQ(std::get<ValveEffect>(engine_effects_[1]).valve, Valve::kDraining);
}

TEST_F(SteppingDown, TheGraceToldIsNeverMoreThanTheTimeToExpiry) {
  HoldAndAsk();  // grace 20 s, expiry in 9.8 s
  EXPECT_EQ(std::get<NoticeEffect>(engine_effects_[0]).grace, Duration::Millis(9800));
}

TEST_F(SteppingDown, RenewingGoesOnDuringTheDrainAndSaysDraining) {
  HoldAndAsk();
  TickToRenewal();
  const CasEffect cas = AnswerApplied();
  EXPECT_EQ(cas.purpose, CasEffect::Purpose::kRenew);
  EXPECT_EQ(cas.record.state, RecordState::kDraining);
  EXPECT_EQ(state(), State::kDraining) << "a renewal does not undo a planned step-down";
}

TEST_F(SteppingDown, ADrainThatEndsAtOnceIsReleasedWithoutAnotherWrite) {
  HoldAndAsk();
  Feed(Drained{1});
  EXPECT_EQ(Must<CasEffect>().purpose, CasEffect::Purpose::kRelease);
}

TEST_F(SteppingDown, ThePermitIsOverBeforeTheReleaseIsSent) {
  HoldAndAsk();
  Forget();
  Feed(Drained{1});
  EXPECT_FALSE(MayAct());
  ASSERT_EQ(engine_effects_.size(), 2u) << Effects();
  EXPECT_EQ(std::get<ValveEffect>(engine_effects_[0]).valve, Valve::kClosed);
  EXPECT_EQ(std::get<CasEffect>(engine_effects_[1]).purpose, CasEffect::Purpose::kRelease);
}

TEST_F(SteppingDown, AReleaseKeepsTheRecordItsTokenAndItsHolder) {
  HoldAndAsk();
  Feed(Drained{1});
  const CasEffect cas = Must<CasEffect>();
  EXPECT_EQ(cas.record.state, RecordState::kReleased);
  EXPECT_EQ(cas.record.token, 1u);
  EXPECT_EQ(cas.record.process_id, "p1");
  EXPECT_GT(cas.record.beat, last_write_.beat);
}

TEST_F(SteppingDown, TheReleaseIsForcedWhenTheGraceIsOver) {
  HoldAndAsk();
  const MonoTime asked = now_;
  while (state() == State::kDraining) {
    if (!None<CasEffect>()) AnswerApplied();
    if (state() == State::kDraining) TickNext();
  }
  EXPECT_EQ(now_ - asked, Duration::Seconds(20));
  EXPECT_EQ(state(), State::kReleasing);
}

TEST_F(SteppingDown, DrainedOfAnotherTokenIsNotOurs) {
  HoldAndAsk();
  Feed(Drained{2});
  EXPECT_EQ(state(), State::kDraining);
}

TEST_F(SteppingDown, AReleaseWaitsForTheRenewalUnderWayAndFollowsOnItsVersion) {
  Hold();
  TickToRenewal();
  Ask();
  Feed(Drained{1});
  EXPECT_FALSE(MayAct());
  const CasEffect renewal = AnswerApplied();
  ASSERT_EQ(renewal.purpose, CasEffect::Purpose::kRenew);
  const CasEffect release = Must<CasEffect>();
  EXPECT_EQ(release.purpose, CasEffect::Purpose::kRelease);
  EXPECT_EQ(*release.expected, MakeVersion(renewal.record));
}

TEST_F(SteppingDown, AReleaseThatConflictsWithOurOwnRecordIsSentAgainOnThatVersion) {
  HoldAndAsk();
  Feed(Drained{1});
  Record own = last_write_;
  own.beat = 100;
  AnswerConflict(own);
  while (None<CasEffect>()) TickNext();
  const CasEffect again = Must<CasEffect>();
  EXPECT_EQ(again.purpose, CasEffect::Purpose::kRelease);
  EXPECT_EQ(*again.expected, MakeVersion(own));
}

TEST_F(SteppingDown, AnAmbiguousReleaseIsReadAndRetriedUntilReleased) {
  HoldAndAsk();
  Feed(Drained{1});
  AnswerAmbiguous();
  AnswerRecord(last_write_);
  while (None<CasEffect>()) TickNext();
  AnswerApplied();
  EXPECT_EQ(state(), State::kHoldOff);
}

TEST_F(SteppingDown, AReleaseIsGivenUpAfterOneTtl) {
  HoldAndAsk();
  Feed(Drained{1});
  const MonoTime began = now_;
  while (state() == State::kReleasing) {
    if (!None<CasEffect>()) AnswerAmbiguous();
    if (!None<ReadEffect>()) AnswerReadFailed();
    if (state() == State::kReleasing) TickNext();
  }
  EXPECT_EQ(state(), State::kHoldOff);
  EXPECT_LE(now_ - began, Duration::Seconds(12));
  EXPECT_GE(now_ - began, Duration::Seconds(10));
}

// ---- outcome ----

TEST_F(SteppingDown, AnotherProcessTakingItIsTheOutcomeWithItsIdentity) {
  Release();
  TickNext();
  AnswerRecord(Other(2, 1));
  const StepDownDone done = Must<StepDownDone>();
  EXPECT_EQ(done.outcome, StepDownDone::Outcome::kTakenOver);
  EXPECT_EQ(done.released_token, 1u);
  EXPECT_EQ(done.token, 2u);
  EXPECT_EQ(done.node_id, "n2");
  EXPECT_EQ(done.process_id, "p2");
  EXPECT_EQ(state(), State::kStandby);
}

TEST_F(SteppingDown, NobodyTakingItWithinTheHoldOffIsTakenBackAsANewAcquisition) {
  Release();
  const MonoTime released = now_;
  PassHoldOff();
  EXPECT_EQ(now_ - released, Duration::Seconds(5));
  const CasEffect cas = AnswerApplied();
  EXPECT_EQ(cas.record.token, 2u);
  const StepDownDone done = Must<StepDownDone>();
  EXPECT_EQ(done.outcome, StepDownDone::Outcome::kTakenBack);
  EXPECT_EQ(done.token, 2u);
  EXPECT_TRUE(MayAdmit());
}

TEST_F(SteppingDown, WithoutTakeBackItIsLeftAloneUntilAnotherHasHeld) {
  Release(/*take_back=*/false);
  PassHoldOff();
  EXPECT_EQ(Must<StepDownDone>().outcome, StepDownDone::Outcome::kUnknown);
  for (int i = 0; i < 30; ++i) {
    if (!None<ReadEffect>()) AnswerRecord(released_);
    EXPECT_TRUE(None<CasEffect>());
    TickNext();
  }
  if (None<ReadEffect>()) TickNext();
  AnswerRecord(Other(2, 1));
  Record freed = Other(2, 2);
  freed.state = RecordState::kReleased;
  while (None<ReadEffect>()) TickNext();
  AnswerRecord(freed);
  EXPECT_EQ(Must<CasEffect>().record.token, 3u);
}

TEST_F(SteppingDown, AnUnreadyApplicationIsNotTakenBackTo) {
  Release();
  Feed(AppState{false});
  PassHoldOff();
  const StepDownDone done = Must<StepDownDone>();
  EXPECT_EQ(done.outcome, StepDownDone::Outcome::kUnknown);
  EXPECT_NE(done.detail.find("not ready"), std::string::npos);
  EXPECT_TRUE(None<CasEffect>());
}

// ---- preconditions ----

TEST_F(SteppingDown, AWrongTokenOrNodeChangesNothing) {
  Hold();
  Ask(1, true, 2);
  EXPECT_EQ(Must<StepDownDone>().outcome, StepDownDone::Outcome::kFailedPrecondition);
  Ask(2, true, 1, "n9");
  const StepDownDone done = Must<StepDownDone>();
  EXPECT_EQ(done.outcome, StepDownDone::Outcome::kFailedPrecondition);
  EXPECT_EQ(done.token, 1u);
  EXPECT_EQ(done.process_id, "p1");
  EXPECT_EQ(state(), State::kActive);
}

TEST_F(SteppingDown, ARetryAfterTheOutcomeGetsTheRecordedResultAndDoesNotStepDownTheSuccessor) {
  Release();
  PassHoldOff();
  AnswerApplied();
  Forget();
  Ask(7);
  const StepDownDone done = Must<StepDownDone>();
  EXPECT_EQ(done.request, 7u);
  EXPECT_EQ(done.outcome, StepDownDone::Outcome::kTakenBack);
  EXPECT_EQ(state(), State::kActive) << "token 2 goes on";
}

TEST_F(SteppingDown, ASecondRequestForTheSameTermJoinsTheFirst) {
  HoldAndAsk();
  Ask(2);
  Feed(Drained{1});
  AnswerApplied();
  TickNext();
  AnswerRecord(Other(2, 1));
  EXPECT_EQ(Must<StepDownDone>().request, 1u);
  EXPECT_EQ(Must<StepDownDone>().request, 2u);
}

TEST_F(SteppingDown, AfterALossTheAnswerIsNotHolder) {
  Hold();
  TickToRenewal();
  AnswerConflict(Other(2, 1));
  Ask();
  EXPECT_EQ(Must<StepDownDone>().outcome, StepDownDone::Outcome::kNotHolder);
}

TEST_F(SteppingDown, ALossDuringTheDrainAnswersWhoHasIt) {
  HoldAndAsk();
  TickToRenewal();
  AnswerConflict(Other(2, 1));
  const StepDownDone done = Must<StepDownDone>();
  EXPECT_EQ(done.outcome, StepDownDone::Outcome::kTakenOver);
  EXPECT_EQ(done.released_token, 0u);
  EXPECT_EQ(done.process_id, "p2");
}

TEST_F(SteppingDown, APlannedStepDownDuringADrainForFailedRenewalsReleases) {
  Hold();
  TickToRenewal();
  while (state() == State::kActive) {
    if (!None<CasEffect>()) AnswerRefused("no");
    if (!None<ReadEffect>()) AnswerReadFailed();
    if (state() == State::kActive) TickNext();
  }
  Feed(Drained{1});
  ASSERT_EQ(state(), State::kDraining);
  Ask();
  EXPECT_FALSE(MayAct());
  EXPECT_EQ(state(), State::kReleasing);
}

// ---- the application, and a start that failed ----

TEST_F(SteppingDown, AnApplicationUnreadyTooLongStepsDownOnceUntilItIsReadyAgain) {
  Hold();
  Feed(AppState{false});
  EXPECT_EQ(state(), State::kActive);
  Feed(AppUnreadyTooLong{});
  EXPECT_TRUE(Told(Notice::kDraining, Reason::kAppUnready));
  Feed(Drained{1});
  released_ = AnswerApplied().record;
  PassHoldOff();
  for (int i = 0; i < 30; ++i) {
    if (!None<ReadEffect>()) AnswerRecord(released_);
    EXPECT_TRUE(None<CasEffect>());
    TickNext();
  }
  Feed(AppState{true});
  if (!None<ReadEffect>()) AnswerRecord(released_);
  EXPECT_EQ(Must<CasEffect>().record.token, 2u);
}

TEST_F(SteppingDown, AStartThatFailedReleasesAndTriesAgainAfterAGrowingBackOff) {
  Hold();
  Duration last;
  uint64_t token = 1;
  for (int i = 0; i < 3; ++i) {
    Feed(StartFailed{token, "port in use"});
    EXPECT_FALSE(MayAct());
    released_ = AnswerApplied().record;
    ASSERT_EQ(released_.state, RecordState::kReleased);
    const MonoTime released = now_;
    PassHoldOff();
    EXPECT_GE(now_ - released, Duration::Seconds(1));
    EXPECT_GT(now_ - released, last);
    last = now_ - released;
    AnswerApplied();
    ++token;
    ASSERT_EQ(state(), State::kActive);
    Forget();
  }
}

TEST_F(SteppingDown, AReleaseGivenUpIsFollowedByAnAcquisitionOnWhatTheStoreLastShowed) {
  options_.reads_confirm = false;  // redis with wait_replicas: no read confirms the release
  HoldAndAsk();
  Feed(Drained{1});
  Record shown;
  while (state() == State::kReleasing) {
    if (std::optional<CasEffect> release = Take<CasEffect>()) {
      shown = release->record;
      Feed(CasAnswer{
          release->op, CasAnswer::Outcome::kAmbiguous, {}, {}, false, "too few replicas"});
    } else if (!None<ReadEffect>()) {
      AnswerRecord(shown);
    } else {
      TickNext();
    }
  }
  ASSERT_TRUE(Told(Notice::kReleased));
  Forget();
  while (None<CasEffect>()) TickNext();  // the store answers nothing more until the take-back
  EXPECT_EQ(Must<CasEffect>().expected, MakeVersion(shown));
}

// ---- SIGTERM ----

TEST_F(SteppingDown, SigtermDrainsReleasesAndStopsWithoutWaitingForTheHoldOff) {
  Hold();
  Feed(Shutdown{});
  EXPECT_TRUE(Told(Notice::kDraining, Reason::kShutdown));
  Feed(Drained{1});
  AnswerApplied();
  EXPECT_EQ(state(), State::kStopped);
  EXPECT_TRUE(Must<StoppedEffect>().ok);
  EXPECT_TRUE(engine_->NextDeadline().is_never());
}

TEST_F(SteppingDown, SigtermOnAStandbyStopsAtOnce) {
  Start();
  AnswerRecord(Other(1, 1));
  Feed(Shutdown{});
  EXPECT_TRUE(Must<StoppedEffect>().ok);
}

TEST_F(SteppingDown, SigtermWhileAcquiringResolvesTheAttemptAndReleasesWithoutOpening) {
  Start();
  AnswerAbsent();
  ASSERT_EQ(state(), State::kAcquiring);
  Feed(Shutdown{});
  EXPECT_TRUE(None<StoppedEffect>());
  AnswerApplied();
  EXPECT_TRUE(None<ValveEffect>()) << "it never opened";
  EXPECT_EQ(Must<CasEffect>().purpose, CasEffect::Purpose::kRelease);
}

TEST_F(SteppingDown, SigtermWhileALateAcquisitionWaitsForItsRenewalReleasesAndNeverOpens) {
  Start();
  AnswerAbsent();
  Advance(timing().renew_interval + Duration::Millis(1));
  AnswerApplied();  // late: renews first
  ASSERT_EQ(state(), State::kAcquiring);
  Feed(Shutdown{});
  EXPECT_EQ(AnswerApplied().purpose, CasEffect::Purpose::kRenew);
  EXPECT_TRUE(None<ValveEffect>());
  EXPECT_EQ(AnswerApplied().purpose, CasEffect::Purpose::kRelease);
  EXPECT_EQ(state(), State::kStopped);
}

TEST_F(SteppingDown, SigtermDuringATakeBackAnswersTheAskerWithItsOwnTerm) {
  Release();
  PassHoldOff();
  Feed(Shutdown{});
  AnswerApplied();
  const StepDownDone done = Must<StepDownDone>();
  EXPECT_EQ(done.expected.token, 1u);
  EXPECT_EQ(done.released_token, 1u);
  EXPECT_EQ(done.outcome, StepDownDone::Outcome::kUnknown);
}

TEST_F(SteppingDown, NothingFollowsTheLastEffectOfAStoppedEngine) {
  Hold();
  Feed(Shutdown{});
  Advance(Duration::Seconds(30));
  Forget();
  Ask();
  ASSERT_FALSE(engine_effects_.empty());
  EXPECT_NE(std::get_if<StoppedEffect>(&engine_effects_.back()), nullptr) << Effects();
}

TEST_F(SteppingDown, SigtermInTheHoldOffStopsAndTakesNothingBack) {
  Release();
  Feed(Shutdown{});
  EXPECT_EQ(Must<StepDownDone>().outcome, StepDownDone::Outcome::kUnknown);
  EXPECT_TRUE(Must<StoppedEffect>().ok);
}

// ---- SIGTERM of a process whose gates still have to send away what they hold ----

TEST_F(SteppingDown, WhoWatchesOnReleasesAndObservesUntilToldToStop) {
  Hold();
  Feed(Shutdown{true});
  Feed(Drained{1});
  AnswerApplied();
  EXPECT_EQ(state(), State::kHoldOff);
  EXPECT_TRUE(None<StoppedEffect>());
  TickNext();
  AnswerRecord(Other(2, 1));
  EXPECT_EQ(state(), State::kStandby);
  ASSERT_TRUE(engine_->seen().has_value());
  EXPECT_EQ(engine_->seen()->token, 2u);
  EXPECT_TRUE(None<StoppedEffect>());
  Feed(Shutdown{});
  EXPECT_TRUE(Must<StoppedEffect>().ok);
}

TEST_F(SteppingDown, WhoWatchesOnTakesNothingBackHoweverLongTheLeaseIsFree) {
  Hold();
  Feed(Shutdown{true});
  Feed(Drained{1});
  const Record released = AnswerApplied().record;
  for (int i = 0; i < 100; ++i) {
    TickFor(Duration::Millis(500));
    if (!None<ReadEffect>()) AnswerRecord(released);
    ASSERT_TRUE(None<CasEffect>()) << "a process that is going away competes for nothing";
  }
  EXPECT_EQ(state(), State::kStandby);
  Feed(Shutdown{});
  EXPECT_TRUE(Must<StoppedEffect>().ok);
}

TEST_F(SteppingDown, AStandbyThatWatchesOnDoesNotTakeALeaseThatRunsOut) {
  Start();
  AnswerRecord(Other(1, 1));
  Feed(Shutdown{true});
  EXPECT_TRUE(None<StoppedEffect>());
  for (int i = 0; i < 60; ++i) {
    TickFor(Duration::Seconds(1));
    if (!None<ReadEffect>()) AnswerRecord(Other(1, 1));
    ASSERT_TRUE(None<CasEffect>());
  }
  EXPECT_FALSE(engine_->view().not_competing.empty());
}

TEST_F(SteppingDown, TheSecondShutdownEndsTheWatchingAlsoBeforeTheRelease) {
  Hold();
  Feed(Shutdown{true});
  Feed(Shutdown{});
  Feed(Drained{1});
  AnswerApplied();
  EXPECT_EQ(state(), State::kStopped);
}

TEST_F(SteppingDown, NoWriteWithTheOldTokenFollowsItsRelease) {
  Release();
  for (int i = 0; i < 40; ++i) {
    if (!None<ReadEffect>()) AnswerRecord(released_);
    if (std::optional<CasEffect> cas = Take<CasEffect>()) {
      EXPECT_GT(cas->record.token, 1u);
      Feed(CasAnswer{
          cas->op, CasAnswer::Outcome::kApplied, MakeVersion(cas->record), {}, false, ""});
    }
    TickNext();
  }
}

TEST_F(SteppingDown, SittingOutEndsWhenAnotherProcessHeldAndGaveBackBetweenTwoLooks) {
  Release(false);
  PassHoldOff();
  ASSERT_EQ(state(), State::kStandby);
  Record passed = Other(2, 7);
  passed.state = RecordState::kReleased;
  while (None<ReadEffect>()) TickNext();
  AnswerRecord(passed);
  EXPECT_EQ(Must<CasEffect>().purpose, CasEffect::Purpose::kAcquire);
}

TEST_F(SteppingDown, AnotherProcessThatHeldWithinTheHoldOffLeavesNobodySittingOut) {
  Release(false);
  released_ = Other(2, 7);
  released_.state = RecordState::kReleased;
  PassHoldOff();
  EXPECT_EQ(Must<CasEffect>().purpose, CasEffect::Purpose::kAcquire);
}

TEST_F(SteppingDown, ALeaseThatRanOutDuringADrainWithoutTakeBackIsNotTakenBack) {
  HoldAndAsk(false);
  TickUntil(now_ + timing().ttl);
  ASSERT_EQ(state(), State::kStandby);
  Forget();
  while (None<ReadEffect>()) TickNext();
  AnswerRecord(last_write_);
  TickFor(timing().ttl * 2);
  EXPECT_TRUE(None<CasEffect>()) << Effects();
}

TEST_F(SteppingDown, AnApplicationUnreadyForTooLongDuringTheAcquisitionOpensNothing) {
  Start();
  AnswerAbsent();
  Feed(AppState{false});
  Feed(AppUnreadyTooLong{});
  AnswerApplied();
  EXPECT_FALSE(MayAct());
  EXPECT_EQ(Must<CasEffect>().purpose, CasEffect::Purpose::kRelease);
}

TEST_F(SteppingDown, SigtermDuringAnAcquisitionAsksAStoreThatFailsAtOnceWithPauses) {
  Start();
  AnswerAbsent();
  const MonoTime sent_at = now_;
  Feed(Shutdown{});
  AnswerAmbiguous();
  int reads = 0;
  while (state() == State::kAcquiring && reads < 1000) {
    if (None<ReadEffect>()) TickNext();
    if (!None<ReadEffect>()) AnswerReadFailed();
    ++reads;
  }
  EXPECT_EQ(state(), State::kStopped);
  EXPECT_GE(now_, sent_at + timing().ttl) << "not while the attempt could still matter";
  EXPECT_LE(reads, 100);
}

TEST_F(SteppingDown, AFailedStartIsReleasedWithItsReason) {
  Hold();
  Feed(StartFailed{1, "port 80 is in use"});
  AnswerApplied();
  std::string detail;
  while (const auto told = Take<NoticeEffect>()) {
    if (told->notice == Notice::kReleased) detail = told->detail;
  }
  EXPECT_EQ(detail, "port 80 is in use");
}

}  // namespace
}  // namespace leasehold::test

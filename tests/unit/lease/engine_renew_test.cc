// DESIGN 2.2 and 2.3 as a holder lives them: renewing, doubting, and losing.

#include "lib/engine_fixture.h"

namespace leasehold::test {
namespace {

class Renewing : public EngineFixture {
 protected:
  // Fails every renewal and every read until `until`; answers come at once.
  void FailAllUntil(MonoTime until) {
    while (now_ < until && state() == State::kActive) {
      while (!None<CasEffect>() || !None<ReadEffect>()) {
        if (!None<CasEffect>()) AnswerAmbiguous();
        if (!None<ReadEffect>()) AnswerReadFailed();
      }
      if (engine_->NextDeadline() > until) break;
      TickNext();
    }
  }
  Record Own(uint64_t beat_change = 0) {
    Record record = last_write_;
    record.beat += beat_change;
    return record;
  }
};

TEST_F(Renewing, ASteadyHolderWritesOncePerIntervalAndNeverReads) {
  Hold();
  for (int i = 0; i < 20; ++i) {
    const MonoTime before = sent_at_;
    RenewOnce();
    EXPECT_GE(sent_at_ - before, timing().renew_interval);
    EXPECT_LE(sent_at_ - before, timing().renew_interval + timing().renew_interval / 8);
    EXPECT_TRUE(None<ReadEffect>());
  }
}

TEST_F(Renewing, ThePermitRunsFromTheSendingOfTheRenewalAndNotFromItsAnswer) {
  Hold();
  TickToRenewal();
  Advance(Duration::Millis(600));
  AnswerApplied();
  EXPECT_EQ(engine_->permit().expiry(), sent_at_ + Duration::Millis(9800));
}

TEST_F(Renewing, EveryAttemptHasItsOwnBeat) {
  Hold();
  uint64_t last = last_write_.beat;
  TickToRenewal();
  for (int i = 0; i < 3; ++i) {
    const CasEffect cas = AnswerAmbiguous();
    EXPECT_GT(cas.record.beat, last);
    last = cas.record.beat;
    AnswerReadFailed();
    TickToRenewal();
  }
}

TEST_F(Renewing, TheTokenStaysAndTheExpectedVersionFollowsTheLastWrite) {
  Hold();
  TickToRenewal();
  const CasEffect cas = AnswerApplied();
  EXPECT_EQ(cas.record.token, 1u);
  EXPECT_EQ(*cas.expected, MakeVersion(last_write_));
}

TEST_F(Renewing, ARenewalWhoseAnswerWasLostIsFoundByTheReadAndCountsFromItsOwnSending) {
  Hold();
  TickToRenewal();
  Advance(Duration::Millis(500));
  const CasEffect cas = AnswerAmbiguous();
  AnswerRecord(cas.record);
  EXPECT_EQ(state(), State::kActive);
  EXPECT_EQ(engine_->permit().expiry(), sent_at_ + Duration::Millis(9800));
  EXPECT_EQ(engine_->permit().token(), 1u);
}

TEST_F(Renewing, AnOlderUnresolvedAttemptThatLandedLateCountsFromItsOwnSending) {
  Hold();
  TickToRenewal();
  const MonoTime first_sent = now_;
  const CasEffect first = AnswerAmbiguous();
  AnswerReadFailed();
  TickToRenewal();
  AnswerConflict(first.record);  // the first one took after all
  EXPECT_EQ(state(), State::kActive);
  EXPECT_EQ(engine_->permit().expiry(), first_sent + Duration::Millis(9800));
}

TEST_F(Renewing, AReadThatShowsTheConfirmedRecordExtendsNothing) {
  Hold();
  const MonoTime expiry = engine_->permit().expiry();
  TickToRenewal();
  AnswerAmbiguous();
  AnswerRecord(last_write_);
  EXPECT_EQ(state(), State::kActive);
  EXPECT_EQ(engine_->permit().expiry(), expiry);
}

TEST_F(Renewing, WithWaitReplicasNeitherAReadNorAConflictConfirms) {
  options_.reads_confirm = false;
  Hold();
  const MonoTime expiry = engine_->permit().expiry();
  TickToRenewal();
  const CasEffect cas = AnswerAmbiguous();
  AnswerRecord(cas.record);
  EXPECT_EQ(engine_->permit().expiry(), expiry);
  TickToRenewal();
  EXPECT_EQ(*Must<CasEffect>().expected, MakeVersion(cas.record));
}

// ---- definitive loss: at once, no grace, no healing ----

TEST_F(Renewing, AnotherHolderInAConflictShutsAtOnce) {
  Hold();
  TickToRenewal();
  AnswerConflict(Other(2, 1));
  EXPECT_FALSE(MayAct());
  const ValveEffect valve = Must<ValveEffect>();
  EXPECT_EQ(valve.valve, Valve::kClosed);
  EXPECT_TRUE(valve.lost);
  EXPECT_TRUE(Told(Notice::kLost, Reason::kSuperseded));
  EXPECT_EQ(state(), State::kStandby);
}

TEST_F(Renewing, AHigherTokenOfOurOwnProcessShutsAtOnce) {
  Hold();
  Record higher = Own(9);
  higher.token = 2;
  TickToRenewal();
  AnswerConflict(higher);
  EXPECT_TRUE(Told(Notice::kLost, Reason::kSuperseded));
}

TEST_F(Renewing, AnAbsentRecordIsALossAndIsTakenAgainWithANewToken) {
  Hold();
  TickToRenewal();
  AnswerConflictAbsent();
  EXPECT_TRUE(Told(Notice::kLost, Reason::kAbsent));
  const CasEffect again = Must<CasEffect>();
  EXPECT_EQ(again.record.token, 2u) << "never silently re-created in the same term";
  EXPECT_FALSE(again.expected.has_value());
}

TEST_F(Renewing, AnOwnRecordOlderThanTheConfirmedWriteIsALossWithStoreRegressed) {
  Hold();
  const Record old = last_write_;
  RenewOnce();
  TickToRenewal();
  AnswerConflict(old);
  EXPECT_TRUE(Told(Notice::kLost, Reason::kStoreRegressed));
  EXPECT_EQ(Must<CasEffect>().record.token, 2u);
}

TEST_F(Renewing, AStoreThatGoesBackAgainAfterTheLossIsWaitedOut) {
  Hold();
  TickToRenewal();
  AnswerConflictAbsent();
  const CasEffect again = AnswerAmbiguous();
  AnswerRecord(last_write_);  // neither absent nor ours of the new term: the store moves
  while (!None<CasEffect>()) AnswerConflictAbsent();
  EXPECT_TRUE(None<CasEffect>())
      << "what was allowed at the loss is not allowed for what came after";
  EXPECT_EQ(again.record.token, 2u);
}

TEST_F(Renewing, AConflictWithoutARecordShutsWhenNoOwnWriteCanExplainIt) {
  Hold();
  TickToRenewal();
  AnswerConflictBlind();
  EXPECT_FALSE(MayAct());
  EXPECT_TRUE(Told(Notice::kLost, Reason::kSuperseded));
}

// It tried to take the lease on a version that the conflict had just shown to be outdated.
TEST_F(Renewing, AConflictWithoutARecordIsReadBeforeTheLeaseIsCompetedForAgain) {
  Hold();
  TickToRenewal();
  AnswerConflictBlind();
  EXPECT_TRUE(None<CasEffect>()) << Effects();
  AnswerRecord(Other(2, 1));
  EXPECT_TRUE(None<CasEffect>()) << "another holds it";
}

TEST_F(Renewing, AConflictWithoutARecordIsReadWhenAnOwnWriteIsUnresolved) {
  Hold();
  TickToRenewal();
  const CasEffect first = AnswerAmbiguous();
  AnswerReadFailed();
  TickToRenewal();
  AnswerConflictBlind();
  EXPECT_TRUE(MayAct());
  AnswerRecord(first.record);
  EXPECT_EQ(state(), State::kActive);
}

TEST_F(Renewing, ALateYesNeverRevivesATermThatIsOver) {
  Hold();
  TickToRenewal();
  const CasEffect cas = Must<CasEffect>();
  Advance(Duration::Seconds(11));
  Feed(CasAnswer{cas.op, CasAnswer::Outcome::kApplied, MakeVersion(cas.record), {}, false, ""});
  EXPECT_FALSE(MayAct());
  EXPECT_NE(state(), State::kActive);
}

TEST_F(Renewing, AnAnswerToAnAbandonedCallIsDropped) {
  Hold();
  TickToRenewal();
  const CasEffect cas = Must<CasEffect>();
  TickFor(timing().call_timeout);  // timed out: the engine reads instead
  Feed(CasAnswer{cas.op, CasAnswer::Outcome::kConflict, MakeVersion(Other(2, 1)), Other(2, 1),
                 false, ""});
  EXPECT_EQ(state(), State::kActive);
}

// ---- expiry ----

TEST_F(Renewing, ThePermitEndsAtExpiryWhenTheStoreNeverAnswers) {
  Hold();
  const MonoTime expiry = engine_->permit().expiry();
  TickUntil(expiry - Duration::Nanos(1));
  EXPECT_TRUE(MayAct());
  TickUntil(expiry);
  EXPECT_FALSE(MayAct());
  EXPECT_TRUE(Told(Notice::kLost, Reason::kExpired));
}

TEST_F(Renewing, AtRiskAndLostAreBothToldBeforeTheTtlIsOver) {
  Hold();
  const MonoTime ttl_over = sent_at_ + timing().ttl;
  TickUntil(ttl_over - Duration::Millis(1));
  EXPECT_TRUE(Told(Notice::kAtRisk));
  EXPECT_TRUE(Told(Notice::kLost));
}

TEST_F(Renewing, AProcessThatStoodStillShutsAtOnceWithHostFrozen) {
  Hold();
  Advance(Duration::Seconds(11));
  EXPECT_FALSE(MayAct());
  Feed(Tick{});
  EXPECT_TRUE(Told(Notice::kLost, Reason::kHostFrozen));
  EXPECT_FALSE(Told(Notice::kDraining)) << "no grace";
}

// ---- rounds ----

TEST_F(Renewing, AFailedAttemptIsRetriedWithinTheRoundWhileAnotherFits) {
  Hold();
  TickToRenewal();
  AnswerRefused("busy");
  TickToRenewal();
  EXPECT_LT(now_, sent_at_ + timing().budget);
  EXPECT_EQ(engine_->view().failed_rounds, 0);
}

TEST_F(Renewing, ARoundWithoutSuccessIsAtRiskAndASuccessRestores) {
  Hold();
  const MonoTime start = sent_at_;
  FailAllUntil(start + timing().budget + Duration::Millis(1));
  EXPECT_TRUE(Told(Notice::kAtRisk, Reason::kRenewalsFailed));
  EXPECT_TRUE(MayAdmit());
  EXPECT_EQ(engine_->view().failed_rounds, 1);
  Forget();
  TickToRenewal();
  AnswerApplied();
  EXPECT_TRUE(Told(Notice::kRestored));
  EXPECT_EQ(engine_->view().failed_rounds, 0);
}

TEST_F(Renewing, AfterThreeFailedRoundsAFailedReadBeginsTheDrain) {
  Hold();
  const MonoTime start = sent_at_;
  FailAllUntil(start + Duration::Seconds(9));
  EXPECT_EQ(state(), State::kDraining);
  EXPECT_GE(now_, start + timing().budget * 3)
      << "an outage below three quarters of the TTL is invisible";
  EXPECT_TRUE(Told(Notice::kDraining, Reason::kRenewalsFailed));
  EXPECT_FALSE(MayAdmit());
  EXPECT_TRUE(MayAct());
}

TEST_F(Renewing, AfterThreeFailedRoundsAReadThatNamesUsSurrendersNothing) {
  Hold();
  const MonoTime start = sent_at_;
  const MonoTime expiry = engine_->permit().expiry();
  while (now_ < start + timing().budget * 3 + Duration::Millis(10)) {
    if (!None<CasEffect>()) AnswerRefused("not now");
    if (!None<ReadEffect>()) AnswerRecord(last_write_);
    TickNext();
  }
  EXPECT_EQ(state(), State::kActive);
  EXPECT_EQ(engine_->permit().expiry(), expiry) << "it extends nothing either";
  TickToRenewal();
  EXPECT_LT(now_, start + timing().forced_drain_after) << "it keeps trying";
}

TEST_F(Renewing, TheForcedDrainComesAtSevenEighthsOfTheTtlAtTheLatest) {
  Hold();
  const MonoTime start = sent_at_;
  while (state() == State::kActive) {
    if (!None<CasEffect>()) AnswerRefused("not now");
    if (!None<ReadEffect>()) AnswerRecord(last_write_);
    if (state() == State::kActive) TickNext();
  }
  EXPECT_EQ(now_, start + Duration::Millis(8750));
  NoticeEffect draining;
  while (std::optional<NoticeEffect> notice = Take<NoticeEffect>()) {
    if (notice->notice == Notice::kDraining) draining = *notice;
  }
  EXPECT_LE(draining.grace, engine_->permit().expiry() - now_);
}

TEST_F(Renewing, ADrainForFailedRenewalsEndsWhenARenewalSucceeds) {
  Hold();
  FailAllUntil(sent_at_ + Duration::Seconds(9));
  ASSERT_EQ(state(), State::kDraining);
  Feed(Drained{1});
  EXPECT_EQ(state(), State::kDraining) << "nothing is released while a renewal may still succeed";
  Forget();
  TickToRenewal();
  AnswerApplied();
  EXPECT_EQ(state(), State::kActive);
  EXPECT_TRUE(MayAdmit());
  EXPECT_TRUE(Told(Notice::kRestored));
  EXPECT_EQ(Must<ValveEffect>().valve, Valve::kOpen);
}

TEST_F(Renewing, TheLastAttemptBeforeTheForcedDrainMayUseAllTheTimeLeft) {
  Hold();
  const MonoTime forced = sent_at_ + timing().forced_drain_after;
  Duration longest;
  while (state() == State::kActive && now_ < forced) {
    if (!None<CasEffect>()) {
      const CasEffect cas = MustLast<CasEffect>();
      EXPECT_LE(now_ + cas.timeout, forced);
      longest = Max(longest, cas.timeout);
      Feed(CasAnswer{cas.op, CasAnswer::Outcome::kRefused, {}, {}, false, "no"});
    }
    if (!None<ReadEffect>()) AnswerRecord(last_write_);
    TickNext();
  }
  EXPECT_GT(longest, timing().call_timeout);
}

TEST_F(Renewing, ARefusalCountsAsAFailedRenewalWithItsReason) {
  Hold();
  while (engine_->view().failed_rounds == 0) {
    TickNext();
    if (!None<CasEffect>()) AnswerRefused("WRONGPASS invalid password");
  }
  EXPECT_NE(engine_->view().last_error.find("WRONGPASS"), std::string::npos);
  EXPECT_TRUE(Told(Notice::kAtRisk, Reason::kRenewalsFailed));
  EXPECT_EQ(state(), State::kActive);
}

// ---- lost time ----

TEST_F(Renewing, LostTimeHoldsAdmissionsAndCutsNothingUntilARenewalIsConfirmed) {
  Hold();
  Feed(LostTime{});
  EXPECT_FALSE(MayAdmit());
  EXPECT_TRUE(MayAct());
  EXPECT_EQ(Must<ValveEffect>().valve, Valve::kHolding);
  EXPECT_TRUE(Told(Notice::kAtRisk, Reason::kHostFrozen));
  AnswerApplied();  // sent at once
  EXPECT_TRUE(Told(Notice::kRestored));
  EXPECT_TRUE(MayAdmit());
  EXPECT_EQ(Must<ValveEffect>().valve, Valve::kOpen);
}

TEST_F(Renewing, LostTimeRenewsAtOnceAlsoInTheInstantInWhichARoundFails) {
  const MonoTime start = now_;
  const auto fail = [this] {
    while (!None<CasEffect>() || !None<ReadEffect>()) {
      if (!None<CasEffect>()) AnswerAmbiguous();
      if (!None<ReadEffect>()) AnswerReadFailed();
    }
  };
  Hold();
  for (fail(); !Told(Notice::kAtRisk); fail()) TickNext();
  const MonoTime round_fails = now_;
  now_ = start;
  Hold();  // the same life, up to there
  for (fail(); engine_->NextDeadline() < round_fails; fail()) TickNext();
  now_ = round_fails;
  Feed(LostTime{});
  EXPECT_EQ(Must<CasEffect>().purpose, CasEffect::Purpose::kRenew) << Effects();
}

TEST_F(Renewing, AnAnswerToARequestSentBeforeLostTimeConfersNoPermit) {
  Hold();
  TickToRenewal();
  Advance(Duration::Millis(100));
  Feed(LostTime{});
  AnswerApplied();
  EXPECT_FALSE(MayAdmit());
  AnswerApplied();  // the next one, sent after it
  EXPECT_TRUE(MayAdmit());
}

// The permit ended before the drain that should have come first: nobody was told, all was cut.
TEST_F(Renewing, AnAnswerThatConfersNoPermitPutsOffNoForcedDrain) {
  Hold();
  const MonoTime conferring = sent_at_;
  TickToRenewal();
  Advance(Duration::Millis(100));
  Feed(LostTime{});
  AnswerApplied();  // sent before it
  while (state() == State::kActive) {
    while (!None<CasEffect>()) AnswerRefused("refused");
    TickNext();
  }
  EXPECT_EQ(state(), State::kDraining);
  EXPECT_LE(now_, conferring + timing().forced_drain_after);
}

TEST_F(Renewing, StoreDegradedIsToldAfterTwoFailuresAndRecoveredAfterOneAnswer) {
  Hold();
  TickToRenewal();
  AnswerAmbiguous();
  EXPECT_FALSE(Told(Notice::kStoreDegraded)) << "one lost packet is not an outage";
  AnswerReadFailed();
  EXPECT_TRUE(Told(Notice::kStoreDegraded));
  TickToRenewal();
  AnswerApplied();
  EXPECT_TRUE(Told(Notice::kStoreRecovered));
}

TEST_F(Renewing, TheSameStartAndEventsGiveTheSameEffectsByteForByte) {
  const auto run = [this] {
    now_ = MonoTime::FromNanos(1'000'000'000'000);
    Hold();
    std::string text;
    for (int i = 0; i < 30; ++i) {
      TickToRenewal();
      text += Effects();
      if (i % 3 == 0) {
        AnswerAmbiguous();
        AnswerReadFailed();
      } else {
        AnswerApplied();
      }
      text += Effects();
      Forget();
    }
    return text;
  };
  const std::string first = run();
  EXPECT_EQ(first, run());
  EXPECT_GT(first.size(), 1000u);
}

// Two rounds hang and so end late; in the third the store refuses at once. The round's end then
// lies behind the forced drain.
TEST_F(Renewing, TheForcedDrainRenewsAlsoWhenItBeginsBetweenTwoRounds) {
  Hold();
  const MonoTime confirmed = sent_at_;
  while (engine_->view().failed_rounds < 2) TickNext();
  while (state() == State::kActive) {
    while (!None<CasEffect>()) AnswerRefused("refused");
    TickNext();
  }
  ASSERT_EQ(state(), State::kDraining);
  ASSERT_EQ(engine_->view().failed_rounds, 2) << "else this shows nothing";
  ASSERT_EQ(now_, confirmed + timing().forced_drain_after);
  EXPECT_FALSE(None<CasEffect>());
  AnswerApplied();
  EXPECT_EQ(state(), State::kActive);
}

TEST_F(Renewing, LostTimeToldAsAtRiskIsToldAsRestoredAlsoAfterAnAnswerThatConfersNothing) {
  Hold();
  TickToRenewal();
  Advance(Duration::Millis(5));
  Feed(LostTime{});
  ASSERT_TRUE(Told(Notice::kAtRisk));
  AnswerApplied();  // sent before the loss of time
  EXPECT_FALSE(Told(Notice::kRestored));
  EXPECT_TRUE(engine_->view().at_risk);
  AnswerApplied();
  EXPECT_TRUE(Told(Notice::kRestored));
  EXPECT_FALSE(engine_->view().at_risk);
}

TEST_F(Renewing, WhoLostTheLeaseIsNotAtRiskAnyMore) {
  Hold();
  TickUntil(now_ + timing().ttl);
  ASSERT_FALSE(engine_->view().holding);
  EXPECT_FALSE(engine_->view().at_risk);
  EXPECT_EQ(engine_->view().failed_rounds, 0);
}

TEST_F(Renewing, AtRiskTellsWhyTheWriteFailedAlsoIfTheReadAfterItWorked) {
  Hold();
  while (!Told(Notice::kAtRisk)) {
    if (!None<CasEffect>()) AnswerAmbiguous();
    if (!None<ReadEffect>()) AnswerRecord(last_write_);
    if (!Told(Notice::kAtRisk)) TickNext();
  }
  std::string detail;
  while (const auto told = Take<NoticeEffect>()) {
    if (told->notice == Notice::kAtRisk) detail = told->detail;
  }
  EXPECT_EQ(detail, "no answer");
}

}  // namespace
}  // namespace leasehold::test

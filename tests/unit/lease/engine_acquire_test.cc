// DESIGN 2.1, 2.2 and 2.6 as a standby sees them: when the lease may be taken, and with which
// token.

#include <limits>

#include "lib/engine_fixture.h"

namespace leasehold::test {
namespace {

class Acquiring : public EngineFixture {
 protected:
  // Observes `record`, and says after how long the engine sent an acquisition (max: never within a
  // minute).
  Duration WaitAfterSeeing(const Record& record, Memory memory = {}) {
    Start(memory);
    AnswerRecord(record);
    return WaitForAcquisition(record);
  }
  // Answers every poll with `record` until an acquisition is sent.
  Duration WaitForAcquisition(const Record& record) {
    const MonoTime from = now_;
    while (None<CasEffect>() && now_ - from < Duration::Seconds(60)) {
      TickNext();
      if (!None<ReadEffect>() && None<CasEffect>()) AnswerRecord(record);
    }
    return None<CasEffect>() ? Duration::Max() : now_ - from;
  }
};

TEST_F(Acquiring, AnAbsentLeaseNeverSeenBeforeIsTakenAtOnceWithTokenOne) {
  Start();
  AnswerAbsent();
  const CasEffect cas = Must<CasEffect>();
  EXPECT_FALSE(cas.expected.has_value());
  EXPECT_EQ(cas.record.token, 1u);
  EXPECT_EQ(cas.record.process_id, "p1");
  EXPECT_EQ(cas.record.state, RecordState::kHeld);
  EXPECT_EQ(cas.record.ttl_ms, 10000);
}

TEST_F(Acquiring, NothingIsTakenBeforeTheStoreHasAnswered) {
  Start();
  AnswerReadFailed();
  TickFor(Duration::Seconds(30));
  EXPECT_TRUE(None<CasEffect>());
}

TEST_F(Acquiring, AHeldLeaseIsTakenOneWindowAfterItsVersionWasSeenToChange) {
  const Duration waited = WaitAfterSeeing(Other(7, 3));
  EXPECT_GE(waited, Duration::Millis(10010));  // ttl x (1 + 0.1 % drift)
  EXPECT_LT(waited, Duration::Millis(10020));
  const CasEffect cas = Must<CasEffect>();
  EXPECT_EQ(cas.record.token, 8u);
  EXPECT_EQ(*cas.expected, MakeVersion(Other(7, 3)));
}

TEST_F(Acquiring, TheWindowIsTheRecordsTtlAndNotOurOwn) {
  EXPECT_GE(WaitAfterSeeing(Other(7, 3, Duration::Seconds(30))), Duration::Millis(30030));
}

TEST_F(Acquiring, TheWindowStartsAgainWhenTheVersionChanges) {
  Start();
  AnswerRecord(Other(7, 3));
  TickFor(Duration::Seconds(9));
  AnswerRecord(Other(7, 4));
  EXPECT_GE(WaitForAcquisition(Other(7, 4)), Duration::Millis(10010));
}

TEST_F(Acquiring, TheWindowCountsFromProcessingTheAnswerAndNotFromSendingTheRead) {
  Start();
  Advance(Duration::Millis(900));  // the answer is processed this late
  AnswerRecord(Other(7, 3));
  const MonoTime processed = now_;
  WaitForAcquisition(Other(7, 3));
  EXPECT_GE(now_ - processed, Duration::Millis(10010));
}

TEST_F(Acquiring, ADrainingRecordCountsAsHeld) {
  Record record = Other(7, 3);
  record.state = RecordState::kDraining;
  EXPECT_GE(WaitAfterSeeing(record), Duration::Millis(10010));
}

TEST_F(Acquiring, AReleasedLeaseIsTakenAtOnceAndKeepsCountingTokens) {
  Record record = Other(7, 3);
  record.state = RecordState::kReleased;
  EXPECT_EQ(WaitAfterSeeing(record), Duration::Zero());
  EXPECT_EQ(Must<CasEffect>().record.token, 8u);
}

TEST_F(Acquiring, AProvenDeadHolderIsTakenOverAtOnceOnThatVersion) {
  Start();
  AnswerRecord(Other(7, 3), /*holder_dead=*/true);
  const CasEffect cas = Must<CasEffect>();
  EXPECT_EQ(cas.record.token, 8u);
  EXPECT_EQ(*cas.expected, MakeVersion(Other(7, 3)));
}

TEST_F(Acquiring, AnAbsentRecordThatWasKnownIsTakenOnlyAfterAWindow) {
  Start();
  AnswerRecord(Other(7, 3));
  TickNext();
  AnswerAbsent();
  EXPECT_TRUE(None<CasEffect>());
  const MonoTime from = now_;
  while (None<CasEffect>()) {
    TickNext();
    if (!None<ReadEffect>()) AnswerAbsent();
  }
  EXPECT_GE(now_ - from, Duration::Millis(10010));
  EXPECT_EQ(Must<CasEffect>().record.token, 8u);  // the highest ever seen, plus one
}

TEST_F(Acquiring, AnAbsentRecordThatTheStateDirKnewIsTakenOnlyAfterAWindow) {
  Memory memory;
  memory.highest_token = 41;
  Start(memory);
  AnswerAbsent();
  EXPECT_TRUE(None<CasEffect>());
}

TEST_F(Acquiring, AReleasedRecordWithALowerTokenWaitsAWindowAndRaisesTokenRegression) {
  Record record = Other(3, 1);
  record.state = RecordState::kReleased;
  Memory memory;
  memory.highest_token = 9;
  EXPECT_GE(WaitAfterSeeing(record, memory), Duration::Millis(10010));
  EXPECT_TRUE(Told(Notice::kTokenRegression));
  EXPECT_EQ(Must<CasEffect>().record.token, 10u);
}

TEST_F(Acquiring, ALowerBeatOfTheSameProcessMeansTheStoreHasGoneBack) {
  Start();
  AnswerRecord(Other(7, 30));
  TickNext();
  Record older = Other(7, 20);
  older.state = RecordState::kReleased;
  AnswerRecord(older);
  EXPECT_GE(WaitForAcquisition(older), Duration::Millis(10010));
}

TEST_F(Acquiring, TheSameTokenUnderAnotherProcessMeansTheStoreHasGoneBack) {
  Start();
  AnswerRecord(Other(7, 30));
  TickNext();
  Record twice = Other(7, 1);
  twice.process_id = "p3";
  twice.state = RecordState::kReleased;
  AnswerRecord(twice);
  EXPECT_GE(WaitForAcquisition(twice), Duration::Millis(10010));
}

TEST_F(Acquiring, TheWindowAfterGoingBackIsTheLongerOfLastSeenAndOwnTtl) {
  Start();
  AnswerRecord(Other(7, 3, Duration::Seconds(30)));
  TickNext();
  Record older = Other(6, 9, Duration::Seconds(2));
  older.state = RecordState::kReleased;
  AnswerRecord(older);
  EXPECT_GE(WaitForAcquisition(older), Duration::Millis(30030));
}

TEST_F(Acquiring, AStoreThatGoesBackTwiceNeverShortensTheWait) {
  Start();
  AnswerRecord(Other(7, 3, Duration::Seconds(30)));
  TickNext();
  Record older = Other(6, 9, Duration::Seconds(2));
  older.state = RecordState::kReleased;
  AnswerRecord(older);
  const MonoTime first = now_;
  TickNext();
  older.beat = 5;
  AnswerRecord(older);
  WaitForAcquisition(older);
  EXPECT_GE(now_ - first, Duration::Millis(30030));
}

TEST_F(Acquiring, OnTokenRegressionRefuseStopsCompeting) {
  options_.on_token_regression = OnTokenRegression::kRefuse;
  Memory memory;
  memory.highest_token = 9;
  EXPECT_EQ(WaitAfterSeeing(Other(3, 1), memory), Duration::Max());
  EXPECT_NE(engine_->view().not_competing.find("token_regression"), std::string::npos);
}

TEST_F(Acquiring, TheLargestTokenIsNeverWrapped) {
  Record record = Other(std::numeric_limits<uint64_t>::max(), 3);
  record.state = RecordState::kReleased;
  EXPECT_EQ(WaitAfterSeeing(record), Duration::Max());
  EXPECT_TRUE(Told(Notice::kTokenExhausted));
}

TEST_F(Acquiring, AnExhaustedTokenIsToldAlsoWhenTheRecordIsGone) {
  Memory memory;
  memory.highest_token = std::numeric_limits<uint64_t>::max();
  Start(memory);
  AnswerAbsent();
  EXPECT_TRUE(Told(Notice::kTokenExhausted));
  TickFor(Duration::Seconds(30));
  EXPECT_TRUE(None<CasEffect>());
}

TEST_F(Acquiring, ARecordOfAHigherFormatIsNeverOverwritten) {
  Record record = Other(7, 3);
  record.format = kRecordFormat + 1;
  EXPECT_EQ(WaitAfterSeeing(record), Duration::Max());
  EXPECT_TRUE(Told(Notice::kRecordUnusable));
}

TEST_F(Acquiring, ARecordWithAnAbsurdTtlIsNeverOverwritten) {
  EXPECT_EQ(WaitAfterSeeing(Other(7, 3, Duration::Millis(1))), Duration::Max());
}

TEST_F(Acquiring, UnknownMembersOfTheRecordAreKept) {
  Record record = Other(7, 3);
  record.state = RecordState::kReleased;
  record.unknown["colour"] = "\"blue\"";
  WaitAfterSeeing(record);
  EXPECT_EQ(Must<CasEffect>().record.unknown, record.unknown);
}

TEST_F(Acquiring, AnApplicationThatIsNotReadyDoesNotCompete) {
  Make();
  Feed(Tick{});
  AnswerAbsent();
  TickFor(Duration::Seconds(1));
  EXPECT_TRUE(None<CasEffect>());
  Feed(AppState{true});
  EXPECT_FALSE(None<CasEffect>() && None<ReadEffect>());
}

TEST_F(Acquiring, ThePermitCountsFromTheSendingOfTheAcquisition) {
  Start();
  AnswerAbsent();
  const MonoTime sent = now_;
  Advance(Duration::Millis(700));
  AnswerApplied();
  EXPECT_EQ(state(), State::kActive);
  EXPECT_EQ(engine_->permit().expiry(), sent + Duration::Millis(9800));
  EXPECT_TRUE(Told(Notice::kAcquired));
  EXPECT_EQ(Must<ValveEffect>().valve, Valve::kOpen);
}

TEST_F(Acquiring, AnAcquisitionConfirmedLateRenewsFirstAndOpensOnSuccess) {
  Start();
  AnswerAbsent();
  Advance(timing().renew_interval + Duration::Millis(1));
  AnswerApplied();
  EXPECT_FALSE(MayAct());
  EXPECT_TRUE(None<ValveEffect>());
  EXPECT_EQ(Must<CasEffect>().purpose, CasEffect::Purpose::kRenew) << Effects();
}

// It waited for its first renewal's outcome until it was over; the read for that showed who has it.
TEST_F(Acquiring, WhoHasItIsKnownFromAReadThatOutlivedAnUnopenedTerm) {
  Start();
  AnswerAbsent();
  const MonoTime sent = now_;
  Advance(timing().renew_interval + Duration::Millis(1));
  const CasEffect taken = AnswerApplied();
  now_ = sent + timing().ttl - timing().margin;  // it stood still
  AnswerAmbiguous();
  ASSERT_EQ(state(), State::kStandby);
  const ReadEffect read = Must<ReadEffect>();
  Record other = Other(taken.record.token + 1, 1);
  Feed(ReadAnswer{read.op, ReadAnswer::Outcome::kRecord, other, MakeVersion(other), false, ""});
  EXPECT_TRUE(Told(Notice::kObserved)) << Effects();
  EXPECT_TRUE(None<CasEffect>()) << "competes on a version that it knows to be outdated";
}

TEST_F(Acquiring, AnAmbiguousAcquisitionIsReadAtOnceAndCountsFromItsOwnSending) {
  Start();
  AnswerAbsent();
  const MonoTime sent = now_;
  Advance(Duration::Millis(300));
  const CasEffect cas = AnswerAmbiguous();
  AnswerRecord(cas.record);
  EXPECT_EQ(state(), State::kActive);
  EXPECT_EQ(engine_->permit().expiry(), sent + Duration::Millis(9800));
}

TEST_F(Acquiring, WithWaitReplicasAReadConfirmsNothing) {
  options_.reads_confirm = false;
  Start();
  AnswerAbsent();
  const CasEffect cas = AnswerAmbiguous();
  AnswerRecord(cas.record);
  EXPECT_FALSE(MayAct());
  // Our own process id without a permit: taken again at once, with a new token.
  EXPECT_EQ(Must<CasEffect>().record.token, cas.record.token + 1);
}

TEST_F(Acquiring, ALateOwnAcquisitionSeenWithoutAPermitIsTakenAgainAtOnceWithANewToken) {
  Start();
  AnswerAbsent();
  const CasEffect late = AnswerAmbiguous();
  AnswerReadFailed();
  ASSERT_EQ(state(), State::kStandby);
  while (None<CasEffect>()) TickNext();
  AnswerConflict(late.record);  // the first one landed after all
  const CasEffect again = Must<CasEffect>();
  EXPECT_EQ(again.record.token, late.record.token + 1);
  EXPECT_EQ(*again.expected, MakeVersion(late.record));
}

TEST_F(Acquiring, ALostRaceIsObservedAndNotRepeatedBeforeAWindow) {
  Start();
  AnswerAbsent();
  AnswerConflict(Other(1, 1));
  EXPECT_EQ(state(), State::kStandby);
  EXPECT_TRUE(None<CasEffect>());
  EXPECT_GE(WaitForAcquisition(Other(1, 1)), Duration::Millis(10010));
}

TEST_F(Acquiring, AStoreThatFailsAtOnceIsNotAskedAgainAtOnce) {
  Start();
  AnswerAbsent();
  AnswerAmbiguous();
  AnswerReadFailed();
  EXPECT_TRUE(None<CasEffect>());
  EXPECT_TRUE(None<ReadEffect>());
  EXPECT_GT(engine_->NextDeadline(), now_);
}

TEST_F(Acquiring, FailIfHeldStopsWhenTheRecordChangesWithinAWindow) {
  options_.fail_if_held = true;
  Start();
  AnswerRecord(Other(7, 3));
  TickNext();
  AnswerRecord(Other(7, 4));
  const StoppedEffect stopped = Must<StoppedEffect>();
  EXPECT_FALSE(stopped.ok);
  EXPECT_NE(stopped.why.find("n2"), std::string::npos);
}

TEST_F(Acquiring, FailIfHeldIsNoReasonToFailForWhoLeavesAnyway) {
  options_.fail_if_held = true;
  Start();
  AnswerRecord(Other(7, 3));
  Feed(Shutdown{true});  // its gates still wait for the next holder
  TickNext();
  AnswerRecord(Other(7, 4));
  EXPECT_EQ(state(), State::kStandby);
  Feed(Shutdown{});
  EXPECT_TRUE(Must<StoppedEffect>().ok);
}

TEST_F(Acquiring, FailIfHeldTakesADeadHoldersRecordOver) {
  options_.fail_if_held = true;
  EXPECT_GE(WaitAfterSeeing(Other(7, 3)), Duration::Millis(10010));
  EXPECT_EQ(Must<CasEffect>().record.token, 8u);
}

TEST_F(Acquiring, AnUrgentHintIsReadAtOnceAndABeatNoSoonerThanThePollInterval) {
  Start();
  AnswerRecord(Other(7, 3));
  Advance(Duration::Millis(100));
  Feed(Hint{false});
  EXPECT_TRUE(None<ReadEffect>());
  Feed(Hint{true});
  EXPECT_FALSE(None<ReadEffect>());
}

TEST_F(Acquiring, AnUrgentHintDuringAReadCausesAnother) {
  Start();
  Feed(Hint{true});
  AnswerRecord(Other(7, 3));
  EXPECT_FALSE(None<ReadEffect>()) << "what the hint told of may be newer than what the read saw";
}

TEST_F(Acquiring, WithPushAStandbyReadsNoFasterThanItsFallbackInterval) {
  Start();
  Feed(PushState{true});
  AnswerRecord(Other(7, 3));
  if (!None<ReadEffect>()) AnswerRecord(Other(7, 3));
  int reads = 0;
  const MonoTime end = now_ + Duration::Millis(9900);
  while (engine_->NextDeadline() < end) {
    TickNext();
    if (!None<ReadEffect>()) {
      ++reads;
      AnswerRecord(Other(7, 3));
    }
  }
  EXPECT_LE(reads, 4);  // a quarter of the record's TTL: 2.5 s
  EXPECT_GE(reads, 3);
}

TEST_F(Acquiring, OurNodeIdBeatingUnderAnotherProcessIsToldOnce) {
  Start();
  Record twin = Other(7, 3);
  twin.node_id = "n1";
  AnswerRecord(twin);
  EXPECT_FALSE(Told(Notice::kDuplicateId));
  for (uint64_t beat = 4; beat < 7; ++beat) {
    TickNext();
    twin.beat = beat;
    AnswerRecord(twin);
  }
  EXPECT_TRUE(Told(Notice::kDuplicateId));
  int told = 0;
  while (std::optional<NoticeEffect> notice = Take<NoticeEffect>())
    told += notice->notice == Notice::kDuplicateId;
  EXPECT_EQ(told, 1);
}

TEST_F(Acquiring, FailIfHeldLooksForOneWindowAndNotLonger) {
  options_.fail_if_held = true;
  Make();  // the application is not ready, so that this process only looks
  Feed(Tick{});
  const MonoTime first_look = now_;
  while (now_ < first_look + timing().Window(timing().ttl)) {
    AnswerRecord(Other(3, 5));
    while (None<ReadEffect>()) TickNext();
  }
  AnswerRecord(Other(3, 5));  // a dead holder
  while (None<ReadEffect>()) TickNext();
  AnswerRecord(Other(4, 9));  // another instance took it over
  EXPECT_EQ(state(), State::kStandby);
}

TEST_F(Acquiring, FailIfHeldIsSatisfiedByALeaseThatIsFreeAtTheStart) {
  options_.fail_if_held = true;
  Make();
  Feed(Tick{});
  AnswerAbsent();
  for (uint64_t beat = 1; beat < 4; ++beat) {
    while (None<ReadEffect>()) TickNext();
    AnswerRecord(Other(1, beat));
  }
  EXPECT_EQ(state(), State::kStandby);
}

TEST_F(Acquiring, TheTakeoverTellsForHowLongTheRecordHadNotChanged) {
  Start();
  AnswerRecord(Other(3, 5));
  const MonoTime seen_at = now_;
  while (None<CasEffect>()) {
    if (!None<ReadEffect>()) AnswerRecord(Other(3, 5));
    TickNext();
  }
  AnswerApplied();
  Duration unchanged_for;
  while (const auto told = Take<NoticeEffect>()) {
    if (told->notice == Notice::kAcquired) unchanged_for = told->unchanged_for;
  }
  EXPECT_EQ(unchanged_for, now_ - seen_at);
  EXPECT_GE(unchanged_for, timing().ttl);
}

TEST_F(Acquiring, ARegressedTokenIsToldOncePerHolderAndNotWithEveryBeat) {
  Memory memory;
  memory.highest_token = 9;
  Start(memory);
  for (uint64_t beat = 1; beat < 5; ++beat) {
    AnswerRecord(Other(2, beat));
    EXPECT_EQ(Told(Notice::kTokenRegression), beat == 1);
    Forget();
    while (None<ReadEffect>()) TickNext();
  }
}

TEST_F(Acquiring, ATokenHandedOutTwiceIsToldOncePerHolder) {
  Start();
  AnswerRecord(Other(7, 30));
  EXPECT_FALSE(Told(Notice::kTokenRegression));
  Forget();
  for (uint64_t beat = 1; beat < 4; ++beat) {
    while (None<ReadEffect>()) TickNext();
    Record record = Other(7, beat);
    record.process_id = "third";
    AnswerRecord(record);
    EXPECT_EQ(Told(Notice::kTokenRegression), beat == 1);
    Forget();
  }
}

TEST_F(Acquiring, ARecordThatMayNotBeTouchedIsToldOncePerHolderAndNotWithEveryBeat) {
  Start();
  for (uint64_t beat = 1; beat < 5; ++beat) {
    Record record = Other(2, beat);
    record.format = kRecordFormat + 1;
    AnswerRecord(record);
    EXPECT_EQ(Told(Notice::kRecordUnusable), beat == 1);
    Forget();
    while (None<ReadEffect>()) TickNext();
  }
}

}  // namespace
}  // namespace leasehold::test

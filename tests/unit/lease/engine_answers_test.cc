// DESIGN 2.2 and 2.3 where the store's answer is an unusual one: a conflict that shows nothing, a
// refusal, a beat that nobody sent, news that is almost too old. And what a holder writes of
// itself.

#include <utility>

#include "lib/engine_fixture.h"

namespace leasehold::test {
namespace {

class Answers : public EngineFixture {
 protected:
  void StartAcquiring() {
    Start();
    AnswerAbsent();
    ASSERT_EQ(state(), State::kAcquiring);
  }
  Record Own() { return last_write_; }
};

// ---- to an acquisition ----

// A store that gives no record with its conflict was asked again at once on the same version, for
// ever: the new record was never read.
TEST_F(Answers, AnAcquisitionThatConflictsWithoutARecordIsFollowedByARead) {
  StartAcquiring();
  AnswerConflictBlind();
  EXPECT_TRUE(None<CasEffect>());
  ASSERT_FALSE(None<ReadEffect>()) << "who won is not known: look at once";
  AnswerRecord(Other(1, 1));
  EXPECT_EQ(state(), State::kStandby);
  EXPECT_TRUE(None<CasEffect>()) << "another holds it now";
}

TEST_F(Answers, AConflictWithoutARecordAndReadsThatFailAreNoReasonToTryAtOnceAgain) {
  StartAcquiring();
  const MonoTime began = now_;
  int writes = 0;
  while (now_ < began + Duration::Seconds(10) && writes < 1000) {
    if (!None<CasEffect>()) {
      AnswerConflictBlind();
      ++writes;
    }
    if (!None<ReadEffect>()) AnswerReadFailed();
    if (None<CasEffect>() && None<ReadEffect>()) TickNext();
  }
  EXPECT_GT(writes, 2);
  EXPECT_LT(writes, 15) << "a poll_interval of 1 s lies between two";
}

TEST_F(Answers, ADoubledAcquisitionThatTookOnceAndConflictedOnceIsOurs) {
  StartAcquiring();
  const CasEffect sent = AnswerConflictBlind();
  AnswerRecord(sent.record);
  EXPECT_EQ(state(), State::kActive);
  EXPECT_EQ(engine_->permit().expiry(), now_ + timing().ttl - timing().margin);
}

TEST_F(Answers, AnAcquisitionThatConflictsWithNoRecordAtAllWaitsNoWindowOnAFirstStart) {
  StartAcquiring();
  AnswerConflictAbsent();
  EXPECT_FALSE(MayAct());
  for (int i = 0; i < 5 && None<CasEffect>(); ++i) {
    if (!None<ReadEffect>()) AnswerAbsent();
    if (None<CasEffect>()) TickNext();
  }
  EXPECT_EQ(Must<CasEffect>().record.token, 1u);
}

TEST_F(Answers, ARefusedAcquisitionIsToldWithItsReasonAndNotRepeatedAtOnce) {
  StartAcquiring();
  AnswerRefused("NOPERM this user may not write");
  EXPECT_EQ(state(), State::kStandby);
  EXPECT_TRUE(Told(Notice::kStoreDegraded));
  EXPECT_EQ(engine_->view().last_error, "NOPERM this user may not write");
  EXPECT_TRUE(None<CasEffect>());
  EXPECT_GT(engine_->NextDeadline(), now_);
}

TEST_F(Answers, AnAcquisitionWithoutAnyAnswerIsReadWhenItsTimeIsUp) {
  StartAcquiring();
  const CasEffect sent = Must<CasEffect>();
  const MonoTime sent_at = now_;
  Advance(sent.timeout);
  Feed(Tick{});
  ASSERT_FALSE(None<ReadEffect>());
  AnswerRecord(sent.record);
  // It took, late: renewed before it opens, and its permit would run from the sending.
  EXPECT_EQ(state(), State::kAcquiring);
  AnswerApplied();
  EXPECT_EQ(state(), State::kActive);
  EXPECT_GT(engine_->permit().expiry(), sent_at + timing().ttl - timing().margin);
}

TEST_F(Answers, AnAcquisitionThatDidNotTakeIsForgottenAndTheReadSaysWhoHasIt) {
  StartAcquiring();
  AnswerAmbiguous();
  AnswerRecord(Other(1, 1));
  EXPECT_EQ(state(), State::kStandby);
  EXPECT_TRUE(Told(Notice::kObserved));
  TickFor(Duration::Seconds(9));
  EXPECT_TRUE(None<CasEffect>()) << "its window is not over";
}

TEST_F(Answers, AnAcquisitionConfirmedAfterItsPermitWouldBeOverOpensNothing) {
  StartAcquiring();
  const CasEffect sent = Must<CasEffect>();
  // The reads fail slowly, one after another, until the whole TTL is gone.
  Feed(CasAnswer{sent.op, CasAnswer::Outcome::kAmbiguous, {}, {}, false, "reset"});
  now_ = now_ + timing().ttl;
  ASSERT_FALSE(None<ReadEffect>());
  Feed(ReadAnswer{Must<ReadEffect>().op, ReadAnswer::Outcome::kRecord, sent.record,
                  MakeVersion(sent.record), false, ""});
  EXPECT_FALSE(MayAct());
  EXPECT_NE(state(), State::kActive);
  while (None<CasEffect>()) TickNext();
  EXPECT_EQ(Must<CasEffect>().record.token, 2u) << "our own record, but a new term";
}

// ---- to a renewal ----

TEST_F(Answers, ABeatThatThisProcessNeverSentIsSomebodyElsesWrite) {
  Hold();
  TickToRenewal();
  Record forged = Own();
  forged.beat += 100;
  AnswerConflict(forged);
  EXPECT_FALSE(MayAct());
  EXPECT_TRUE(Told(Notice::kLost, Reason::kSuperseded));
}

TEST_F(Answers, ALowerTokenUnderOurOwnProcessIsAStoreThatWentBack) {
  Start({5, Duration::Zero()});
  while (None<CasEffect>()) {  // absent, though tokens were seen before: waits a window
    if (!None<ReadEffect>()) AnswerAbsent();
    if (None<CasEffect>()) TickNext();
  }
  last_write_ = AnswerApplied().record;
  ASSERT_EQ(last_write_.token, 6u);
  TickToRenewal();
  Record older = Own();
  older.token = 4;
  AnswerConflict(older);
  EXPECT_FALSE(MayAct());
  EXPECT_TRUE(Told(Notice::kLost, Reason::kStoreRegressed));
}

TEST_F(Answers, AReadThatFailsAfterAnAmbiguousRenewalLeavesThePermitAsItIs) {
  Hold();
  const MonoTime expiry = engine_->permit().expiry();
  TickToRenewal();
  AnswerAmbiguous();
  AnswerReadFailed();
  EXPECT_TRUE(MayAdmit());
  EXPECT_EQ(engine_->permit().expiry(), expiry);
  EXPECT_GT(engine_->NextDeadline(), now_) << "and tries again after a pause";
}

// An attempt whose answer was lost turns up when a drain for failed renewals has begun, and is
// itself so old that a drain would begin at once.
TEST_F(Answers, NewsTooOldToHealADrainExtendsThePermitAllTheSame) {
  options_.renew_interval = Duration::Millis(100);
  Hold();
  const MonoTime acquired_at = sent_at_;
  TickToRenewal();
  const MonoTime attempted_at = sent_at_;
  const CasEffect attempt = Must<CasEffect>();
  ASSERT_LT(attempted_at - acquired_at, Duration::Seconds(1));
  TickUntil(attempted_at + timing().forced_drain_after);  // nothing is answered
  ASSERT_EQ(state(), State::kDraining);
  ASSERT_EQ(engine_->permit().expiry(), acquired_at + Duration::Millis(9800));
  ASSERT_LT(now_, engine_->permit().expiry());
  const CasEffect last = MustLast<CasEffect>();
  Forget();
  Feed(CasAnswer{last.op, CasAnswer::Outcome::kAmbiguous, {}, {}, false, "reset"});
  ASSERT_FALSE(None<ReadEffect>()) << "the write was the call under way";
  AnswerRecord(attempt.record);
  EXPECT_EQ(state(), State::kDraining) << "a drain would begin at once: nothing is healed";
  EXPECT_FALSE(Told(Notice::kRestored));
  EXPECT_FALSE(MayAdmit());
  EXPECT_EQ(engine_->permit().expiry(), attempted_at + Duration::Millis(9800));
  TickUntil(acquired_at + Duration::Millis(9900));
  EXPECT_TRUE(MayAct()) << "what is in flight has until the later expiry";
}

TEST_F(Answers, ManyAttemptsWithoutAnAnswerAreForgottenOldestFirstAndTheTermStaysSafe) {
  options_.ttl = Duration::Seconds(60);
  options_.renew_interval = Duration::Millis(10);
  options_.renew_call_timeout = Duration::Millis(10);
  Hold();
  TickToRenewal();
  const CasEffect first = AnswerAmbiguous();
  AnswerReadFailed();
  // Each fails at once; the back-off alone bounds how many there are.
  int attempts = 1;
  while (state() == State::kActive && attempts < 500) {
    if (!None<CasEffect>()) {
      AnswerAmbiguous();
      ++attempts;
    }
    if (!None<ReadEffect>()) AnswerReadFailed();
    if (None<CasEffect>() && None<ReadEffect>()) TickNext();
  }
  ASSERT_EQ(state(), State::kDraining);
  while (None<CasEffect>()) TickNext();
  AnswerAmbiguous();
  const MonoTime expiry = engine_->permit().expiry();
  AnswerRecord(first.record);
  EXPECT_GE(engine_->permit().expiry(), expiry);
  EXPECT_NE(state(), State::kStandby) << "ours, however old: not a loss";
}

// ---- what a holder writes of itself ----

TEST_F(Answers, EveryRecordOfAHolderNamesWhereItsPeersReachIt) {
  Make();
  engine_->SetPeers({{"web", "10.0.0.1:8081"}});
  Feed(AppState{true});
  AnswerAbsent();
  EXPECT_EQ(AnswerApplied().record.peers.at("web"), "10.0.0.1:8081");
  TickToRenewal();
  EXPECT_EQ(AnswerApplied().record.peers.at("web"), "10.0.0.1:8081");
  Feed(StepDownRequest{1, {"n1", 1}, Reason::kRequested, true});
  Feed(Drained{1});
  const CasEffect release = AnswerApplied();
  EXPECT_EQ(release.record.peers.at("web"), "10.0.0.1:8081");
  EXPECT_EQ(release.record.state, RecordState::kReleased);
}

TEST_F(Answers, MembersThatAnotherProgramWroteAreKeptThroughAWholeTerm) {
  Start();
  Record freed = Other(4, 9);
  freed.state = RecordState::kReleased;
  freed.unknown["zone"] = "\"b\"";
  AnswerRecord(freed);
  EXPECT_EQ(AnswerApplied().record.unknown.at("zone"), "\"b\"");
  TickToRenewal();
  EXPECT_EQ(AnswerApplied().record.unknown.at("zone"), "\"b\"");
  Feed(StepDownRequest{1, {"n1", 5}, Reason::kRequested, true});
  Feed(Drained{5});
  EXPECT_EQ(AnswerApplied().record.unknown.at("zone"), "\"b\"");
}

TEST_F(Answers, AnEngineThatIsMovedGoesOnWhereItWas) {
  Hold();
  const MonoTime expiry = engine_->permit().expiry();
  const lease::Permit* address = &engine_->permit();
  Engine moved(std::move(*engine_));
  EXPECT_EQ(&moved.permit(), address) << "gates keep a reference to it";
  EXPECT_EQ(moved.permit().expiry(), expiry);
  EXPECT_EQ(moved.state(), State::kActive);
}

}  // namespace
}  // namespace leasehold::test

// How often a standby asks, DESIGN 2.6: every poll_interval, sooner while the holder drains, later
// while the store fails.

#include <vector>

#include "lib/engine_fixture.h"

namespace leasehold::test {
namespace {

class Polling : public EngineFixture {
 protected:
  void SetUp() override {
    EngineFixture::SetUp();
    options_.poll_interval = Duration::Seconds(1);
  }
  // From the answering of one read to the sending of the next; the read is left unanswered.
  Duration ToNextRead() {
    const MonoTime from = now_;
    while (None<ReadEffect>()) TickNext();
    return now_ - from;
  }
  static Record Draining(uint64_t beat) {
    Record record = Other(7, beat);
    record.state = RecordState::kDraining;
    return record;
  }
  void AnswerReadRefused() {
    Feed(ReadAnswer{
        MustLast<ReadEffect>().op, ReadAnswer::Outcome::kRefused, {}, {}, false, "denied"});
  }
  static void ExpectAbout(Duration waited, Duration interval) {
    EXPECT_GE(waited, interval);
    EXPECT_LE(waited, interval + interval / 8) << "an eighth of jitter";
  }
};

TEST_F(Polling, AHeldLeaseIsLookedAtOncePerPollInterval) {
  Start();
  for (uint64_t beat = 3; beat < 20; ++beat) {
    AnswerRecord(Other(7, beat));
    ExpectAbout(ToNextRead(), Duration::Seconds(1));
  }
}

TEST_F(Polling, ADrainingHolderIsLookedAtFourTimesASecond) {
  Start();
  AnswerRecord(Other(7, 3));
  ExpectAbout(ToNextRead(), Duration::Seconds(1));
  AnswerRecord(Draining(4));
  ExpectAbout(ToNextRead(), Duration::Millis(250));
  AnswerRecord(Draining(5));
  ExpectAbout(ToNextRead(), Duration::Millis(250));
  AnswerRecord(Other(7, 6));  // it goes on after all
  ExpectAbout(ToNextRead(), Duration::Seconds(1));
}

TEST_F(Polling, ADrainIsNoReasonToAskLessOftenThanConfigured) {
  options_.poll_interval = Duration::Millis(100);
  Start();
  AnswerRecord(Draining(3));
  ExpectAbout(ToNextRead(), Duration::Millis(100));
}

TEST_F(Polling, WithPushADrainIsTheHintsBusiness) {
  Start();
  Feed(PushState{true});
  AnswerRecord(Draining(3));
  EXPECT_GE(ToNextRead(), Duration::Millis(2500));
}

TEST_F(Polling, OneFailedReadIsNoReasonToWaitLonger) {
  Start();
  AnswerRecord(Other(7, 3));
  ToNextRead();
  AnswerReadFailed();
  ExpectAbout(ToNextRead(), Duration::Seconds(1));
}

TEST_F(Polling, AStoreThatFailsIsAskedLessAndLessDownToFourTimesATtl) {
  options_.poll_interval = Duration::Millis(300);
  Start();
  AnswerRecord(Other(7, 3, Duration::Seconds(60)));  // no window ends meanwhile
  ToNextRead();
  for (const int64_t ms : {300, 600, 1200, 2400, 2500, 2500, 2500}) {
    AnswerReadFailed();
    ExpectAbout(ToNextRead(), Duration::Millis(ms));
  }
  AnswerRecord(Other(7, 4));
  ExpectAbout(ToNextRead(), Duration::Millis(300));
}

TEST_F(Polling, RefusalsCountAsFailures) {
  Start();
  AnswerRecord(Other(7, 3));
  ToNextRead();
  for (const int64_t ms : {1000, 2000, 2500}) {
    AnswerReadRefused();
    ExpectAbout(ToNextRead(), Duration::Millis(ms));
  }
}

TEST_F(Polling, APollIntervalAboveAQuarterOfTheTtlIsNotShortenedByFailures) {
  options_.poll_interval = Duration::Seconds(4);
  Start();
  for (int i = 0; i < 4; ++i) {
    AnswerReadFailed();
    ExpectAbout(ToNextRead(), Duration::Seconds(4));
  }
}

TEST_F(Polling, AWindowThatEndsWhileTheStoreFailsIsStillUsedAtOnce) {
  Start();
  AnswerRecord(Other(7, 3));
  const MonoTime seen = now_;
  while (None<CasEffect>() && now_ - seen < Duration::Seconds(30)) {
    TickNext();
    if (!None<ReadEffect>() && None<CasEffect>()) AnswerReadFailed();
  }
  EXPECT_GE(now_ - seen, Duration::Millis(10010));
  EXPECT_LT(now_ - seen, Duration::Millis(10020)) << "the conditional write alone decides";
}

}  // namespace
}  // namespace leasehold::test

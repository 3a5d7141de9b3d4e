// The service's clock: measured where it must be, left alone where nothing is wrong, not fooled by
// slow answers; and a machine whose clock is off gets through at the second call.
#include "aws/service_clock.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <iterator>
#include <string>

#include "lib/socket_peer.h"
#include "service_fixture.h"

namespace leasehold::aws {
namespace {

using base::Duration;
using base::WallTime;

constexpr int64_t kNow = 1'780'000'000;  // some second

ServiceClock::Answer At(int64_t date, Duration elapsed = Duration::Millis(100),
                        bool refused = false) {
  return {date, WallTime{kNow * 1000}, elapsed, refused};
}

TEST(ServiceClockTest, AnAnswerInTimeCorrectsNothing) {
  ServiceClock clock;
  EXPECT_FALSE(clock.Note(At(kNow)));
  EXPECT_FALSE(clock.Note(At(kNow - 1, Duration::Millis(100), true)));
  EXPECT_FALSE(clock.Note(At(kNow + 200)));
  EXPECT_FALSE(clock.Note(At(kNow - 200)));
  EXPECT_EQ(clock.skew(), Duration::Zero());
  EXPECT_EQ(clock.UnixSeconds(WallTime{kNow * 1000 + 999}), kNow);
}

TEST(ServiceClockTest, MoreThanFourMinutesOffCorrectsBothWays) {
  for (const int64_t off : {241, 1200, -242, -1200, 56 * 365 * 86400}) {
    ServiceClock clock;
    EXPECT_TRUE(clock.Note(At(kNow + off))) << off;
    EXPECT_NEAR(clock.skew().seconds(), static_cast<double>(off), 1.0);
    EXPECT_NEAR(static_cast<double>(clock.UnixSeconds(WallTime{kNow * 1000})),
                static_cast<double>(kNow + off), 1.0);
    EXPECT_FALSE(clock.Note(At(kNow + off))) << "corrected once";
  }
}

TEST(ServiceClockTest, ARefusalForTheTimeCorrectsWhateverIsOff) {
  ServiceClock clock;
  EXPECT_TRUE(clock.Note(At(kNow + 30, Duration::Millis(100), true)));
  EXPECT_NEAR(clock.skew().seconds(), 30.0, 1.0);
}

TEST(ServiceClockTest, ASlowAnswerIsMeasuredAtTheMiddleOfItsWay) {
  ServiceClock clock;
  EXPECT_TRUE(clock.Note(At(kNow + 1200, Duration::Seconds(20))));
  EXPECT_NEAR(clock.skew().seconds(), 1210.5, 0.01);
}

TEST(ServiceClockTest, ASlowAnswerIsNoWrongClock) {
  ServiceClock clock;
  // Made as soon as it was asked for, and three and a half minutes under way.
  EXPECT_FALSE(clock.Note(At(kNow - 210, Duration::Seconds(210), true)));
  EXPECT_FALSE(clock.Note(At(kNow - 400, Duration::Seconds(210))));
  EXPECT_EQ(clock.skew(), Duration::Zero());
}

TEST(ServiceClockTest, WhatTookLongerThanIsToleratedMeasuresNothing) {
  ServiceClock clock;
  EXPECT_FALSE(clock.Note(At(kNow + 1200, Duration::Seconds(241), true)));
  EXPECT_FALSE(clock.Note(At(kNow - 3600, Duration::Seconds(1800), true)));
}

TEST(ServiceClockTest, ADateOfNobodysTimeIsIgnored) {
  ServiceClock clock;
  EXPECT_FALSE(clock.Note(At(int64_t{253402300799}, Duration::Zero(), true)));  // year 9999
  EXPECT_FALSE(clock.Note(At(-int64_t{62135596800}, Duration::Zero(), true)));  // year 1
}

TEST(ServiceClockTest, WhenTheMachinesClockIsSetTheCorrectionGoes) {
  ServiceClock clock;
  ASSERT_TRUE(clock.Note(At(kNow + 1200)));
  EXPECT_TRUE(clock.Note({kNow + 1200, WallTime{(kNow + 1200) * 1000}, Duration::Zero(), false}));
  EXPECT_NEAR(clock.skew().seconds(), 0.0, 1.0);
}

class ClockSkewTest : public ServiceFixture {
 protected:
  void SetUp() override {
    ServiceFixture::SetUp();
    path_ = dir_.File("log");
    const int fd = open(path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    ASSERT_GE(fd, 0);
    fd_ = fd;
    log_ = observe::Log::ToDescriptor({}, fd);
    MakeService();
  }
  void TearDown() override {
    ServiceFixture::TearDown();
    log_.reset();
    close(fd_);
  }
  // A service whose clock is `off` seconds from ours, and which takes 5 minutes either way.
  Outcome& AskOff(int64_t off) {
    Outcome& outcome = Start();
    arrived_ = Arrived();
    const int64_t signed_for =
        proto::sigv4::ParseAmzDate(HeaderOf(arrived_, "X-Amz-Date")).value_or(0);
    const int64_t now = Now() + off;
    EXPECT_TRUE(SignedBy(arrived_, kSecret, "eu-central-1", "sqs"));
    if (signed_for < now - 300) {
      Answer(403,
             "{\"__type\":\"com.amazon.coral.service#InvalidSignatureException\",\"message\":"
             "\"Signature expired: 20260101T000000Z is now earlier than 20260101T001500Z\"}",
             DateHeader(now));
    } else if (signed_for > now + 300) {
      Answer(403,
             "<ErrorResponse><Error><Type>Sender</Type><Code>SignatureDoesNotMatch</Code><Message>"
             "Signature not yet current: x is still later than y</Message></Error></ErrorResponse>",
             DateHeader(now));
    } else {
      Answer(200, "{}", DateHeader(now));
    }
    EXPECT_TRUE(Told(outcome));
    return outcome;
  }
  std::string LogText() const {
    std::ifstream file(path_);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  size_t Corrections() const {
    const std::string text = LogText();
    size_t count = 0;
    for (size_t at = text.find("aws.clock_corrected"); at != std::string::npos;
         at = text.find("aws.clock_corrected", at + 1)) {
      ++count;
    }
    return count;
  }

  testing::TempDir dir_;
  std::string path_;
  int fd_ = -1;
};

TEST_F(ClockSkewTest, TwentyMinutesOffTheFirstCallIsRefusedAndTheNextIsRight) {
  for (const int64_t off : {1200, -1200}) {
    MakeService();
    Outcome& first = AskOff(off);
    ASSERT_TRUE(first.answer->ok());
    EXPECT_EQ((*first.answer)->error->trouble, Trouble::kClockSkew);
    EXPECT_EQ((*first.answer)->server_unix_ms.value_or(0) / 1000 / 10, (Now() + off) / 10);
    Outcome& second = AskOff(off);
    ASSERT_TRUE(second.answer->ok());
    EXPECT_EQ((*second.answer)->status, 200);
    EXPECT_NEAR(service_->clock_skew().seconds(), static_cast<double>(off), 2.0);
  }
  EXPECT_TRUE(credentials_->refused.empty()) << "nothing is wrong with the credentials";
  EXPECT_EQ(Corrections(), 2u);
  EXPECT_NE(LogText().find("20m"), std::string::npos) << LogText();
  EXPECT_NE(LogText().find("behind"), std::string::npos) << LogText();
  EXPECT_NE(LogText().find("ahead of"), std::string::npos) << LogText();
}

TEST_F(ClockSkewTest, AnAcceptedAnswerFromAnotherTimeCorrectsTooAndOnce) {
  Ask(200, "{}", DateHeader(Now() + 1200));
  EXPECT_NEAR(service_->clock_skew().seconds(), 1200.0, 2.0);
  Ask(200, "{}", DateHeader(Now() + 1200));
  EXPECT_EQ(Corrections(), 1u);
}

TEST_F(ClockSkewTest, AWrongSignatureFromAnotherTimeIsAMatterOfTheClockFirst) {
  Outcome& first = Ask(403, "{\"__type\":\"SignatureDoesNotMatch\",\"message\":\"no\"}",
                       DateHeader(Now() + 1200));
  EXPECT_EQ((*first.answer)->error->trouble, Trouble::kClockSkew);
  EXPECT_TRUE(credentials_->refused.empty());
  Outcome& second = Ask(403, "{\"__type\":\"SignatureDoesNotMatch\",\"message\":\"no\"}",
                        DateHeader(Now() + 1200));
  EXPECT_EQ((*second.answer)->error->trouble, Trouble::kBadCredentials);
  EXPECT_EQ(credentials_->refused.size(), 1u);
}

TEST_F(ClockSkewTest, AnAnswerWithoutADateOrWithAMadOneCorrectsNothing) {
  for (const char* header :
       {"", "Date: yesterday\r\n", "Date: Fri, 31 Dec 9999 23:59:59 GMT\r\n"}) {
    Outcome& outcome = Ask(403, "{\"__type\":\"RequestTimeTooSkewed\"}", header);
    EXPECT_EQ((*outcome.answer)->error->trouble, Trouble::kClockSkew);
    EXPECT_EQ(service_->clock_skew(), Duration::Zero()) << header;
  }
  EXPECT_EQ(Corrections(), 0u);
}

TEST_F(ClockSkewTest, InTimeNothingIsSaid) {
  AskOff(0);
  AskOff(1);
  EXPECT_EQ(service_->clock_skew(), Duration::Zero());
  EXPECT_EQ(Corrections(), 0u);
}

}  // namespace
}  // namespace leasehold::aws

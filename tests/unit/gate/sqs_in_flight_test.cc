// The table of received messages and of former handles, by itself.
#include "gate/sqs_in_flight.h"

#include <gtest/gtest.h>

#include "gate/sqs_give_back.h"

namespace leasehold::gate {
namespace {

using base::Duration;
using base::MonoTime;

class SqsInFlightTest : public ::testing::Test {
 protected:
  static MonoTime At(int64_t seconds) { return MonoTime() + Duration::Seconds(seconds); }
  void Add(std::string_view handle, int64_t until) { table_.Add("/1/q", handle, At(until), {}); }
  std::vector<std::string> Taken() {
    std::vector<std::string> handles;
    for (const auto& place : table_.TakeToGiveBack()) handles.push_back(place.handle);
    return handles;
  }
  SqsInFlight table_{3};
};

TEST_F(SqsInFlightTest, AMessageLeavesWhenItIsDeletedOrItsTimeIsOver) {
  Add("a", 30);
  Add("b", 40);
  EXPECT_EQ(table_.size(), 2U);
  EXPECT_EQ(table_.NextExpiry(), At(30));
  table_.BeginAcknowledge("/1/q", "a");
  table_.Gone("/1/q", "a");
  EXPECT_EQ(table_.size(), 1U);
  table_.Expire(At(39));
  EXPECT_EQ(table_.size(), 1U);
  table_.Expire(At(40));
  EXPECT_EQ(table_.size(), 0U);
  EXPECT_TRUE(table_.NextExpiry().is_never());
}

TEST_F(SqsInFlightTest, TheSameHandleOfAnotherQueueIsAnotherMessage) {
  Add("a", 30);
  table_.Gone("/1/other", "a");
  EXPECT_TRUE(table_.Contains("/1/q", "a"));
}

TEST_F(SqsInFlightTest, AHandleThatComesAgainCountsOnceAndLastsLonger) {
  Add("a", 30);
  Add("a", 60);
  EXPECT_EQ(table_.size(), 1U);
  table_.Expire(At(30));
  EXPECT_EQ(table_.size(), 1U);
}

TEST_F(SqsInFlightTest, ALongerVisibilityMovesItsTime) {
  Add("a", 30);
  table_.BeginAcknowledge("/1/q", "a");
  table_.Extended("/1/q", "a", At(90));
  table_.Expire(At(60));
  EXPECT_TRUE(table_.Contains("/1/q", "a"));
}

TEST_F(SqsInFlightTest, WhatIsBeingAcknowledgedIsNotGivenBackAndNothingIsTwice) {
  Add("a", 30);
  Add("b", 30);
  table_.BeginAcknowledge("/1/q", "b");
  EXPECT_EQ(Taken(), (std::vector<std::string>{"a"}));
  EXPECT_TRUE(Taken().empty());
  table_.AcknowledgeFailed("/1/q", "b");
  EXPECT_EQ(Taken(), (std::vector<std::string>{"b"}));
}

TEST_F(SqsInFlightTest, WithTwoAcknowledgementsUnansweredOneAnswerIsNotEnough) {
  Add("a", 30);
  table_.BeginAcknowledge("/1/q", "a");
  table_.BeginAcknowledge("/1/q", "a");
  table_.AcknowledgeFailed("/1/q", "a");
  EXPECT_TRUE(Taken().empty());
  table_.AcknowledgeFailed("/1/q", "a");
  EXPECT_EQ(Taken().size(), 1U);
}

TEST_F(SqsInFlightTest, FromItsGivingBackOnAHandleIsAFormerOne) {
  Add("a", 30);
  EXPECT_FALSE(table_.IsFormer("/1/q", "a", At(1)));
  Taken();
  EXPECT_TRUE(table_.IsFormer("/1/q", "a", At(1)));
  EXPECT_EQ(table_.size(), 1U);  // until it is answered
  table_.GivenBack("/1/q", "a");
  EXPECT_EQ(table_.size(), 0U);
  EXPECT_TRUE(table_.IsFormer("/1/q", "a", At(29)));
  EXPECT_FALSE(table_.IsFormer("/1/q", "a", At(30)));
}

TEST_F(SqsInFlightTest, TheEndOfATermMakesAllHandlesFormerUntilTheirTime) {
  Add("a", 30);
  Add("b", 40);
  EXPECT_EQ(table_.EndTerm(), 2U);
  EXPECT_EQ(table_.size(), 0U);
  EXPECT_TRUE(table_.IsFormer("/1/q", "a", At(29)));
  table_.Expire(At(30));
  EXPECT_EQ(table_.former(), 1U);
  // Received anew under the next term, it is that term's.
  Add("b", 70);
  EXPECT_FALSE(table_.IsFormer("/1/q", "b", At(31)));
}

TEST_F(SqsInFlightTest, FormerHandlesAreBoundedAndTheFirstToEndGoesFirst) {
  for (const int64_t until : {50, 20, 30, 40}) Add(std::to_string(until), until);
  table_.EndTerm();
  EXPECT_EQ(table_.former(), 3U);
  EXPECT_FALSE(table_.IsFormer("/1/q", "20", At(1)));
  EXPECT_TRUE(table_.IsFormer("/1/q", "50", At(1)));
}

TEST(GiveBackLeadTest, LeavesTimeForTheCallsAndNeverMoreThanAQuarterOfTheDrain) {
  EXPECT_EQ(GiveBackLead(0, Duration::Seconds(20)), Duration::Millis(500));
  EXPECT_EQ(GiveBackLead(1, Duration::Seconds(20)), Duration::Millis(750));
  EXPECT_EQ(GiveBackLead(640, Duration::Seconds(20)), Duration::Seconds(1));
  EXPECT_EQ(GiveBackLead(20000, Duration::Seconds(20)), Duration::Seconds(5));
  EXPECT_EQ(GiveBackLead(10, Duration::Seconds(1)), Duration::Millis(250));
  EXPECT_EQ(GiveBackLead(10, Duration::Seconds(-1)), Duration::Zero());
}

}  // namespace
}  // namespace leasehold::gate

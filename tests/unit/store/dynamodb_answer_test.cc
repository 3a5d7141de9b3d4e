// What the answers of DynamoDB mean for a lease. The right ones, and all that must not be taken for
// one of them.
#include "store/dynamodb_answer.h"

#include <gtest/gtest.h>

#include <string>

#include "store/dynamodb_record.h"

namespace leasehold::store {
namespace {

using Cas = CasResult::Outcome;
using Read = ReadResult::Outcome;

class DynamoDbAnswerTest : public ::testing::Test {
 protected:
  static lease::Record Beat(uint64_t beat, const std::string& process = "p-1") {
    lease::Record record;
    record.lease = "orders";
    record.node_id = "node-a";
    record.process_id = process;
    record.token = 4;
    record.beat = beat;
    record.ttl_ms = 10000;
    return record;
  }
  static std::string Item(const lease::Record& record) {
    std::string text = R"({"pk":{"S":"t:lease:orders"})";
    const auto attributes = EncodeItem(record);
    for (const auto& [name, value] : *attributes) text += ",\"" + name + "\":" + value;
    return text + "}";
  }
  DynamoDbAnswer Answer(int status, const std::string& body, const std::string& code = "") {
    aws::Response response;
    response.status = status;
    response.body = body;
    response.server_unix_ms = 1796052115000;
    if (status >= 400) {
      response.error = aws::ApiError{status, code, "said so", aws::ClassifyTrouble(status, code)};
    }
    return TakeApart(place_, "UpdateItem", response);
  }
  DynamoDbAnswer Condition(const std::string& body) {
    return Answer(400, body, "ConditionalCheckFailedException");
  }
  ReadResult ReadOf(const DynamoDbAnswer& answer) { return JudgeRead(place_, item_, answer); }
  CasResult CasOf(const DynamoDbAnswer& answer) {
    const auto result = JudgeCas(place_, item_, Beat(9), answer);
    EXPECT_TRUE(result.has_value());
    return result.value_or(CasResult{});
  }
  CasResult LookOf(const DynamoDbAnswer& answer, bool expected_absent = false) {
    return JudgeLook(place_, item_, expected_absent, Beat(9), answer);
  }

  DynamoDbPlace place_ = {"leases", "us-east-1", "http://127.0.0.1:8000"};
  DynamoDbItem item_ = {"t:lease:orders", "orders"};
};

TEST_F(DynamoDbAnswerTest, AnItemIsARecordAndNoItemIsAbsent) {
  const ReadResult read = ReadOf(Answer(200, R"({"Item":)" + Item(Beat(3)) + "}"));
  ASSERT_EQ(read.outcome, Read::kRecord) << read.error;
  EXPECT_EQ(read.record, Beat(3));
  EXPECT_EQ(read.version, "p-1/4/3");
  EXPECT_EQ(ReadOf(Answer(200, "{}")).outcome, Read::kAbsent);
}

TEST_F(DynamoDbAnswerTest, TheServicesClockIsToldWhereItAnswered) {
  EXPECT_EQ(ReadOf(Answer(200, "{}")).store_unix_ms, 1796052115000);
  EXPECT_EQ(CasOf(Answer(500, "")).store_unix_ms, 1796052115000);
  const auto lost = TakeApart(place_, "GetItem", base::Error{base::ErrorCode::kTimeout, "late"});
  EXPECT_FALSE(ReadOf(lost).store_unix_ms.has_value());
}

TEST_F(DynamoDbAnswerTest, AnItemThatIsNoRecordIsRefused) {
  EXPECT_EQ(ReadOf(Answer(200, R"({"Item":{"pk":{"S":"t:lease:orders"}}})")).outcome,
            Read::kRefused);
  EXPECT_EQ(ReadOf(Answer(200, R"({"Item":[]})")).outcome, Read::kRefused);
}

TEST_F(DynamoDbAnswerTest, A200ThatIsNotDynamoDbsSaysNothing) {
  for (const char* body : {"", "<html></html>", "[]", "\"yes\"", "{\"Item\":", "{} {}"}) {
    EXPECT_EQ(ReadOf(Answer(200, body)).outcome, Read::kAmbiguous) << body;
    EXPECT_EQ(CasOf(Answer(200, body)).outcome, Cas::kAmbiguous) << body;
  }
  EXPECT_EQ(ReadOf(Answer(204, "{}")).outcome, Read::kAmbiguous);
  EXPECT_EQ(CasOf(Answer(302, "{}")).outcome, Cas::kAmbiguous);
}

TEST_F(DynamoDbAnswerTest, AppliedIsOnlyWhatShowsTheVeryAttempt) {
  const CasResult applied = CasOf(Answer(200, R"({"Attributes":)" + Item(Beat(9)) + "}"));
  EXPECT_EQ(applied.outcome, Cas::kApplied);
  EXPECT_EQ(applied.version, "p-1/4/9");
  for (const std::string& body :
       {std::string("{}"), std::string(R"({"Attributes":{}})"), std::string(R"({"Attributes":7})"),
        R"({"Attributes":)" + Item(Beat(8)) + "}", R"({"Attributes":)" + Item(Beat(9, "p-2")) + "}",
        R"({"Item":)" + Item(Beat(9)) + "}"}) {
    EXPECT_EQ(CasOf(Answer(200, body)).outcome, Cas::kAmbiguous) << body;
  }
}

TEST_F(DynamoDbAnswerTest, AFailedConditionThatShowsTheItemIsAConflict) {
  const CasResult conflict = CasOf(Condition(R"({"Item":)" + Item(Beat(3, "p-2")) + "}"));
  ASSERT_EQ(conflict.outcome, Cas::kConflict) << conflict.error;
  EXPECT_EQ(conflict.record, Beat(3, "p-2"));
  EXPECT_EQ(conflict.version, "p-2/4/3");
}

TEST_F(DynamoDbAnswerTest, AFailedConditionThatShowsNothingMustBeLookedAt) {
  for (const char* body : {"", "{}", R"({"Item":{}})", R"({"Item":null})", "garbage"}) {
    EXPECT_FALSE(JudgeCas(place_, item_, Beat(9), Condition(body)).has_value()) << body;
  }
}

// The request was doubled on the way; the first took, and this is the second one's answer.
TEST_F(DynamoDbAnswerTest, AFailedConditionOnOurOwnAttemptMeansThatItTook) {
  const CasResult shown = CasOf(Condition(R"({"Item":)" + Item(Beat(9)) + "}"));
  EXPECT_EQ(shown.outcome, Cas::kApplied) << "a holder would lose its lease to itself";
  EXPECT_EQ(shown.version, "p-1/4/9");
  const CasResult seen = LookOf(Answer(200, R"({"Item":)" + Item(Beat(9)) + "}"));
  EXPECT_EQ(seen.outcome, Cas::kApplied);
}

TEST_F(DynamoDbAnswerTest, AFailedConditionOnGarbageOrAHigherFormatIsRefused) {
  EXPECT_EQ(CasOf(Condition(R"({"Item":{"pk":{"S":"t:lease:orders"}}})")).outcome, Cas::kRefused);
  lease::Record higher = Beat(8);
  higher.format = lease::kRecordFormat + 1;
  const CasResult refused = CasOf(Condition(R"({"Item":)" + Item(higher) + "}"));
  EXPECT_EQ(refused.outcome, Cas::kRefused);
  EXPECT_NE(refused.error.find("newer program"), std::string::npos) << refused.error;
  EXPECT_EQ(LookOf(Answer(200, R"({"Item":)" + Item(higher) + "}")).outcome, Cas::kRefused);
  EXPECT_EQ(LookOf(Answer(200, R"({"Item":{"pk":{"S":"x"}}})")).outcome, Cas::kRefused);
}

TEST_F(DynamoDbAnswerTest, ALookShowsWhatIsThereInstead) {
  const CasResult other = LookOf(Answer(200, R"({"Item":)" + Item(Beat(3, "p-2")) + "}"));
  EXPECT_EQ(other.outcome, Cas::kConflict);
  EXPECT_EQ(other.version, "p-2/4/3");
  const CasResult absent = LookOf(Answer(200, "{}"));
  EXPECT_EQ(absent.outcome, Cas::kConflict);
  EXPECT_TRUE(absent.absent);
}

TEST_F(DynamoDbAnswerTest, ALookThatContradictsOrSaysNothingIsAmbiguous) {
  EXPECT_EQ(LookOf(Answer(200, "{}"), true).outcome, Cas::kAmbiguous)
      << "something was in the way of a creation, and is not there";
  EXPECT_EQ(LookOf(Answer(500, "")).outcome, Cas::kAmbiguous);
  EXPECT_EQ(LookOf(Answer(400, "", "AccessDeniedException")).outcome, Cas::kAmbiguous)
      << "that the read was refused says nothing of the write";
  const auto lost = TakeApart(place_, "GetItem", base::Error{base::ErrorCode::kTimeout, "late"});
  EXPECT_EQ(LookOf(lost).outcome, Cas::kAmbiguous);
}

TEST_F(DynamoDbAnswerTest, FailuresAreRefusedOrAmbiguousAsTheTableSays) {
  EXPECT_EQ(CasOf(Answer(400, "", "AccessDeniedException")).outcome, Cas::kRefused);
  EXPECT_EQ(ReadOf(Answer(400, "", "ResourceNotFoundException")).outcome, Read::kRefused);
  EXPECT_EQ(CasOf(Answer(400, "", "ThrottlingException")).outcome, Cas::kAmbiguous);
  EXPECT_EQ(ReadOf(Answer(500, "<html>")).outcome, Read::kAmbiguous);
  EXPECT_EQ(CasOf(NotSent("closed", false)).outcome, Cas::kAmbiguous);
  EXPECT_EQ(CasOf(NotSent("cannot be kept", true)).outcome, Cas::kRefused);
}

TEST_F(DynamoDbAnswerTest, AReadThatIsToldOfAFailedConditionLearnsNothing) {
  EXPECT_EQ(ReadOf(Condition("{}")).outcome, Read::kAmbiguous);
}

}  // namespace
}  // namespace leasehold::store

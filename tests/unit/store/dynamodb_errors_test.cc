// The table of DynamoDB's errors, row by row: what may pass is ambiguous, what is known not to have
// happened and to repeat is refused, and each has a sentence that says where and what to do.
#include "store/dynamodb_errors.h"

#include <gtest/gtest.h>

#include <string>

#include "aws/api_error.h"

namespace leasehold::store {
namespace {

using Cause = DynamoDbFailure::Cause;

class DynamoDbErrorTest : public ::testing::Test {
 protected:
  DynamoDbFailure Classify(int status, const std::string& code, const std::string& message) {
    aws::ApiError error;
    error.status = status;
    error.code = code;
    error.message = message;
    error.trouble = aws::ClassifyTrouble(status, code);
    return ClassifyDynamoDbError(place_, "UpdateItem", error);
  }
  void Expect(Cause cause, bool refused, int status, const std::string& code,
              const std::string& message, const std::string& remedy) {
    const DynamoDbFailure failure = Classify(status, code, message);
    EXPECT_EQ(failure.cause, cause) << failure.sentence;
    EXPECT_EQ(failure.refused, refused) << failure.sentence;
    for (const std::string& part : {place_.ToString(), code, message, remedy}) {
      EXPECT_NE(failure.sentence.find(part), std::string::npos)
          << "\"" << part << "\" is missing in: " << failure.sentence;
    }
  }
  void Ambiguous(Cause cause, const std::string& code, const std::string& message,
                 const std::string& remedy) {
    Expect(cause, false, 400, code, message, remedy);
  }
  void Refused(Cause cause, const std::string& code, const std::string& message,
               const std::string& remedy) {
    Expect(cause, true, 400, code, message, remedy);
  }

  DynamoDbPlace place_ = {"orders-leases", "eu-central-1",
                          "https://dynamodb.eu-central-1.amazonaws.com"};
};

TEST_F(DynamoDbErrorTest, EverySentenceNamesTableRegionAndEndpoint) {
  EXPECT_EQ(place_.ToString(),
            "dynamodb table \"orders-leases\" in eu-central-1 at "
            "https://dynamodb.eu-central-1.amazonaws.com");
}

TEST_F(DynamoDbErrorTest, AConditionThatFailedIsItsOwnCause) {
  EXPECT_EQ(
      Classify(400, "ConditionalCheckFailedException", "The conditional request failed").cause,
      Cause::kConditionFailed);
}

TEST_F(DynamoDbErrorTest, ThrottlingIsAmbiguousAndSaysWhoseLimitItIs) {
  Ambiguous(Cause::kThrottled, "ProvisionedThroughputExceededException",
            "The level of configured provisioned throughput for the table was exceeded.",
            "on-demand");
  Ambiguous(Cause::kThrottled, "ThrottlingException",
            "Throughput exceeds the current capacity of your table or index.", "on-demand");
  Ambiguous(Cause::kThrottled, "RequestLimitExceeded",
            "Throughput exceeds the current throughput limit for your account.", "account");
  Ambiguous(Cause::kThrottled, "TooManyRequestsException", "Rate exceeded", "account");
}

TEST_F(DynamoDbErrorTest, WhatAnotherCodeSaysOfThrottlingIsHeardToo) {
  Expect(Cause::kThrottled, false, 429, "", "slow down", "on-demand");
}

TEST_F(DynamoDbErrorTest, WhatIsUnderWayAtTheStoreIsAmbiguous) {
  Ambiguous(Cause::kPassing, "TransactionConflictException", "Transaction is ongoing for the item",
            "under way");
  Ambiguous(Cause::kPassing, "ReplicatedWriteConflictException", "conflict", "one region");
  Ambiguous(Cause::kPassing, "LimitExceededException", "Too many operations", "passes");
  Ambiguous(Cause::kTableExists, "ResourceInUseException", "Table already exists: orders-leases",
            "passes");
}

TEST_F(DynamoDbErrorTest, AServerErrorIsAmbiguousWhateverItSays) {
  Expect(Cause::kUnknown, false, 500, "InternalServerError", "Internal server error", "");
  Expect(Cause::kUnknown, false, 503, "ServiceUnavailable", "", "");
  Expect(Cause::kUnknown, false, 500, "", "<html>nobody knows this error</html>", "HTTP 500");
  Expect(Cause::kUnknown, false, 500, "AccessDeniedException", "says a 500", "");
}

TEST_F(DynamoDbErrorTest, ACodeThatNobodyKnowsIsAmbiguous) {
  Expect(Cause::kUnknown, false, 400, "WeirdException", "unheard of", "");
  Expect(Cause::kUnknown, false, 403, "", "<html>a proxy of your company</html>", "HTTP 403");
  Expect(Cause::kUnknown, false, 404, "", "", "HTTP 404");
}

TEST_F(DynamoDbErrorTest, CredentialsThatExpiredOrAreWrongAreRefused) {
  Refused(Cause::kCredentials, "ExpiredTokenException",
          "The security token included in the request is expired", "asked for at their source");
  Refused(Cause::kCredentials, "UnrecognizedClientException",
          "The security token included in the request is invalid.", "access key");
  Refused(Cause::kCredentials, "InvalidClientTokenId", "no such key", "access key");
  Refused(Cause::kCredentials, "InvalidSignatureException",
          "The request signature we calculated does not match the signature you provided.",
          "secret access key");
  Refused(Cause::kCredentials, "IncompleteSignatureException", "Authorization header requires",
          "secret access key");
  Refused(Cause::kCredentials, "MissingAuthenticationTokenException",
          "Missing Authentication Token", "credentials are missing");
}

TEST_F(DynamoDbErrorTest, AWrongClockIsRefusedSinceNothingWasDoneAndSaysSo) {
  aws::ApiError error;
  error.status = 400;
  error.code = "InvalidSignatureException";
  error.message = "Signature expired: 20261201T013000Z is now earlier than 20261201T014500Z";
  error.trouble = aws::Trouble::kClockSkew;
  const DynamoDbFailure failure = ClassifyDynamoDbError(place_, "UpdateItem", error);
  EXPECT_EQ(failure.cause, Cause::kClockSkew);
  EXPECT_TRUE(failure.refused);
  EXPECT_NE(failure.sentence.find("clock"), std::string::npos) << failure.sentence;
}

TEST_F(DynamoDbErrorTest, AMissingPermissionNamesTheAction) {
  Refused(Cause::kDenied, "AccessDeniedException",
          "User: arn:aws:sts::1:assumed-role/orders/i is not authorized",
          "allow dynamodb:UpdateItem on this table");
  Refused(Cause::kDenied, "AccessDeniedException",
          "KMS key access denied: the ciphertext refers to a key", "KMS key or its policy");
  Refused(Cause::kDenied, "OptInRequired", "The account is not signed up", "region");
}

TEST_F(DynamoDbErrorTest, AMissingTableIsRefused) {
  Refused(Cause::kNoTable, "ResourceNotFoundException", "Requested resource not found",
          "create it with the key pk (string)");
}

TEST_F(DynamoDbErrorTest, AnotherKeySchemaIsRefusedInAllTheWordsOfTheService) {
  for (const char* text :
       {"The provided key element does not match the schema",
        "The number of conditions on the keys is invalid",
        "One or more parameter values were invalid: Type mismatch for key pk expected: N actual: S",
        "One or more parameter values were invalid: Missing the key sk in the item"}) {
    Refused(Cause::kWrongTable, "ValidationException", text, "no sort key");
  }
}

TEST_F(DynamoDbErrorTest, WhatIsTooLargeIsRefused) {
  Refused(Cause::kInvalid, "ValidationException",
          "Item size to update has exceeded the maximum allowed size", "400 KB");
  Refused(Cause::kInvalid, "ValidationException",
          "One or more parameter values were invalid: Size of hashkey has exceeded the maximum "
          "size limit of2048 bytes",
          "store.prefix");
  Refused(Cause::kInvalid, "ItemCollectionSizeLimitExceededException", "Collection size exceeded.",
          "local secondary index");
}

TEST_F(DynamoDbErrorTest, ARequestThatIsNotTakenIsRefused) {
  Refused(Cause::kInvalid, "ValidationException", "Invalid UpdateExpression: Syntax error",
          "report it");
  Refused(Cause::kInvalid, "SerializationException", "NUMBER_VALUE cannot be converted", "report");
  Refused(Cause::kInvalid, "UnknownOperationException", "unknown operation", "dynamodb.endpoint");
}

TEST_F(DynamoDbErrorTest, WithoutCredentialsNothingWasSentAndIsRefused) {
  const DynamoDbFailure failure = NoDynamoDbAnswer(
      place_, "GetItem", {base::ErrorCode::kRefused, "no credentials in any of these places"});
  EXPECT_EQ(failure.cause, Cause::kCredentials);
  EXPECT_TRUE(failure.refused);
  EXPECT_NE(failure.sentence.find("any of these places"), std::string::npos);
}

TEST_F(DynamoDbErrorTest, WithoutAnAnswerItIsAmbiguousWhateverTheReason) {
  using base::ErrorCode;
  for (const ErrorCode code : {ErrorCode::kTimeout, ErrorCode::kUnavailable, ErrorCode::kClosed,
                               ErrorCode::kLimit, ErrorCode::kInvalid, ErrorCode::kInternal}) {
    const DynamoDbFailure failure = NoDynamoDbAnswer(place_, "UpdateItem", {code, "why"});
    EXPECT_EQ(failure.cause, Cause::kNoAnswer);
    EXPECT_FALSE(failure.refused);
    EXPECT_NE(failure.sentence.find("orders-leases"), std::string::npos) << failure.sentence;
  }
}

TEST_F(DynamoDbErrorTest, AnAnswerThatIsNoneOfDynamoDbIsAmbiguousAndDoubtsTheEndpoint) {
  const DynamoDbFailure failure = StrangeDynamoDbAnswer(place_, "GetItem", "HTTP 302");
  EXPECT_EQ(failure.cause, Cause::kUnknown);
  EXPECT_FALSE(failure.refused);
  EXPECT_NE(failure.sentence.find("HTTP 302"), std::string::npos);
  EXPECT_NE(failure.sentence.find("dynamodb.endpoint"), std::string::npos);
}

TEST_F(DynamoDbErrorTest, WhatTheServerSaysIsMadePrintable) {
  const DynamoDbFailure failure = Classify(400, "Odd\nException", "line\nbreak \x1b[31m");
  EXPECT_EQ(failure.sentence.find('\n'), std::string::npos);
  EXPECT_EQ(failure.sentence.find('\x1b'), std::string::npos);
}

}  // namespace
}  // namespace leasehold::store

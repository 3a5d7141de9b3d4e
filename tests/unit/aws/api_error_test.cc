// ApiError: every form in which a service of AWS says no, and every form in which something else
// does.
#include "aws/api_error.h"

#include <gtest/gtest.h>

#include <string>

namespace leasehold::aws {
namespace {

using Headers = std::vector<std::pair<std::string, std::string>>;

ApiError Parse(int status, std::string_view body, const Headers& headers = {}) {
  return ParseApiError(status, headers, body);
}

TEST(ApiErrorTest, JsonWithANamespace) {
  const ApiError error =
      Parse(400, R"({"__type":"com.amazonaws.dynamodb.v20120810#ConditionalCheckFailedException",)"
                 R"("message":"The conditional request failed","Item":{"pk":{"S":"x"}}})");
  EXPECT_EQ(error.status, 400);
  EXPECT_EQ(error.code, "ConditionalCheckFailedException");
  EXPECT_EQ(error.message, "The conditional request failed");
  EXPECT_EQ(error.trouble, Trouble::kConflict);
}

TEST(ApiErrorTest, JsonWithItsOtherSpellings) {
  EXPECT_EQ(Parse(400, R"({"__type":"ThrottlingException","Message":"Rate exceeded"})").message,
            "Rate exceeded");
  EXPECT_EQ(Parse(400, R"({"code":"AccessDenied","message":""})").trouble, Trouble::kDenied);
  EXPECT_EQ(Parse(400, R"({"__type":"ValidationException:http://internal.amazon.com/x#y"})").code,
            "ValidationException");
  EXPECT_EQ(Parse(400, R"( {"__type":7,"message":["x"]} )").code, "");
}

TEST(ApiErrorTest, TheHeaderGoesBeforeTheBodyAndNeedsNone) {
  const Headers header = {
      {"x-amzn-errortype", "ResourceNotFoundException:http://internal.amazon.com/coral/x/"}};
  EXPECT_EQ(Parse(400, "", header).code, "ResourceNotFoundException");
  EXPECT_EQ(Parse(400, "", header).trouble, Trouble::kNotFound);
  EXPECT_EQ(Parse(400, R"({"__type":"x#Other","message":"m"})", header).code,
            "ResourceNotFoundException");
  EXPECT_EQ(Parse(400, R"({"__type":"x#Other","message":"m"})", header).message, "m");
}

TEST(ApiErrorTest, TheQueryCompatibleHeaderIsTheLastResort) {
  const Headers header = {{"x-amzn-query-error", "AWS.SimpleQueueService.NonExistentQueue;Sender"}};
  EXPECT_EQ(Parse(400, "{}", header).code, "AWS.SimpleQueueService.NonExistentQueue");
  EXPECT_EQ(Parse(400, "{}", header).trouble, Trouble::kNotFound);
  EXPECT_EQ(Parse(400, R"({"__type":"com.amazonaws.sqs#QueueDoesNotExist"})", header).code,
            "QueueDoesNotExist");
}

TEST(ApiErrorTest, XmlInItsThreeForms) {
  for (const char* form :
       {"<?xml version=\"1.0\"?>\n<ErrorResponse xmlns=\"http://queue.amazonaws.com/doc/\">"
        "<Error><Type>Sender</Type><Code>ExpiredToken</Code><Message>It &lt;has&gt; &#39;expired"
        "&#x27; &amp;amp; more</Message></Error><RequestId>1</RequestId></ErrorResponse>",
        "<Response><Errors><Error><Code>ExpiredToken</Code><Message>It &lt;has&gt; &#39;expired"
        "&#x27; &amp;amp; more</Message></Error></Errors></Response>",
        "\n<Error><Code> ExpiredToken </Code><Message>It &lt;has&gt; &#39;expired"
        "&#x27; &amp;amp; more</Message></Error>"}) {
    const ApiError error = Parse(403, form);
    EXPECT_EQ(error.code, "ExpiredToken") << form;
    EXPECT_EQ(error.message, "It <has> 'expired' &amp; more");
    EXPECT_EQ(error.trouble, Trouble::kExpired);
  }
}

TEST(ApiErrorTest, ATorsoIsShownButNotBelieved) {
  const ApiError error = Parse(400, "<ErrorResponse><Error><Code>OverLimit</Code><Mess");
  EXPECT_EQ(error.code, "");
  EXPECT_EQ(error.trouble, Trouble::kUnknown);
  EXPECT_EQ(error.message, "<ErrorResponse><Error><Code>OverLimit</Code><Mess");
  EXPECT_EQ(Parse(400, R"({"__type":"com.amazonaws)").code, "");
  EXPECT_EQ(Parse(400, R"({"__type":"com.amazonaws)").trouble, Trouble::kUnknown);
  EXPECT_EQ(Parse(400, "<Error><Code>OverLimit</Code></Error>{").code, "");
}

TEST(ApiErrorTest, OfSeveralErrorsInOneAnswerTheFirstCounts) {
  const ApiError error =
      Parse(400,
            "<Response><Errors><Error><Code/><Message>first</Message></Error><Error><Code>OverLimit"
            "</Code><Message>second</Message></Error></Errors></Response>");
  EXPECT_EQ(error.code, "");
  EXPECT_EQ(error.message, "first");
}

TEST(ApiErrorTest, WhatIsNoErrorOfAServiceStillSaysWhoAnswered) {
  EXPECT_EQ(Parse(502, "<html>\n <h1>Bad\tGateway</h1>\r\n</html>").message,
            "<html> <h1>Bad Gateway</h1> </html>");
  EXPECT_EQ(Parse(502, "<html></html>").trouble, Trouble::kServer);
  EXPECT_EQ(Parse(403, "").message, "");
  EXPECT_EQ(Parse(403, "").trouble, Trouble::kUnknown);
  EXPECT_LE(Parse(403, std::string(100'000, 'x')).message.size(), 1024u);
}

TEST(ApiErrorTest, AMessageIsOneBoundedPrintableLine) {
  const std::string long_text(5000, 'm');
  const ApiError error = Parse(400, R"({"__type":"X","message":")" + long_text + R"("})");
  EXPECT_LE(error.message.size(), 1024u + 3);
  EXPECT_EQ(Parse(400, R"({"__type":"X","message":"a\nb\u0007c\u00e4"})").message,
            "a b\\x07c\\xc3\\xa4");
  EXPECT_EQ(Parse(400, "\x01\xff").message, "\\x01\\xff");
}

TEST(ApiErrorTest, ACodeIsAnIdentifierOrNone) {
  EXPECT_EQ(Parse(400, R"({"__type":"no code at all"})").code, "");
  EXPECT_EQ(Parse(400, R"({"__type":")" + std::string(500, 'x') + R"("})").code, "");
  EXPECT_EQ(Parse(400, "", {{"X-Amzn-ErrorType", "\"><script>"}}).code, "");
}

TEST(ApiErrorTest, ASessionTokenThatTheServiceRepeatsIsCutOut) {
  const char* message =
      "The request signature we calculated does not match the signature you provided. Check your "
      "AWS Secret Access Key and signing method.\\n\\nThe Canonical String for this request should "
      "have been\\n'POST\\n/\\n\\nhost:x\\nx-amz-security-token:SECRETTOKEN\\n'";
  const ApiError error = Parse(
      403, std::string(R"({"__type":"SignatureDoesNotMatch","message":")") + message + R"("})");
  EXPECT_EQ(error.message.find("SECRETTOKEN"), std::string::npos);
  EXPECT_TRUE(error.message.ends_with("signing method.")) << error.message;
  EXPECT_EQ(error.trouble, Trouble::kBadCredentials);
  EXPECT_EQ(
      Parse(403, "header X-Amz-Security-Token: SECRETTOKEN is odd").message.find("SECRETTOKEN"),
      std::string::npos);
}

TEST(ApiErrorTest, AWrongSignatureForTheTimeIsAMatterOfTheClock) {
  for (const char* message :
       {"Signature expired: 20260101T000000Z is now earlier than 20260101T001500Z (x - 5 min.)",
        "Signature not yet current: 20260101T002000Z is still later than 20260101T000500Z"}) {
    for (const char* code : {"InvalidSignatureException", "SignatureDoesNotMatch"}) {
      EXPECT_EQ(
          Parse(403, std::string(R"({"__type":")") + code + R"(","message":")" + message + R"("})")
              .trouble,
          Trouble::kClockSkew);
    }
  }
  EXPECT_EQ(Parse(403, R"({"__type":"AccessDenied","message":"Signature expired"})").trouble,
            Trouble::kDenied);
}

TEST(ApiErrorTest, CodesOfEachKind) {
  struct {
    const char* code;
    Trouble trouble;
  } const cases[] = {
      {"ThrottlingException", Trouble::kThrottled},
      {"ProvisionedThroughputExceededException", Trouble::kThrottled},
      {"RequestLimitExceeded", Trouble::kThrottled},
      {"RequestThrottled", Trouble::kThrottled},
      {"SlowDown", Trouble::kThrottled},
      {"LimitExceededException", Trouble::kThrottled},
      {"TooManyRequestsException", Trouble::kThrottled},
      {"OverLimit", Trouble::kThrottled},
      {"InternalFailure", Trouble::kServer},
      {"ServiceUnavailable", Trouble::kServer},
      {"RequestTimeTooSkewed", Trouble::kClockSkew},
      {"RequestExpired", Trouble::kClockSkew},
      {"ExpiredToken", Trouble::kExpired},
      {"ExpiredTokenException", Trouble::kExpired},
      {"UnrecognizedClientException", Trouble::kBadCredentials},
      {"InvalidClientTokenId", Trouble::kBadCredentials},
      {"InvalidAccessKeyId", Trouble::kBadCredentials},
      {"MissingAuthenticationToken", Trouble::kBadCredentials},
      {"IncompleteSignature", Trouble::kBadCredentials},
      {"SignatureDoesNotMatch", Trouble::kBadCredentials},
      {"InvalidSignatureException", Trouble::kBadCredentials},
      {"InvalidSecurity", Trouble::kBadCredentials},
      {"AccessDenied", Trouble::kDenied},
      {"AccessDeniedException", Trouble::kDenied},
      {"OptInRequired", Trouble::kDenied},
      {"ConditionalCheckFailedException", Trouble::kConflict},
      {"TransactionCanceledException", Trouble::kConflict},
      {"ResourceNotFoundException", Trouble::kNotFound},
      {"QueueDoesNotExist", Trouble::kNotFound},
      {"AWS.SimpleQueueService.NonExistentQueue", Trouble::kNotFound},
      {"ValidationException", Trouble::kInvalid},
      {"ReceiptHandleIsInvalid", Trouble::kInvalid},
      {"", Trouble::kUnknown},
      {"Nobody", Trouble::kUnknown},
      {"throttlingexception", Trouble::kUnknown},
  };
  for (const auto& one : cases) {
    EXPECT_EQ(ClassifyTrouble(400, one.code), one.trouble) << one.code;
  }
}

TEST(ApiErrorTest, AStatusOf500AndAboveMayHaveHappenedWhateverItsCode) {
  EXPECT_EQ(ClassifyTrouble(500, ""), Trouble::kServer);
  EXPECT_EQ(ClassifyTrouble(503, "Nobody"), Trouble::kServer);
  EXPECT_EQ(ClassifyTrouble(500, "ConditionalCheckFailedException"), Trouble::kServer);
  EXPECT_EQ(ClassifyTrouble(503, "SlowDown"), Trouble::kThrottled);
  EXPECT_EQ(ClassifyTrouble(429, ""), Trouble::kThrottled);
  EXPECT_EQ(ClassifyTrouble(404, ""), Trouble::kUnknown);
}

}  // namespace
}  // namespace leasehold::aws

// Service: what leaves is signed as a service checks it; credentials are fetched within the call's
// time; errors are in words and without secrets; whoever lets go is not called.
#include "aws/service.h"

#include <gtest/gtest.h>

#include <string>

#include "service_fixture.h"

namespace leasehold::aws {
namespace {

using base::Duration;
using base::ErrorCode;

class ServiceTest : public ServiceFixture {};

TEST_F(ServiceTest, ACallArrivesSignedAndItsAnswerComesBack) {
  request_.headers = {{"Content-Type", "application/x-amz-json-1.0"},
                      {"X-Amz-Target", "AmazonSQS.ListQueues"}};
  request_.body = "{}";
  Outcome& outcome = Ask(200, "{\"QueueUrls\":[]}", "x-amzn-RequestId: r1\r\n");
  ASSERT_TRUE(outcome.answer->ok()) << outcome.answer->error().message;
  const Response& response = **outcome.answer;
  EXPECT_EQ(response.status, 200);
  EXPECT_EQ(response.body, "{\"QueueUrls\":[]}");
  EXPECT_EQ(response.Header("X-AMZN-REQUESTID"), "r1");
  EXPECT_EQ(response.Header("absent"), "");
  EXPECT_FALSE(response.error.has_value());
  EXPECT_FALSE(response.server_unix_ms.has_value());
  EXPECT_TRUE(arrived_.starts_with("POST / HTTP/1.1\r\nHost: " + endpoint_.host_header + "\r\n"));
  EXPECT_EQ(HeaderOf(arrived_, "X-Amz-Target"), "AmazonSQS.ListQueues");
  EXPECT_TRUE(SignedBy(arrived_, kSecret, "eu-central-1", "sqs")) << arrived_;
  EXPECT_FALSE(SignedBy(arrived_, "another", "eu-central-1", "sqs"));
}

TEST_F(ServiceTest, OnlyWhatNoHopMayChangeIsSigned) {
  request_.headers = {{"Content-Type", "application/x-amz-json-1.0"},
                      {"X-Amz-Target", "AmazonSQS.ListQueues"},
                      {"User-Agent", "orders/1"},
                      {"X-Forwarded-For", "10.0.0.1"}};
  Ask(200, "");
  EXPECT_EQ(Between(HeaderOf(arrived_, "Authorization"), "SignedHeaders=", ','),
            "content-type;host;x-amz-date;x-amz-target");
  EXPECT_EQ(HeaderOf(arrived_, "User-Agent"), "orders/1");
  EXPECT_TRUE(SignedBy(arrived_, kSecret, "eu-central-1", "sqs"));
}

TEST_F(ServiceTest, ASessionTokenIsSentAndSigned) {
  credentials_->given = testing::FakeCredentials::Make("AKID", "the-secret-key", "session/token==");
  Ask(200, "");
  EXPECT_EQ(HeaderOf(arrived_, "X-Amz-Security-Token"), "session/token==");
  EXPECT_NE(HeaderOf(arrived_, "Authorization").find("x-amz-security-token"), std::string::npos);
  EXPECT_TRUE(SignedBy(arrived_, "the-secret-key", "eu-central-1", "sqs"));
  EXPECT_EQ(arrived_.find("the-secret-key"), std::string::npos);
}

TEST_F(ServiceTest, AClientsOwnSignatureIsReplaced) {
  request_.headers = {{"authorization", "AWS4-HMAC-SHA256 Credential=x"},
                      {"X-Amz-Date", "20000101T000000Z"},
                      {"X-Amz-Security-Token", "theirs"},
                      {"X-Amz-Content-Sha256", "theirs"}};
  Ask(200, "");
  EXPECT_EQ(arrived_.find("theirs"), std::string::npos);
  EXPECT_EQ(arrived_.find("20000101"), std::string::npos);
  EXPECT_EQ(arrived_.find("authorization: "), std::string::npos);
  EXPECT_TRUE(SignedBy(arrived_, kSecret, "eu-central-1", "sqs"));
}

TEST_F(ServiceTest, BasePathPathAndQueryAreSentAsTheyWereSigned) {
  endpoint_.base_path = "/prefix";
  MakeService();
  request_.method = "GET";
  request_.path = "/123456789012/orders%20a";
  request_.query = "Action=ReceiveMessage&Version=2012-11-05&x=%2F";
  Ask(200, "");
  EXPECT_TRUE(arrived_.starts_with(
      "GET /prefix/123456789012/orders%20a?Action=ReceiveMessage&Version=2012-11-05&x=%2F "))
      << arrived_;
  EXPECT_TRUE(SignedBy(arrived_, kSecret, "eu-central-1", "sqs"));
}

TEST_F(ServiceTest, ABodyOfAMegabyteIsSignedAndArrivesWhole) {
  request_.body = std::string(1024 * 1024, 'm');
  Ask(200, "");
  EXPECT_TRUE(arrived_.ends_with(request_.body));
  EXPECT_TRUE(SignedBy(arrived_, kSecret, "eu-central-1", "sqs"));
}

TEST_F(ServiceTest, CallsShareAKeptConnection) {
  Ask(200, "");
  Ask(200, "");
  EXPECT_EQ(server_.Connections(), 1u);
  EXPECT_EQ(service_->connections(), 1u);
  EXPECT_EQ(credentials_->gets, 2) << "the provider decides how long credentials are good";
}

TEST_F(ServiceTest, AnIdempotentCallSurvivesAConnectionThatCloses) {
  Ask(200, "");
  request_.idempotent = true;
  Outcome& outcome = Start();
  Arrived();
  asked_->Close();
  EXPECT_TRUE(SignedBy(Arrived(), kSecret, "eu-central-1", "sqs"));
  Answer(200, "again");
  ASSERT_TRUE(Told(outcome));
  ASSERT_TRUE(outcome.answer->ok());
  EXPECT_EQ((*outcome.answer)->body, "again");
}

TEST_F(ServiceTest, WhatIsNotIdempotentIsSentOnce) {
  Ask(200, "");
  Outcome& outcome = Start();
  Arrived();
  asked_->Close();
  ASSERT_TRUE(Told(outcome));
  ExpectError(outcome, ErrorCode::kClosed, "sqs at http://127.0.0.1:");
}

// ---- credentials ----

TEST_F(ServiceTest, WithoutCredentialsNothingIsSentAndTheErrorSaysWhereTheyWereLookedFor) {
  for (const ErrorCode code : {ErrorCode::kRefused, ErrorCode::kTimeout, ErrorCode::kUnavailable}) {
    credentials_->error = base::Error{code, "no source has any: looked at the environment"};
    Outcome& outcome = Start();
    EXPECT_EQ(outcome.told, 0) << "never from inside the call";
    ASSERT_TRUE(Told(outcome));
    ExpectError(outcome, ErrorCode::kRefused, "looked at the environment");
    ExpectError(outcome, ErrorCode::kRefused, "sqs at http://127.0.0.1:");
  }
  EXPECT_EQ(server_.Connections(), 0u);
}

TEST_F(ServiceTest, CredentialsThatComeLateTakeTheirTimeFromTheCalls) {
  credentials_->held = true;
  request_.timeout = Duration::Millis(500);
  const base::MonoTime start = loop::Loop::Now();
  Outcome& outcome = Start();
  RunFor(Duration::Millis(400));
  credentials_->AnswerAll();
  Arrived();
  ASSERT_TRUE(Told(outcome));
  ExpectError(outcome, ErrorCode::kTimeout, "no answer within 500ms");
  EXPECT_GE(loop::Loop::Now() - start, Duration::Millis(500));
  EXPECT_LT(loop::Loop::Now() - start, Duration::Millis(880))
      << "a time of its own would end at 900";
}

TEST_F(ServiceTest, CredentialsThatDoNotComeInTimeAreSaidToBeMissing) {
  credentials_->held = true;
  request_.timeout = Duration::Millis(50);
  Outcome& outcome = Start();
  ASSERT_TRUE(Told(outcome));
  ExpectError(outcome, ErrorCode::kRefused, "no credentials came within 50ms from the test's own");
  credentials_->AnswerAll();  // nobody waits any more
  RunFor(Duration::Millis(10));
  EXPECT_EQ(outcome.told, 1);
  EXPECT_EQ(server_.Connections(), 0u);
}

TEST_F(ServiceTest, CredentialsThatTheServiceRefusesAreReportedToTheirProvider) {
  struct {
    const char* code;
    bool reported;
  } const cases[] = {{"ExpiredTokenException", true},
                     {"UnrecognizedClientException", true},
                     {"InvalidSignatureException", true},
                     {"AccessDeniedException", false},
                     {"ThrottlingException", false}};
  for (const auto& one : cases) {
    credentials_->refused.clear();
    Outcome& outcome = Ask(400, "{\"__type\":\"com.amazon#" + std::string(one.code) + "\"}");
    ASSERT_TRUE(outcome.answer->ok());
    ASSERT_TRUE((*outcome.answer)->error.has_value());
    EXPECT_EQ((*outcome.answer)->error->code, one.code);
    EXPECT_EQ(credentials_->refused.size(), one.reported ? 1u : 0u) << one.code;
    if (one.reported && !credentials_->refused.empty()) {
      EXPECT_EQ(credentials_->refused[0], credentials_->given);
    }
  }
}

TEST_F(ServiceTest, NoSecretOfOursIsInAnErrorAlthoughTheServiceRepeatsIt) {
  credentials_->given =
      testing::FakeCredentials::Make("AKID", "the-secret-key", "session/token+1==");
  Outcome& outcome =
      Ask(403,
          "{\"__type\":\"InvalidClientTokenId\",\"message\":\"token session/token+1== of "
          "the-secret-key is unknown\"}");
  const ApiError& error = *(*outcome.answer)->error;
  EXPECT_EQ(error.message, "token *** of *** is unknown");
}

TEST_F(ServiceTest, ATokenThatCannotStandInAHeaderIsRefusedWithoutBeingShown) {
  credentials_->given = testing::FakeCredentials::Make("AKID", "the-secret-key", "bad\ntoken");
  Outcome& outcome = Start();
  ASSERT_TRUE(Told(outcome));
  ExpectError(outcome, ErrorCode::kInvalid, "X-Amz-Security-Token");
  EXPECT_EQ(outcome.answer->error().message.find("bad"), std::string::npos);
}

// ---- no answer ----

TEST_F(ServiceTest, AServiceThatCannotBeReachedIsNamed) {
  server_.Close();
  Outcome& outcome = Start();
  ASSERT_TRUE(Told(outcome));
  ExpectError(outcome, ErrorCode::kUnavailable, "sqs at " + endpoint_.ToString() + ": cannot");
}

TEST_F(ServiceTest, AboveTheLimitACallFailsAtOnceAlsoWhileAllWaitForCredentials) {
  limits_.connections_max = 2;
  credentials_->held = true;
  MakeService();
  Start();
  Start();
  Outcome& third = Start();
  EXPECT_EQ(third.told, 0) << "never from inside the call";
  ASSERT_TRUE(Told(third));
  ExpectError(third, ErrorCode::kLimit, "all 2 connections");
  EXPECT_EQ(credentials_->gets, 2);
}

TEST_F(ServiceTest, AnAnswerThatIsTooLongIsRefused) {
  request_.body_bytes_max = 10;
  Outcome& outcome = Ask(200, "12345678901");
  ExpectError(outcome, ErrorCode::kLimit, "10B");
}

TEST_F(ServiceTest, AnErrorThatNoServiceWroteIsAnAnswerAllTheSame) {
  Outcome& outcome = Ask(502, "<html><body>Bad Gateway</body></html>");
  ASSERT_TRUE(outcome.answer->ok());
  EXPECT_EQ((*outcome.answer)->error->trouble, Trouble::kServer);
  EXPECT_EQ((*outcome.answer)->body, "<html><body>Bad Gateway</body></html>");
}

// ---- letting go ----

TEST_F(ServiceTest, ADestroyedCallIsNeverToldInWhateverStateItWas) {
  credentials_->held = true;
  Outcome& waiting = Start();
  waiting.call.reset();
  credentials_->AnswerAll();
  credentials_->held = false;
  Outcome& sent = Start();
  Arrived();
  testing::RawSocket* peer = asked_;
  sent.call.reset();
  EXPECT_TRUE(Eventually([&] {
    peer->Poll();
    return peer->over();
  }));
  EXPECT_EQ(waiting.told + sent.told, 0);
  EXPECT_EQ(service_->connections(), 0u);
}

TEST_F(ServiceTest, AServiceThatGoesCancelsItsCallsWhichMayGoLater) {
  Outcome& sent = Start();
  Arrived();
  credentials_->held = true;
  Outcome& waiting = Start();
  service_.reset();
  credentials_->AnswerAll();
  RunFor(Duration::Millis(20));
  EXPECT_EQ(sent.told + waiting.told, 0);
  sent.call.reset();
  waiting.call.reset();
}

TEST_F(ServiceTest, AServiceMayBeDestroyedInsideACallback) {
  Outcome& outcome = Start();
  outcome.inside = [&] {
    outcome.call.reset();
    service_.reset();
  };
  Arrived();
  Answer(200, "");
  ASSERT_TRUE(Told(outcome));
  EXPECT_TRUE(outcome.answer->ok());
  MakeService();
  credentials_->error = base::Error{ErrorCode::kRefused, "none"};
  Outcome& refused = Start();
  refused.inside = [&] { service_.reset(); };
  ASSERT_TRUE(Told(refused));
  ExpectError(refused, ErrorCode::kRefused, "none");
}

}  // namespace
}  // namespace leasehold::aws

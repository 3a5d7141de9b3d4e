// What passes an sqs gate while its lease is held, and what does not.
#include <gtest/gtest.h>

#include "sqs_gate_fixture.h"

namespace leasehold::gate {
namespace {

using base::Duration;

class SqsGateTest : public SqsGateFixture {};

TEST_F(SqsGateTest, ASendPassesSignedByTheSidecarAndWithoutTheClientsSignature) {
  BuildOpen();
  RawSocket* client = Client(JsonRequest(
      "SendMessage", R"({"QueueUrl":"http://127.0.0.1/123456789012/jobs","MessageBody":"hi"})",
      "Authorization: AWS4-HMAC-SHA256 Credential=theirs\r\n"
      "X-Amz-Date: 19990101T000000Z\r\nX-Amz-Security-Token: theirs\r\n"
      "X-Amz-Content-Sha256: theirs\r\nX-Amzn-Query-Mode: true\r\n"));
  auto asked = Next();
  ASSERT_TRUE(asked);
  EXPECT_TRUE(asked->Is("SendMessage"));
  EXPECT_EQ(asked->head.find("theirs"), std::string::npos);
  EXPECT_EQ(asked->head.find("19990101"), std::string::npos);
  EXPECT_NE(asked->head.find("Credential=AKIDEXAMPLE/"), std::string::npos);
  EXPECT_NE(asked->head.find("x-amzn-query-mode: true"), std::string::npos);
  EXPECT_TRUE(asked->Has(sqs_->address().ToString() + "/123456789012/jobs"));
  EXPECT_EQ(in_flight(), 1U);
  Reply(*asked, R"({"MessageId":"m-1","MD5OfMessageBody":"x"})");
  EXPECT_TRUE(Gets(client, R"("MessageId":"m-1")"));
  EXPECT_TRUE(Has(client, "x-amzn-RequestId: of-sqs"));
  EXPECT_EQ(in_flight(), 0U);
}

TEST_F(SqsGateTest, QueueUrlsInAnswersNameTheSidecarByTheClientsHost) {
  BuildOpen();
  RawSocket* client = Client(JsonRequest("GetQueueUrl", R"({"QueueName":"jobs"})"));
  auto asked = Next();
  ASSERT_TRUE(asked);
  Reply(*asked, R"({"QueueUrl":"https://sqs.eu-central-1.amazonaws.com/123456789012/jobs"})");
  EXPECT_TRUE(Gets(client, "http://127.0.0.1:9324/123456789012/jobs"));
  EXPECT_FALSE(Has(client, "amazonaws"));
}

TEST_F(SqsGateTest, AReceivedMessageIsInFlightUntilItIsDeleted) {
  BuildOpen();
  ReceiveOne("h-1");
  EXPECT_EQ(in_flight(), 1U);
  RawSocket* client = Client(Delete("h-1"));
  auto asked = Next();
  ASSERT_TRUE(asked && asked->Is("DeleteMessage"));
  EXPECT_EQ(in_flight(), 2U);
  Reply(*asked, "{}");
  EXPECT_TRUE(Gets(client, "200"));
  EXPECT_EQ(in_flight(), 0U);
}

TEST_F(SqsGateTest, AReceivedMessageIsInFlightUntilItIsVisibleAgainByItself) {
  sqs_->attributes = R"({"Attributes":{"VisibilityTimeout":"1"}})";
  BuildOpen();
  ReceiveOne("h-1");
  EXPECT_EQ(in_flight(), 1U);
  EXPECT_TRUE(Eventually([&] { return in_flight() == 0; }));
}

TEST_F(SqsGateTest, AVisibilityChangeToZeroEndsItAndALongerOneDoesNot) {
  BuildOpen();
  ReceiveOne("h-1");
  for (const char* seconds : {"600", "0"}) {
    EXPECT_EQ(in_flight(), 1U);
    RawSocket* client = Client(
        JsonRequest("ChangeMessageVisibility",
                    "{\"QueueUrl\":\"" + std::string(kJobs) +
                        "\",\"ReceiptHandle\":\"h-1\",\"VisibilityTimeout\":" + seconds + "}"));
    auto asked = Next();
    ASSERT_TRUE(asked);
    Reply(*asked, "{}");
    EXPECT_TRUE(Gets(client, "200"));
  }
  EXPECT_EQ(in_flight(), 0U);
}

TEST_F(SqsGateTest, ABatchDeleteEndsThoseThatSucceeded) {
  BuildOpen();
  ReceiveOne("h-1");
  ReceiveOne("h-2");
  RawSocket* client = Client(
      JsonRequest("DeleteMessageBatch", "{\"QueueUrl\":\"" + std::string(kJobs) +
                                            R"(","Entries":[{"Id":"a","ReceiptHandle":"h-1"},)"
                                            R"({"Id":"b","ReceiptHandle":"h-2"}]})"));
  auto asked = Next();
  ASSERT_TRUE(asked);
  Reply(
      *asked,
      R"({"Successful":[{"Id":"a"}],"Failed":[{"Id":"b","Code":"InternalError","SenderFault":false}]})");
  EXPECT_TRUE(Gets(client, "InternalError"));
  EXPECT_EQ(in_flight(), 1U);
}

TEST_F(SqsGateTest, ALongWaitIsAskedForInPiecesThatFitTheGrace) {
  grace_ = Duration::Seconds(3);
  BuildOpen();
  RawSocket* client = Client(Receive("\"WaitTimeSeconds\":2"));
  auto first = Next();
  ASSERT_TRUE(first);
  EXPECT_TRUE(first->Has("\"WaitTimeSeconds\":1")) << first->body;
  loop::Timer wait(loop_, [] {});
  wait.StartAfter(Duration::Seconds(1));
  RunUntil([&] { return !wait.armed(); });
  Reply(*first, "{}");
  auto second = Next();
  ASSERT_TRUE(second);
  EXPECT_TRUE(second->Has("\"WaitTimeSeconds\":1")) << second->body;
  EXPECT_FALSE(Has(client, "HTTP"));
  Reply(*second, Messages({"h-1"}));
  EXPECT_TRUE(Gets(client, "h-1"));
}

TEST_F(SqsGateTest, AServiceThatDoesNotWaitIsNotAskedInACircle) {
  grace_ = Duration::Seconds(3);
  BuildOpen();
  RawSocket* client = Client(Receive());
  auto asked = Next();
  ASSERT_TRUE(asked);
  Reply(*asked, "{}");
  EXPECT_TRUE(Gets(client, "200"));
  EXPECT_TRUE(NothingAsked());
}

TEST_F(SqsGateTest, AReceiveThatSaysNoWaitGetsTheQueuesOwn) {
  sqs_->attributes =
      R"({"Attributes":{"VisibilityTimeout":"30","ReceiveMessageWaitTimeSeconds":"7"}})";
  BuildOpen();
  Client(Receive(""));
  auto asked = Next();
  ASSERT_TRUE(asked);
  EXPECT_TRUE(asked->Has("\"WaitTimeSeconds\":7")) << asked->body;
}

TEST_F(SqsGateTest, AttributesThatMayNotBeReadAreAssumed) {
  sqs_->attributes =
      R"({"__type":"com.amazon.coral.service#AccessDeniedException","message":"no"})";
  sqs_->attributes_status = 403;
  BuildOpen();
  ReceiveOne("h-1");
  EXPECT_EQ(in_flight(), 1U);
}

TEST_F(SqsGateTest, BeyondMaxPollsReceivesAreThrottled) {
  options_.sqs.max_polls = 1;
  BuildOpen();
  Client(Receive());
  ASSERT_TRUE(Next());
  RawSocket* second = Client(Receive());
  EXPECT_TRUE(Gets(second, "RequestThrottled"));
  EXPECT_TRUE(NothingAsked());
}

TEST_F(SqsGateTest, BeyondMaxInFlightNothingIsReceivedUntilThereIsRoom) {
  options_.sqs.max_in_flight = 1;
  BuildOpen();
  ReceiveOne("h-1");
  RawSocket* poor = Client(Receive("\"WaitTimeSeconds\":0"));
  EXPECT_TRUE(GetsEmpty(poor));
  RawSocket* patient = Client(Receive());
  EXPECT_TRUE(NothingAsked());
  Client(Delete("h-1"));
  auto asked = Next();
  ASSERT_TRUE(asked && asked->Is("DeleteMessage"));
  Reply(*asked, "{}");
  asked = Next();
  ASSERT_TRUE(asked && asked->Is("ReceiveMessage"));
  Reply(*asked, Messages({"h-2"}));
  EXPECT_TRUE(Gets(patient, "h-2"));
  EXPECT_NE(Metric().find("reason=\"max_in_flight\"} 1"), std::string::npos);
}

TEST_F(SqsGateTest, MessagesForAClientThatHasLeftGoBackAtOnce) {
  BuildOpen();
  RawSocket* client = Client(Receive());
  auto asked = Next();
  ASSERT_TRUE(asked);
  client->Close();
  EXPECT_TRUE(Eventually([&] { return gate_->status().connections == 0; }));
  Reply(*asked, Messages({"h-1"}));
  asked = Next();
  ASSERT_TRUE(asked);
  EXPECT_TRUE(asked->Is("ChangeMessageVisibilityBatch"));
  EXPECT_TRUE(asked->Has("h-1") && asked->Has("\"VisibilityTimeout\":0")) << asked->body;
  Reply(*asked, R"({"Successful":[{"Id":"0"}],"Failed":[]})");
  EXPECT_EQ(in_flight(), 0U);
}

TEST_F(SqsGateTest, PipelinedRequestsAreAnsweredInOrder) {
  BuildOpen();
  RawSocket* client = Client(Send("one") + Send("two"));
  auto one = Next();
  ASSERT_TRUE(one && one->Has("one"));
  EXPECT_TRUE(NothingAsked());
  Reply(*one, R"({"MessageId":"m-1"})");
  auto two = Next();
  ASSERT_TRUE(two && two->Has("two"));
  Reply(*two, R"({"MessageId":"m-2"})");
  ASSERT_TRUE(Gets(client, "m-2"));
  EXPECT_LT(client->received().find("m-1"), client->received().find("m-2"));
}

TEST_F(SqsGateTest, ABodyThatIsTooLargeIsRefusedInTheClientsProtocol) {
  options_.body_bytes_max = 1024;
  BuildOpen();
  RawSocket* client = Client(Send(std::string(2000, 'x')));
  EXPECT_TRUE(Gets(client, "RequestEntityTooLarge"));
  EXPECT_TRUE(Has(client, "body_bytes_max"));
  RawSocket* query = Client(
      "POST / HTTP/1.1\r\nHost: a\r\nContent-Type: application/x-www-form-urlencoded\r\n"
      "Content-Length: 2000\r\n\r\n");
  EXPECT_TRUE(Gets(query, "<Code>RequestEntityTooLarge</Code>"));
}

TEST_F(SqsGateTest, ContinueIsSaidAndAChunkedBodyIsRead) {
  BuildOpen();
  RawSocket* client = Client(
      "POST / HTTP/1.1\r\nHost: a\r\nX-Amz-Target: AmazonSQS.ListQueues\r\nContent-Type: "
      "application/x-amz-json-1.0\r\nExpect: 100-continue\r\nTransfer-Encoding: chunked\r\n\r\n");
  ASSERT_TRUE(Gets(client, "100 Continue"));
  client->Send("2\r\n{}\r\n0\r\n\r\n");
  auto asked = Next();
  ASSERT_TRUE(asked && asked->Is("ListQueues"));
  Reply(*asked, "{}");
  EXPECT_TRUE(Gets(client, "200"));
}

TEST_F(SqsGateTest, ARequestThatComesRoundIsRefusedWithASentence) {
  BuildOpen();
  RawSocket* client = Client(JsonRequest("ListQueues", "{}", "Lease-Gate: queue\r\n"));
  EXPECT_TRUE(Gets(client, "leads back to a gate itself"));
}

TEST_F(SqsGateTest, RefusedCredentialsAreSaidToBeTheSidecars) {
  BuildOpen();
  RawSocket* client = Client(Send());
  auto asked = Next();
  ASSERT_TRUE(asked);
  Reply(*asked,
        R"({"__type":"com.amazon.coral.service#InvalidSignatureException","message":"no match"})",
        403);
  EXPECT_TRUE(Gets(client, "the sidecar's credentials (from the test's own)"));
  EXPECT_TRUE(Has(client, "InvalidSignatureException"));
  EXPECT_TRUE(Has(client, " 403 "));
}

TEST_F(SqsGateTest, MissingCredentialsAreSaid) {
  BuildOpen();
  credentials_->error = base::Error{base::ErrorCode::kRefused, "nobody has any"};
  RawSocket* client = Client(Send());
  EXPECT_TRUE(Gets(client, "nobody has any"));
  EXPECT_TRUE(Has(client, "AccessDenied"));
}

TEST_F(SqsGateTest, AnEndpointThatCannotBeReachedIsNamedInARetryableError) {
  Build();
  const std::string address = sqs_->address().ToString();
  sqs_->Close();
  Open();
  RawSocket* client = Client(Send());
  EXPECT_TRUE(Gets(client, "ServiceUnavailable"));
  EXPECT_TRUE(Has(client, address));
}

TEST_F(SqsGateTest, ThrottlingIsPassedOnUnchanged) {
  BuildOpen();
  RawSocket* client = Client(Send());
  auto asked = Next();
  ASSERT_TRUE(asked);
  Reply(*asked, R"({"__type":"com.amazonaws.sqs#RequestThrottled","message":"slow down"})", 400,
        "x-amzn-query-error: RequestThrottled;Sender\r\n");
  EXPECT_TRUE(Gets(client, "slow down"));
  EXPECT_TRUE(Has(client, "x-amzn-query-error: RequestThrottled;Sender"));
  EXPECT_TRUE(NothingAsked());
}

TEST_F(SqsGateTest, ASlowHeadAndASlowBodyEnd) {
  options_.head_timeout = Duration::Millis(50);
  options_.body_timeout = Duration::Millis(50);
  BuildOpen();
  RawSocket* head = Client("POST / HTTP/1.1\r\nHo");
  RawSocket* body = Client("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nx");
  EXPECT_TRUE(Gets(head, "408"));
  EXPECT_TRUE(Gets(body, "408"));
  EXPECT_TRUE(IsOver(head));
}

}  // namespace
}  // namespace leasehold::gate

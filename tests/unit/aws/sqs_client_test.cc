// SqsClient and the arithmetic of its batches: what is sent, what each answer means for each entry,
// and what is sent again.
#include "aws/sqs_client.h"

#include <gtest/gtest.h>

#include "aws/sqs_client_wire.h"
#include "proto/sqs_limits.h"
#include "service_fixture.h"

namespace leasehold::aws {
namespace {

const std::string kQueue = "https://sqs.eu-central-1.amazonaws.com/123456789012/orders";
constexpr base::Duration kTimeout = base::Duration::Seconds(5);

SqsMessage MessageOf(const std::string& id, const std::string& body = "x") {
  SqsMessage message;
  message.id = id;
  message.body = body;
  return message;
}

TEST(SqsBatchTest, EveryByteValueArrivesAgain) {
  std::string bytes;
  for (int i = 0; i < 256; ++i) bytes += static_cast<char>(i);
  for (const std::string& payload :
       {bytes, std::string(), std::string("text \xc3\xa9"), std::string("=")}) {
    SqsMessage message;
    SetPayload(message, payload);
    SetPayload(message, payload);  // twice: one attribute
    EXPECT_FALSE(message.body.empty());
    EXPECT_TRUE(proto::sqs::IsMessageText(message.body));
    EXPECT_LE(message.attributes.size(), 1U);
    EXPECT_EQ(*GetPayload(message.body, message.attributes), payload);
  }
  EXPECT_FALSE(GetPayload("?", {{"ContentEncoding", "base64"}}).ok());
  EXPECT_FALSE(GetPayload("x", {{"ContentEncoding", "gzip"}}).ok());
}

TEST(SqsBatchTest, BatchesAreSplitByCountAndBytes) {
  std::vector<SqsMessage> messages(21, MessageOf("a"));
  EXPECT_EQ(*SplitBatches(messages), (std::vector<size_t>{10, 10, 1}));
  EXPECT_TRUE(SplitBatches({})->empty());
  const std::string half(proto::sqs::kMessageBytesMax / 2, 'x');
  EXPECT_EQ(*SplitBatches({MessageOf("a", half), MessageOf("b", half), MessageOf("c")}),
            (std::vector<size_t>{2, 1}));
  SqsMessage long_one = MessageOf("long", std::string(proto::sqs::kMessageBytesMax, 'x'));
  EXPECT_TRUE(SplitBatches({long_one}).ok());
  long_one.attributes.push_back({"n", "v"});
  const auto refused = SplitBatches({long_one});
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.error().message.find("message long has 1048584 bytes"), std::string::npos)
      << refused.error().message;
}

TEST(SqsBatchTest, ABatchThatSqsWouldRefuseIsNotSent) {
  EXPECT_TRUE(CheckBatch({MessageOf("a"), MessageOf("b")}).ok());
  EXPECT_FALSE(CheckBatch({}).ok());
  EXPECT_FALSE(CheckBatch({MessageOf("a"), MessageOf("a")}).ok());
  EXPECT_FALSE(CheckBatch({MessageOf("a b")}).ok());
  EXPECT_FALSE(CheckBatch(std::vector<SqsMessage>(11, MessageOf("a"))).ok());
  EXPECT_FALSE(
      CheckBatch({MessageOf("a", std::string(proto::sqs::kMessageBytesMax + 1, 'x'))}).ok());
}

TEST(SqsBatchTest, ExactlyTheFailedOnesAreSentAgain) {
  std::vector<SqsMessage> messages;
  std::string successful;
  std::string failed;
  for (int i = 0; i < 10; ++i) {
    const std::string id = "m" + std::to_string(i);
    messages.push_back(MessageOf(id));
    const bool fails = i == 2 || i == 5 || i == 9;
    std::string& list = fails ? failed : successful;
    if (!list.empty()) list += ",";
    list += "{\"Id\":\"" + id + "\"" +
            (fails ? R"(,"SenderFault":false,"Code":"InternalError"})" : R"(,"MessageId":"1"})");
  }
  const auto results = ReadSendResults(
      messages, "{\"Failed\":[" + failed + "],\"Successful\":[" + successful + "]}");
  ASSERT_TRUE(results.ok());
  const std::vector<SqsMessage> again = ToSendAgain(messages, *results);
  ASSERT_EQ(again.size(), 3U);
  EXPECT_EQ(again[0].id, "m2");
  EXPECT_EQ(again[1].id, "m5");
  EXPECT_EQ(again[2].id, "m9");
}

TEST(SqsBatchTest, WhatTheSenderGotWrongIsNotSentAgain) {
  const std::vector<SqsMessage> messages = {MessageOf("a")};
  const auto results = ReadSendResults(
      messages, R"({"Failed":[{"Id":"a","SenderFault":true,"Code":"InvalidMessageContents"}]})");
  EXPECT_EQ((*results)[0].failure.code, "InvalidMessageContents");
  EXPECT_TRUE(ToSendAgain(messages, *results).empty());
}

TEST(SqsBatchTest, AnAnswerThatIsNotAboutEveryEntryIsNone) {
  const std::vector<SqsMessage> messages = {MessageOf("a"), MessageOf("b")};
  for (const std::string_view body :
       {"", "{}", R"({"Successful":[{"Id":"a"}]})", R"({"Successful":[{"Id":"a"},{"Id":"a"}]})",
        R"({"Successful":[{"Id":"a"},{"Id":"b"}],"Failed":[{"Id":"b"}]})",
        R"({"Successful":[{"Id":"a"},{"Id":"b"},{"Id":"c"}]})"}) {
    EXPECT_FALSE(ReadSendResults(messages, body).ok()) << body;
  }
}

TEST(SqsBatchTest, AnotherMd5IsAFailure) {
  SqsMessage message = MessageOf("a", "two");
  message.attributes = {{"b", "v", true}, {"a", "w"}};
  const std::string attributes = AttributesMd5(message.attributes);
  const auto answer = [&](const std::string& body_md5, const std::string& attributes_md5) {
    return ReadSendResults({message}, "{\"Successful\":[{\"Id\":\"a\",\"MD5OfMessageBody\":\"" +
                                          body_md5 + "\",\"MD5OfMessageAttributes\":\"" +
                                          attributes_md5 + "\"}]}")
        ->front();
  };
  // What moto answers for "two".
  EXPECT_TRUE(answer("b8a9f715dbb64fd5c56e7783c6820a61", attributes).ok);
  const SendResult body = answer("8fd4c545f1caca4ae8c41604b130de08", attributes);
  EXPECT_FALSE(body.ok);
  EXPECT_TRUE(body.again_can_help);
  EXPECT_EQ(body.failure.code, "Md5Mismatch");
  EXPECT_FALSE(answer("b8a9f715dbb64fd5c56e7783c6820a61", "00").ok);
}

class SqsClientTest : public ServiceFixture {
 protected:
  template <typename T>
  SqsDone<T> Into(std::optional<std::variant<T, SqsFailure>>& out) {
    return [&out](std::variant<T, SqsFailure> value) { out.emplace(std::move(value)); };
  }
  std::string Serve(int status, const std::string& body) {
    const std::string request = Arrived();
    Answer(status, body);
    return request;
  }
  SqsClient Client() { return SqsClient(loop_, *service_); }
  // A GetQueueUrl that is answered so, and fails.
  SqsFailure FailureFor(int status, const std::string& body) {
    std::optional<std::variant<std::string, SqsFailure>> out;
    const auto call = Client().GetQueueUrl("orders", kTimeout, Into<std::string>(out));
    Serve(status, body);
    EXPECT_TRUE(Eventually([&] { return out.has_value(); }));
    return std::get<SqsFailure>(out.value());
  }
};

TEST_F(SqsClientTest, MessagesAreSentAsSqsTakesThem) {
  SqsMessage message = MessageOf("a", "h\"\n");
  message.group_id = "g";
  message.deduplication_id = "d";
  message.attributes = {{"t", "v"}, {"b", std::string("\0\xff", 2), true}};
  std::optional<std::variant<std::vector<SendResult>, SqsFailure>> out;
  const auto call =
      Client().SendMessageBatch(kQueue, {message}, kTimeout, Into<std::vector<SendResult>>(out));
  const std::string request =
      Serve(200, R"({"Successful":[{"Id":"a","MessageId":"m-1","SequenceNumber":"7"}]})");
  EXPECT_EQ(HeaderOf(request, "X-Amz-Target"), "AmazonSQS.SendMessageBatch");
  EXPECT_TRUE(request.ends_with(
      "{\"QueueUrl\":\"" + kQueue +
      R"(","Entries":[{"Id":"a","MessageBody":"h\"\u000a","MessageGroupId":"g","MessageDeduplicationId":"d",)"
      R"("MessageAttributes":{"t":{"DataType":"String","StringValue":"v"},"b":{"DataType":"Binary","BinaryValue":"AP8="}}}]})"))
      << request;
  ASSERT_TRUE(Eventually([&] { return out.has_value(); }));
  const SendResult& result = std::get<0>(*out).at(0);
  EXPECT_TRUE(result.ok);
  EXPECT_EQ(result.message_id, "m-1");
  EXPECT_EQ(result.sequence_number, "7");
}

TEST_F(SqsClientTest, AWrongBatchIsRefusedLaterAndNothingIsSent) {
  std::optional<std::variant<std::vector<SendResult>, SqsFailure>> out;
  const auto call =
      Client().SendMessageBatch(kQueue, {}, kTimeout, Into<std::vector<SendResult>>(out));
  EXPECT_FALSE(out.has_value());
  ASSERT_TRUE(Eventually([&] { return out.has_value(); }));
  const SqsFailure& failure = std::get<SqsFailure>(*out);
  EXPECT_EQ(failure.error.code, base::ErrorCode::kInvalid);
  EXPECT_FALSE(failure.again_can_help);
  EXPECT_FALSE(failure.may_have_happened);
  EXPECT_EQ(service_->connections(), 0U);
}

TEST_F(SqsClientTest, MessagesAreReceivedWithTheirAttributes) {
  std::optional<std::variant<std::vector<SqsReceived>, SqsFailure>> out;
  SqsClient::ReceiveOptions options;
  options.visibility_timeout = 9;
  const auto call =
      Client().ReceiveMessage(kQueue, options, kTimeout, Into<std::vector<SqsReceived>>(out));
  const std::string request = Serve(
      200,
      R"({"Messages":[{"MessageId":"1","ReceiptHandle":"h","Body":"b","MessageAttributes":)"
      R"({"x":{"DataType":"Binary","BinaryValue":"AP8="},"y":{"DataType":"Number","StringValue":"1"}}}]})");
  EXPECT_NE(request.find("\"VisibilityTimeout\":9"), std::string::npos);
  ASSERT_TRUE(Eventually([&] { return out.has_value(); }));
  const SqsReceived& message = std::get<0>(*out).at(0);
  EXPECT_EQ(message.receipt_handle, "h");
  EXPECT_EQ(message.attributes.at(0).value, std::string("\0\xff", 2));
  EXPECT_EQ(message.attributes.at(1).value, "1");
  EXPECT_FALSE(ReadMessages("{\"Messages\":[{}]}").ok());
  EXPECT_FALSE(ReadMessages("[]").ok());
  EXPECT_TRUE(ReadMessages("{}")->empty());
}

TEST_F(SqsClientTest, EntriesAreDeletedAndGivenBack) {
  const std::vector<proto::sqs::Entry> entries = {{"a", "h1", 0}, {"b", "h2", 0}};
  std::optional<std::variant<std::vector<EntryResult>, SqsFailure>> out;
  auto call = Client().ChangeMessageVisibilityBatch(kQueue, entries, kTimeout,
                                                    Into<std::vector<EntryResult>>(out));
  const std::string request = Serve(
      200,
      R"({"Successful":[{"Id":"b"}],"Failed":[{"Id":"a","Code":"ReceiptHandleIsInvalid","SenderFault":true}]})");
  EXPECT_NE(request.find(R"({"Id":"a","ReceiptHandle":"h1","VisibilityTimeout":0})"),
            std::string::npos);
  ASSERT_TRUE(Eventually([&] { return out.has_value(); }));
  EXPECT_FALSE(std::get<0>(*out).at(0).ok);
  EXPECT_TRUE(std::get<0>(*out).at(1).ok);
  out.reset();
  call = Client().ChangeMessageVisibilityBatch(kQueue, {{"a", "h", std::nullopt}}, kTimeout,
                                               Into<std::vector<EntryResult>>(out));
  ASSERT_TRUE(Eventually([&] { return out.has_value(); }));
  EXPECT_EQ(std::get<SqsFailure>(*out).error.code, base::ErrorCode::kInvalid);
  out.reset();
  call = Client().DeleteMessageBatch(kQueue, {{"a", "h", {}}, {"a", "i", {}}}, kTimeout,
                                     Into<std::vector<EntryResult>>(out));
  ASSERT_TRUE(Eventually([&] { return out.has_value(); }));
  EXPECT_EQ(std::get<SqsFailure>(*out).error.code, base::ErrorCode::kInvalid);
}

TEST_F(SqsClientTest, AttributesOfAQueue) {
  std::optional<std::variant<std::map<std::string, std::string>, SqsFailure>> out;
  const auto call =
      Client().GetQueueAttributes(kQueue, kTimeout, Into<std::map<std::string, std::string>>(out));
  Serve(200, R"({"Attributes":{"FifoQueue":"true"}})");
  ASSERT_TRUE(Eventually([&] { return out.has_value(); }));
  EXPECT_EQ(std::get<0>(*out).at("FifoQueue"), "true");
}

TEST_F(SqsClientTest, EachFailureSaysWhetherAgainHelpsAndWhetherItMayHaveHappened) {
  struct Case {
    int status;
    std::string body;
    bool again, happened;
  };
  const Case cases[] = {{503, "", true, true},
                        {400, R"({"__type":"com.amazonaws.sqs#RequestThrottled"})", true, false},
                        {403, R"({"__type":"x#ExpiredToken"})", true, false},
                        {403, R"({"__type":"x#AccessDenied"})", false, false},
                        {400, R"({"__type":"com.amazonaws.sqs#QueueDoesNotExist"})", false, false},
                        {200, "{}", true, true},
                        {200, "<html>", true, true},
                        {204, "", true, true}};
  for (const Case& c : cases) {
    const SqsFailure failure = FailureFor(c.status, c.body);
    EXPECT_EQ(failure.again_can_help, c.again) << c.status << c.body;
    EXPECT_EQ(failure.may_have_happened, c.happened) << c.status << c.body;
    EXPECT_TRUE(failure.error.message.starts_with("GetQueueUrl of orders: "))
        << failure.error.message;
  }
}

TEST_F(SqsClientTest, AClientsRequestGoesOnSignedByUs) {
  std::optional<base::Result<Response>> out;
  proto::sqs::Outgoing outgoing;
  outgoing.path = "/123456789012/orders";
  outgoing.headers = {{"Content-Type", "application/x-www-form-urlencoded"}};
  outgoing.body = "Action=PurgeQueue";
  const auto call = Client().Forward(
      outgoing, kTimeout, [&](base::Result<Response> answer) { out.emplace(std::move(answer)); });
  const std::string request = Serve(404, "<E/>");
  EXPECT_TRUE(request.starts_with("POST /123456789012/orders HTTP/1.1\r\n"));
  EXPECT_TRUE(SignedBy(request, kSecret, "eu-central-1", "sqs"));
  ASSERT_TRUE(Eventually([&] { return out.has_value(); }));
  EXPECT_EQ((*out)->status, 404);
}

}  // namespace
}  // namespace leasehold::aws

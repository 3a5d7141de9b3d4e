// SQS's answers in both protocols, as recorded from moto 5.2.5 and local-aws-sqs 2.0.2: read,
// changed and made.
#include "proto/sqs_answer.h"

#include <gtest/gtest.h>

namespace leasehold::proto::sqs {
namespace {

constexpr std::string_view kMotoReceive =
    R"(<ReceiveMessageResponse xmlns="http://queue.amazonaws.com/doc/2012-11-05/"><ReceiveMessageResult><Message><MessageId>09b31c80</MessageId><ReceiptHandle>hz&amp;v</ReceiptHandle><MD5OfBody>b8a9</MD5OfBody><Body>two</Body><Attribute><Name>ReceiptHandle</Name><Value><ReceiptHandle>no</ReceiptHandle></Value></Attribute></Message><Message><MessageId>2</MessageId><ReceiptHandle>h2</ReceiptHandle></Message></ReceiveMessageResult><ResponseMetadata><RequestId>r</RequestId></ResponseMetadata></ReceiveMessageResponse>)";
constexpr std::string_view kMotoEmpty =
    R"(<ReceiveMessageResponse xmlns="http://queue.amazonaws.com/doc/2012-11-05/"><ReceiveMessageResult/><ResponseMetadata><RequestId>O19</RequestId></ResponseMetadata></ReceiveMessageResponse>)";
constexpr std::string_view kLasReceive =
    R"({"Messages":[{"Body":"h)"
    "\xc3\xa9"
    R"( <x>&","MD5OfBody":"8fd4","MessageId":"0e126330","ReceiptHandle":"MmM3="}]})";
constexpr std::string_view kMotoFailedJson =
    R"({"Successful": [], "Failed": [{"Id": "a", "SenderFault": true, "Code": "ReceiptHandleIsInvalid", "Message": "The input receipt handle \"nope\" is not a valid receipt handle."}]})";
constexpr std::string_view kLasFailedXml =
    "<?xml version=\"1.0\"?>\n  <DeleteMessageBatchResponse xmlns=\"http://queue.amazonaws.com/doc/"
    "2012-11-05/\">\n      <DeleteMessageBatchResult>\n        \n        "
    "<BatchResultErrorEntry>\n    <Id>a</Id>\n    <Code>ReceiptHandleIsInvalid</Code>\n    "
    "<Message>The input receipt handle &quot;nope&quot; is not valid.</Message>\n    "
    "<SenderFault>true</SenderFault>\n</BatchResultErrorEntry>\n      </DeleteMessageBatchResult>\n"
    "      <ResponseMetadata><RequestId>64da</RequestId></ResponseMetadata>\n  "
    "</DeleteMessageBatchResponse>";
const std::vector<EntryFailure> kOurs = {{"z", "ReceiptHandleIsInvalid", "not <ours>", true}};

std::string Local(std::string_view url) {
  return "http://side/" + std::string(url.substr(url.rfind('/') + 1));
}

TEST(SqsAnswerTest, HandlesAreFoundInBothProtocols) {
  const auto xml = ParseReceived(Protocol::kQuery, kMotoReceive);
  ASSERT_TRUE(xml.ok());
  ASSERT_EQ(xml->size(), 2U);
  EXPECT_EQ((*xml)[0].message_id, "09b31c80");
  EXPECT_EQ((*xml)[0].receipt_handle, "hz&v");
  EXPECT_EQ((*xml)[1].receipt_handle, "h2");
  const auto json = ParseReceived(Protocol::kJson, kLasReceive);
  ASSERT_EQ(json->size(), 1U);
  EXPECT_EQ((*json)[0].receipt_handle, "MmM3=");
}

TEST(SqsAnswerTest, NothingReceivedIsAnEmptyList) {
  EXPECT_TRUE(ParseReceived(Protocol::kQuery, kMotoEmpty)->empty());
  for (const std::string_view body : {"", "{}", "{\"Messages\":[]}", "{\"Messages\":null}"}) {
    EXPECT_TRUE(ParseReceived(Protocol::kJson, body)->empty()) << body;
  }
  for (const Protocol protocol : {Protocol::kJson, Protocol::kQuery}) {
    const Answer answer = EmptyReceive(protocol, "r-1");
    EXPECT_EQ(answer.status, 200);
    EXPECT_EQ(answer.headers[0].second, "r-1");
    EXPECT_TRUE(ParseReceived(protocol, answer.body)->empty());
  }
}

TEST(SqsAnswerTest, AMessageWithoutAHandleIsNoAnswerOfSqs) {
  EXPECT_FALSE(ParseReceived(Protocol::kJson, "{\"Messages\":[{\"MessageId\":\"1\"}]}").ok());
  EXPECT_FALSE(
      ParseReceived(Protocol::kJson, "{\"Messages\":[{\"ReceiptHandle\":\"\\ud800\"}]}").ok());
  EXPECT_FALSE(ParseReceived(Protocol::kJson, "{\"Messages\":[1]}").ok());
  EXPECT_FALSE(ParseReceived(Protocol::kJson, "{\"Messages\":{}}").ok());
  EXPECT_FALSE(ParseReceived(Protocol::kJson, "<html/>").ok());
  EXPECT_FALSE(ParseReceived(Protocol::kQuery, "{}").ok());
}

TEST(SqsAnswerTest, EveryTruncationIsAnErrorWhateverIsAsked) {
  for (size_t n = 0; n < kMotoReceive.size(); ++n) {
    EXPECT_FALSE(ParseReceived(Protocol::kQuery, kMotoReceive.substr(0, n)).ok()) << n;
  }
  for (size_t n = 1; n < kLasReceive.size(); ++n) {  // no byte at all is an empty result
    EXPECT_FALSE(ParseReceived(Protocol::kJson, kLasReceive.substr(0, n)).ok()) << n;
  }
  for (size_t n = 1; n < kLasFailedXml.size(); ++n) {
    const std::string_view cut = kLasFailedXml.substr(0, n);
    EXPECT_FALSE(ParseBatchResult(Protocol::kQuery, cut).ok()) << n;
    EXPECT_FALSE(
        MergeBatchResult(Protocol::kQuery, Action::kDeleteMessageBatch, cut, kOurs, "r").ok());
  }
  for (size_t n = 1; n < kMotoFailedJson.size(); ++n) {
    const std::string_view cut = kMotoFailedJson.substr(0, n);
    EXPECT_FALSE(ParseBatchResult(Protocol::kJson, cut).ok()) << n;
    EXPECT_FALSE(
        MergeBatchResult(Protocol::kJson, Action::kDeleteMessageBatch, cut, kOurs, "r").ok());
    EXPECT_FALSE(RewriteQueueUrls(Protocol::kJson, Action::kListQueues, cut, Local).ok());
  }
}

TEST(SqsAnswerTest, ResultsOfABatchAreReadEntryByEntry) {
  const auto sent = ParseBatchResult(
      Protocol::kJson,
      R"({"Successful":[{"Id":"a","MessageId":"m","MD5OfMessageBody":"5","MD5OfMessageAttributes":"6","SequenceNumber":"7"},{"Id":"b"}]})");
  ASSERT_EQ(sent->successful.size(), 2U);
  EXPECT_EQ(sent->successful[0].md5_of_attributes, "6");
  EXPECT_EQ(sent->successful[0].sequence_number, "7");
  for (const auto& result : {ParseBatchResult(Protocol::kJson, kMotoFailedJson),
                             ParseBatchResult(Protocol::kQuery, kLasFailedXml)}) {
    ASSERT_EQ(result->failed.size(), 1U);
    EXPECT_EQ(result->failed[0].id, "a");
    EXPECT_EQ(result->failed[0].code, "ReceiptHandleIsInvalid");
    EXPECT_TRUE(result->failed[0].sender_fault);
  }
}

TEST(SqsAnswerTest, OurFailuresComeBehindThoseOfSqs) {
  const std::pair<Protocol, std::string_view> bodies[] = {
      {Protocol::kJson, kMotoFailedJson},
      {Protocol::kQuery, kLasFailedXml},
      {Protocol::kJson, R"({"Failed":[{"Id":"a"}],"x":1})"}};
  for (const auto& [protocol, body] : bodies) {
    const auto merged = MergeBatchResult(protocol, Action::kDeleteMessageBatch, body, kOurs, "r");
    ASSERT_TRUE(merged.ok());
    const auto result = ParseBatchResult(protocol, *merged);
    ASSERT_EQ(result->failed.size(), 2U) << *merged;
    EXPECT_EQ(result->failed[0].id, "a");
    EXPECT_EQ(result->failed[1].id, "z");
    EXPECT_EQ(result->failed[1].message, "not <ours>");
    EXPECT_TRUE(result->failed[1].sender_fault);
    EXPECT_EQ(*MergeBatchResult(protocol, Action::kDeleteMessageBatch, body, {}, "r"), body);
  }
}

TEST(SqsAnswerTest, OurFailuresAreTheWholeWhereThereIsNothingElse) {
  const std::pair<Protocol, std::string_view> bodies[] = {
      {Protocol::kJson, ""},
      {Protocol::kQuery, ""},
      {Protocol::kJson, "{ }"},
      {Protocol::kJson, R"({"Successful":[{"Id":"s"}]})"},
      {Protocol::kJson, R"({"Failed":null,"Successful":[]})"},
      {Protocol::kJson, R"({"Failed":[ ]})"},
      {Protocol::kQuery, "<R><DeleteMessageBatchResult/></R>"},
      {Protocol::kQuery, "<R><DeleteMessageBatchResult></DeleteMessageBatchResult></R>"}};
  for (const auto& [protocol, body] : bodies) {
    const auto merged = MergeBatchResult(protocol, Action::kDeleteMessageBatch, body, kOurs, "r");
    ASSERT_TRUE(merged.ok()) << body;
    const auto result = ParseBatchResult(protocol, *merged);
    ASSERT_TRUE(result.ok()) << *merged;
    ASSERT_EQ(result->failed.size(), 1U) << *merged;
    EXPECT_EQ(result->failed[0].id, "z");
  }
  EXPECT_FALSE(
      MergeBatchResult(Protocol::kQuery, Action::kDeleteMessageBatch, "<R/>", kOurs, "r").ok());
  EXPECT_FALSE(
      MergeBatchResult(Protocol::kJson, Action::kDeleteMessageBatch, "{\"Failed\":1}", kOurs, "r")
          .ok());
}

TEST(SqsAnswerTest, EveryQueueUrlIsRewrittenAndNothingElse) {
  EXPECT_EQ(
      *RewriteQueueUrls(Protocol::kJson, Action::kGetQueueUrl,
                        R"({"QueueUrl": "http://127.0.0.1:5999/123456789012/q", "n":1.50})", Local),
      R"({"QueueUrl": "http://side/q", "n":1.50})");
  EXPECT_EQ(*RewriteQueueUrls(Protocol::kJson, Action::kListQueues,
                              R"({"QueueUrls":["h/a", "h/b",null],"NextToken":"t"})", Local),
            R"({"QueueUrls":["http://side/a", "http://side/b",null],"NextToken":"t"})");
  EXPECT_EQ(*RewriteQueueUrls(Protocol::kJson, Action::kListDeadLetterSourceQueues,
                              R"({"queueUrls":["h/a"]})", Local),
            R"({"queueUrls":["http://side/a"]})");
  EXPECT_EQ(*RewriteQueueUrls(Protocol::kJson, Action::kListQueues, R"({"QueueUrls":null})", Local),
            R"({"QueueUrls":null})");
  EXPECT_FALSE(
      RewriteQueueUrls(Protocol::kJson, Action::kListQueues, R"({"QueueUrls":1})", Local).ok());
  EXPECT_EQ(
      *RewriteQueueUrls(Protocol::kQuery, Action::kListQueues,
                        "<A><R>\n<QueueUrl>h/x?&amp;/a</QueueUrl><QueueUrl/> </R></A>", Local),
      "<A><R>\n<QueueUrl>http://side/a</QueueUrl><QueueUrl/> </R></A>");
  EXPECT_FALSE(RewriteQueueUrls(Protocol::kQuery, Action::kListQueues, "<A>", Local).ok());
  EXPECT_EQ(*RewriteQueueUrls(Protocol::kJson, Action::kReceiveMessage, "anything", Local),
            "anything");
}

TEST(SqsAnswerTest, AFaultIsWrittenAsSdksReadIt) {
  const Fault json = MakeFault(Protocol::kJson, FaultKind::kNonExistentQueue, "no \"q\"");
  const Answer first = FaultAnswer(json, "r-1");
  EXPECT_EQ(first.status, 400);
  EXPECT_EQ(first.content_type, "application/x-amz-json-1.0");
  EXPECT_EQ(first.body, R"({"__type":"com.amazonaws.sqs#QueueDoesNotExist","message":"no \"q\""})");
  ASSERT_EQ(first.headers.size(), 2U);
  EXPECT_EQ(first.headers[1].first, "x-amzn-query-error");
  EXPECT_EQ(first.headers[1].second, "AWS.SimpleQueueService.NonExistentQueue;Sender");
  const Answer second =
      FaultAnswer(MakeFault(Protocol::kQuery, FaultKind::kUnavailable, "<later>"), "r-2");
  EXPECT_EQ(second.status, 503);
  EXPECT_EQ(second.content_type, "text/xml");
  EXPECT_NE(
      second.body.find(
          "<Error><Type>Receiver</Type><Code>ServiceUnavailable</Code><Message>&lt;later&gt;"),
      std::string::npos);
  EXPECT_NE(second.body.find("<RequestId>r-2</RequestId>"), std::string::npos);
  EXPECT_EQ(FaultAnswer(MakeFault(Protocol::kJson, FaultKind::kInternal, ""), "").headers[1].second,
            "InternalFailure;Receiver");
}

TEST(SqsAnswerTest, EveryKindOfFaultHasItsRow) {
  for (int kind = 0; kind <= static_cast<int>(FaultKind::kInternal); ++kind) {
    const Fault fault = MakeFault(Protocol::kJson, static_cast<FaultKind>(kind), "m");
    EXPECT_FALSE(fault.code.empty());
    EXPECT_NE(fault.shape.find('#'), std::string::npos);
    EXPECT_EQ(fault.sender, fault.status < 500);
  }
}

TEST(SqsAnswerTest, AnActionWithNothingToSay) {
  EXPECT_EQ(EmptyAnswer(Protocol::kJson, Action::kDeleteMessage, "r").body, "");
  EXPECT_NE(EmptyAnswer(Protocol::kQuery, Action::kDeleteMessage, "r")
                .body.find("<DeleteMessageResponse "),
            std::string::npos);
}

}  // namespace
}  // namespace leasehold::proto::sqs

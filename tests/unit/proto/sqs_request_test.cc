// Requests of SQS's clients, in both protocols: what is read, what goes on, what is refused as SQS
// refuses it.
#include <gtest/gtest.h>

#include "proto/sqs.h"

namespace leasehold::proto::sqs {
namespace {

constexpr std::string_view kUrl = "http://127.0.0.1:9324/123456789012/orders";
const std::string kUpstream = "https://sqs.eu-central-1.amazonaws.com/123456789012/orders";

class SqsRequestTest : public ::testing::Test {
 protected:
  bool Json(std::string_view action, std::string body) {
    const std::string target = "AmazonSQS." + std::string(action);
    return Keep(
        ParseRequest({"POST", "/", "", "application/x-amz-json-1.0", target, std::move(body)}));
  }
  bool Query(std::string body, std::string_view path = "/", std::string_view query = "") {
    return Keep(
        ParseRequest({"POST", path, query, "application/x-www-form-urlencoded; charset=utf-8", "",
                      std::move(body)}));
  }
  bool Keep(std::variant<ClientRequest, Fault> parsed) {
    const bool ok = std::holds_alternative<ClientRequest>(parsed);
    if (ok) {
      request_ = std::get<ClientRequest>(std::move(parsed));
      fault_ = {};
    } else {
      fault_ = std::get<Fault>(std::move(parsed));
    }
    return ok;
  }
  std::string JsonFault(std::string_view action, std::string body) {
    return Json(action, std::move(body)) ? "" : fault_.shape.substr(fault_.shape.find('#') + 1);
  }
  std::string QueryFault(std::string body) { return Query(std::move(body)) ? "" : fault_.code; }

  ClientRequest request_;
  Fault fault_;
};

TEST_F(SqsRequestTest, EveryActionHasAKindAndItsName) {
  EXPECT_EQ(KindOf(ActionOf("ReceiveMessage")), Kind::kReceive);
  EXPECT_EQ(KindOf(ActionOf("ChangeMessageVisibilityBatch")), Kind::kAcknowledge);
  EXPECT_EQ(KindOf(ActionOf("SendMessage")), Kind::kSend);
  EXPECT_EQ(KindOf(ActionOf("ListQueues")), Kind::kRead);
  EXPECT_EQ(KindOf(ActionOf("PurgeQueue")), Kind::kAdminister);
  EXPECT_EQ(KindOf(ActionOf("purgequeue")), Kind::kUnknown);
  EXPECT_EQ(ActionName(Action::kDeleteMessageBatch), "DeleteMessageBatch");
  EXPECT_EQ(ActionName(Action::kUnknown), "");
}

TEST_F(SqsRequestTest, AJsonReceiveIsRead) {
  ASSERT_TRUE(Json("ReceiveMessage", "{\"QueueUrl\":\"" + std::string(kUrl) +
                                         "\",\"WaitTimeSeconds\":20,\"MaxNumberOfMessages\":10,"
                                         "\"VisibilityTimeout\":30}"));
  EXPECT_EQ(request_.protocol, Protocol::kJson);
  EXPECT_EQ(request_.action, Action::kReceiveMessage);
  EXPECT_EQ(request_.queue_url, kUrl);
  EXPECT_EQ(request_.wait_seconds, 20);
  EXPECT_EQ(request_.max_messages, 10);
  EXPECT_EQ(request_.visibility_timeout, 30);
  EXPECT_FALSE(request_.batch);
}

TEST_F(SqsRequestTest, OnlyWhatMustChangeOfJsonIsWrittenAnew) {
  ASSERT_TRUE(
      Json("ReceiveMessage",
           " { \"New\" : 12345678901234567890.10e2,\"WaitTimeSeconds\": 20 , \"QueueUrl\":\"" +
               std::string(kUrl) + "\",\"T\":\"\\u0000\\ud800 \xf0\x9f\x98\x80\" } "));
  Rewrite rewrite;
  rewrite.queue_url = kUpstream;
  rewrite.wait_seconds = 5;
  const Outgoing outgoing = WriteRequest(request_, rewrite);
  EXPECT_EQ(outgoing.path, "/");
  EXPECT_EQ(outgoing.headers[0].second, "application/x-amz-json-1.0");
  EXPECT_EQ(outgoing.headers[1].second, "AmazonSQS.ReceiveMessage");
  EXPECT_EQ(outgoing.body,
            " { \"New\" : 12345678901234567890.10e2,\"WaitTimeSeconds\": 5 , \"QueueUrl\":\"" +
                kUpstream + "\",\"T\":\"\\u0000\\ud800 \xf0\x9f\x98\x80\" } ");
}

TEST_F(SqsRequestTest, WithoutARewriteTheBodyIsTheSame) {
  const std::string body = "{\"QueueUrl\": \"" + std::string(kUrl) + "\", \"x\": [1]}";
  ASSERT_TRUE(Json("SendMessage", body));
  EXPECT_EQ(WriteRequest(request_, {}).body, body);
  EXPECT_EQ(WriteRequest(std::move(request_), {}).body, body);
}

TEST_F(SqsRequestTest, AWaitIsAddedWhereTheClientWroteNone) {
  ASSERT_TRUE(Json("ReceiveMessage", "{\"QueueUrl\":\"" + std::string(kUrl) + "\"}"));
  Rewrite rewrite;
  rewrite.wait_seconds = 3;
  EXPECT_EQ(WriteRequest(request_, rewrite).body,
            "{\"WaitTimeSeconds\":3,\"QueueUrl\":\"" + std::string(kUrl) + "\"}");
  ASSERT_TRUE(Json("NewAction", " { } "));
  rewrite.queue_url = "http://h/1/q";
  EXPECT_EQ(WriteRequest(request_, rewrite).body,
            " {\"QueueUrl\":\"http://h/1/q\",\"WaitTimeSeconds\":3 } ");
  ASSERT_TRUE(Json("NewAction", "{\"a\":1}"));
  EXPECT_EQ(WriteRequest(request_, rewrite).body,
            "{\"QueueUrl\":\"http://h/1/q\",\"WaitTimeSeconds\":3,\"a\":1}");
  ASSERT_TRUE(Query("Action=ReceiveMessage&QueueUrl=http%3A%2F%2Fh%2F1%2Fq"));
  EXPECT_EQ(WriteRequest(request_, rewrite).body,
            "Action=ReceiveMessage&QueueUrl=http%3A%2F%2Fh%2F1%2Fq&WaitTimeSeconds=3");
}

TEST_F(SqsRequestTest, EntriesOfAJsonBatchAreReadAndDropped) {
  const std::string second =
      "{\"ReceiptHandle\":\"h\\u0031\",\"Id\":\"b\", \"VisibilityTimeout\":0}";
  ASSERT_TRUE(Json("ChangeMessageVisibilityBatch",
                   "{\"Entries\":[{\"Id\":\"a\",\"ReceiptHandle\":\"h0\"}, " + second +
                       " ],\"QueueUrl\":\"" + std::string(kUrl) + "\"}"));
  ASSERT_EQ(request_.entries.size(), 2U);
  EXPECT_TRUE(request_.batch);
  EXPECT_EQ(request_.entries[0].id, "a");
  EXPECT_EQ(request_.entries[0].visibility_timeout, std::nullopt);
  EXPECT_EQ(request_.entries[1].receipt_handle, "h1");
  EXPECT_EQ(request_.entries[1].visibility_timeout, 0);
  Rewrite rewrite;
  rewrite.keep = {false, true};
  EXPECT_EQ(WriteRequest(request_, rewrite).body,
            "{\"Entries\":[" + second + "],\"QueueUrl\":\"" + std::string(kUrl) + "\"}");
}

TEST_F(SqsRequestTest, ASingleAcknowledgementIsOneEntryWithoutId) {
  ASSERT_TRUE(
      Json("ChangeMessageVisibility", "{\"QueueUrl\":\"" + std::string(kUrl) +
                                          "\",\"ReceiptHandle\":\"h\",\"VisibilityTimeout\":7}"));
  ASSERT_EQ(request_.entries.size(), 1U);
  EXPECT_EQ(request_.entries[0].id, "");
  EXPECT_EQ(request_.entries[0].receipt_handle, "h");
  EXPECT_EQ(request_.entries[0].visibility_timeout, 7);
  ASSERT_TRUE(Query("Action=DeleteMessage&ReceiptHandle=h%2B&QueueUrl=http://h/1/q"));
  EXPECT_EQ(request_.entries[0].receipt_handle, "h+");
}

TEST_F(SqsRequestTest, AQueryBatchIsReadAndCountedAnew) {
  const std::string p = "DeleteMessageBatchRequestEntry.";
  ASSERT_TRUE(Query("Action=DeleteMessageBatch&Version=2012-11-05&" + p + "1.Id=a&" + p +
                    "1.ReceiptHandle=h1&" + p + "2.Id=b&" + p + "2.ReceiptHandle=h2&" + p +
                    "7.ReceiptHandle=h3&" + p + "7.Id=c&" + p +
                    "7.New=%C3%A9&QueueUrl=http://h/1/q"));
  ASSERT_EQ(request_.entries.size(), 3U);
  EXPECT_EQ(request_.entries[2].id, "c");
  EXPECT_EQ(request_.entries[2].receipt_handle, "h3");
  Rewrite rewrite;
  rewrite.keep = {true, false, true};
  EXPECT_EQ(WriteRequest(request_, rewrite).body,
            "Action=DeleteMessageBatch&Version=2012-11-05&" + p + "1.Id=a&" + p +
                "1.ReceiptHandle=h1&" + p + "2.ReceiptHandle=h3&" + p + "2.Id=c&" + p +
                "2.New=%C3%A9&QueueUrl=http%3A%2F%2Fh%2F1%2Fq");
}

TEST_F(SqsRequestTest, BatchesThatSendKeepTheirIds) {
  ASSERT_TRUE(
      Query("Action=SendMessageBatch&SendMessageBatchRequestEntry.1.Id=a&"
            "SendMessageBatchRequestEntry.1.MessageBody=x&QueueUrl=http://h/1/q"));
  ASSERT_EQ(request_.entries.size(), 1U);
  EXPECT_EQ(request_.entries[0].id, "a");
}

TEST_F(SqsRequestTest, TheQueueMayBeInThePathAndTheQuestionBehindIt) {
  ASSERT_TRUE(Keep(ParseRequest({"GET", "/123456789012/orders",
                                 "Action=ReceiveMessage&AttributeName.1=All&X-Amz-Signature=s&"
                                 "AWSAccessKeyId=k&Signature=s&Timestamp=t&x-amz-date=d",
                                 "", "", ""})));
  EXPECT_EQ(request_.queue_url, "/123456789012/orders");
  EXPECT_EQ(WriteRequest(request_, {}).path, "/123456789012/orders");
  Rewrite rewrite;
  rewrite.queue_url = "https://h/base/123456789012/orders";
  const Outgoing outgoing = WriteRequest(request_, rewrite, "/base");
  EXPECT_EQ(outgoing.path, "/123456789012/orders");
  EXPECT_EQ(outgoing.headers[0].second, "application/x-www-form-urlencoded");
  EXPECT_EQ(outgoing.body,
            "Action=ReceiveMessage&AttributeName.1=All&"
            "QueueUrl=https%3A%2F%2Fh%2Fbase%2F123456789012%2Forders");
  rewrite.queue_url = "none";
  EXPECT_EQ(WriteRequest(request_, rewrite).path, "/");
}

TEST_F(SqsRequestTest, AParameterGoesBeforeThePath) {
  ASSERT_TRUE(Query("Action=PurgeQueue&QueueUrl=http://h/1/q", "/1/other", "Version=2012-11-05"));
  EXPECT_EQ(request_.queue_url, "http://h/1/q");
  Rewrite rewrite;
  rewrite.queue_url = "https://up/1/q";
  EXPECT_EQ(WriteRequest(request_, rewrite).path, "/1/q");
}

TEST_F(SqsRequestTest, WhatNeedsNoQueueHasNone) {
  EXPECT_TRUE(Json("ListQueues", ""));
  EXPECT_EQ(WriteRequest(request_, {}).body, "{}");
  EXPECT_TRUE(Json("CreateQueue", "{\"QueueName\":\"orders\"}"));
  EXPECT_EQ(request_.queue_name, "orders");
  EXPECT_TRUE(Query("Action=GetQueueUrl&QueueName=orders"));
  EXPECT_EQ(request_.queue_name, "orders");
  EXPECT_TRUE(Json("NewAction", "{}"));
  EXPECT_EQ(request_.action, Action::kUnknown);
  EXPECT_EQ(request_.action_name, "NewAction");
}

TEST_F(SqsRequestTest, AbsentAndWrongParametersAreRefusedAsSqsDoes) {
  const std::string url = "\"QueueUrl\":\"http://h/1/q\"";
  EXPECT_EQ(JsonFault("SendMessage", "{}"), "QueueDoesNotExist");
  EXPECT_EQ(JsonFault("SendMessage", "{\"QueueUrl\":null}"), "QueueDoesNotExist");
  EXPECT_EQ(QueryFault("Action=SendMessage"), "MissingParameter");
  EXPECT_EQ(JsonFault("SendMessage", "{\"QueueUrl\":\"orders\"}"), "InvalidAddress");
  EXPECT_EQ(JsonFault("SendMessage", "{\"QueueUrl\":1}"), "SerializationException");
  EXPECT_EQ(JsonFault("DeleteMessage", "{" + url + "}"), "MissingRequiredParameterException");
  EXPECT_EQ(JsonFault("ChangeMessageVisibility", "{" + url + ",\"ReceiptHandle\":\"h\"}"),
            "MissingRequiredParameterException");
  EXPECT_EQ(JsonFault("ReceiveMessage", "{" + url + ",\"WaitTimeSeconds\":21}"),
            "InvalidParameterValueException");
  EXPECT_EQ(JsonFault("ReceiveMessage", "{" + url + ",\"WaitTimeSeconds\":-1}"),
            "InvalidParameterValueException");
  for (const std::string& value : std::vector<std::string>{"\"5\"", "1.5", "true", "99999999999",
                                                           "1e2", "123456789012345678901"}) {
    EXPECT_EQ(JsonFault("ReceiveMessage", "{" + url + ",\"WaitTimeSeconds\":" + value + "}"),
              "SerializationException")
        << value;
  }
  EXPECT_EQ(QueryFault("Action=ReceiveMessage&WaitTimeSeconds=x&QueueUrl=http://h/1/q"),
            "InvalidParameterValue");
  EXPECT_EQ(QueryFault("Action=ReceiveMessage&WaitTimeSeconds=1x&QueueUrl=http://h/1/q"),
            "InvalidParameterValue");
  EXPECT_EQ(QueryFault("Action=ReceiveMessage&WaitTimeSeconds=&QueueUrl=http://h/1/q"), "");
}

TEST_F(SqsRequestTest, ABatchThatSqsWouldRefuseIsRefused) {
  const auto batch = [](const std::string& entries) {
    return "{\"QueueUrl\":\"http://h/1/q\"" + entries + "}";
  };
  const std::string a = "{\"Id\":\"a\",\"ReceiptHandle\":\"h\"}";
  std::string eleven = a;
  for (int i = 0; i < 10; ++i) eleven += ",{\"Id\":\"" + std::to_string(i) + "\"}";
  const auto fault = [&](const std::string& entries) {
    return JsonFault("DeleteMessageBatch", batch(entries));
  };
  EXPECT_EQ(fault(""), "EmptyBatchRequest");
  EXPECT_EQ(fault(",\"Entries\":null"), "EmptyBatchRequest");
  EXPECT_EQ(fault(",\"Entries\":[]"), "EmptyBatchRequest");
  EXPECT_EQ(fault(",\"Entries\":{}"), "SerializationException");
  EXPECT_EQ(fault(",\"Entries\":[1]"), "SerializationException");
  EXPECT_EQ(fault(",\"Entries\":[{\"Id\":1}]"), "SerializationException");
  EXPECT_EQ(fault(",\"Entries\":[" + a + "," + a + "]"), "BatchEntryIdsNotDistinct");
  EXPECT_EQ(fault(",\"Entries\":[{\"Id\":\"a b\"}]"), "InvalidBatchEntryId");
  EXPECT_EQ(fault(",\"Entries\":[" + eleven + "]"), "TooManyEntriesInBatchRequest");
  EXPECT_EQ(fault(",\"Entries\":[" + a + "]"), "");
  EXPECT_EQ(QueryFault("Action=ChangeMessageVisibilityBatch&QueueUrl=http://h/1/q&"
                       "ChangeMessageVisibilityBatchRequestEntry.1.VisibilityTimeout=x"),
            "InvalidParameterValue");
}

TEST_F(SqsRequestTest, WhatIsNoActionIsRefused) {
  EXPECT_FALSE(Keep(ParseRequest({"POST", "/", "", "application/x-amz-json-1.0", "", "{}"})));
  EXPECT_EQ(fault_.shape, "com.amazon.coral.service#UnknownOperationException");
  EXPECT_FALSE(Keep(ParseRequest({"POST", "/", "", "", "DynamoDB_20120810.GetItem", "{}"})));
  EXPECT_EQ(fault_.code, "InvalidAction");
  EXPECT_EQ(JsonFault("a.b", "{}"), "UnknownOperationException");
  EXPECT_EQ(JsonFault(std::string(65, 'a'), "{}"), "UnknownOperationException");
  EXPECT_EQ(QueryFault("x=1"), "MissingAction");
  EXPECT_EQ(QueryFault("Action=a%20b"), "InvalidAction");
  EXPECT_FALSE(Keep(ParseRequest({"POST", "/", "", "text/plain", "", "Action=ListQueues"})));
  EXPECT_EQ(fault_.code, "MissingAction");
}

TEST_F(SqsRequestTest, WhatStandsTwiceIsNotGuessed) {
  EXPECT_EQ(JsonFault("PurgeQueue",
                      "{\"QueueUrl\":\"http://h/1/a\",\"Queue\\u0055rl\":\"http://h/1/b\"}"),
            "SerializationException");
  EXPECT_EQ(QueryFault("Action=ListQueues&Action=PurgeQueue"), "InvalidParameterValue");
  EXPECT_FALSE(Query("Action=PurgeQueue", "/1/q", "Action=ListQueues"));
  EXPECT_EQ(QueryFault("Action=%"), "MalformedInput");
}

TEST_F(SqsRequestTest, MalformedJsonIsRefusedWhereverItIs) {
  for (const std::string body : {"[]",
                                 "1",
                                 "\"x\"",
                                 "{\"a\"}",
                                 "{\"a\":}",
                                 "{\"a\":1,}",
                                 "{a:1}",
                                 "{\"a\":01}",
                                 "{\"a\":1.}",
                                 "{\"a\":-}",
                                 "{\"a\":1e}",
                                 "{\"a\":tru}",
                                 "{\"a\":\"\\x\"}",
                                 "{\"a\":\"\\u12g4\"}",
                                 "{\"a\":\"\x01\"}",
                                 "{\"a\":\"\xff\"}",
                                 "{\"a\":[1 2]}",
                                 "{\"a\":1} x",
                                 "{\"a\":\"\\",
                                 "{\"\\u0000\":1}"}) {
    EXPECT_EQ(JsonFault("ListQueues", body), "SerializationException") << body;
  }
  EXPECT_EQ(JsonFault("ListQueues", "{\"a\":" + std::string(40, '[') + std::string(40, ']') + "}"),
            "SerializationException");
  EXPECT_EQ(
      JsonFault("ListQueues", "{\"a\":[-0.5e+1,0,1E-2,true,false,null,{},[],\"\\n\\u00e9\"]}"), "");
  std::string many = "{\"k\":0";
  for (size_t i = 0; i < kJsonPartsMax; ++i) many += ",\"k" + std::to_string(i) + "\":0";
  EXPECT_EQ(JsonFault("ListQueues", many + "}"), "SerializationException");
  std::string entries = "{}";
  for (size_t i = 0; i < kJsonPartsMax; ++i) entries += ",{}";
  EXPECT_EQ(JsonFault("SendMessageBatch", "{\"Entries\":[" + entries + "]}"),
            "SerializationException");
}

TEST_F(SqsRequestTest, EveryTruncationIsRefused) {
  const std::string whole =
      "{\"QueueUrl\":\"http://h/1/q\",\"Entries\":[{\"Id\":\"a\",\"ReceiptHandle\":"
      "\"h\\u00e9\xc3\xa9\",\"VisibilityTimeout\":-1.5e3}]}";
  for (size_t length = 1; length < whole.size(); ++length) {
    EXPECT_EQ(JsonFault("DeleteMessageBatch", whole.substr(0, length)), "SerializationException")
        << length;
  }
}

}  // namespace
}  // namespace leasehold::proto::sqs

// Queue URLs of SQS and of emulators, what is none, names and texts that SQS takes.
#include "proto/sqs_url.h"

#include <gtest/gtest.h>

#include "proto/sqs_limits.h"

namespace leasehold::proto::sqs {
namespace {

TEST(SqsUrlTest, EveryFormIsTakenApartAndPutTogetherAgain) {
  struct Case {
    std::string_view url, origin, prefix, account, name;
  };
  const Case cases[] = {
      {"https://sqs.eu-central-1.amazonaws.com/123456789012/orders",
       "https://sqs.eu-central-1.amazonaws.com", "", "123456789012", "orders"},
      {"https://queue.amazonaws.com/123456789012/orders.fifo", "https://queue.amazonaws.com", "",
       "123456789012", "orders.fifo"},
      {"https://eu-west-1.queue.amazonaws.com/1/q", "https://eu-west-1.queue.amazonaws.com", "",
       "1", "q"},
      {"http://localhost:4566/000000000000/q", "http://localhost:4566", "", "000000000000", "q"},
      {"http://sqs.us-east-1.localhost.localstack.cloud:4566/000000000000/q",
       "http://sqs.us-east-1.localhost.localstack.cloud:4566", "", "000000000000", "q"},
      {"http://localhost:4566/queue/us-east-1/000000000000/q", "http://localhost:4566",
       "/queue/us-east-1", "000000000000", "q"},
      {"http://localhost:9324/queue/q", "http://localhost:9324", "", "queue", "q"},
      {"http://[::1]:9324/1/q", "http://[::1]:9324", "", "1", "q"},
      {"HTTPS://h/1/q", "HTTPS://h", "", "1", "q"},
      {"/123456789012/q", "", "", "123456789012", "q"},
  };
  for (const Case& c : cases) {
    const auto queue = ParseQueueUrl(c.url);
    ASSERT_TRUE(queue.has_value()) << c.url;
    EXPECT_EQ(queue->origin, c.origin);
    EXPECT_EQ(queue->prefix, c.prefix);
    EXPECT_EQ(queue->account, c.account);
    EXPECT_EQ(queue->name, c.name);
    EXPECT_EQ(queue->ToString(), c.url);
  }
}

TEST(SqsUrlTest, ABasePathIsTakenOffOnceAndAtASlash) {
  EXPECT_EQ(ParseQueueUrl("http://h/sqs/1/q", "/sqs")->path(), "/1/q");
  EXPECT_EQ(ParseQueueUrl("http://h/1/q", "/sqs")->path(), "/1/q");
  EXPECT_EQ(ParseQueueUrl("http://h/sqsx/1/q", "/sqs")->path(), "/sqsx/1/q");
  EXPECT_EQ(ParseQueueUrl("http://h/1/q/")->path(), "/1/q");
}

TEST(SqsUrlTest, WhatNamesNoQueueIsNone) {
  for (const std::string_view text : {"",
                                      "/",
                                      "orders",
                                      "123456789012/orders",
                                      "http://",
                                      "http://h",
                                      "http://h/",
                                      "http://h/q",
                                      "/q",
                                      "//",
                                      "//q",
                                      "///",
                                      "http:///1/q",
                                      "ftp://h/1/q",
                                      "http://h/1//q",
                                      "http://h/../q",
                                      "http://h/1/.",
                                      "http://u@h/1/q",
                                      "http://h/1/q?x=1",
                                      "http://h/1/q#f",
                                      "http://h/1/q%2f",
                                      "http://h/1/q q",
                                      "http://h/1/\xc3\xa9",
                                      "http://h:0/1/q",
                                      "http://h:65536/1/q",
                                      "http://h:x/1/q",
                                      "http://h:/1/q",
                                      "http://[::1/1/q",
                                      "http://[]/1/q",
                                      "http://a]b/1/q",
                                      "http://[::1]x/1/q",
                                      "http://:80/1/q",
                                      "http://h/1/a:b",
                                      "http://h/1/[x]"}) {
    EXPECT_FALSE(ParseQueueUrl(text).has_value()) << text;
  }
  EXPECT_FALSE(ParseQueueUrl("http://h/1/" + std::string(kQueueUrlMax, 'q')).has_value());
}

TEST(SqsUrlTest, AQueueIsAskedForAtAnotherOrigin) {
  const auto queue = ParseQueueUrl("https://sqs.eu-central-1.amazonaws.com/1/q.fifo");
  EXPECT_EQ(QueueUrlAt("http://127.0.0.1:9324", *queue), "http://127.0.0.1:9324/1/q.fifo");
  EXPECT_EQ(QueueUrlAt("http://h/base", *queue), "http://h/base/1/q.fifo");
}

TEST(SqsUrlTest, AClientIsToldItsOwnHostUnlessThatIsUseless) {
  const std::string_view fallback = "127.0.0.1:9324";
  EXPECT_EQ(OriginForClient("sidecar:9324", fallback), "http://sidecar:9324");
  EXPECT_EQ(OriginForClient(" localhost ", fallback), "http://localhost");
  EXPECT_EQ(OriginForClient("[::1]:9324", fallback), "http://[::1]:9324");
  for (const std::string_view host : {"", "a b", "h/x", "u@h", "h:0", "h:99999", ":1", "[::1"}) {
    EXPECT_EQ(OriginForClient(host, fallback), "http://127.0.0.1:9324") << host;
  }
  EXPECT_EQ(OriginForClient(std::string(300, 'h'), fallback), "http://127.0.0.1:9324");
}

TEST(SqsLimitsTest, NamesAndIds) {
  EXPECT_TRUE(IsEntryId("a-Z_9"));
  EXPECT_TRUE(IsEntryId(std::string(80, 'a')));
  for (const std::string& id : {std::string(), std::string(81, 'a'), std::string("a.b")}) {
    EXPECT_FALSE(IsEntryId(id)) << id;
  }
  EXPECT_TRUE(IsQueueName("orders.fifo"));
  EXPECT_TRUE(IsQueueName(std::string(80, 'a')));
  for (const std::string& name :
       {std::string(), std::string(".fifo"), std::string("a.b"), std::string(76, 'a') + ".fifo"}) {
    EXPECT_FALSE(IsQueueName(name)) << name;
  }
}

TEST(SqsLimitsTest, WhatAMessageMayHold) {
  EXPECT_TRUE(
      IsMessageText("a\t\n\r \xc3\xa9\xed\x9f\xbf\xee\x80\x80\xef\xbf\xbd\xf0\x90\x80\x80"));
  for (const std::string_view text :
       {std::string_view("\0", 1), std::string_view("\x1f"), std::string_view("\xff"),
        std::string_view("\xed\xa0\x80"), std::string_view("\xef\xbf\xbe"),
        std::string_view("\xef\xbf\xbf"), std::string_view("\xc3")}) {
    EXPECT_FALSE(IsMessageText(text));
  }
}

}  // namespace
}  // namespace leasehold::proto::sqs

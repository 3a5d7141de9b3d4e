// What proto calls things in texts that people and clients read: the reason phrases of what we
// answer, the kinds of JSON values in error messages, the replies of a Redis in log lines.

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "proto/http1_write.h"
#include "proto/json.h"
#include "proto/resp.h"

namespace leasehold::proto {
namespace {

// RFC 9110 section 15, but 508 (RFC 5842), 429 and 431 (RFC 6585).
TEST(NamesTest, EveryStatusThatWeAnswerHasThePhraseOfItsStandard) {
  const std::pair<int, std::string_view> phrases[] = {{100, "Continue"},
                                                      {101, "Switching Protocols"},
                                                      {200, "OK"},
                                                      {202, "Accepted"},
                                                      {204, "No Content"},
                                                      {304, "Not Modified"},
                                                      {400, "Bad Request"},
                                                      {401, "Unauthorized"},
                                                      {403, "Forbidden"},
                                                      {404, "Not Found"},
                                                      {405, "Method Not Allowed"},
                                                      {408, "Request Timeout"},
                                                      {409, "Conflict"},
                                                      {411, "Length Required"},
                                                      {412, "Precondition Failed"},
                                                      {413, "Content Too Large"},
                                                      {414, "URI Too Long"},
                                                      {415, "Unsupported Media Type"},
                                                      {421, "Misdirected Request"},
                                                      {429, "Too Many Requests"},
                                                      {431, "Request Header Fields Too Large"},
                                                      {500, "Internal Server Error"},
                                                      {501, "Not Implemented"},
                                                      {502, "Bad Gateway"},
                                                      {503, "Service Unavailable"},
                                                      {504, "Gateway Timeout"},
                                                      {505, "HTTP Version Not Supported"},
                                                      {508, "Loop Detected"}};
  for (const auto& [status, phrase] : phrases) {
    EXPECT_EQ(http1::ReasonPhrase(status), phrase) << status;
  }
}

TEST(NamesTest, AStatusWithoutANameIsStillAPhrase) {
  EXPECT_EQ(http1::ReasonPhrase(299), "Unknown");
  EXPECT_EQ(http1::ReasonPhrase(0), "Unknown");
}

TEST(NamesTest, AJsonValueIsNamedSoThatASentenceCanGoOn) {
  const std::pair<std::string_view, std::string_view> names[] = {
      {"null", "null"},
      {"true", "a boolean"},
      {"false", "a boolean"},
      {"-3", "an integer"},
      {"1.5", "a number with a fraction or exponent"},
      {"\"x\"", "a string"},
      {"[1]", "an array"},
      {"{\"a\":1}", "an object"}};
  for (const auto& [text, name] : names) {
    const base::Result<Json> value = Json::Parse("[" + std::string(text) + "]");
    ASSERT_TRUE(value.ok()) << text;
    EXPECT_EQ(JsonTypeName(value->At(0)->type()), name) << text;
  }
}

TEST(NamesTest, ANumberWithAFractionIsADoubleAndAnIntegerIsOneToo) {
  const base::Result<Json> value = Json::Parse(R"({"half":0.5,"three":3,"word":"3"})");
  ASSERT_TRUE(value.ok());
  EXPECT_EQ(value->Double("half"), 0.5);
  EXPECT_EQ(value->Double("three"), 3.0);
  EXPECT_EQ(value->Double("word"), std::nullopt);
  EXPECT_EQ(value->Double("none"), std::nullopt);
}

TEST(NamesTest, ARedisReplyIsDescribedByItsKindAndContent) {
  std::vector<Reply> two;
  two.push_back(Reply::Nil());
  two.push_back(Reply::Integer(1));
  EXPECT_EQ(Reply::Nil().Describe(), "nil");
  EXPECT_EQ(Reply::Integer(-7).Describe(), "integer -7");
  EXPECT_EQ(Reply::Text(Reply::Kind::kString, "a\nb").Describe(), "string \"a\\x0ab\"");
  EXPECT_EQ(Reply::Text(Reply::Kind::kStatus, "OK").Describe(), "status \"OK\"");
  EXPECT_EQ(Reply::Text(Reply::Kind::kError, "ERR x").Describe(), "error \"ERR x\"");
  EXPECT_EQ(Reply::Array(std::move(two)).Describe(), "array of 2");
}

}  // namespace
}  // namespace leasehold::proto

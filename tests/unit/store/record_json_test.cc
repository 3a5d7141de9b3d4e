#include "store/record_json.h"

#include <gtest/gtest.h>

#include <limits>

namespace leasehold::store {
namespace {

class RecordJsonTest : public ::testing::Test {
 protected:
  void SetUp() override {
    record_.lease = "orders";
    record_.node_id = "node-a";
    record_.process_id = "p1";
    record_.token = 42;
    record_.beat = 1234;
    record_.ttl_ms = 10000;
    record_.state = lease::RecordState::kDraining;
    record_.peers = {{"web", "10.0.0.1:8081"}};
    record_.acquired_at_unix_ms = 1796052115123;
  }

  std::string Written(const lease::Record& record) {
    const base::Result<std::string> text = RecordToJson(record);
    EXPECT_TRUE(text.ok()) << (text.ok() ? "" : text.error().message);
    return text.ok() ? *text : "";
  }

  lease::Record Read(std::string_view text) {
    const base::Result<lease::Record> record = RecordFromJson(text);
    EXPECT_TRUE(record.ok()) << text << ": " << (record.ok() ? "" : record.error().message);
    return record.ok() ? *record : lease::Record();
  }

  // The sentence with which `text` is refused.
  std::string Refusal(std::string_view text) {
    const base::Result<lease::Record> record = RecordFromJson(text);
    EXPECT_FALSE(record.ok()) << text << " was taken";
    if (record.ok()) return "";
    EXPECT_EQ(record.error().code, base::ErrorCode::kInvalid);
    return record.error().message;
  }

  // A whole record in which the member `name` has the JSON text `value`; no such member if empty.
  std::string With(const std::string& name, const std::string& value) {
    const std::vector<std::pair<std::string, std::string>> members = {
        {"format", "1"},         {"lease", "\"orders\""}, {"node_id", "\"n\""},
        {"process_id", "\"p\""}, {"token", "\"1\""},      {"beat", "\"1\""},
        {"ttl_ms", "10000"},     {"state", "\"held\""},   {"peers", "{}"}};
    std::string text = "{";
    for (const auto& [member, usual] : members) {
      const std::string& used = member == name ? value : usual;
      if (used.empty()) continue;
      if (text.size() > 1) text += ",";
      text += "\"" + member + "\":" + used;
    }
    return text + "}";
  }

  lease::Record record_;
};

TEST_F(RecordJsonTest, ARecordIsOneReadableLine) {
  EXPECT_EQ(Written(record_),
            "{\"format\":1,\"lease\":\"orders\",\"node_id\":\"node-a\",\"process_id\":\"p1\","
            "\"token\":\"42\",\"beat\":\"1234\",\"ttl_ms\":10000,\"state\":\"draining\","
            "\"peers\":{\"web\":\"10.0.0.1:8081\"},\"acquired_at_unix_ms\":1796052115123}\n");
}

TEST_F(RecordJsonTest, WhatIsWrittenIsReadBackEqual) {
  record_.token = std::numeric_limits<uint64_t>::max();
  record_.beat = std::numeric_limits<uint64_t>::max();
  record_.node_id = "quote \" back \\ line \n \xf0\x9f\x98\x80";
  record_.peers = {};
  EXPECT_EQ(Read(Written(record_)), record_);
}

TEST_F(RecordJsonTest, UnknownMembersAreKept) {
  const std::string text = With("peers", R"({},"future":{"a":[1,2.5,"x"]},"flag":true)");
  const lease::Record record = Read(text);
  EXPECT_EQ(record.unknown.at("future"), R"({"a":[1,2.5,"x"]})");
  EXPECT_EQ(record.unknown.at("flag"), "true");
  EXPECT_EQ(Read(Written(record)), record);
}

TEST_F(RecordJsonTest, UnknownMembersInAnySpellingAreWritten) {
  record_.unknown = {{"x", " { \"a\" : [ 1 , 2 ] } "}};
  EXPECT_EQ(Read(Written(record_)).unknown.at("x"), R"({"a":[1,2]})");
}

TEST_F(RecordJsonTest, AMissingMemberIsNamed) {
  for (const char* name : {"lease", "node_id", "process_id", "token", "beat", "ttl_ms", "state"}) {
    const std::string why = Refusal(With(name, ""));
    EXPECT_NE(why.find(std::string("no member ") + name), std::string::npos) << why;
  }
  EXPECT_NE(Refusal(With("format", "")).find("format"), std::string::npos);
}

TEST_F(RecordJsonTest, PeersAndTheWallClockMayBeMissing) {
  const lease::Record record = Read(With("peers", ""));
  EXPECT_TRUE(record.peers.empty());
  EXPECT_EQ(record.acquired_at_unix_ms, 0);
}

TEST_F(RecordJsonTest, AWrongValueIsNamedWithWhatWouldBeRight) {
  const std::vector<std::pair<std::string, std::string>> wrong = {
      {"lease", "7"},
      {"node_id", "null"},
      {"process_id", "[]"},
      {"token", "\"-1\""},
      {"token", "\"18446744073709551616\""},
      {"token", "1.5"},
      {"beat", "\"\""},
      {"beat", "\"0x1\""},
      {"ttl_ms", "\"10s\""},
      {"ttl_ms", "1.5"},
      {"state", "\"Held\""},
      {"state", "1"},
      {"peers", "[]"},
      {"peers", "{\"web\":1}"},
  };
  for (const auto& [name, value] : wrong) {
    const std::string why = Refusal(With(name, value));
    EXPECT_NE(why.find(name + " = "), std::string::npos) << why;
    EXPECT_NE(why.find("must be"), std::string::npos) << why;
  }
  EXPECT_NE(Refusal(With("token", "\"abc\"")).find("\"abc\""), std::string::npos);
}

TEST_F(RecordJsonTest, WhatIsNoRecordIsRefused) {
  for (const char* text : {"", "null", "[]", "7", "\"record\"", "{}", "{\"format\":\"1\"}",
                           "{\"format\":-1}", "{\"format\":1.0}", "{\"format\":1"}) {
    Refusal(text);
  }
  Refusal(With("lease", "\"a\",\"lease\":\"b\""));  // twice the same member
  Refusal(With("format", "1") + "x");
  Refusal(std::string(kRecordBytesMax + 1, ' '));
}

TEST_F(RecordJsonTest, AHigherFormatIsReadAsFarAsItCanBe) {
  const lease::Record record = Read(
      R"({"format":2,"lease":"orders","token":[1],"state":"sleeping","peers":7,"new":{"x":1}})");
  EXPECT_EQ(record.format, 2U);
  EXPECT_EQ(record.lease, "orders");
  EXPECT_EQ(record.token, 0U);
  EXPECT_EQ(record.unknown.at("new"), R"({"x":1})");
  EXPECT_FALSE(lease::ValidateRecord(record).ok());
}

TEST_F(RecordJsonTest, AFormatOfAnySizeIsAHigherFormatNotAnotherOne) {
  EXPECT_EQ(Read(R"({"format":4294967297})").format, std::numeric_limits<uint32_t>::max());
}

TEST_F(RecordJsonTest, FormatZeroAndBadTtlAreLeftToTheEngine) {
  EXPECT_FALSE(lease::ValidateRecord(Read(With("format", "0"))).ok());
  EXPECT_EQ(Read(With("ttl_ms", "-5")).ttl_ms, -5);
}

TEST_F(RecordJsonTest, WhatCannotBeKeptExactlyIsNotWritten) {
  lease::Record record = record_;
  record.node_id = "\xff";
  EXPECT_FALSE(RecordToJson(record).ok());
  record = record_;
  record.unknown = {{"x", "{\"a\":"}};
  EXPECT_FALSE(RecordToJson(record).ok());
  record.unknown = {{"x", "1,\"token\":\"9\""}};
  EXPECT_FALSE(RecordToJson(record).ok());
  record.unknown = {{"token", "\"9\""}};
  EXPECT_FALSE(RecordToJson(record).ok());
  record = record_;
  record.peers = {{"web", std::string(kRecordBytesMax, 'x')}};
  EXPECT_FALSE(RecordToJson(record).ok());
}

}  // namespace
}  // namespace leasehold::store

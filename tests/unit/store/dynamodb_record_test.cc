// A lease record as an item of DynamoDB, there and back, and the bodies of the adapter's calls.
#include "store/dynamodb_record.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>

#include "base/json_writer.h"
#include "proto/json.h"
#include "store/dynamodb_requests.h"

namespace leasehold::store {
namespace {

using proto::Json;

class DynamoDbRecordTest : public ::testing::Test {
 protected:
  static lease::Record Some() {
    lease::Record record;
    record.lease = "orders";
    record.node_id = "node-a";
    record.process_id = "p/1";
    record.token = 7;
    record.beat = 9;
    record.ttl_ms = 10000;
    record.peers = {{"web", "10.0.0.7:8081"}};
    record.acquired_at_unix_ms = 1796052115123;
    return record;
  }
  static std::string ItemText(const lease::Record& record, const std::string& more = "") {
    const auto attributes = EncodeItem(record);
    EXPECT_TRUE(attributes.ok());
    std::string text = R"({"pk":{"S":"t:lease:orders"})";
    for (const auto& [name, value] : *attributes) text += ",\"" + name + "\":" + value;
    return text + more + "}";
  }
  static base::Result<lease::Record> Decode(const std::string& text) {
    const auto json = Json::Parse(text);
    EXPECT_TRUE(json.ok()) << text;
    return DecodeItem("t:lease:orders", "orders", *json);
  }
  // Without one attribute, or with another value for it.
  static std::string Damaged(const std::string& name, const std::string& value) {
    std::string text = R"({"pk":{"S":"t:lease:orders"})";
    const auto attributes = EncodeItem(Some());
    for (const auto& [known, json] : *attributes) {
      if (known == name && value.empty()) continue;
      text += ",\"" + known + "\":" + (known == name ? value : json);
    }
    return text + "}";
  }
  void NotARecord(const std::string& name, const std::string& value) {
    const auto record = Decode(Damaged(name, value));
    ASSERT_FALSE(record.ok()) << name << " = " << value;
    EXPECT_NE(record.error().message.find(name), std::string::npos) << record.error().message;
    EXPECT_NE(record.error().message.find("left alone"), std::string::npos);
  }
};

TEST_F(DynamoDbRecordTest, PrefixAndNameDoNotRunIntoEachOther) {
  EXPECT_EQ(DynamoDbKeyOf("leasehold", "orders"), "leasehold:lease:orders");
  EXPECT_EQ(DynamoDbKeyOf("a", "b:lease:c"), "a:lease:b:lease:c");
  EXPECT_NE(DynamoDbKeyOf("a:lease:b", "c"), DynamoDbKeyOf("a", "b:lease:c"));
  EXPECT_NE(DynamoDbKeyOf("a%3A", "x"), DynamoDbKeyOf("a:", "x"));
  EXPECT_EQ(DynamoDbCheckKey("a:b"), "a%3Ab:check");
}

TEST_F(DynamoDbRecordTest, AnItemIsPlainInTheConsole) {
  EXPECT_EQ(ItemText(Some()),
            R"({"pk":{"S":"t:lease:orders"},"format":{"N":"1"},"lease":{"S":"orders"},)"
            R"("node_id":{"S":"node-a"},"process_id":{"S":"p/1"},"token":{"S":"7"},)"
            R"("beat":{"S":"9"},"ttl_ms":{"N":"10000"},"state":{"S":"held"},)"
            R"("acquired_at_unix_ms":{"N":"1796052115123"},)"
            R"("peers":{"M":{"web":{"S":"10.0.0.7:8081"}}}})");
}

TEST_F(DynamoDbRecordTest, WhatIsEncodedIsDecodedEqual) {
  lease::Record record = Some();
  record.token = std::numeric_limits<uint64_t>::max();
  record.beat = std::numeric_limits<uint64_t>::max() - 1;
  record.ttl_ms = std::numeric_limits<int64_t>::max();
  record.acquired_at_unix_ms = std::numeric_limits<int64_t>::min();
  record.state = lease::RecordState::kDraining;
  record.former = "8/7/held/p0/node \xc3\xa4";
  record.peers = {{"m\xc3\xbcnze", ""}, {"a \"b\"", "[::1]:1"}};
  const auto back = Decode(ItemText(record));
  ASSERT_TRUE(back.ok()) << back.error().message;
  EXPECT_EQ(*back, record);
}

TEST_F(DynamoDbRecordTest, WhatCannotBeKeptExactlyIsNotWritten) {
  lease::Record record = Some();
  record.node_id = "\xff";
  EXPECT_FALSE(EncodeItem(record).ok());
  record.node_id = std::string("a\0b", 3);
  EXPECT_FALSE(EncodeItem(record).ok());
}

TEST_F(DynamoDbRecordTest, UnknownAttributesAreKeptAsDynamoDbShowsThem) {
  const std::string odd = R"({"L":[{"N":"1.50"},{"B":"AAEC"},{"M":{"x":{"BOOL":true}}}]})";
  const auto record = Decode(ItemText(Some(), ",\"future\":" + odd));
  ASSERT_TRUE(record.ok());
  EXPECT_EQ(record->unknown.at("future"), odd);
}

TEST_F(DynamoDbRecordTest, EachMissingOrWrongAttributeIsNamed) {
  for (const char* name :
       {"format", "lease", "node_id", "process_id", "token", "beat", "ttl_ms", "state"}) {
    NotARecord(name, "");
    NotARecord(name, R"({"NULL":true})");
  }
  NotARecord("token", R"({"N":"7"})");  // a number of somebody who rounds it
  NotARecord("beat", R"({"S":"-1"})");
  NotARecord("beat", R"({"S":"09"})");
  NotARecord("token", R"({"S":"18446744073709551616"})");
  NotARecord("ttl_ms", R"({"N":"1.5"})");
  NotARecord("state", R"({"S":"asleep"})");
  NotARecord("peers", R"({"M":{"web":{"N":"1"}}})");
  NotARecord("peers", R"({"S":"web"})");
  NotARecord("acquired_at_unix_ms", R"({"S":"1"})");
}

TEST_F(DynamoDbRecordTest, AnotherItemOrAnotherLeasesRecordIsNone) {
  const auto json = Json::Parse(ItemText(Some()));
  EXPECT_FALSE(DecodeItem("t:lease:other", "orders", *json).ok());
  EXPECT_FALSE(DecodeItem("t:lease:orders", "other", *json).ok());
  EXPECT_FALSE(DecodeItem("t:lease:orders", "orders", *Json::Parse("{}")).ok());
  EXPECT_FALSE(DecodeItem("t:lease:orders", "orders", *Json::Parse("[]")).ok());
}

TEST_F(DynamoDbRecordTest, AHigherFormatIsReadAsFarAsItCanBe) {
  const auto record = Decode(
      R"({"pk":{"S":"t:lease:orders"},"format":{"N":"99999999999"},"token":{"N":"7"},"beat":{"S":"3"}})");
  ASSERT_TRUE(record.ok()) << record.error().message;
  EXPECT_EQ(record->format, std::numeric_limits<uint32_t>::max());
  EXPECT_EQ(record->beat, 3U);
  EXPECT_FALSE(lease::ValidateRecord(*record).ok());
}

// ---- the bodies ----

class DynamoDbRequestTest : public DynamoDbRecordTest {
 protected:
  Json Cas(const std::optional<lease::Version>& expected, const lease::Record& record) {
    const auto body = CompareAndSetBody("leases", "t:lease:orders", expected, record);
    EXPECT_TRUE(body.ok()) << body.error().message;
    const auto json = Json::Parse(*body);
    EXPECT_TRUE(json.ok()) << *body;
    return *json;
  }
  static std::string Value(const Json& body, const std::string& placeholder) {
    return body.Find("ExpressionAttributeValues")
        ->Find(placeholder)
        .value_or(Json())
        .String("S")
        .value_or("none");
  }
  // DynamoDB refuses a request with a placeholder that no expression uses.
  static void ExpectAllUsed(const Json& body) {
    const std::string all = *body.String("ConditionExpression") + " " +
                            body.String("UpdateExpression").value_or("") + " ";
    for (const char* kind : {"ExpressionAttributeNames", "ExpressionAttributeValues"}) {
      for (const std::string& name : body.Find(kind)->Keys()) {
        EXPECT_TRUE(all.find(name + " ") != std::string::npos ||
                    all.find(name + ",") != std::string::npos ||
                    all.find(name + ")") != std::string::npos)
            << name << " is not used in: " << all;
      }
    }
  }
};

TEST_F(DynamoDbRequestTest, ReadsAreConsistent) {
  EXPECT_EQ(GetItemBody("leases", "t:lease:a\"b"),
            R"({"TableName":"leases","Key":{"pk":{"S":"t:lease:a\"b"}},"ConsistentRead":true})");
}

TEST_F(DynamoDbRequestTest, ACreationIsConditionalOnThereBeingNothing) {
  lease::Record record = Some();
  record.unknown = {{"x-team", R"({"S":"a"})"}};
  const Json body = Cas(std::nullopt, record);
  EXPECT_EQ(*body.String("ConditionExpression"), "attribute_not_exists(#pk)");
  EXPECT_EQ(*body.String("ReturnValuesOnConditionCheckFailure"), "ALL_OLD");
  EXPECT_EQ(*body.String("ReturnValues"), "ALL_NEW");
  EXPECT_NE(body.Find("ExpressionAttributeNames")->Dump().find("x-team"), std::string::npos);
  ExpectAllUsed(body);
}

TEST_F(DynamoDbRequestTest, AReplacementIsConditionalOnProcessTokenBeatLeaseAndFormat) {
  const Json body = Cas("p/1/6/18446744073709551615", Some());
  EXPECT_EQ(*body.String("ConditionExpression"),
            "#process_id = :was_process_id AND #token = :was_token AND #beat = :was_beat AND "
            "#lease = :lease AND #format <= :format");
  EXPECT_EQ(Value(body, ":was_process_id"), "p/1");
  EXPECT_EQ(Value(body, ":was_token"), "6");
  EXPECT_EQ(Value(body, ":was_beat"), "18446744073709551615");
  ExpectAllUsed(body);
}

TEST_F(DynamoDbRequestTest, AReplacementTouchesNothingThatIsNotOurs) {
  lease::Record record = Some();
  record.unknown = {{"x-team", R"({"S":"a"})"}};
  EXPECT_EQ(Cas("p/1/6/8", record).Dump().find("x-team"), std::string::npos);
}

TEST_F(DynamoDbRequestTest, WhatIsGoneFromTheRecordGoesFromTheItem) {
  lease::Record record = Some();
  record.peers.clear();
  const Json body = Cas("p/1/6/8", record);
  EXPECT_TRUE(body.String("UpdateExpression")->ends_with(" REMOVE #former, #peers"));
  ExpectAllUsed(body);
  ExpectAllUsed(Cas(std::nullopt, record));
}

TEST_F(DynamoDbRequestTest, AVersionThatIsNoneIsExpectedInVain) {
  for (const char* odd : {"", "x", "x/1", "/", "//"}) {
    const Json body = Cas(odd, Some());
    EXPECT_EQ(Value(body, ":was_beat").empty() || Value(body, ":was_token").empty(), true) << odd;
    ExpectAllUsed(body);
  }
}

TEST_F(DynamoDbRequestTest, AnUnknownAttributeUnderANameOfOursIsNotWritten) {
  lease::Record record = Some();
  record.unknown = {{"token", R"({"S":"99"})"}};
  EXPECT_FALSE(CompareAndSetBody("leases", "t:lease:orders", std::nullopt, record).ok());
  record.unknown = {{"x", "not json"}};
  EXPECT_FALSE(CompareAndSetBody("leases", "t:lease:orders", std::nullopt, record).ok());
}

TEST_F(DynamoDbRequestTest, AProbeCanNeverTake) {
  const Json body = *Json::Parse(ProbeBody("leases", "t:lease:orders"));
  EXPECT_EQ(*body.String("ConditionExpression"), "#pk = :none");
  EXPECT_EQ(Value(body, ":none"), "-") << "no key of ours is without a ':'";
  EXPECT_FALSE(body.Find("UpdateExpression").has_value());
}

TEST_F(DynamoDbRequestTest, OnlyWhatIsMarkedSoMayGoOutTwice) {
  EXPECT_TRUE(DynamoDbRequest(kGetItem, "{}", true, base::Duration::Seconds(1)).idempotent);
  const aws::Request write = DynamoDbRequest(kUpdateItem, "{}", false, base::Duration::Seconds(1));
  EXPECT_FALSE(write.idempotent);
  EXPECT_EQ(write.headers.at(1).second, "DynamoDB_20120810.UpdateItem");
}

}  // namespace
}  // namespace leasehold::store

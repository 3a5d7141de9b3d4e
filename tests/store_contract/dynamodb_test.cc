// What the dynamodb adapter promises beyond the contract, on the emulators: races, a table that is
// made, tables that are not ours, what somebody else writes beside a record.
#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "contract_fixture.h"
#include "dynamodb_harness.h"
#include "proto/json.h"
#include "store/dynamodb_record.h"
#include "store/dynamodb_requests.h"

namespace leasehold::store_contract {
namespace {

using base::Duration;
using Kind = DynamoDbServer::Kind;

class DynamoDbStoreTest : public ContractTest {
 protected:
  DynamoDbServer& Server() { return static_cast<DynamoDbHarness&>(*harness_).server(); }
  const std::string& Table() { return static_cast<DynamoDbHarness&>(*harness_).table(); }

  // Opens a store on `table`; what Open said. It is closed by TearDown.
  base::Status OpenOn(const std::string& table, bool create_table,
                      const store::DynamoDbTuning& tuning = {}) {
    store::DynamoDbOptions options;
    options.table = table;
    options.create_table = create_table;
    stores_.push_back(store::MakeDynamoDbStore(loop_, options, tuning, TestCredentials(loop_),
                                               EndpointOf(Server()), "contract", *log_));
    std::optional<base::Status> opened;
    stores_.back()->Open([](std::string_view, bool, const std::string&) {},
                         [&opened](base::Status status) { opened = std::move(status); });
    EXPECT_TRUE(RunUntil([&opened] { return opened.has_value(); })) << "Open never called back";
    return opened.value_or(base::Status(base::Error{}));
  }
  void MakeTable(const std::string& table, const std::string& attributes,
                 const std::string& schema) {
    const auto made =
        Server().Call("CreateTable", R"({"BillingMode":"PAY_PER_REQUEST","TableName":")" + table +
                                         R"(","AttributeDefinitions":[)" + attributes +
                                         R"(],"KeySchema":[)" + schema + "]}");
    EXPECT_TRUE(made.ok()) << made.error().message;
  }
  static std::string Attribute(const std::string& name, const std::string& type) {
    return R"({"AttributeName":")" + name + R"(","AttributeType":")" + type + R"("})";
  }
  static std::string Key(const std::string& name, const std::string& type) {
    return R"({"AttributeName":")" + name + R"(","KeyType":")" + type + R"("})";
  }
  void ExpectRefused(const std::string& table, const std::string& sentence) {
    const base::Status opened = OpenOn(table, true);
    ASSERT_FALSE(opened.ok()) << table;
    EXPECT_EQ(opened.error().code, base::ErrorCode::kRefused);
    EXPECT_NE(opened.error().message.find(sentence), std::string::npos) << opened.error().message;
  }
  // All of them try for it at once; how many got it.
  int Race(const std::string& lease, const std::optional<lease::Version>& expected, uint64_t token,
           int candidates, lease::Version& winner) {
    int answered = 0;
    int applied = 0;
    for (int i = 0; i < candidates; ++i) {
      lease::Record record = SomeRecord(lease, token, token);
      record.process_id = "p-" + std::to_string(i);
      stores_[static_cast<size_t>(i) % stores_.size()]->CompareAndSet(
          lease, expected, record, kPatience, [&](const Cas& result) {
            ++answered;
            if (result.outcome != Cas::Outcome::kApplied) {
              EXPECT_EQ(Word(result.outcome), "conflict") << result.error;
              return;
            }
            ++applied;
            winner = result.version;
          });
    }
    EXPECT_TRUE(RunUntil([&] { return answered == candidates; }, kPatience * 2));
    return applied;
  }

  std::unique_ptr<observe::Log> log_ = observe::Log::Silent();
};

class DynaliteTest : public DynamoDbStoreTest {};

TEST_P(DynaliteTest, OfFiftyCandidatesOneWinsInEachOfAHundredRounds) {
  for (int i = 1; i < 10; ++i) OpenStore("contract", "p-" + std::to_string(i));
  std::optional<lease::Version> current;
  for (uint64_t round = 1; round <= 100; ++round) {
    lease::Version winner;
    ASSERT_EQ(Race("orders", current, round, 50, winner), 1) << "round " << round;
    const Read read = ReadNow(store_, "orders");
    ASSERT_EQ(read.version, winner) << "who was told that it won is in the record";
    current = winner;
  }
}

TEST_P(DynaliteTest, ATableThatIsMissingIsMadeOnceByTwoCreators) {
  store::DynamoDbTuning tuning;
  tuning.create_poll = Duration::Millis(5);
  const std::string table = Table() + "-new";
  int opened = 0;
  for (int i = 0; i < 2; ++i) {
    store::DynamoDbOptions options;
    options.table = table;
    options.create_table = true;
    stores_.push_back(store::MakeDynamoDbStore(loop_, options, tuning, TestCredentials(loop_),
                                               EndpointOf(Server()), "contract", *log_));
    stores_.back()->Open([](std::string_view, bool, const std::string&) {},
                         [&opened](const base::Status& status) {
                           EXPECT_TRUE(status.ok()) << status.error().message;
                           ++opened;
                         });
  }
  ASSERT_TRUE(RunUntil([&opened] { return opened == 2; }));
  const Cas made = CasNow(stores_.back().get(), "orders", std::nullopt, SomeRecord("orders"));
  EXPECT_EQ(Word(made.outcome), "applied") << made.error;
}

TEST_P(DynamoDbStoreTest, ATableThatIsMissingIsRefusedAtStartUnlessItShallBeMade) {
  const base::Status opened = OpenOn("no-such-table", false);
  ASSERT_FALSE(opened.ok());
  EXPECT_EQ(opened.error().code, base::ErrorCode::kRefused);
  EXPECT_NE(opened.error().message.find("no-such-table"), std::string::npos);
  EXPECT_NE(opened.error().message.find("create_table"), std::string::npos);
  EXPECT_TRUE(OpenOn(Table() + "-made", true).ok());
}

TEST_P(DynamoDbStoreTest, ATableWithAnotherKeyIsRefusedAtStart) {
  MakeTable(Table() + "-id", Attribute("id", "S"), Key("id", "HASH"));
  ExpectRefused(Table() + "-id", "The provided key element does not match the schema");
}

TEST_P(DynaliteTest, ATableWithASortKeyOrAKeyOfNumbersIsRefusedAtStart) {
  MakeTable(Table() + "-sort", Attribute("pk", "S") + "," + Attribute("sk", "S"),
            Key("pk", "HASH") + "," + Key("sk", "RANGE"));
  ExpectRefused(Table() + "-sort", "no sort key");
  MakeTable(Table() + "-number", Attribute("pk", "N"), Key("pk", "HASH"));
  ExpectRefused(Table() + "-number", "pk alone, a string");
}

TEST_P(DynamoDbStoreTest, WhatSomebodyWritesBesideTheRecordOutlivesRenewals) {
  lease::Version version = Create(SomeRecord("orders"));
  const auto noted = Server().Call(
      "UpdateItem", R"({"TableName":")" + Table() +
                        R"(","Key":{"pk":{"S":"contract:lease:orders"}},)"
                        R"("UpdateExpression":"SET note = :n",)"
                        R"("ExpressionAttributeValues":{":n":{"S":"ask Ana first"}}})");
  ASSERT_TRUE(noted.ok()) << noted.error().message;
  for (uint64_t beat = 2; beat < 5; ++beat) {  // by a holder that knows nothing of the note
    const Cas renewed = CasNow(store_, "orders", version, SomeRecord("orders", 1, beat));
    ASSERT_EQ(Word(renewed.outcome), "applied") << renewed.error;
    version = renewed.version;
  }
  EXPECT_EQ(ReadNow(store_, "orders").record.unknown.at("note"), R"({"S":"ask Ana first"})");
}

TEST_P(DynamoDbStoreTest, ARecordOfAHigherFormatIsNotOverwrittenOnItsOwnVersion) {
  lease::Record record = SomeRecord("orders", 3, 4);
  record.format = lease::kRecordFormat + 1;
  ASSERT_TRUE(harness_->WriteRecord("contract", "orders", record).ok());
  const Cas answer =
      CasNow(store_, "orders", lease::MakeVersion(record), SomeRecord("orders", 4, 5));
  EXPECT_EQ(Word(answer.outcome), "refused") << answer.error;
  EXPECT_EQ(ReadNow(store_, "orders").record.format, lease::kRecordFormat + 1);
}

TEST_P(DynamoDbStoreTest, PeersAndFormerThatAreGoneAreGoneFromTheItem) {
  lease::Record record = SomeRecord("orders");
  record.former = lease::MakeFormer(1, {"n", "p0", 0, true});
  const lease::Version version = Create(record);
  record.beat = 2;
  record.peers.clear();
  record.former.clear();
  ASSERT_EQ(Word(CasNow(store_, "orders", version, record).outcome), "applied");
  EXPECT_EQ(ReadNow(store_, "orders").record, record);
}

TEST_P(DynamoDbStoreTest, TheServicesClockComesWithEachAnswer) {
  const Cas made = CasNow(store_, "orders", std::nullopt, SomeRecord("orders"));
  ASSERT_TRUE(made.store_unix_ms.has_value());
  const int64_t wall = loop::Loop::WallNow().unix_ms;
  EXPECT_NEAR(static_cast<double>(*made.store_unix_ms), static_cast<double>(wall), 5000);
  EXPECT_TRUE(ReadNow(store_, "orders").store_unix_ms.has_value());
}

// README.md, "DynamoDB: what it costs": a read and a write of a lease are one unit each.
TEST_P(DynaliteTest, AReadAndAWriteOfALeaseCostOneUnitEach) {
  lease::Record record = SomeRecord("orders");
  record.peers = {{"web", "10.0.0.7:8081"}, {"ingest", "10.0.0.7:8082"}};
  record.former = lease::MakeFormer(1, {"orders-0", std::string(32, 'a'), 0, true});
  record.process_id = std::string(32, 'b');
  Create(record);
  const auto cost = [this](const std::string& operation, std::string body) {
    body.insert(body.size() - 1, R"(,"ReturnConsumedCapacity":"TOTAL")");
    const auto answer = Server().Call(operation, body);
    EXPECT_TRUE(answer.ok()) << answer.error().message;
    const auto json = proto::Json::Parse(*answer);
    return json->Find("ConsumedCapacity")->Double("CapacityUnits").value_or(0);
  };
  const std::string key = store::DynamoDbKeyOf("contract", "orders");
  EXPECT_EQ(cost(std::string(store::kGetItem), store::GetItemBody(Table(), key)), 1.0);
  const lease::Version version = lease::MakeVersion(record);
  record.beat = 2;
  const auto write = store::CompareAndSetBody(Table(), key, version, record);
  EXPECT_EQ(cost(std::string(store::kUpdateItem), *write), 1.0);
}

HarnessFactory Make(Kind kind) {
  return [kind] { return std::make_unique<DynamoDbHarness>(kind); };
}
std::string Name(const ::testing::TestParamInfo<HarnessFactory>& param) {
  return param.index == 0 ? "Dynalite" : "Moto";
}
INSTANTIATE_TEST_SUITE_P(DynamoDb, DynamoDbStoreTest,
                         ::testing::Values(Make(Kind::kDynalite), Make(Kind::kMoto)), Name);
// moto counts no whole units, checks no composed key, and takes minutes for the race.
INSTANTIATE_TEST_SUITE_P(DynamoDb, DynaliteTest, ::testing::Values(Make(Kind::kDynalite)), Name);

}  // namespace
}  // namespace leasehold::store_contract

// DynamoDbFixture: a loop, adapters on it, and blocking-looking calls for the tests of the dynamodb
// adapter on a service of the test's own (dynamodb_fake.h).
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "dynamodb_fake.h"
#include "lib/fake_credentials.h"
#include "lib/loop_fixture.h"
#include "observe/log.h"
#include "store/dynamodb_record.h"
#include "store/dynamodb_store.h"

namespace leasehold::store {

class DynamoDbFixture : public testing::LoopFixture {
 protected:
  using Read = ReadResult::Outcome;
  using Cas = CasResult::Outcome;
  static constexpr base::Duration kCall = base::Duration::Seconds(5);

  void SetUp() override {
    fake_ = std::make_unique<FakeDynamoDb>(loop_);
    credentials_ = std::make_shared<testing::FakeCredentials>(loop_);
    options_.table = "leases";
  }
  void TearDown() override {
    while (!stores_.empty()) Close(stores_.back().get());
  }

  LeaseStore* Make() {
    aws::Endpoint endpoint;
    endpoint.tls = false;
    endpoint.address = fake_->address();
    endpoint.host_header = endpoint.address.ToString();
    endpoint.region = "us-east-1";
    endpoint.service = "dynamodb";
    stores_.push_back(
        MakeDynamoDbStore(loop_, options_, tuning_, credentials_, endpoint, "t", *log_));
    return stores_.back().get();
  }
  base::Status OpenNow(LeaseStore* store) {
    std::optional<base::Status> opened;
    store->Open(
        [this](std::string_view kind, bool active, const std::string& sentence) {
          troubles_.emplace_back(std::string(kind), active, sentence);
        },
        [&opened](base::Status status) { opened = std::move(status); });
    EXPECT_TRUE(RunUntil([&] { return opened.has_value(); })) << "Open never called back";
    return opened.value_or(base::Status(base::Error{}));
  }
  // A store that is open on a service that answers "{}".
  LeaseStore* Opened() {
    LeaseStore* store = Make();
    const base::Status opened = OpenNow(store);
    EXPECT_TRUE(opened.ok()) << opened.error().message;
    fake_->requests.clear();
    return store;
  }
  void Close(LeaseStore* store) {
    bool closed = false;
    store->Close([&closed] { closed = true; });
    EXPECT_TRUE(RunUntil([&closed] { return closed; }));
    std::erase_if(stores_, [store](const auto& owned) { return owned.get() == store; });
  }

  ReadResult ReadNow(LeaseStore* store, base::Duration timeout = kCall) {
    std::optional<ReadResult> answer;
    store->Read("orders", timeout, [&answer](ReadResult result) { answer = std::move(result); });
    EXPECT_TRUE(RunUntil([&answer] { return answer.has_value(); })) << "Read never called back";
    return answer.value_or(ReadResult{});
  }
  CasResult CasNow(LeaseStore* store, const std::optional<lease::Version>& expected,
                   const lease::Record& record, base::Duration timeout = kCall) {
    std::optional<CasResult> answer;
    store->CompareAndSet("orders", expected, record, timeout,
                         [&answer](CasResult result) { answer = std::move(result); });
    EXPECT_TRUE(RunUntil([&answer] { return answer.has_value(); })) << "CAS never called back";
    return answer.value_or(CasResult{});
  }
  base::Status ProbeNow(LeaseStore* store) {
    std::optional<base::Status> answer;
    store->ProbeWrite("orders", kCall,
                      [&answer](base::Status status) { answer = std::move(status); });
    EXPECT_TRUE(RunUntil([&answer] { return answer.has_value(); })) << "no probe answer";
    return answer.value_or(base::Status(base::Error{}));
  }

  static lease::Record Beat(uint64_t beat, const std::string& process = "p-1") {
    lease::Record record;
    record.lease = "orders";
    record.node_id = "node-a";
    record.process_id = process;
    record.token = 1;
    record.beat = beat;
    record.ttl_ms = 10000;
    return record;
  }
  static std::string Item(const lease::Record& record) {
    std::string text = R"({"pk":{"S":"t:lease:orders"})";
    const auto attributes = EncodeItem(record);
    for (const auto& [name, value] : *attributes) text += ",\"" + name + "\":" + value;
    return text + "}";
  }
  // An error as the service words it.
  static FakeAnswer Error(const std::string& code, const std::string& message = "",
                          int status = 400) {
    FakeAnswer answer;
    answer.status = status;
    answer.body = R"({"__type":"com.amazonaws.dynamodb.v20120810#)" + code + R"(","message":")" +
                  message + "\"}";
    return answer;
  }
  static FakeAnswer Applied(const lease::Record& record) {
    FakeAnswer answer;
    answer.body = R"({"Attributes":)" + Item(record) + "}";
    return answer;
  }
  static FakeAnswer Shown(const lease::Record& record) {
    FakeAnswer answer;
    answer.body = R"({"Item":)" + Item(record) + "}";
    return answer;
  }

  std::unique_ptr<observe::Log> log_ = observe::Log::Silent();
  std::unique_ptr<FakeDynamoDb> fake_;
  std::shared_ptr<testing::FakeCredentials> credentials_;
  DynamoDbOptions options_;
  DynamoDbTuning tuning_;
  std::vector<std::unique_ptr<LeaseStore>> stores_;
  std::vector<std::tuple<std::string, bool, std::string>> troubles_;
};

}  // namespace leasehold::store

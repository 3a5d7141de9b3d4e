// The contract suite over the dynamodb adapter: dynalite, and moto.
#include "dynamodb_harness.h"

#include <map>
#include <utility>

#include "base/json_writer.h"
#include "contract_fixture.h"
#include "loop/lifetime.h"
#include "store/dynamodb_record.h"
#include "store/dynamodb_requests.h"

namespace leasehold::store_contract {
namespace {

using Kind = DynamoDbServer::Kind;

class FixedCredentials final : public aws::CredentialsProvider {
 public:
  explicit FixedCredentials(loop::Loop& loop) : poster_(loop) {}
  void Get(Callback done) override {
    poster_.Post([this, done = std::move(done)] { done(credentials_); });
  }
  void NoteRefused(const aws::SharedCredentials&) override {}
  std::string Describe() const override { return "the test"; }

 private:
  loop::Poster poster_;
  const aws::SharedCredentials credentials_ = std::make_shared<const aws::Credentials>(
      aws::Credentials{{"AKIDEXAMPLE", "a-secret-of-the-test", ""}, std::nullopt, "the test"});
};

// The program's server of this kind, started by the first test that needs it.
std::shared_ptr<DynamoDbServer>& SharedServer(Kind kind) {
  static std::map<Kind, std::shared_ptr<DynamoDbServer>> servers;
  return servers[kind];
}

std::string NextTable() {
  static int number = 0;
  return "leases-" + std::to_string(++number);
}

}  // namespace

std::shared_ptr<aws::CredentialsProvider> TestCredentials(loop::Loop& loop) {
  return std::make_shared<FixedCredentials>(loop);
}

aws::Endpoint EndpointOf(const DynamoDbServer& server) {
  aws::Endpoint endpoint;
  endpoint.tls = false;
  endpoint.address = testing::TcpAddress("127.0.0.1", server.port());
  endpoint.host_header = endpoint.address.ToString();
  endpoint.region = "us-east-1";
  endpoint.service = "dynamodb";
  return endpoint;
}

base::Status DynamoDbHarness::Start() {
  std::shared_ptr<DynamoDbServer>& shared = SharedServer(kind_);
  if (shared == nullptr || !shared->running()) {
    base::Result<std::unique_ptr<DynamoDbServer>> started = DynamoDbServer::Start(kind_);
    if (!started) return started.error();
    shared = std::move(*started);
  }
  server_ = shared;
  table_ = NextTable();
  return server_->CreateTable(table_);
}

std::unique_ptr<store::LeaseStore> DynamoDbHarness::MakeStore(loop::Loop& loop,
                                                              const std::string& prefix,
                                                              const std::string&) {
  store::DynamoDbOptions options;
  options.table = table_;
  return store::MakeDynamoDbStore(loop, options, TestCredentials(loop), EndpointOf(*server_),
                                  prefix, *log_);
}

base::Status DynamoDbHarness::Put(const std::string& key, const std::string& attributes) {
  std::string body;
  base::JsonWriter json(body);
  json.BeginObject().Member("TableName", table_).Key("Item").BeginObject();
  json.Key(store::kDynamoDbKey).BeginObject().Member("S", key).EndObject();
  json.EndObject().EndObject();
  if (!attributes.empty()) body.insert(body.size() - 2, attributes);
  const base::Result<std::string> put = server_->Call("PutItem", body);
  return put ? base::Status() : base::Status(put.error());
}

base::Status DynamoDbHarness::WriteGarbage(const std::string& prefix, const std::string& lease) {
  return Put(store::DynamoDbKeyOf(prefix, lease), R"(,"token":{"N":"1"},"shopping":{"S":"milk"})");
}

base::Status DynamoDbHarness::WriteRecord(const std::string& prefix, const std::string& lease,
                                          const lease::Record& record) {
  const base::Result<store::DynamoDbAttributes> known = store::EncodeItem(record);
  if (!known) return known.error();
  std::string attributes;
  for (const auto& [name, value] : *known) attributes += ",\"" + name + "\":" + value;
  for (const auto& [name, value] : record.unknown) attributes += ",\"" + name + "\":" + value;
  return Put(store::DynamoDbKeyOf(prefix, lease), attributes);
}

base::Status DynamoDbHarness::Kill() {
  server_->Kill();
  return {};
}

base::Status DynamoDbHarness::Restart() {
  if (base::Status status = server_->Restart(); !status) return status;
  // moto has forgotten everything.
  return kind_ == Kind::kMoto ? server_->CreateTable(table_) : base::Status();
}

namespace {

HarnessFactory Make(Kind kind) {
  return [kind] { return std::make_unique<DynamoDbHarness>(kind); };
}

std::string Name(const ::testing::TestParamInfo<HarnessFactory>& param) {
  return param.index == 0 ? "Dynalite" : "Moto";
}

const auto kServers = ::testing::Values(Make(Kind::kDynalite), Make(Kind::kMoto));
INSTANTIATE_TEST_SUITE_P(DynamoDb, ContractTest, kServers, Name);
INSTANTIATE_TEST_SUITE_P(DynamoDb, ServerContractTest, kServers, Name);

}  // namespace
}  // namespace leasehold::store_contract

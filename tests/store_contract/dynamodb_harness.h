// DynamoDbHarness: the contract suite's harness over an emulator: a table of its own for each test.
// One server of a kind serves all tests of the program: moto takes seconds to start, and a table is
// as good as a server to keep tests apart. Owned by its test.
#pragma once

#include <memory>
#include <string>

#include "aws/credentials.h"
#include "aws/endpoint.h"
#include "dynamodb_server.h"
#include "harness.h"
#include "observe/log.h"
#include "store/dynamodb_store.h"

namespace leasehold::store_contract {

// Access key and secret that emulators take.
std::shared_ptr<aws::CredentialsProvider> TestCredentials(loop::Loop& loop);
aws::Endpoint EndpointOf(const DynamoDbServer& server);

class DynamoDbHarness final : public Harness {
 public:
  explicit DynamoDbHarness(DynamoDbServer::Kind kind) : kind_(kind) {}

  base::Status Start() override;
  std::unique_ptr<store::LeaseStore> MakeStore(loop::Loop& loop, const std::string& prefix,
                                               const std::string& process_id) override;
  base::Status WriteGarbage(const std::string& prefix, const std::string& lease) override;
  base::Status WriteRecord(const std::string& prefix, const std::string& lease,
                           const lease::Record& record) override;
  std::string UnknownValue() const override {
    return R"({"M":{"any":{"L":[{"N":"1.5"},{"BOOL":true}]},"bytes":{"B":"AAEC/w=="}}})";
  }
  bool HasServer() const override { return true; }
  base::Status Kill() override;
  base::Status Freeze() override { return server_->Freeze(); }
  base::Status Thaw() override { return server_->Thaw(); }
  base::Status Restart() override;

  DynamoDbServer& server() { return *server_; }
  const std::string& table() const { return table_; }

 private:
  base::Status Put(const std::string& key, const std::string& attributes);

  const DynamoDbServer::Kind kind_;
  std::unique_ptr<observe::Log> log_ = observe::Log::Silent();
  std::shared_ptr<DynamoDbServer> server_;
  std::string table_;
};

}  // namespace leasehold::store_contract

// The contract suite over the redis adapter: a real redis-server for each test, plain and with TLS.
#include <memory>
#include <string>

#include "contract_fixture.h"
#include "lib/redis_server.h"
#include "observe/log.h"
#include "store/redis_record.h"
#include "store/redis_store.h"

namespace leasehold::store_contract {
namespace {

using testing::RedisCerts;
using testing::RedisServer;
using testing::RedisServerOptions;

class RedisHarness final : public Harness {
 public:
  explicit RedisHarness(bool tls) : tls_(tls), log_(observe::Log::Silent()) {}

  base::Status Start() override {
    RedisServerOptions options;
    if (tls_) {
      base::Result<std::unique_ptr<RedisCerts>> certs = RedisCerts::Make();
      if (!certs.ok()) return certs.error();
      certs_ = std::move(*certs);
      options.certs = certs_.get();
    }
    base::Result<std::unique_ptr<RedisServer>> server = RedisServer::Start(options);
    if (!server.ok()) return server.error();
    server_ = std::move(*server);
    return {};
  }

  std::unique_ptr<store::LeaseStore> MakeStore(loop::Loop& loop, const std::string& prefix,
                                               const std::string&) override {
    store::RedisOptions options;
    options.url = tls_ ? server_->tls_url() : server_->url();
    if (tls_) options.tls_ca_file = certs_->ca();
    return store::MakeRedisStore(loop, options, prefix, *log_);
  }

  base::Status WriteGarbage(const std::string& prefix, const std::string& lease) override {
    return Do({"SET", store::NamesOf(prefix, lease).key, "garbage"});
  }

  base::Status WriteRecord(const std::string& prefix, const std::string& lease,
                           const lease::Record& record) override {
    const std::string key = store::NamesOf(prefix, lease).key;
    if (base::Status status = Do({"DEL", key}); !status.ok()) return status;
    std::vector<std::string> words = {"HSET", key};
    for (const auto& [name, value] : store::EncodeRecord(record)) {
      words.push_back(name);
      words.push_back(value);
    }
    return Do(words);
  }

  std::string UnknownValue() const override { return std::string("any bytes \0\r\n\xff", 14); }
  bool HasServer() const override { return true; }
  base::Status Kill() override { return server_->Kill9(); }
  base::Status Freeze() override { return server_->Stop(); }
  base::Status Thaw() override {  // after a Kill there is nothing to thaw
    return server_->pid() > 0 ? server_->Cont() : base::Status();
  }
  base::Status Restart() override { return server_->Restart(); }

 private:
  base::Status Do(const std::vector<std::string>& words) {
    const base::Result<proto::Reply> reply = server_->Command(words);
    if (!reply.ok()) return reply.error();
    if (!reply->is_error()) return {};
    return base::Error{base::ErrorCode::kRefused, reply->text()};
  }

  bool tls_;
  std::unique_ptr<observe::Log> log_;
  std::unique_ptr<RedisCerts> certs_;
  std::unique_ptr<RedisServer> server_;
};

HarnessFactory Make(bool tls) {
  return [tls] { return std::make_unique<RedisHarness>(tls); };
}

std::string Name(const ::testing::TestParamInfo<HarnessFactory>& param) {
  return param.index == 0 ? "Plain" : "Tls";
}

const auto kServers = ::testing::Values(Make(false), Make(true));
INSTANTIATE_TEST_SUITE_P(Redis, ContractTest, kServers, Name);
INSTANTIATE_TEST_SUITE_P(Redis, PushContractTest, kServers, Name);
INSTANTIATE_TEST_SUITE_P(Redis, ServerContractTest, kServers, Name);
INSTANTIATE_TEST_SUITE_P(Redis, ServerPushContractTest, kServers, Name);

}  // namespace
}  // namespace leasehold::store_contract

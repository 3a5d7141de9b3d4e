#include "store/redis_target.h"

#include "base/text.h"
#include "proto/url.h"
#include "store/redis_store.h"

namespace leasehold::store {
namespace {

using base::Duration;
using base::Error;
using base::ErrorCode;
using base::Result;
using base::Status;

constexpr uint64_t kDatabaseMax = 65535;  // Redis has 16 unless configured; nobody has more
constexpr int kReplicasMax = 64;          // far above any real replica set
constexpr Duration kTimeoutMin = Duration::Millis(10);
constexpr Duration kTimeoutMax = Duration::Seconds(60);

Error Bad(std::string message) { return {ErrorCode::kInvalid, std::move(message)}; }

Result<int> ParseDatabase(const proto::Url& url) {
  if (url.path.empty() || url.path == "/") return 0;
  const Result<uint64_t> number = base::ParseUint64(std::string_view(url.path).substr(1));
  if (!number || *number > kDatabaseMax) {
    return Bad("redis.url = \"" + url.ToString() + "\": \"" + base::Printable(url.path) +
               "\" is not a database number; write \"/0\" to \"/65535\", or nothing for 0");
  }
  return static_cast<int>(*number);
}

Status CheckTimeout(std::string_view key, Duration value) {
  if (value >= kTimeoutMin && value <= kTimeoutMax) return {};
  return Bad("redis." + std::string(key) + " = \"" + base::FormatDuration(value) +
             "\" must be from 10ms to 60s");
}

Status CheckTls(const RedisOptions& options, bool tls) {
  const bool any = !options.tls_ca_file.empty() || !options.tls_cert_file.empty() ||
                   !options.tls_key_file.empty() || !options.tls_server_name.empty() ||
                   !options.tls_verify;
  if (any && !tls) {
    return Bad(
        "redis.tls_* options are set, but redis.url begins with redis:// and would send "
        "everything in the clear; write rediss://, or remove them");
  }
  if (options.tls_cert_file.empty() != options.tls_key_file.empty()) {
    return Bad("redis.tls_cert_file and redis.tls_key_file belong together: give both or neither");
  }
  return {};
}

// Redis' AUTH wants a password with every user name.
Status CheckCredentials(const RedisTarget& target) {
  if (target.user.empty() || target.authenticates()) return {};
  return Bad("redis user \"" + base::Printable(target.user) +
             "\" has no password; set redis.password_file or redis.password");
}

}  // namespace

Result<RedisTarget> ResolveRedisTarget(const RedisOptions& options) {
  const Result<proto::Url> url = proto::ParseUrl(options.url);
  if (!url) return Bad("redis.url: " + url.error().message);
  if (url->scheme != "redis" && url->scheme != "rediss") {
    return Bad("redis.url = \"" + url->ToString() + "\" must begin with redis:// or rediss://");
  }
  const Result<int> database = ParseDatabase(*url);
  if (!database) return database.error();
  RedisTarget target;
  target.address = url->address();
  target.database = *database;
  target.tls = url->scheme == "rediss";
  if (Status status = CheckTls(options, target.tls); !status) return status.error();
  target.tls_options = {options.tls_server_name.empty() ? url->host : options.tls_server_name,
                        options.tls_ca_file, options.tls_cert_file, options.tls_key_file,
                        options.tls_verify};
  target.user = options.username.empty() ? url->user : options.username;
  target.password = options.password.empty() ? url->password : options.password;
  target.password_file = options.password_file;
  target.name = "redis at " + target.address.ToString() + "/" + std::to_string(target.database);
  if (Status status = CheckCredentials(target); !status) return status.error();
  return target;
}

RedisTuning TuningOf(const RedisOptions& options) {
  RedisTuning tuning;
  tuning.connect_timeout = options.connect_timeout;
  tuning.command_timeout = options.command_timeout;
  tuning.ping_timeout = base::Min(tuning.ping_timeout, options.command_timeout);
  return tuning;
}

Status ValidateRedisOptions(const RedisOptions& options) {
  if (const Result<RedisTarget> target = ResolveRedisTarget(options); !target) {
    return target.error();
  }
  if (Status status = CheckTimeout("connect_timeout", options.connect_timeout); !status) {
    return status;
  }
  if (Status status = CheckTimeout("command_timeout", options.command_timeout); !status) {
    return status;
  }
  if (options.wait_replicas < 0 || options.wait_replicas > kReplicasMax) {
    return Bad("redis.wait_replicas = " + std::to_string(options.wait_replicas) +
               " must be from 0 (do not wait) to 64");
  }
  return {};
}

}  // namespace leasehold::store

// Options of the store, one struct per adapter, as `sidecar.conf` gives them.
#pragma once

#include <cstdint>
#include <string>

#include "base/time.h"

namespace leasehold::store {

enum class Durability { kStrict, kProcessCrashSafe };

struct FileOptions {
  std::string dir = "/var/lib/leasehold/store";
  Durability durability = Durability::kStrict;
};

struct RedisOptions {
  std::string url =
      "redis://127.0.0.1:6379/0";  // redis:// or rediss://, [user[:password]@]host[:port][/db]
  std::string username;            // overrides the URL's
  std::string password;            // overrides the URL's; a secret
  std::string password_file;       // read again at each connect; overrides both
  base::Duration connect_timeout = base::Duration::Seconds(2);
  base::Duration command_timeout =
      base::Duration::Seconds(5);  // upper bound; a call's own time-out is usually less
  bool allow_eviction = false;
  int wait_replicas = 0;      // 0: do not WAIT
  std::string tls_ca_file;    // empty: the system's
  std::string tls_cert_file;  // client certificate, with tls_key_file
  std::string tls_key_file;
  std::string tls_server_name;  // empty: the URL's host
  bool tls_verify = true;
};

struct DynamoDbOptions {
  std::string table = "leasehold";  // with the key "pk" (string)
  std::string region;               // empty: the environment's or the profile's
  std::string endpoint;             // empty: the region's own
  std::string profile;              // of the shared AWS files; empty: the environment's
  base::Duration connect_timeout = base::Duration::Seconds(2);
  base::Duration command_timeout =
      base::Duration::Seconds(5);  // upper bound; a call's own time-out is usually less
  bool create_table = false;       // for development: billed per request
};

struct Options {
  std::string type = "file";  // "file" | "redis" | "dynamodb"
  std::string prefix = "leasehold";
  FileOptions file;
  RedisOptions redis;
  DynamoDbOptions dynamodb;
};

}  // namespace leasehold::store

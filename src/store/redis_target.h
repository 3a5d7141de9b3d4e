// RedisTarget: RedisOptions turned into what a connection needs, and the connection's own limits.
// Pure values: nothing here connects. Owned by the adapter; connections borrow it. Invariant: a
// target that ResolveRedisTarget gave is usable; secrets are never part of `name`.
#pragma once

#include <string>

#include "base/address.h"
#include "base/result.h"
#include "base/time.h"
#include "loop/connect.h"
#include "proto/resp.h"
#include "store/options.h"

namespace leasehold::store {

struct RedisTarget {
  base::Address address;
  bool tls = false;
  loop::TlsOptions tls_options;
  std::string user;           // empty: the server's default user
  std::string password;       // unless password_file is given
  std::string password_file;  // read again at each connect
  int database = 0;
  std::string name;  // "redis at 10.0.0.7:6379/0", for messages

  bool authenticates() const { return !password.empty() || !password_file.empty(); }
};

// Times of one connection. The first two come from the configuration.
struct RedisTuning {
  base::Duration connect_timeout = base::Duration::Seconds(2);  // resolve to greeting's last answer
  base::Duration command_timeout = base::Duration::Seconds(5);
  // The first attempt after a steady connection is immediate; then these, doubled, with half of it
  // random. Half a second at most, so that a call finds out about a refusing server within one.
  base::Duration backoff_first = base::Duration::Millis(25);
  base::Duration backoff_max = base::Duration::Millis(500);
  // A connection that lived this long resets the back-off; a shorter one is flapping.
  base::Duration steady_after = base::Duration::Seconds(1);
  // Hints: silence after which the server is asked, and how long it may take to answer. A frozen
  // server is so noticed in two seconds for 14 bytes a second; standbys poll besides.
  base::Duration ping_interval = base::Duration::Seconds(1);
  base::Duration ping_timeout = base::Duration::Seconds(1);
  // A refused SUBSCRIBE (no permission) is tried again this seldom: each one is a line in the
  // server's ACL log.
  base::Duration refused_subscribe_pause = base::Duration::Seconds(30);
  base::Duration policy_interval = base::Duration::Seconds(60);         // DESIGN 3: every minute
  base::Duration policy_interval_blocked = base::Duration::Seconds(5);  // while we refuse to write
  proto::RespLimits reply_limits;
};

// kInvalid with a sentence that names the option. Reads no file.
base::Result<RedisTarget> ResolveRedisTarget(const RedisOptions& options);
RedisTuning TuningOf(const RedisOptions& options);

}  // namespace leasehold::store

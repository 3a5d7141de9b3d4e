// The `redis` adapter: a compare-and-set register per lease in a Redis (or compatible) server
// (DESIGN 3). A lease is the hash `<prefix>:lease:<name>`; one Lua script compares and writes it,
// so that nothing comes between; changes are published on `<prefix>:hint:<name>` for the watchers'
// own connection. Never Redis' expiry, never hiredis' connections. Owned by app; everything
// borrowed must outlive it. Invariant: a compare-and-set is sent once; only the server's NOSCRIPT,
// which proves that nothing ran, lets it be sent again with the script's text.
#pragma once

#include <memory>
#include <string>

#include "base/result.h"
#include "loop/loop.h"
#include "observe/log.h"
#include "store/lease_store.h"
#include "store/options.h"
#include "store/redis_target.h"

namespace leasehold::store {

// `options` must have passed ValidateRedisOptions (CHECKed).
std::unique_ptr<LeaseStore> MakeRedisStore(loop::Loop& loop, const RedisOptions& options,
                                           std::string prefix, observe::Log& log);
// The same with other times than the configuration's, for tests.
std::unique_ptr<LeaseStore> MakeRedisStore(loop::Loop& loop, const RedisOptions& options,
                                           const RedisTuning& tuning, std::string prefix,
                                           observe::Log& log);

// Pure: reads no file, resolves no name. The error names the option, its value and what is right.
base::Status ValidateRedisOptions(const RedisOptions& options);

}  // namespace leasehold::store

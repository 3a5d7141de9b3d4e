#include "app/make_store.h"

#include "base/check.h"
#include "store/file_store.h"
#include "store/redis_store.h"

namespace leasehold::app {

std::unique_ptr<store::LeaseStore> MakeStore(loop::Loop& loop, const store::Options& options,
                                             const std::string& process_id, observe::Log& log) {
  if (options.type == "redis")
    return store::MakeRedisStore(loop, options.redis, options.prefix, log);
  CHECK(options.type == "file", "config lets only known store types through");
  return store::MakeFileStore(loop, options.file, options.prefix, process_id, log);
}

}  // namespace leasehold::app

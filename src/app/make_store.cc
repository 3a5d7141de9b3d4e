#include "app/make_store.h"

#include <utility>

#include "base/check.h"
#include "store/dynamodb_store.h"
#include "store/file_store.h"
#include "store/redis_store.h"

namespace leasehold::app {
namespace {

base::Result<std::unique_ptr<store::LeaseStore>> MakeDynamoDb(loop::Loop& loop,
                                                              const store::Options& options,
                                                              AwsAccess& aws, observe::Log& log) {
  const store::DynamoDbOptions& dynamodb = options.dynamodb;
  base::Result<AwsAccess::Service> service =
      aws.For({"dynamodb", dynamodb.region, dynamodb.endpoint, dynamodb.profile});
  if (!service) return service.error();
  return store::MakeDynamoDbStore(loop, dynamodb, service->credentials, service->endpoint,
                                  options.prefix, log);
}

}  // namespace

base::Result<std::unique_ptr<store::LeaseStore>> MakeStore(loop::Loop& loop,
                                                           const store::Options& options,
                                                           const std::string& process_id,
                                                           AwsAccess& aws, observe::Log& log) {
  if (options.type == "dynamodb") return MakeDynamoDb(loop, options, aws, log);
  if (options.type == "redis")
    return store::MakeRedisStore(loop, options.redis, options.prefix, log);
  CHECK(options.type == "file", "config lets only known store types through");
  return store::MakeFileStore(loop, options.file, options.prefix, process_id, log);
}

}  // namespace leasehold::app

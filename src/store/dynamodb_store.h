// The `dynamodb` adapter: a compare-and-set register per lease in one DynamoDB table (DESIGN 3). A
// lease is one item under the key `pk`; one conditional UpdateItem compares and writes it, reads
// are consistent GetItems. No push: standbys poll. Never DynamoDB's own expiry (TTL), never a
// repeated write. It needs dynamodb:GetItem and dynamodb:UpdateItem on the table and nothing more
// (CreateTable only with create_table). Owned by app; everything borrowed must outlive it.
// Invariant: a compare-and-set is sent once, and is applied only where the answer shows the very
// attempt that was sent.
#pragma once

#include <memory>
#include <string>

#include "aws/credentials.h"
#include "aws/endpoint.h"
#include "base/result.h"
#include "base/time.h"
#include "loop/loop.h"
#include "observe/log.h"
#include "store/lease_store.h"
#include "store/options.h"

namespace leasehold::store {

// Times of the adapter's own, other than the configuration's. Tests shorten them.
struct DynamoDbTuning {
  // A new table is asked for so often until it is there, and at most so long. On-demand tables take
  // 5 to 30 s to become ACTIVE.
  base::Duration create_poll = base::Duration::Millis(500);
  base::Duration create_patience = base::Duration::Seconds(90);
  // Throttled this often within the window is trouble (store.degraded), until a window without.
  int throttles_for_trouble = 3;
  base::Duration throttle_window = base::Duration::Seconds(60);
};

// `options` must have passed ValidateDynamoDbOptions (CHECKed); `endpoint` is where they lead
// (aws::ResolveEndpoint), `credentials` whose (aws::MakeChain), shared with others.
std::unique_ptr<LeaseStore> MakeDynamoDbStore(loop::Loop& loop, const DynamoDbOptions& options,
                                              std::shared_ptr<aws::CredentialsProvider> credentials,
                                              aws::Endpoint endpoint, std::string prefix,
                                              observe::Log& log);
std::unique_ptr<LeaseStore> MakeDynamoDbStore(loop::Loop& loop, const DynamoDbOptions& options,
                                              const DynamoDbTuning& tuning,
                                              std::shared_ptr<aws::CredentialsProvider> credentials,
                                              aws::Endpoint endpoint, std::string prefix,
                                              observe::Log& log);

// Pure: reads no file, no environment, resolves no name. The error names the option, its value and
// what is right.
base::Status ValidateDynamoDbOptions(const DynamoDbOptions& options);

}  // namespace leasehold::store

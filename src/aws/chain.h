// The credential chain: the sources in the order of AWS's SDKs, the first one that is configured
// serves, and no other is tried when it fails (so that a broken role does not silently become
// another identity): environment; web identity (AWS_WEB_IDENTITY_TOKEN_FILE, AWS_ROLE_ARN); the
// profile of the shared files (static keys, web identity, credential_process, credential_source,
// role_arn with source_profile); container endpoint (AWS_CONTAINER_CREDENTIALS_RELATIVE_URI or
// _FULL_URI, with its token or token file); EC2 instance metadata (IMDSv2), unless
// AWS_EC2_METADATA_DISABLED. A profile that the options name goes before the environment's keys.
#pragma once

#include <memory>
#include <string>

#include "aws/credentials.h"
#include "aws/environment.h"
#include "base/random.h"
#include "loop/loop.h"
#include "observe/log.h"

namespace leasehold::aws {

struct ChainOptions {
  std::string profile;  // as sidecar.conf names it; empty: the environment's
  std::string region;   // for STS; empty: the environment's or the profile's
};

std::unique_ptr<CredentialsProvider> MakeChain(loop::Loop& loop, const ChainOptions& options,
                                               const Environment& environment, uint64_t seed,
                                               observe::Log& log);

}  // namespace leasehold::aws

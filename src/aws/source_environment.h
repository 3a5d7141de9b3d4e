// The environment's own credentials: AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN,
// and AWS_CREDENTIAL_EXPIRATION. Pure: a process's environment does not change.
#pragma once

#include <optional>

#include "aws/credentials.h"
#include "aws/environment.h"
#include "base/result.h"

namespace leasehold::aws {

// nullopt: it has none. kRefused: one half of a pair is missing.
std::optional<base::Result<Credentials>> EnvironmentCredentials(const Environment& environment);

}  // namespace leasehold::aws

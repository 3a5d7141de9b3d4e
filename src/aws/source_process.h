// credential_process: a command of the profile that prints credentials as JSON, version 1. Run
// without a shell, bounded in time and output. What it writes to standard error goes nowhere: it is
// not ours to judge whether that holds a secret.
#pragma once

#include <memory>
#include <string>

#include "aws/credentials_source.h"
#include "aws/source_context.h"

namespace leasehold::aws {

// `who` names the profile in errors and in Credentials::source. `context` outlives the fetch.
std::unique_ptr<Fetching> FetchFromProcess(SourceContext& context, const std::string& command,
                                           const std::string& who, FetchDone done);

}  // namespace leasehold::aws

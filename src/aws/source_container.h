// The container endpoint: of ECS (AWS_CONTAINER_CREDENTIALS_RELATIVE_URI) or of EKS Pod Identity
// and whoever speaks like it (AWS_CONTAINER_CREDENTIALS_FULL_URI), with the token of
// AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE, read for each fetch, or of
// AWS_CONTAINER_AUTHORIZATION_TOKEN.
//
// Invariant: the token goes to https, to this machine, or to the two addresses of AWS's own agents,
// and nowhere else.
#pragma once

#include <memory>

#include "aws/credentials_source.h"
#include "aws/environment.h"
#include "aws/source_context.h"

namespace leasehold::aws {

bool HasContainerEndpoint(const Environment& environment);
// `context` outlives the fetch.
std::unique_ptr<Fetching> FetchFromContainer(SourceContext& context, FetchDone done);

}  // namespace leasehold::aws

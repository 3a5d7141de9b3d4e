// EC2 instance metadata, version 2: a session token by PUT, the role's name, its credentials. There
// is no way back to version 1, which answers whoever can make a server fetch a URL. On a machine
// without it nothing answers: the time-outs are short.
#pragma once

#include <memory>

#include "aws/credentials_source.h"
#include "aws/profile.h"
#include "aws/source_context.h"

namespace leasehold::aws {

// `profile` may be null. `context` outlives the fetch.
std::unique_ptr<Fetching> FetchFromImds(SourceContext& context, const Profile* profile,
                                        FetchDone done);

}  // namespace leasehold::aws

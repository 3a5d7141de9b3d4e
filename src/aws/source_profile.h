// A profile of the shared files as a source of credentials: static keys, credential_process, a web
// identity, or a role taken with another profile's credentials (source_profile) or another source's
// (credential_source). The files are those that were read for this fetch.
#pragma once

#include <memory>
#include <string>

#include "aws/credentials_source.h"
#include "aws/profile.h"
#include "aws/source_context.h"

namespace leasehold::aws {

// Does the profile say anything of credentials? One with only a region does not.
bool HasCredentials(const Profile& profile);

// "profile \"orders\" of /root/.aws/credentials".
std::string ProfilePhrase(const std::string& name, const Profiles& profiles);

// `context` outlives the fetch. A name that is not there is kRefused.
std::unique_ptr<Fetching> FetchFromProfile(SourceContext& context,
                                           std::shared_ptr<const Profiles> profiles,
                                           const std::string& name, FetchDone done);

}  // namespace leasehold::aws

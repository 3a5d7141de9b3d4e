// AWS STS: a role's credentials for a web identity's token (unsigned), or for other credentials
// (signed). One fetch, with attempts where STS says that the trouble passes, and with a wrong clock
// corrected once from its Date.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "aws/credentials_source.h"
#include "aws/profile.h"
#include "aws/source_context.h"

namespace leasehold::aws {

struct RoleRequest {
  std::string role_arn;
  std::string session_name;                 // empty: one of our own
  std::string external_id;                  // AssumeRole only; empty: none
  std::optional<int64_t> duration_seconds;  // nullopt: STS's own, an hour
  // Exactly one of these two.
  std::string token_file;                   // of the web identity
  std::optional<proto::sigv4::Key> signer;  // AssumeRole
};

// `who` begins errors and becomes part of Credentials::source ("the environment", "profile ...").
// `context` outlives the fetch.
std::unique_ptr<Fetching> FetchFromSts(SourceContext& context, const Profiles& profiles,
                                       RoleRequest request, const std::string& who, FetchDone done);

// AssumeRole...Response -> ...Result -> Credentials. Errors repeat nothing of it.
base::Result<Credentials> ParseStsAnswer(std::string_view xml, const std::string& who);

}  // namespace leasehold::aws

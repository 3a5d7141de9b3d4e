#include "aws/source_environment.h"

#include "aws/source_json.h"

namespace leasehold::aws {

std::optional<base::Result<Credentials>> EnvironmentCredentials(const Environment& environment) {
  const auto id = environment.Get("AWS_ACCESS_KEY_ID");
  const auto secret = environment.Get("AWS_SECRET_ACCESS_KEY");
  if (!id && !secret) return std::nullopt;
  if (!id || !secret) {
    return base::Error{base::ErrorCode::kRefused,
                       std::string("the environment has ") +
                           (id ? "AWS_ACCESS_KEY_ID, but no AWS_SECRET_ACCESS_KEY"
                               : "AWS_SECRET_ACCESS_KEY, but no AWS_ACCESS_KEY_ID") +
                           "; both or neither would be right"};
  }
  Credentials credentials;
  credentials.key = {*id, *secret, environment.Get("AWS_SESSION_TOKEN").value_or("")};
  credentials.source = "the environment";
  if (base::Status status = CheckKey(credentials.key, credentials.source); !status) {
    return status.error();
  }
  if (const auto expiration = environment.Get("AWS_CREDENTIAL_EXPIRATION")) {
    credentials.expires_unix_ms = ParseInstantMs(*expiration);
    if (!credentials.expires_unix_ms) {
      return base::Error{base::ErrorCode::kInvalid,
                         "AWS_CREDENTIAL_EXPIRATION is no time, like \"2026-11-30T14:41:55Z\""};
    }
  }
  return credentials;
}

}  // namespace leasehold::aws

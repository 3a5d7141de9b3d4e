#include "aws/source_profile.h"

#include <optional>
#include <set>
#include <utility>

#include "aws/source_container.h"
#include "aws/source_environment.h"
#include "aws/source_imds.h"
#include "aws/source_json.h"
#include "aws/source_process.h"
#include "aws/source_sts.h"
#include "base/text.h"

namespace leasehold::aws {
namespace {

using base::Error;
using base::ErrorCode;
using base::Result;

// Roles taken with the credentials of roles: far above any that people have.
constexpr size_t kProfilesMax = 10;

std::unique_ptr<Fetching> Ready(SourceContext& context, Result<Fetched> result, FetchDone done) {
  return std::make_unique<ReadyFetch>(context.loop, std::move(result), std::move(done));
}

Error Wrong(const std::string& who, const std::string& what) {
  return {ErrorCode::kRefused, who + ": " + what};
}

bool HasStaticKeys(const Profile& profile) {
  return profile.Get("aws_access_key_id") || profile.Get("aws_secret_access_key");
}

Result<Fetched> StaticKeys(const Profile& profile, const std::string& who) {
  const auto id = profile.Get("aws_access_key_id");
  const auto secret = profile.Get("aws_secret_access_key");
  if (!id || !secret) {
    return Wrong(who, id ? "it has aws_access_key_id, but no aws_secret_access_key"
                         : "it has aws_secret_access_key, but no aws_access_key_id");
  }
  Credentials credentials;
  credentials.key = {*id, *secret, profile.Get("aws_session_token").value_or("")};
  credentials.source = who;
  if (base::Status status = CheckKey(credentials.key, who); !status) return status.error();
  return Fetched{.credentials = std::move(credentials)};
}

// What is said of the role in the profile, whichever way it is taken.
Result<RoleRequest> ReadRole(const Profile& profile, const std::string& who) {
  constexpr uint64_t kDurationMin = 900;  // STS's limits
  constexpr uint64_t kDurationMax = 43200;
  RoleRequest role;
  role.role_arn = profile.Get("role_arn").value_or("");
  role.session_name = profile.Get("role_session_name").value_or("");
  role.external_id = profile.Get("external_id").value_or("");
  if (role.role_arn.empty()) {
    return Wrong(who, "it has web_identity_token_file, but no role_arn");
  }
  if (const auto text = profile.Get("duration_seconds")) {
    const Result<uint64_t> seconds = base::ParseUint64(*text);
    if (!seconds || *seconds < kDurationMin || *seconds > kDurationMax) {
      return Wrong(who, "duration_seconds must be a number from 900 to 43200");
    }
    role.duration_seconds = static_cast<int64_t>(*seconds);
  }
  return role;
}

// A role, taken with credentials that have to be fetched first.
class AssumedFetch final : public Fetching {
 public:
  AssumedFetch(SourceContext& context, std::shared_ptr<const Profiles> profiles, RoleRequest role,
               std::string who, FetchDone done)
      : context_(context),
        profiles_(std::move(profiles)),
        role_(std::move(role)),
        who_(std::move(who)),
        done_(std::move(done)) {}

  FetchDone OnSigner() {
    return [this](Result<Fetched> signer) {
      if (!signer) {
        const FetchDone done = std::move(done_);
        done(Error{signer.error().code,
                   who_ + ": the credentials to take its role with: " + signer.error().message});
        return;
      }
      role_.signer = signer->credentials.key;
      step_ = FetchFromSts(context_, *profiles_, std::move(role_), who_, std::move(done_));
    };
  }
  void Begin(std::unique_ptr<Fetching> step) { step_ = std::move(step); }

 private:
  SourceContext& context_;
  const std::shared_ptr<const Profiles> profiles_;
  RoleRequest role_;
  const std::string who_;
  FetchDone done_;
  std::unique_ptr<Fetching> step_;
};

// One profile after the other, as source_profile names them.
class Walk {
 public:
  Walk(SourceContext& context, std::shared_ptr<const Profiles> profiles)
      : context_(context), profiles_(std::move(profiles)) {}

  std::unique_ptr<Fetching> Fetch(const std::string& name, FetchDone done);

 private:
  std::unique_ptr<Fetching> Assume(const Profile& profile, const std::string& name,
                                   const std::string& who, FetchDone done);
  std::unique_ptr<Fetching> Named(const std::string& source, const std::string& who,
                                  FetchDone done);

  SourceContext& context_;
  const std::shared_ptr<const Profiles> profiles_;
  std::set<std::string> visited_;
};

std::unique_ptr<Fetching> Walk::Fetch(const std::string& name, FetchDone done) {
  const std::string who = ProfilePhrase(name, *profiles_);
  const Profile* profile = profiles_->Find(name);
  if (profile == nullptr) {
    return Ready(context_, Wrong(who, "there is no such profile"), std::move(done));
  }
  const bool seen = !visited_.insert(name).second;
  if (visited_.size() > kProfilesMax) {
    return Ready(context_, Wrong(who, "source_profile leads through more than 10 profiles"),
                 std::move(done));
  }
  // A profile may name itself for its own static keys.
  if (profile->Get("role_arn") && !profile->Get("web_identity_token_file") && !seen) {
    return Assume(*profile, name, who, std::move(done));
  }
  if (seen && !HasStaticKeys(*profile)) {
    return Ready(context_,
                 Wrong(who,
                       "source_profile leads back to it; one with credentials of "
                       "its own must stand at the end"),
                 std::move(done));
  }
  if (const auto token_file = profile->Get("web_identity_token_file"); token_file && !seen) {
    Result<RoleRequest> role = ReadRole(*profile, who);
    if (!role) return Ready(context_, role.error(), std::move(done));
    role->token_file = *token_file;
    return FetchFromSts(context_, *profiles_, std::move(role).value(), who, std::move(done));
  }
  if (HasStaticKeys(*profile)) {
    return Ready(context_, StaticKeys(*profile, who), std::move(done));
  }
  if (const auto command = profile->Get("credential_process")) {
    return FetchFromProcess(context_, *command, who, std::move(done));
  }
  std::string what =
      "it has no credentials; aws_access_key_id and aws_secret_access_key, "
      "credential_process or role_arn would be right";
  if (profile->Get("sso_session") || profile->Get("sso_start_url") ||
      profile->Get("login_session")) {
    what =
        "it signs in through a browser (sso, login), which is not supported here; write "
        "credential_process = aws configure export-credentials --profile " +
        base::Printable(name) + " --format process into a profile";
  }
  return Ready(context_, Wrong(who, what), std::move(done));
}

std::unique_ptr<Fetching> Walk::Assume(const Profile& profile, const std::string& name,
                                       const std::string& who, FetchDone done) {
  const auto from_profile = profile.Get("source_profile");
  const auto from_source = profile.Get("credential_source");
  if (from_profile.has_value() == from_source.has_value()) {
    return Ready(context_,
                 Wrong(who, from_profile ? "it has source_profile and credential_source; "
                                           "one of them would be right"
                                         : "it has role_arn, but neither source_profile "
                                           "nor credential_source nor "
                                           "web_identity_token_file to take the role with"),
                 std::move(done));
  }
  if (profile.Get("mfa_serial")) {
    return Ready(context_,
                 Wrong(who,
                       "its role asks for a code (mfa_serial), and nobody is here to "
                       "type one; a role without would be right"),
                 std::move(done));
  }
  if (from_profile && *from_profile == name && !HasStaticKeys(profile)) {
    return Ready(context_,
                 Wrong(who,
                       "source_profile names the profile itself, which has no "
                       "aws_access_key_id"),
                 std::move(done));
  }
  Result<RoleRequest> role = ReadRole(profile, who);
  if (!role) return Ready(context_, role.error(), std::move(done));
  auto fetch = std::make_unique<AssumedFetch>(context_, profiles_, std::move(role).value(), who,
                                              std::move(done));
  fetch->Begin(from_profile ? Fetch(*from_profile, fetch->OnSigner())
                            : Named(*from_source, who, fetch->OnSigner()));
  return fetch;
}

std::unique_ptr<Fetching> Walk::Named(const std::string& source, const std::string& who,
                                      FetchDone done) {
  if (source == "Environment") {
    const auto found = EnvironmentCredentials(context_.environment);
    if (!found) {
      return Ready(context_, Wrong("the environment", "AWS_ACCESS_KEY_ID is not set"),
                   std::move(done));
    }
    if (!found->ok()) return Ready(context_, found->error(), std::move(done));
    return Ready(context_, Fetched{.credentials = found->value()}, std::move(done));
  }
  if (source == "EcsContainer") return FetchFromContainer(context_, std::move(done));
  if (source == "Ec2InstanceMetadata") return FetchFromImds(context_, nullptr, std::move(done));
  return Ready(context_,
               Wrong(who, "credential_source is \"" + base::Printable(source) +
                              "\"; Environment, EcsContainer or Ec2InstanceMetadata "
                              "would be right"),
               std::move(done));
}

}  // namespace

bool HasCredentials(const Profile& profile) {
  for (const char* setting :
       {"aws_access_key_id", "aws_secret_access_key", "credential_process", "role_arn",
        "web_identity_token_file", "sso_session", "sso_start_url", "login_session"}) {
    if (profile.Get(setting)) return true;
  }
  return false;
}

std::string ProfilePhrase(const std::string& name, const Profiles& profiles) {
  std::string phrase = "profile \"" + base::Printable(name) + "\"";
  if (profiles.credentials_path.empty()) return phrase + " (there is no HOME to look for it in)";
  return phrase + " of " + base::Printable(profiles.credentials_path) + " and " +
         base::Printable(profiles.config_path);
}

std::unique_ptr<Fetching> FetchFromProfile(SourceContext& context,
                                           std::shared_ptr<const Profiles> profiles,
                                           const std::string& name, FetchDone done) {
  return Walk(context, std::move(profiles)).Fetch(name, std::move(done));
}

}  // namespace leasehold::aws

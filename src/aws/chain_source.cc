#include "aws/chain_source.h"

#include <optional>
#include <utility>

#include "aws/source_container.h"
#include "aws/source_environment.h"
#include "aws/source_imds.h"
#include "aws/source_profile.h"
#include "aws/source_sts.h"
#include "base/text.h"

namespace leasehold::aws {
namespace {

using base::Error;
using base::ErrorCode;
using base::Result;

constexpr const char* kTokenFile = "AWS_WEB_IDENTITY_TOKEN_FILE";

// Whether the environment says which identity is meant: a profile in the options says otherwise.
bool EnvironmentCounts(const SourceContext& context) { return context.profile.empty(); }

bool ProfileIsNamed(const SourceContext& context) {
  return !context.profile.empty() || context.environment.Get("AWS_PROFILE") ||
         context.environment.Get("AWS_DEFAULT_PROFILE");
}

}  // namespace

// What is left once the environment's keys have been looked at: the files are read first.
class ChainSource::Chosen final : public Fetching {
 public:
  Chosen(SourceContext& context, FetchDone done) : context_(context), done_(std::move(done)) {
    step_ = std::make_unique<WorkFetch<Result<Profiles>>>(
        context.loop, [environment = context.environment] { return ReadProfiles(environment); },
        [this](Result<Profiles> profiles) { OnProfiles(std::move(profiles)); });
  }

 private:
  void OnProfiles(Result<Profiles> profiles) {
    const bool web_identity =
        EnvironmentCounts(context_) && context_.environment.Get(kTokenFile).has_value();
    if (!profiles && !web_identity) {
      Finish(Error{profiles.error().code, "no credentials for AWS: " + profiles.error().message});
      return;
    }
    // A web identity needs no file; what one says of STS would only be an addition.
    profiles_ =
        std::make_shared<const Profiles>(profiles ? std::move(profiles).value() : Profiles{});
    step_ = web_identity ? WebIdentity() : Others();
  }

  std::unique_ptr<Fetching> WebIdentity() {
    RoleRequest role;
    role.role_arn = context_.environment.Get("AWS_ROLE_ARN").value_or("");
    role.session_name = context_.environment.Get("AWS_ROLE_SESSION_NAME").value_or("");
    role.token_file = *context_.environment.Get(kTokenFile);
    if (role.role_arn.empty()) {
      return std::make_unique<ReadyFetch>(
          context_.loop,
          Error{ErrorCode::kRefused, std::string("the environment has ") + kTokenFile +
                                         ", but no AWS_ROLE_ARN; both or neither would be right"},
          std::move(done_));
    }
    return FetchFromSts(context_, *profiles_, std::move(role), "the environment's web identity",
                        std::move(done_));
  }

  std::unique_ptr<Fetching> Others() {
    const std::string name = ProfileName(context_.profile, context_.environment);
    const Profile* profile = profiles_->Find(name);
    if (profile != nullptr ? HasCredentials(*profile) : ProfileIsNamed(context_)) {
      return FetchFromProfile(context_, profiles_, name, std::move(done_));
    }
    if (HasContainerEndpoint(context_.environment)) {
      return FetchFromContainer(context_, std::move(done_));
    }
    return FetchFromImds(context_, profile, [this](Result<Fetched> fetched) {
      if (!fetched) {
        Finish(Nothing(fetched.error()));
        return;
      }
      Finish(std::move(fetched));
    });
  }

  // The last source failed: very often because there is none at all.
  Error Nothing(const Error& imds) const {
    const std::string name = ProfileName(context_.profile, context_.environment);
    std::string looked;
    if (EnvironmentCounts(context_)) {
      looked = "AWS_ACCESS_KEY_ID and AWS_WEB_IDENTITY_TOKEN_FILE are not set, ";
    }
    return {imds.code, "no credentials for AWS: " + looked + ProfilePhrase(name, *profiles_) +
                           (profiles_->Find(name) == nullptr ? " is not there, " : " has none, ") +
                           "no container endpoint is set, and " + imds.message};
  }

  void Finish(Result<Fetched> result) {
    const FetchDone done = std::move(done_);
    done(std::move(result));  // may destroy this object
  }

  SourceContext& context_;
  FetchDone done_;
  std::shared_ptr<const Profiles> profiles_;
  std::unique_ptr<Fetching> step_;
};

std::unique_ptr<Fetching> ChainSource::Fetch(FetchDone done) {
  if (EnvironmentCounts(context_)) {
    if (const auto found = EnvironmentCredentials(context_.environment)) {
      return std::make_unique<ReadyFetch>(
          context_.loop,
          found->ok() ? Result<Fetched>(Fetched{.credentials = found->value()})
                      : Result<Fetched>(found->error()),
          std::move(done));
    }
  }
  return std::make_unique<Chosen>(context_, std::move(done));
}

std::string ChainSource::Describe() const {
  if (context_.profile.empty()) return "the default chain";
  return "profile \"" + base::Printable(context_.profile) + "\"";
}

}  // namespace leasehold::aws

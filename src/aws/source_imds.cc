#include "aws/source_imds.h"

#include <optional>
#include <string>
#include <utility>

#include "aws/endpoint.h"
#include "aws/source_http.h"
#include "aws/source_json.h"
#include "base/text.h"

namespace leasehold::aws {
namespace {

using base::Error;
using base::ErrorCode;
using base::Result;

constexpr const char* kWho = "EC2 instance metadata";
constexpr const char* kRolePath = "/latest/meta-data/iam/security-credentials/";
// Six hours: the longest that IMDS gives, and what AWS's SDKs ask for. We use it for one fetch.
constexpr const char* kTokenTtlSeconds = "21600";
// IMDS has new ones 5 minutes before the old ones expire, at the latest ("Retrieve security
// credentials from instance metadata").
constexpr base::Duration kRefreshBefore = base::Duration::Seconds(5 * 60);
constexpr size_t kRoleBytesMax = 64;  // IAM's limit

std::optional<std::string> Setting(const SourceContext& context, const std::string& variable,
                                   const Profile* profile, const std::string& setting) {
  if (auto value = context.environment.Get(variable)) return value;
  return profile == nullptr ? std::nullopt : profile->Get(setting);
}

Result<Endpoint> FindEndpoint(const SourceContext& context, const Profile* profile) {
  constexpr const char* kEndpoint = "AWS_EC2_METADATA_SERVICE_ENDPOINT";
  constexpr const char* kMode = "AWS_EC2_METADATA_SERVICE_ENDPOINT_MODE";
  const auto url = Setting(context, kEndpoint, profile, "ec2_metadata_service_endpoint");
  Result<Endpoint> endpoint = Error{};
  if (url) {
    endpoint = ParseEndpoint(*url, kEndpoint);
  } else {
    const std::string mode =
        Setting(context, kMode, profile, "ec2_metadata_service_endpoint_mode").value_or("IPv4");
    const bool v6 = base::EqualsIgnoreCase(mode, "IPv6");
    if (!v6 && !base::EqualsIgnoreCase(mode, "IPv4")) {
      return Error{ErrorCode::kInvalid, std::string(kMode) + " is \"" + base::Printable(mode) +
                                            "\"; IPv4 or IPv6 would be right"};
    }
    endpoint = ParseEndpoint(v6 ? context.imds_endpoint_ipv6 : context.imds_endpoint, kWho);
  }
  if (endpoint) {
    while (endpoint->base_path.ends_with('/')) endpoint->base_path.pop_back();
  }
  return endpoint;
}

// AWS_METADATA_SERVICE_TIMEOUT (whole seconds) and _NUM_ATTEMPTS, where they are sane.
HttpPolicy FindPolicy(const SourceContext& context, const Profile* profile) {
  constexpr uint64_t kSecondsMax = 60;
  constexpr uint64_t kAttemptsMax = 10;
  HttpPolicy policy = context.imds;
  const auto number = [&](const std::string& variable, const std::string& setting, uint64_t most) {
    const Result<uint64_t> read =
        base::ParseUint64(Setting(context, variable, profile, setting).value_or(""));
    return read && *read > 0 && *read <= most ? std::optional<uint64_t>(*read) : std::nullopt;
  };
  if (const auto seconds =
          number("AWS_METADATA_SERVICE_TIMEOUT", "metadata_service_timeout", kSecondsMax)) {
    policy.timeout = base::Duration::Seconds(static_cast<int64_t>(*seconds));
  }
  if (const auto attempts = number("AWS_METADATA_SERVICE_NUM_ATTEMPTS",
                                   "metadata_service_num_attempts", kAttemptsMax)) {
    policy.attempts = static_cast<int>(*attempts);
  }
  return policy;
}

bool IsRoleName(std::string_view text) {
  return !text.empty() && text.size() <= kRoleBytesMax &&
         text.find_first_not_of(
             "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
             "+=,.@_-") == std::string_view::npos;
}

// What a metadata service says while it starts or is busy: not there yet.
bool IsPassingOrNothing(const client::HttpResponse& answer) {
  return IsPassing(answer) || (answer.status == 200 && answer.body.empty());
}

class ImdsFetch final : public Fetching {
 public:
  ImdsFetch(SourceContext& context, Endpoint endpoint, const HttpPolicy& policy, FetchDone done)
      : context_(context),
        endpoint_(std::move(endpoint)),
        policy_(policy),
        done_(std::move(done)),
        pool_(MakePool(context.loop, endpoint_)) {
    AskToken();
  }

 private:
  using Answer = client::HttpResponse;

  void AskToken() {
    client::HttpRequest request;
    request.method = "PUT";
    request.target = endpoint_.base_path + "/latest/api/token";
    request.headers.emplace_back("X-aws-ec2-metadata-token-ttl-seconds", kTokenTtlSeconds);
    HttpPolicy policy = policy_;
    policy.attempts = policy.attempts > 2 ? 2 : policy.attempts;
    Ask("the session token", policy, std::move(request),
        [this](const Answer& answer) { OnToken(answer); });
  }

  void OnToken(const Answer& answer) {
    if (answer.status != 200) {
      const bool off = answer.status == 403 || answer.status == 404 || answer.status == 405;
      Refuse(
          "the session token", answer,
          off ? "; IMDSv2 is switched off for this instance, or hidden from this container" : "");
      return;
    }
    token_ = base::Trim(answer.body);
    if (base::Status status = CheckKey({"", "", token_}, kWho); !status) {
      Finish(status.error());
      return;
    }
    AskRole();
  }

  void AskRole() {
    Ask("the role's name", policy_, Get(kRolePath), [this](const Answer& answer) {
      if (answer.status == 401 && !std::exchange(asked_token_again_, true)) return AskToken();
      if (answer.status == 404) {
        return Finish(Error{ErrorCode::kRefused,
                            std::string(kWho) + ": this instance has no role; attach an instance "
                                                "profile to it"});
      }
      if (answer.status != 200) return Refuse("the role's name", answer, "");
      // Several roles would be several lines; there never was more than one.
      role_ = answer.body.substr(0, answer.body.find_first_of("\r\n"));
      if (!IsRoleName(role_)) {
        return Finish(Error{ErrorCode::kInvalid,
                            std::string(kWho) + " gave a role's name that IAM does not allow"});
      }
      AskCredentials();
    });
  }

  void AskCredentials() {
    Ask("the credentials of role " + role_, policy_, Get(kRolePath + role_),
        [this](const Answer& answer) { OnCredentials(answer); });
  }

  void OnCredentials(const Answer& answer) {
    if (answer.status == 401 && !std::exchange(asked_token_again_, true)) return AskToken();
    if (answer.status != 200) return Refuse("the credentials of role " + role_, answer, "");
    Result<Credentials> credentials =
        ParseCredentialsJson(answer.body, JsonForm{}, std::string(kWho) + " (role " + role_ + ")");
    if (!credentials) return Finish(credentials.error());
    Finish(Fetched{.credentials = std::move(credentials).value(),
                   .refresh_before = kRefreshBefore,
                   .may_outlive_expiry = true});
  }

  client::HttpRequest Get(const std::string& path) const {
    client::HttpRequest request;
    request.target = endpoint_.base_path + path;
    request.headers.emplace_back("X-aws-ec2-metadata-token", token_);
    return request;
  }

  void Ask(const std::string& what, const HttpPolicy& policy, client::HttpRequest request,
           std::function<void(const Answer&)> then) {
    request.host_header = endpoint_.host_header;
    // The ask that we are called by ends when it returns: it is replaced, not destroyed inside.
    ask_ = std::make_unique<HttpAsk>(
        context_.loop, *pool_, context_.random, policy, std::string(kWho) + ", " + what,
        [request = std::move(request)] { return request; }, &IsPassingOrNothing,
        [this, then = std::move(then)](Result<Answer> answer) {
          if (!answer) return Finish(answer.error());
          then(*answer);
        });
  }

  void Refuse(const std::string& what, const Answer& answer, const std::string& why) {
    Finish(Error{IsPassing(answer) ? ErrorCode::kUnavailable : ErrorCode::kRefused,
                 std::string(kWho) + " " + endpoint_.host_header + " answered " +
                     std::to_string(answer.status) + " when asked for " + what + why});
  }

  void Finish(Result<Fetched> result) {
    const FetchDone done = std::move(done_);
    done(std::move(result));  // may destroy this object
  }

  SourceContext& context_;
  const Endpoint endpoint_;
  const HttpPolicy policy_;
  FetchDone done_;
  const std::unique_ptr<client::HttpPool> pool_;
  std::unique_ptr<HttpAsk> ask_;
  std::string token_;
  std::string role_;
  bool asked_token_again_ = false;
};

}  // namespace

std::unique_ptr<Fetching> FetchFromImds(SourceContext& context, const Profile* profile,
                                        FetchDone done) {
  const Result<bool> off =
      ReadSwitch(context.environment, "AWS_EC2_METADATA_DISABLED", nullptr, "");
  Result<Endpoint> endpoint = !off   ? Result<Endpoint>(off.error())
                              : *off ? Result<Endpoint>(Error{ErrorCode::kRefused,
                                                              "EC2 instance metadata is switched "
                                                              "off (AWS_EC2_METADATA_DISABLED)"})
                                     : FindEndpoint(context, profile);
  if (!endpoint) {
    return std::make_unique<ReadyFetch>(context.loop, endpoint.error(), std::move(done));
  }
  return std::make_unique<ImdsFetch>(context, std::move(endpoint).value(),
                                     FindPolicy(context, profile), std::move(done));
}

}  // namespace leasehold::aws

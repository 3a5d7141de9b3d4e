#include "aws/source_container.h"

#include <optional>
#include <string>
#include <utility>

#include "aws/endpoint.h"
#include "aws/source_files.h"
#include "aws/source_http.h"
#include "aws/source_json.h"
#include "proto/json.h"

namespace leasehold::aws {
namespace {

using base::Error;
using base::ErrorCode;
using base::Result;

constexpr const char* kWho = "the container endpoint";
constexpr const char* kRelative = "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI";
constexpr const char* kFull = "AWS_CONTAINER_CREDENTIALS_FULL_URI";
constexpr const char* kTokenFile = "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE";
constexpr const char* kToken = "AWS_CONTAINER_AUTHORIZATION_TOKEN";

// Agents of AWS: ECS, EKS Pod Identity in both address families.
bool IsAgent(const std::string& host) {
  return host == "169.254.170.2" || host == "169.254.170.23" || host == "fd00:ec2::23";
}

// Where to ask; its base_path is the whole target, with a query if it has one.
Result<Endpoint> FindEndpoint(const SourceContext& context) {
  if (const auto relative = context.environment.Get(kRelative)) {
    if (!relative->starts_with('/')) {
      return Error{ErrorCode::kInvalid,
                   std::string(kRelative) + " must begin with '/'; it is a path"};
    }
    return ParseEndpoint(context.container_endpoint + *relative, kRelative);
  }
  Result<Endpoint> endpoint = ParseEndpoint(*context.environment.Get(kFull), kFull);
  if (!endpoint || endpoint->tls || endpoint->address.IsLoopback() ||
      IsAgent(endpoint->address.host)) {
    return endpoint;
  }
  return Error{ErrorCode::kRefused,
               std::string(kFull) + " names " + endpoint->host_header +
                   ", where the token would go in the clear; https://, a loopback address, "
                   "169.254.170.2, 169.254.170.23 or [fd00:ec2::23] would be right"};
}

class ContainerFetch final : public Fetching {
 public:
  ContainerFetch(SourceContext& context, Endpoint endpoint, FetchDone done)
      : context_(context), endpoint_(std::move(endpoint)), done_(std::move(done)) {
    if (const auto path = context.environment.Get(kTokenFile)) {
      reading_ = std::make_unique<WorkFetch<Result<std::string>>>(
          context.loop, [path = *path] { return ReadTokenFile(path); },
          [this](Result<std::string> token) { OnToken(std::move(token)); });
      return;
    }
    Ask(context.environment.Get(kToken).value_or(""));
  }

 private:
  void OnToken(Result<std::string> token) {
    reading_.reset();
    if (!token) {
      Finish(Error{ErrorCode::kRefused, std::string(kTokenFile) + ": " + token.error().message});
      return;
    }
    Ask(*token);
  }

  void Ask(std::string token) {
    pool_ = MakePool(context_.loop, endpoint_);
    ask_ = std::make_unique<HttpAsk>(
        context_.loop, *pool_, context_.random, context_.container, kWho,
        [this, token = std::move(token)] { return Request(token); }, &IsPassing,
        [this](Result<client::HttpResponse> answer) { OnAnswer(std::move(answer)); });
  }

  client::HttpRequest Request(const std::string& token) const {
    client::HttpRequest request;
    request.host_header = endpoint_.host_header;
    request.target = endpoint_.base_path.empty() ? "/" : endpoint_.base_path;
    request.headers.emplace_back("Accept", "application/json");
    if (!token.empty()) request.headers.emplace_back("Authorization", token);
    return request;
  }

  void OnAnswer(Result<client::HttpResponse> answer) {
    if (!answer) {
      Finish(answer.error());
      return;
    }
    if (answer->status != 200) {
      Finish(Refusal(*answer));
      return;
    }
    Result<Credentials> credentials = ParseCredentialsJson(answer->body, JsonForm{}, kWho);
    if (!credentials) {
      Finish(credentials.error());
      return;
    }
    credentials->source += " " + endpoint_.host_header;
    Finish(Fetched{.credentials = std::move(credentials).value()});
  }

  // What it says of the reason may repeat what it was sent: only the error's name is taken.
  Error Refusal(const client::HttpResponse& answer) const {
    std::string word;
    if (const Result<proto::Json> json = proto::Json::Parse(answer.body); json) {
      word = ErrorWord(json->String("code").value_or(json->String("Code").value_or("")));
    }
    return {answer.status >= 500 || answer.status == 429 ? ErrorCode::kUnavailable
                                                         : ErrorCode::kRefused,
            std::string(kWho) + " " + endpoint_.host_header + " answered " +
                std::to_string(answer.status) + word +
                (answer.status == 401 || answer.status == 403
                     ? "; is its token right, and is the role still bound to this container?"
                     : "")};
  }

  void Finish(Result<Fetched> result) {
    const FetchDone done = std::move(done_);
    done(std::move(result));  // may destroy this object
  }

  SourceContext& context_;
  const Endpoint endpoint_;
  FetchDone done_;
  std::unique_ptr<Fetching> reading_;
  std::unique_ptr<client::HttpPool> pool_;
  std::unique_ptr<HttpAsk> ask_;
};

// Before the loop is asked for anything: a header with a line break would be two.
base::Status CheckToken(const Environment& environment) {
  if (environment.Get(kTokenFile)) return {};
  const std::string token = environment.Get(kToken).value_or("");
  if (token.find_first_of("\r\n") == std::string::npos) return {};
  return Error{ErrorCode::kInvalid,
               std::string(kToken) + " has a line break; one line with the token would be right"};
}

}  // namespace

bool HasContainerEndpoint(const Environment& environment) {
  return environment.Get(kRelative) || environment.Get(kFull);
}

std::unique_ptr<Fetching> FetchFromContainer(SourceContext& context, FetchDone done) {
  if (!HasContainerEndpoint(context.environment)) {
    return std::make_unique<ReadyFetch>(
        context.loop,
        Error{ErrorCode::kRefused, std::string("neither ") + kRelative + " nor " + kFull +
                                       " is set, so there is no " + "container endpoint to ask"},
        std::move(done));
  }
  Result<Endpoint> endpoint = FindEndpoint(context);
  if (!endpoint)
    return std::make_unique<ReadyFetch>(context.loop, endpoint.error(), std::move(done));
  if (base::Status status = CheckToken(context.environment); !status) {
    return std::make_unique<ReadyFetch>(context.loop, status.error(), std::move(done));
  }
  if (const auto bundle = context.environment.Get("AWS_CA_BUNDLE")) endpoint->ca_file = *bundle;
  return std::make_unique<ContainerFetch>(context, std::move(endpoint).value(), std::move(done));
}

}  // namespace leasehold::aws

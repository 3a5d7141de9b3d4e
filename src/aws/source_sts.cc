#include "aws/source_sts.h"

#include <utility>

#include "aws/api_error.h"
#include "aws/endpoint.h"
#include "aws/service_clock.h"
#include "aws/source_files.h"
#include "aws/source_http.h"
#include "aws/source_json.h"
#include "base/text.h"
#include "crypto/digest.h"
#include "proto/percent.h"

namespace leasehold::aws {
namespace {

using base::Error;
using base::ErrorCode;
using base::Result;

std::string_view HeaderOf(const client::HttpResponse& answer, std::string_view name) {
  for (const auto& [given, value] : answer.headers) {
    if (base::EqualsIgnoreCase(given, name)) return value;
  }
  return {};
}

void AppendParameter(std::string& body, std::string_view name, std::string_view value) {
  if (value.empty()) return;
  if (!body.empty()) body += '&';
  body.append(name).append("=").append(proto::PercentEncode(value));
}

class StsFetch final : public Fetching {
 public:
  StsFetch(SourceContext& context, Endpoint endpoint, RoleRequest request, std::string who,
           FetchDone done)
      : context_(context),
        endpoint_(std::move(endpoint)),
        request_(std::move(request)),
        who_(std::move(who)),
        done_(std::move(done)) {
    if (request_.signer) {
      Ask("");
      return;
    }
    reading_ = std::make_unique<WorkFetch<Result<std::string>>>(
        context.loop, [path = request_.token_file] { return ReadTokenFile(path); },
        [this](Result<std::string> token) { OnToken(std::move(token)); });
  }

 private:
  const char* action() const {
    return request_.signer ? "AssumeRole" : "AssumeRoleWithWebIdentity";
  }

  void OnToken(Result<std::string> token) {
    reading_.reset();
    if (!token) {
      Finish(Error{ErrorCode::kRefused,
                   who_ + ": the web identity's token: " + token.error().message});
      return;
    }
    Ask(*token);
  }

  void Ask(const std::string& token) {
    token_ = token;
    std::string name = request_.session_name;
    if (name.empty()) {
      name = "leasehold-" + std::to_string(loop::Loop::WallNow().unix_ms);
    }
    AppendParameter(body_, "Action", action());
    AppendParameter(body_, "Version", "2011-06-15");
    AppendParameter(body_, "RoleArn", request_.role_arn);
    AppendParameter(body_, "RoleSessionName", name);
    AppendParameter(body_, "ExternalId", request_.external_id);
    if (request_.duration_seconds) {
      AppendParameter(body_, "DurationSeconds", std::to_string(*request_.duration_seconds));
    }
    AppendParameter(body_, "WebIdentityToken", token);
    pool_ = MakePool(context_.loop, endpoint_);
    ask_ = std::make_unique<HttpAsk>(
        context_.loop, *pool_, context_.random, context_.sts, who_ + ": STS",
        [this] { return Request(); },
        [this](const client::HttpResponse& answer) { return Again(answer); },
        [this](Result<client::HttpResponse> answer) { OnAnswer(std::move(answer)); });
  }

  client::HttpRequest Request() {
    sent_at_ = loop::Loop::Now();
    client::HttpRequest request;
    request.method = "POST";
    request.host_header = endpoint_.host_header;
    request.target = endpoint_.base_path + "/";
    request.headers.emplace_back("Content-Type",
                                 "application/x-www-form-urlencoded; charset=utf-8");
    request.headers.emplace_back("Accept", "text/xml");
    request.body = body_;
    if (request_.signer) Sign(request);
    return request;
  }

  void Sign(client::HttpRequest& request) const {
    std::vector<proto::sigv4::Header> headers = request.headers;
    headers.emplace_back("Host", request.host_header);
    const std::string digest = crypto::Sha256Hex(request.body);
    proto::sigv4::Request to_sign;
    to_sign.method = request.method;
    to_sign.path = request.target;
    to_sign.headers = headers;
    to_sign.payload_sha256_hex = digest;
    for (auto& header : proto::sigv4::Sign(to_sign, {endpoint_.region, "sts"}, *request_.signer,
                                           clock_.UnixSeconds(loop::Loop::WallNow()))) {
      request.headers.push_back(std::move(header));
    }
  }

  ApiError Trouble(const client::HttpResponse& answer) const {
    return ParseApiError(answer.status, answer.headers, answer.body);
  }

  bool Again(const client::HttpResponse& answer) {
    if (answer.status < 400) return false;
    const ApiError trouble = Trouble(answer);
    const auto date = proto::sigv4::ParseHttpDate(HeaderOf(answer, "Date"));
    const bool refused = trouble.trouble == Trouble::kClockSkew;
    if (request_.signer && date &&
        clock_.Note({*date, loop::Loop::WallNow(), loop::Loop::Now() - sent_at_, refused})) {
      return true;
    }
    // STS could not ask who issued the token: its documentation says to repeat.
    return IsPassing(answer) || trouble.trouble == Trouble::kThrottled ||
           trouble.code == "IDPCommunicationError";
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
    Result<Credentials> credentials = ParseStsAnswer(answer->body, who_ + ": STS");
    if (!credentials) {
      Finish(credentials.error());
      return;
    }
    credentials->source = "role " + base::Printable(request_.role_arn) + " of " + who_;
    Finish(Fetched{.credentials = std::move(credentials).value()});
  }

  Error Refusal(const client::HttpResponse& answer) const {
    const ApiError trouble = Trouble(answer);
    std::string why = trouble.message;
    // Its sentence helps ("is not authorized to perform sts:AssumeRole on ..."), unless it repeats
    // what it was given.
    const std::string& secret = request_.signer ? request_.signer->secret_access_key : token_;
    const std::string session = request_.signer ? request_.signer->session_token : "";
    const bool tells = why.find(secret.substr(0, 512)) != std::string::npos ||
                       (!session.empty() && why.find(session.substr(0, 512)) != std::string::npos);
    if (tells) why.clear();
    const bool passing = IsPassing(answer) || trouble.trouble == Trouble::kThrottled;
    return {passing ? ErrorCode::kUnavailable : ErrorCode::kRefused,
            who_ + ": " + endpoint_.ToString() + " refused " + action() + " for role " +
                base::Printable(request_.role_arn) + " with " + std::to_string(answer.status) +
                (trouble.code.empty() ? "" : " " + base::Printable(trouble.code)) +
                (why.empty() ? "" : ": " + why)};
  }

  void Finish(Result<Fetched> result) {
    const FetchDone done = std::move(done_);
    done(std::move(result));  // may destroy this object
  }

  SourceContext& context_;
  const Endpoint endpoint_;
  const RoleRequest request_;
  const std::string who_;
  FetchDone done_;
  std::unique_ptr<Fetching> reading_;
  std::unique_ptr<client::HttpPool> pool_;
  std::unique_ptr<HttpAsk> ask_;
  std::string token_;
  std::string body_;
  ServiceClock clock_;
  base::MonoTime sent_at_;
};

}  // namespace

std::unique_ptr<Fetching> FetchFromSts(SourceContext& context, const Profiles& profiles,
                                       RoleRequest request, const std::string& who,
                                       FetchDone done) {
  Result<Endpoint> endpoint =
      ResolveSts(context.region, context.profile, context.environment, profiles);
  if (!endpoint) {
    return std::make_unique<ReadyFetch>(
        context.loop, Error{endpoint.error().code, who + ": " + endpoint.error().message},
        std::move(done));
  }
  return std::make_unique<StsFetch>(context, std::move(endpoint).value(), std::move(request), who,
                                    std::move(done));
}

}  // namespace leasehold::aws

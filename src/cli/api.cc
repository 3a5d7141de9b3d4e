#include "cli/api.h"

#include <memory>
#include <optional>
#include <ostream>

#include "base/text.h"
#include "client/http_call.h"
#include "config/config.h"
#include "proto/url.h"

namespace leasehold::cli {
namespace {

using base::Error;
using base::ErrorCode;
using base::Result;

constexpr uint16_t kDefaultPort = 9090;                      // admin.listen's default
constexpr size_t kAnswerBytesMax = size_t{4} * 1024 * 1024;  // 256 leases and gates fit many times

Error Bad(std::string message) { return {ErrorCode::kInvalid, std::move(message)}; }

Result<base::Address> ParseAdmin(const std::string& text) {
  if (text.starts_with("unix:")) return base::ParseAddress(text);
  const Result<proto::Url> url = proto::ParseUrl(text);
  const bool bare = url && url->scheme == "http" && (url->path.empty() || url->path == "/");
  if (bare && url->user.empty() && !url->has_password) return url->address();
  return Bad("--admin " + Shown(text) +
             ": must be like http://127.0.0.1:9090 or unix:/path, without a path or user");
}

// What to connect to for an address that is listened on.
Result<base::Address> FromListen(const std::string& file, const std::string& listen) {
  if (listen.empty()) {
    return Bad(file + ": admin.listen = \"\": this sidecar has no API to ask");
  }
  Result<base::Address> address = base::ParseAddress(listen);
  if (!address) return address;
  if (address->kind == base::Address::Kind::kTcp && address->port == 0) {
    return Bad(file + ": admin.listen = \"" + listen +
               "\": port 0 is any free one; name the real one with --admin");
  }
  if (address->host == "0.0.0.0") address->host = "127.0.0.1";
  if (address->host == "::") address->host = "::1";
  return address;
}

std::string Problems(const std::vector<config::Problem>& problems) {
  std::string out;
  for (const config::Problem& problem : problems) {
    out += (out.empty() ? "" : "\n") + problem.ToString();
  }
  return out;
}

}  // namespace

Result<ApiTarget> FindApi(const CommandLine& command) {
  ApiTarget target;
  target.address.host = "127.0.0.1";
  target.address.port = kDefaultPort;
  std::string token_file = command.token_file;
  if (command.config_given) {
    const config::LoadResult loaded = config::LoadFile(command.config);
    if (!loaded.errors.empty()) return Bad(Problems(loaded.errors));
    if (token_file.empty()) token_file = loaded.config.admin.token_file;
    if (command.admin.empty()) {
      Result<base::Address> address = FromListen(command.config, loaded.config.admin.listen);
      if (!address) return address.error();
      target.address = *address;
    }
  }
  if (!command.admin.empty()) {
    Result<base::Address> address = ParseAdmin(command.admin);
    if (!address) return address.error();
    target.address = *address;
  }
  if (!token_file.empty()) {
    Result<std::string> token = config::ReadSecretFile(token_file);
    if (!token) return Bad(token.error().message);
    target.token = *token;
  }
  return target;
}

std::string ApiAnswer::problem() const {
  const std::string type = body.String("type").value_or("");
  const size_t colon = type.rfind(':');
  return colon == std::string::npos ? "http_" + std::to_string(status) : type.substr(colon + 1);
}

std::string ApiAnswer::detail() const {
  if (const std::optional<std::string> told = body.String("detail")) return Shown(*told);
  return "answered with status " + std::to_string(status) +
         " and no explanation; is it a Leasehold API?";
}

Result<ApiAnswer> Api::Get(const std::string& path, base::Duration timeout) {
  return Call("GET", path, "", timeout);
}

Result<ApiAnswer> Api::Post(const std::string& path, const std::string& body,
                            base::Duration timeout) {
  return Call("POST", path, body, timeout);
}

Result<ApiAnswer> Api::Call(const std::string& method, const std::string& path,
                            const std::string& body, base::Duration timeout) {
  client::HttpRequest request;
  request.method = method;
  request.address = target_.address;
  request.target = path;
  request.body = body;
  request.timeout = timeout;
  request.body_bytes_max = kAnswerBytesMax;
  request.headers.emplace_back("Accept", "application/json, application/problem+json");
  if (!body.empty()) request.headers.emplace_back("Content-Type", "application/json");
  if (!target_.token.empty()) {
    request.headers.emplace_back("Authorization", "Bearer " + target_.token);
  }
  std::optional<Result<client::HttpResponse>> result;
  const std::unique_ptr<client::HttpCall> call =
      client::StartHttpCall(loop_, request, [&](Result<client::HttpResponse> response) {
        result.emplace(std::move(response));
        loop_.Stop();
      });
  while (!result) loop_.Run();
  if (!*result) return result->error();
  ApiAnswer answer;
  answer.status = (*result)->status;
  answer.text = std::move((*result)->body);
  proto::JsonLimits limits;
  limits.bytes_max = kAnswerBytesMax;
  const Result<proto::Json> json = proto::Json::Parse(answer.text, limits);
  if (json) answer.body = *json;
  if (!json && answer.ok()) {
    return Error{ErrorCode::kUnavailable,
                 name() + " answers, but not with JSON; is it a Leasehold API?"};
  }
  return answer;
}

std::string EscapeUrl(std::string_view text) {
  constexpr std::string_view kHex = "0123456789ABCDEF";
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '-' || c == '_' || c == '.';
    if (plain) {
      out += c;
    } else {
      out += '%';
      out += kHex[byte >> 4];
      out += kHex[byte & 15];
    }
  }
  return out;
}

std::string LeasePath(std::string_view lease) { return "/v1/leases/" + EscapeUrl(lease); }

void PrintJson(Console& console, const ApiAnswer& answer) { console.out << answer.text << "\n"; }

int FailWith(Console& console, bool json, const ApiAnswer& answer) {
  ExitCode code = kFailed;
  if (answer.status == 412) code = kFailedPrecondition;
  if (answer.problem() == "not_holder" || answer.problem() == "no_holder") code = kNotHolder;
  std::string detail = answer.detail();
  if (answer.problem() == "unauthorized") detail += "; name its file with --token-file or -c";
  return Fail(console, json, code, answer.problem(), detail);
}

int FailWith(Console& console, bool json, const Error& error) {
  if (error.code == ErrorCode::kInvalid) return Fail(console, json, kUsage, "usage", error.message);
  return Fail(console, json, kNotReachable, "not_reachable", Shown(error.message));
}

std::string ResolveLease(Api& api, const CommandLine& command, Console& console, int& exit_code) {
  if (!command.lease.empty()) return command.lease;
  const Result<ApiAnswer> answer = api.Get("/v1/leases");
  if (!answer || !answer->ok()) {
    exit_code = answer ? FailWith(console, command.json, *answer)
                       : FailWith(console, command.json, answer.error());
    return "";
  }
  std::vector<std::string> names;
  std::string list;
  for (const proto::Json& lease : answer->body.Find("leases").value_or(proto::Json()).Elements()) {
    names.push_back(lease.String("lease").value_or(""));
    list += (list.empty() ? "" : ", ") + Shown(names.back());
  }
  if (names.size() == 1) return names[0];
  exit_code = names.empty()
                  ? Fail(console, command.json, kFailed, "no_lease", "this sidecar has no lease")
                  : Fail(console, command.json, kUsage, "usage",
                         "this sidecar has several leases; name one of " + list);
  return "";
}

}  // namespace leasehold::cli

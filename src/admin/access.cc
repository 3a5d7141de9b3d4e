#include "admin/access.h"

#include <arpa/inet.h>

#include <algorithm>
#include <array>

#include "admin/problem.h"
#include "base/text.h"

namespace leasehold::admin {
namespace {

struct HostPort {
  std::string name;  // lower case, IPv6 without brackets, no trailing dot
  std::string port;  // empty: none
};

std::optional<HostPort> SplitHost(std::string_view text) {
  HostPort out;
  size_t name_end = 0;
  if (!text.empty() && text.front() == '[') {
    name_end = text.find(']');
    if (name_end == std::string_view::npos) return std::nullopt;
    out.name = base::ToLower(text.substr(1, name_end - 1));
    ++name_end;
  } else {
    name_end = std::min(text.find(':'), text.size());
    out.name = base::ToLower(text.substr(0, name_end));
    if (!out.name.empty() && out.name.back() == '.') out.name.pop_back();
  }
  std::string_view rest = text.substr(name_end);
  if (!rest.empty()) {
    if (rest.front() != ':') return std::nullopt;
    rest.remove_prefix(1);
    const auto port = base::ParseUint64(rest);
    if (!port.ok() || *port > 65535) return std::nullopt;
    out.port = rest;
  }
  if (out.name.empty()) return std::nullopt;
  return out;
}

bool IsIpLiteral(const std::string& name) {
  std::array<unsigned char, sizeof(in6_addr)> scratch;
  return inet_pton(AF_INET, name.c_str(), scratch.data()) == 1 ||
         inet_pton(AF_INET6, name.c_str(), scratch.data()) == 1;
}

bool IsPrintableWord(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c > ' ' && c < '\x7f'; });
}

HttpAnswer NoToken(bool given) {
  HttpAnswer answer =
      ProblemAnswer(401, "unauthorized",
                    given ? "the bearer token is not the one of admin.token_file"
                          : "this call needs \"Authorization: Bearer <token>\" with the token of "
                            "admin.token_file");
  answer.headers.emplace_back("WWW-Authenticate", "Bearer realm=\"leasehold\"");
  return answer;
}

}  // namespace

bool EqualInConstantTime(std::string_view given, std::string_view expected) {
  unsigned difference = given.size() == expected.size() ? 0U : 1U;
  for (size_t i = 0; i < expected.size(); ++i) {
    const char c = i < given.size() ? given[i] : '\0';
    difference |= static_cast<unsigned char>(c) ^ static_cast<unsigned char>(expected[i]);
  }
  return difference == 0;
}

base::Result<AccessRules> AccessRules::Make(const AdminOptions& options,
                                            const base::Address& listen, std::string_view token) {
  AccessRules rules;
  rules.listen_ = listen;
  rules.bound_ = listen;
  // A file usually ends its one line with a line break.
  while (!token.empty() && (token.back() == '\n' || token.back() == '\r')) token.remove_suffix(1);
  rules.token_ = base::Trim(token);
  if (!IsPrintableWord(rules.token_)) {
    return base::Error{base::ErrorCode::kInvalid,
                       "admin.token_file = \"" + options.token_file +
                           "\" must hold one word of printable ASCII characters; make one with "
                           "\"openssl rand -hex 32\""};
  }
  if (rules.token_.empty() && !options.token_file.empty()) {
    return base::Error{base::ErrorCode::kInvalid,
                       "admin.token_file = \"" + options.token_file +
                           "\" is empty; put one word into it, made with \"openssl rand -hex 32\""};
  }
  if (rules.token_.empty() && !listen.IsLoopback()) {
    return base::Error{base::ErrorCode::kInvalid,
                       "admin.listen = \"" + options.listen +
                           "\" can be reached from other machines and no token guards it; set "
                           "admin.token_file, or listen on 127.0.0.1"};
  }
  for (const std::string& host : options.allowed_hosts) {
    rules.allowed_hosts_.push_back(base::ToLower(host));
  }
  return rules;
}

bool AccessRules::Allowed(std::string_view name, std::string_view port) const {
  return std::any_of(allowed_hosts_.begin(), allowed_hosts_.end(), [&](const std::string& entry) {
    const std::optional<HostPort> allowed = SplitHost(entry);
    return allowed && allowed->name == name && (allowed->port.empty() || allowed->port == port);
  });
}

bool AccessRules::HostIsOurs(std::string_view host) const {
  const std::optional<HostPort> asked = SplitHost(host);
  if (!asked) return false;
  if (Allowed(asked->name, asked->port)) return true;
  const bool is_tcp = bound_.kind == base::Address::Kind::kTcp;
  const bool loopback_name =
      asked->name == "localhost" || asked->name == "127.0.0.1" || asked->name == "::1";
  // Any port: a forwarded one (kubectl port-forward) is another, and no page can make its own name
  // one of these.
  if (loopback_name && (!is_tcp || listen_.IsLoopback())) return true;
  if (is_tcp && !asked->port.empty() && asked->port != std::to_string(bound_.port)) return false;
  if (loopback_name) return true;
  if (!is_tcp) return false;
  if (asked->name == base::ToLower(listen_.host) || asked->name == base::ToLower(bound_.host)) {
    return true;
  }
  return !listen_.IsLoopback() && IsIpLiteral(asked->name);
}

bool AccessRules::OriginIsOurs(std::string_view origin) const {
  constexpr std::string_view kHttp = "http://";
  constexpr std::string_view kHttps = "https://";
  const bool https = origin.starts_with(kHttps);
  if (!https && !origin.starts_with(kHttp)) return false;  // "null" among them
  origin.remove_prefix(https ? kHttps.size() : kHttp.size());
  std::optional<HostPort> from = SplitHost(origin);
  if (!from) return false;
  if (from->port.empty()) from->port = https ? "443" : "80";
  if (Allowed(from->name, from->port)) return true;
  // An origin names its port unless it is the scheme's own, and another port is another origin.
  return !https && from->port == std::to_string(bound_.port) && HostIsOurs(origin);
}

bool AccessRules::TokenFits(const std::optional<std::string>& authorization) const {
  constexpr std::string_view kScheme = "bearer ";
  if (!authorization || authorization->size() < kScheme.size()) return false;
  const std::string_view given(*authorization);
  if (!base::EqualsIgnoreCase(given.substr(0, kScheme.size()), kScheme)) return false;
  return EqualInConstantTime(base::Trim(given.substr(kScheme.size())), token_);
}

std::optional<HttpAnswer> AccessRules::Refuse(const HttpRequest& request, Access access) const {
  const bool host_missing = !request.host.has_value();
  if (host_missing ? access != Access::kProbe : !HostIsOurs(*request.host)) {
    return ProblemAnswer(421, "host_not_ours",
                         "Host \"" +
                             (host_missing ? std::string() : base::Printable(*request.host)) +
                             "\" is not a name of this API; use " + bound_.ToString() +
                             ", or add the name to admin.allowed_hosts");
  }
  if (access == Access::kChange && request.origin && !OriginIsOurs(*request.origin)) {
    return ProblemAnswer(403, "cross_origin",
                         "a page of \"" + base::Printable(*request.origin) +
                             "\" may not change anything here; add its host to "
                             "admin.allowed_hosts if it should");
  }
  const bool needs_token = !token_.empty() && (access == Access::kChange ||
                                               (access == Access::kRead && !listen_.IsLoopback()));
  if (needs_token && !TokenFits(request.authorization)) {
    return NoToken(request.authorization.has_value());
  }
  return std::nullopt;
}

}  // namespace leasehold::admin

#include "health/check_spec.h"

#include <utility>

#include "base/text.h"
#include "proto/url.h"

namespace leasehold::health {
namespace {

using base::Error;
using base::ErrorCode;
using base::Result;

constexpr std::string_view kHttpPrefix = "http://";
constexpr std::string_view kTcpPrefix = "tcp://";
constexpr std::string_view kExecPrefix = "exec:";

Error Bad(std::string_view text, const std::string& why) {
  return {ErrorCode::kInvalid,
          "\"" + base::Printable(text) + "\" is not an application check: " + why};
}

Result<CheckSpec> ParseHttp(std::string_view text) {
  Result<proto::Url> url = proto::ParseUrl(text);
  if (!url.ok()) {
    return url.error();
  }
  if (!url->user.empty() || url->has_password) {
    // The URL is not repeated: it may hold a password.
    return Error{
        ErrorCode::kInvalid,
        "an application check sends no user name or password; write http://host:port/path"};
  }
  CheckSpec spec;
  spec.kind = CheckSpec::Kind::kHttp;
  spec.address = url->address();
  spec.target = url->path.empty() ? "/" : url->path;
  return spec;
}

Result<CheckSpec> ParseTcp(std::string_view text) {
  Result<base::Address> address = base::ParseAddress(text.substr(kTcpPrefix.size()));
  if (!address.ok()) {
    return Bad(text, address.error().message);
  }
  if (address->kind == base::Address::Kind::kTcp && address->port == 0) {
    return Bad(text, "nothing listens on port 0; write the application's port");
  }
  CheckSpec spec;
  spec.kind = CheckSpec::Kind::kTcp;
  spec.address = std::move(address).value();
  return spec;
}

Result<CheckSpec> ParseExec(std::string_view text) {
  const std::string_view command = text.substr(kExecPrefix.size());
  if (base::Trim(command).empty()) {
    return Bad(text, "no command stands after \"exec:\"; write exec:/path/to/command args");
  }
  Result<std::vector<std::string>> words = base::SplitCommand(command);
  if (!words.ok()) return Bad(text, words.error().message);
  CheckSpec spec;
  spec.kind = CheckSpec::Kind::kExec;
  spec.argv = std::move(words).value();
  return spec;
}

}  // namespace

Result<CheckSpec> ParseCheckSpec(std::string_view text) {
  if (text.empty()) {
    return CheckSpec{};
  }
  if (text.find('\0') != std::string_view::npos) {
    return Bad(text, "it has a zero byte");
  }
  if (text.starts_with(kHttpPrefix)) {
    return ParseHttp(text);
  }
  if (text.starts_with(kTcpPrefix)) {
    return ParseTcp(text);
  }
  if (text.starts_with(kExecPrefix)) {
    return ParseExec(text);
  }
  return Bad(text,
             "write http://host:port/path, tcp://host:port or exec:command, or nothing for none");
}

}  // namespace leasehold::health

#include "aws/source_json.h"
#include "aws/source_sts.h"

namespace leasehold::aws {
namespace {

// The text of the one element of that name, which has no elements inside.
std::optional<std::string_view> Element(std::string_view xml, const std::string& name) {
  const size_t open = xml.find("<" + name + ">");
  if (open == std::string_view::npos) return std::nullopt;
  const std::string_view rest = xml.substr(open + name.size() + 2);
  const size_t close = rest.find("</" + name + ">");
  if (close == std::string_view::npos) return std::nullopt;
  return rest.substr(0, close);
}

}  // namespace

base::Result<Credentials> ParseStsAnswer(std::string_view xml, const std::string& who) {
  const auto bad = [&](const std::string& what) {
    return base::Error{base::ErrorCode::kInvalid, who + " gave " + what};
  };
  const auto all = Element(xml, "Credentials");
  if (!all) return bad("an answer without Credentials");
  const auto id = Element(*all, "AccessKeyId");
  const auto secret = Element(*all, "SecretAccessKey");
  const auto token = Element(*all, "SessionToken");
  const auto expiration = Element(*all, "Expiration");
  if (!id || !secret || !token || !expiration || id->empty() || secret->empty()) {
    return bad("Credentials in which something is missing");
  }
  Credentials credentials;
  credentials.key = {std::string(*id), std::string(*secret), std::string(*token)};
  if (base::Status status = CheckKey(credentials.key, who); !status) return status.error();
  credentials.expires_unix_ms = ParseInstantMs(*expiration);
  if (!credentials.expires_unix_ms) return bad("an Expiration that is no time");
  credentials.source = who;
  return credentials;
}

}  // namespace leasehold::aws

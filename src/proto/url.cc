#include "proto/url.h"

#include <array>

#include "base/text.h"
#include "proto/percent.h"

namespace leasehold::proto {
namespace {

using base::Error;
using base::ErrorCode;
using base::Result;

constexpr size_t kUrlBytesMax = 2048;  // far above any real one; bounds error texts and copies
constexpr size_t kHostBytesMax = 253;  // the longest DNS name

struct Scheme {
  std::string_view name;
  uint16_t default_port;
};
constexpr std::array<Scheme, 4> kSchemes = {
    {{"redis", 6379}, {"rediss", 6379}, {"http", 80}, {"https", 443}}};

// The text with its user information masked: messages go to logs, and the part before '@' may be a
// password even when the rest is wrong.
std::string Masked(std::string_view text) {
  const size_t at = text.rfind('@');
  if (at == std::string_view::npos) return base::Printable(text);
  const size_t slashes = text.find("://");
  const size_t start = slashes == std::string_view::npos || slashes > at ? 0 : slashes + 3;
  return base::Printable(std::string(text.substr(0, start)) + "***" + std::string(text.substr(at)));
}

Error Bad(std::string_view text, const std::string& why) {
  return {ErrorCode::kInvalid, "\"" + Masked(text) + "\" is not a URL we can use: " + why};
}

// Percent-decodes user information. Zero bytes are refused: no credential has one, and some
// servers would cut there.
Result<std::string> Decode(std::string_view text) {
  std::string decoded;
  decoded.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if (byte <= ' ' || byte >= 0x7f) {
      return Error{ErrorCode::kInvalid, "blanks and bytes beyond ASCII are written as %XX there"};
    }
    if (text[i] != '%') {
      decoded.push_back(text[i]);
      continue;
    }
    const int high = i + 2 < text.size() ? HexDigitValue(text[i + 1]) : -1;
    const int low = i + 2 < text.size() ? HexDigitValue(text[i + 2]) : -1;
    if (high < 0 || low < 0 || high * 16 + low == 0) {
      return Error{ErrorCode::kInvalid, "a '%' there must be followed by two hex digits, not 00"};
    }
    decoded.push_back(static_cast<char>(high * 16 + low));
    i += 2;
  }
  return decoded;
}

bool IsHostByte(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
         c == '-' || c == '_';
}

bool IsIpv6Byte(char c) { return HexDigitValue(c) >= 0 || c == ':' || c == '.'; }

base::Status ParseUserInfo(std::string_view text, std::string_view info, Url& url) {
  const size_t colon = info.find(':');
  Result<std::string> user = Decode(info.substr(0, colon));
  if (!user) return Bad(text, "in the user name, " + user.error().message);
  url.user = *user;
  if (colon == std::string_view::npos) return {};
  Result<std::string> password = Decode(info.substr(colon + 1));
  if (!password) return Bad(text, "in the password, " + password.error().message);
  url.password = *password;
  url.has_password = true;
  return {};
}

base::Status ParsePort(std::string_view text, std::string_view port, Url& url) {
  Result<uint64_t> number = base::ParseUint64(port);
  if (!number || *number == 0 || *number > 65535) {
    return Bad(text, "the port must be a number from 1 to 65535");
  }
  url.port = static_cast<uint16_t>(*number);
  return {};
}

// "host", "host:port", "[v6]", "[v6]:port".
base::Status ParseHostPort(std::string_view text, std::string_view part, Url& url) {
  std::string_view host;
  std::string_view rest;
  if (part.starts_with("[")) {
    const size_t close = part.find(']');
    if (close == std::string_view::npos) return Bad(text, "the ']' of the IPv6 address is missing");
    host = part.substr(1, close - 1);
    rest = part.substr(close + 1);
    if (host.find(':') == std::string_view::npos) {
      return Bad(text, "brackets are for IPv6 addresses only");
    }
    for (const char c : host) {
      if (!IsIpv6Byte(c)) return Bad(text, "the IPv6 address has a character it cannot have");
    }
  } else {
    const size_t colon = part.find(':');
    host = part.substr(0, colon);
    rest = colon == std::string_view::npos ? std::string_view() : part.substr(colon);
    for (const char c : host) {
      if (!IsHostByte(c)) return Bad(text, "the host has a character no host name has");
    }
  }
  if (host.empty()) return Bad(text, "the host is empty; write scheme://host:port");
  if (host.size() > kHostBytesMax) return Bad(text, "the host is longer than 253 bytes");
  url.host = std::string(host);
  if (rest.empty()) return {};
  if (rest[0] != ':') return Bad(text, "after ']' only \":port\" or a path may follow");
  return ParsePort(text, rest.substr(1), url);
}

base::Status ParseAuthority(std::string_view text, std::string_view authority, Url& url) {
  const size_t at = authority.rfind('@');
  if (at == std::string_view::npos) return ParseHostPort(text, authority, url);
  const std::string_view info = authority.substr(0, at);
  if (info.find('@') != std::string_view::npos) {
    return Bad(text, "write an '@' inside the user name or password as %40");
  }
  if (base::Status status = ParseUserInfo(text, info, url); !status) return status;
  return ParseHostPort(text, authority.substr(at + 1), url);
}

base::Status CheckPath(std::string_view text, std::string_view path) {
  for (const char c : path) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte <= ' ' || byte >= 0x7f) {
      return Bad(text, "blanks and bytes beyond ASCII are written as %XX in a path");
    }
    if (c == '#') return Bad(text, "a fragment (#...) has no meaning here");
    // The usual cause is an unescaped '/' in a password.
    if (c == '@') return Bad(text, "write '/' inside a password as %2F, and '@' in a path as %40");
  }
  return {};
}

}  // namespace

base::Address Url::address() const {
  base::Address address;
  address.kind = base::Address::Kind::kTcp;
  address.host = host;
  address.port = port;
  return address;
}

std::string Url::ToString() const {
  std::string text = scheme + "://";
  if (!user.empty() || has_password) {
    text += base::Printable(user) + (has_password ? ":***" : "") + "@";
  }
  return text + address().ToString() + path;
}

Result<Url> ParseUrl(std::string_view text) {
  if (text.size() > kUrlBytesMax) return Bad(text.substr(0, 64), "it is longer than 2048 bytes");
  const size_t colon = text.find("://");
  const std::string scheme =
      base::ToLower(colon == std::string_view::npos ? std::string_view() : text.substr(0, colon));
  Url url;
  for (const Scheme& known : kSchemes) {
    if (scheme != known.name) continue;
    url.scheme = scheme;
    url.port = known.default_port;
  }
  if (url.scheme.empty())
    return Bad(text, "it must begin with redis://, rediss://, http:// or https://");
  const std::string_view rest = text.substr(colon + 3);
  const size_t end = rest.find_first_of("/?#");
  const std::string_view authority = rest.substr(0, end);
  const std::string_view path = end == std::string_view::npos ? "" : rest.substr(end);
  if (base::Status status = CheckPath(text, path); !status) return status.error();
  if (base::Status status = ParseAuthority(text, authority, url); !status) return status.error();
  url.path = path.starts_with("?") ? "/" + std::string(path) : std::string(path);
  return url;
}

}  // namespace leasehold::proto

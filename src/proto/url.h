// Url: the small part of RFC 3986 that configuration needs: redis://, rediss://, http:// and
// https:// with user information, host, port and path. Strict: what is not certainly right is an
// error that says what would be; errors never repeat the user information, which may hold a
// password. It is not a general parser (no relative references, no fragments, no normalising). Used
// by store, health, cli and config; a plain value, owned by whoever parsed it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/address.h"
#include "base/result.h"

namespace leasehold::proto {

struct Url {
  std::string scheme;    // "redis", "rediss", "http" or "https"; lower case
  std::string user;      // percent-decoded; may be empty
  std::string password;  // percent-decoded; may be empty; a secret
  bool has_password = false;
  std::string host;   // name, IPv4 or IPv6 literal without brackets; never empty
  uint16_t port = 0;  // never 0: the scheme's own (6379, 80, 443) when none is written
  std::string path;   // as written, with its query: "" or "/..."; printable ASCII only

  base::Address address() const;
  // "rediss://user:***@host:6379/0": the password masked, for logs and messages.
  std::string ToString() const;
};

// At most 2048 bytes.
base::Result<Url> ParseUrl(std::string_view text);

}  // namespace leasehold::proto

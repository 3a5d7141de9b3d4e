// Address: where to listen or connect, as written in configuration: "host:port", "[v6]:port",
// "unix:/path". Text only; names are resolved by loop::Resolver, never here.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace leasehold::base {

struct Address {
  enum class Kind { kTcp, kUnix };
  Kind kind = Kind::kTcp;
  std::string host;   // kTcp: name, IPv4 or IPv6 literal without brackets; "" only when empty()
  uint16_t port = 0;  // kTcp: 0 means "any free port" where one listens
  std::string path;   // kUnix: file system path, shorter than 108 bytes

  // The form it was written in: "127.0.0.1:80", "[::1]:80", "unix:/run/x.sock".
  std::string ToString() const;
  // Nothing was given: no host and no path.
  bool empty() const { return host.empty() && path.empty(); }
  // True for 127.0.0.0/8, ::1, "localhost" and Unix sockets: what other machines cannot reach.
  bool IsLoopback() const;
  bool operator==(const Address&) const = default;
};

// Accepts the three forms above; "*" as host means "0.0.0.0". Errors say what would be right.
Result<Address> ParseAddress(std::string_view text);

}  // namespace leasehold::base

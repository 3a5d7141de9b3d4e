// Socket addresses and system errors as this room's files use them: literals to sockaddr and back,
// errno to Error. No name is resolved here.
#pragma once

#include <sys/socket.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/address.h"
#include "base/result.h"

namespace leasehold::loop {

struct SocketAddress {
  sockaddr_storage storage{};
  socklen_t length = 0;

  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
  sockaddr* get() { return reinterpret_cast<sockaddr*>(&storage); }
  bool is_unix() const { return storage.ss_family == AF_UNIX; }
  bool IsLoopback() const;
  uint16_t port() const;  // 0 for Unix
  // "10.0.0.7:80", "[::1]:80" or "unix". An IPv4 client of an IPv6 listener shows as IPv4.
  std::string ToString() const;
};

// Nothing when `host` is a name rather than an IPv4 or IPv6 literal (a zone, "fe80::1%eth0", is
// allowed).
std::optional<SocketAddress> FromLiteral(const std::string& host, uint16_t port);
SocketAddress FromPath(const std::string& path);  // shorter than 108 bytes, as base::Address has it
SocketAddress FromSockaddr(const sockaddr* address, socklen_t length);

// "<what>: <the system's reason>" with a kind that fits a socket's or a file's errno.
base::Error SystemError(std::string_view what, int error_number);

}  // namespace leasehold::loop

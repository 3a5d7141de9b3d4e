#include "loop/socket_address.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/un.h>
#include <uv.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/check.h"

namespace leasehold::loop {
namespace {

base::ErrorCode CodeOf(int error_number) {
  switch (error_number) {
    case ETIMEDOUT: return base::ErrorCode::kTimeout;
    case ECONNRESET:
    case EPIPE:
    case ENOTCONN: return base::ErrorCode::kClosed;
    case ECONNREFUSED:
    case ENETUNREACH:
    case EHOSTUNREACH:
    case ENETDOWN:
    case EHOSTDOWN:
    case EADDRNOTAVAIL:
    case EAGAIN: return base::ErrorCode::kUnavailable;
    case ENOENT: return base::ErrorCode::kNotFound;
    case EACCES:
    case EPERM: return base::ErrorCode::kRefused;
    case EADDRINUSE: return base::ErrorCode::kConflict;
    case EMFILE:
    case ENFILE:
    case ENOBUFS:
    case ENOMEM:
    case ENOSPC: return base::ErrorCode::kLimit;
    default: return base::ErrorCode::kInternal;
  }
}

const sockaddr_in* V4(const SocketAddress& a) {
  return reinterpret_cast<const sockaddr_in*>(&a.storage);
}
const sockaddr_in6* V6(const SocketAddress& a) {
  return reinterpret_cast<const sockaddr_in6*>(&a.storage);
}

}  // namespace

bool SocketAddress::IsLoopback() const {
  if (storage.ss_family == AF_INET) return (ntohl(V4(*this)->sin_addr.s_addr) >> 24) == 127;
  if (storage.ss_family == AF_INET6) return IN6_IS_ADDR_LOOPBACK(&V6(*this)->sin6_addr) != 0;
  return false;
}

uint16_t SocketAddress::port() const {
  if (storage.ss_family == AF_INET) return ntohs(V4(*this)->sin_port);
  if (storage.ss_family == AF_INET6) return ntohs(V6(*this)->sin6_port);
  return 0;
}

std::string SocketAddress::ToString() const {
  char text[INET6_ADDRSTRLEN] = "";
  const std::string port_text = ":" + std::to_string(port());
  if (storage.ss_family == AF_INET) {
    inet_ntop(AF_INET, &V4(*this)->sin_addr, text, sizeof(text));
    return text + port_text;
  }
  if (storage.ss_family == AF_INET6) {
    const in6_addr& v6 = V6(*this)->sin6_addr;
    if (IN6_IS_ADDR_V4MAPPED(&v6)) {
      inet_ntop(AF_INET, &v6.s6_addr[12], text, sizeof(text));
      return text + port_text;
    }
    inet_ntop(AF_INET6, &v6, text, sizeof(text));
    return "[" + std::string(text) + "]" + port_text;
  }
  return "unix";
}

std::optional<SocketAddress> FromLiteral(const std::string& host, uint16_t port) {
  SocketAddress address;
  auto* v4 = reinterpret_cast<sockaddr_in*>(&address.storage);
  if (inet_pton(AF_INET, host.c_str(), &v4->sin_addr) == 1) {
    v4->sin_family = AF_INET;
    v4->sin_port = htons(port);
    address.length = sizeof(sockaddr_in);
    return address;
  }
  if (host.find(':') == std::string::npos) return std::nullopt;
  addrinfo hints{};
  hints.ai_family = AF_INET6;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICHOST;  // asks no name server; knows zones, unlike inet_pton
  addrinfo* found = nullptr;
  if (getaddrinfo(host.c_str(), nullptr, &hints, &found) != 0) return std::nullopt;
  address = FromSockaddr(found->ai_addr, found->ai_addrlen);
  freeaddrinfo(found);
  reinterpret_cast<sockaddr_in6*>(&address.storage)->sin6_port = htons(port);
  return address;
}

SocketAddress FromPath(const std::string& path) {
  SocketAddress address;
  auto* un = reinterpret_cast<sockaddr_un*>(&address.storage);
  CHECK(path.size() < sizeof(un->sun_path), "base::ParseAddress admits no longer path");
  un->sun_family = AF_UNIX;
  std::copy(path.begin(), path.end(), un->sun_path);
  address.length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + path.size() + 1);
  return address;
}

SocketAddress FromSockaddr(const sockaddr* from, socklen_t length) {
  SocketAddress address;
  address.length = std::min<socklen_t>(length, sizeof(address.storage));
  std::memcpy(&address.storage, from, address.length);
  return address;
}

base::Error SystemError(std::string_view what, int error_number) {
  return {CodeOf(error_number), std::string(what) + ": " + uv_strerror(-error_number)};
}

}  // namespace leasehold::loop

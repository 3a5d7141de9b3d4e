#include "loop/socket_facts.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "loop/socket_address.h"

namespace leasehold::loop {
namespace {

using Family = base::IpEndpoint::Family;

// A single loss is not death: retransmission k comes about 2^k * 200 ms after the first sending.
constexpr int kRetransmissionsMin = 2;
constexpr int kWindowProbesMin = 3;

// in6_addr of an IPv4 client: ten bytes zero, two bytes 0xFF, the address (RFC 4291, 2.5.5.2).
constexpr size_t kMappedAt = 12;

base::IpEndpoint FromSocketAddress(const SocketAddress& address) {
  base::IpEndpoint endpoint;
  endpoint.port = address.port();
  if (address.storage.ss_family == AF_INET) {
    const auto* v4 = reinterpret_cast<const sockaddr_in*>(&address.storage);
    endpoint.family = Family::kIPv4;
    std::memcpy(endpoint.bytes.data(), &v4->sin_addr, sizeof(v4->sin_addr));
  } else if (address.storage.ss_family == AF_INET6) {
    const in6_addr& v6 = reinterpret_cast<const sockaddr_in6*>(&address.storage)->sin6_addr;
    const bool mapped = IN6_IS_ADDR_V4MAPPED(&v6);
    endpoint.family = mapped ? Family::kIPv4 : Family::kIPv6;
    const size_t from = mapped ? kMappedAt : 0;
    std::copy_n(&v6.s6_addr[from], sizeof(v6.s6_addr) - from, endpoint.bytes.begin());
  }
  return endpoint;
}

template <typename Call>
base::IpEndpoint Ask(const Call& call, int fd) {
  SocketAddress address;
  address.length = sizeof(address.storage);
  if (call(fd, address.get(), &address.length) != 0) return {};
  return FromSocketAddress(address);
}

}  // namespace

base::IpEndpoint RemoteEndpoint(int fd) { return Ask(getpeername, fd); }
base::IpEndpoint LocalEndpoint(int fd) { return Ask(getsockname, fd); }

std::string EndpointText(const base::IpEndpoint& endpoint) {
  SocketAddress address;
  if (endpoint.family == Family::kIPv4) {
    auto* v4 = reinterpret_cast<sockaddr_in*>(&address.storage);
    v4->sin_family = AF_INET;
    v4->sin_port = htons(endpoint.port);
    std::memcpy(&v4->sin_addr, endpoint.bytes.data(), sizeof(v4->sin_addr));
  } else if (endpoint.family == Family::kIPv6) {
    auto* v6 = reinterpret_cast<sockaddr_in6*>(&address.storage);
    v6->sin6_family = AF_INET6;
    v6->sin6_port = htons(endpoint.port);
    std::memcpy(&v6->sin6_addr, endpoint.bytes.data(), sizeof(v6->sin6_addr));
  }
  return address.ToString();
}

bool LooksDead(int fd, base::Duration silence) {
  tcp_info info{};
  socklen_t size = sizeof(info);
  if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) != 0) return false;
  const bool in_vain = (info.tcpi_unacked > 0 && info.tcpi_retransmits >= kRetransmissionsMin) ||
                       info.tcpi_probes >= kWindowProbesMin;
  return in_vain && base::Duration::Millis(info.tcpi_last_ack_recv) >= silence;
}

size_t PeekBytes(int fd, std::span<char> into) {
  ssize_t n = 0;
  do {
    n = recv(fd, into.data(), into.size(), MSG_PEEK | MSG_DONTWAIT);
  } while (n < 0 && errno == EINTR);
  return n < 0 ? 0 : static_cast<size_t>(n);
}

}  // namespace leasehold::loop

// IpEndpoint: an IP address and a port as raw bytes, the way protocols carry them: what a socket
// and a codec agree on. A plain value; text is loop's (socket_facts.h), names are nobody's here.
#pragma once

#include <array>
#include <cstdint>

namespace leasehold::base {

struct IpEndpoint {
  enum class Family : uint8_t { kNone, kIPv4, kIPv6 };
  Family family = Family::kNone;    // kNone: not known, or no IP (a Unix socket)
  std::array<uint8_t, 16> bytes{};  // in network order; IPv4: the first four
  uint16_t port = 0;
  bool operator==(const IpEndpoint&) const = default;
};

}  // namespace leasehold::base

// PROXY protocol, version 2 (the binary form; haproxy.org, proxy-protocol.txt, section 2.2): the
// header at the front of a TCP connection that says whose connection it carries, with a field of
// our own for the hello between sidecars. Pure and bounded; owns nothing. Not here: version 1, and
// whom to believe, which is the gate's.
//
// Invariant: a reader looks at no byte past `bytes`, and says kMore only as long as the header can
// still become a good one of at most kProxyHeaderBytesMax bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/ip_endpoint.h"

namespace leasehold::proto {

// Ours are below 400 bytes; load balancers that add fields of their own (TLS names, say) stay below
// this too. The format would allow 64 KiB.
inline constexpr size_t kProxyHeaderBytesMax = 1024;

struct ProxyHeader {
  // LOCAL: the sender speaks for itself, and there is no client behind it.
  bool local = false;
  // The client's address and the one it connected to. Family kNone: not said (always for LOCAL and
  // Unix sockets).
  base::IpEndpoint source;
  base::IpEndpoint destination;
  // The value of our own field (type 0xEA, of the range left to applications); empty: none.
  std::string_view hello;
};

enum class ProxyRead : uint8_t {
  kMore,  // so far it is the front of a good header
  kDone,
  kBad,
};

// The header at the front of `bytes`. kDone: *size is its length, and header->hello points into
// `bytes`. kBad: *why says what is wrong, with a sentence. A CRC32C field is checked if there is
// one.
ProxyRead ReadProxyHeader(std::string_view bytes, ProxyHeader* header, size_t* size,
                          std::string_view* why);

// The bytes of `header`, with a CRC32C field. Addresses of two families, or none, are written as
// "unspecified". Empty if they would exceed kProxyHeaderBytesMax.
std::string WriteProxyHeader(const ProxyHeader& header);

// CRC-32C (Castagnoli, RFC 3720 appendix B.4) of `bytes`.
uint32_t Crc32c(std::string_view bytes);

}  // namespace leasehold::proto

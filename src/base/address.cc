#include "base/address.h"

#include "base/text.h"

namespace leasehold::base {
namespace {

constexpr size_t kUnixPathMax = 107;  // sizeof(sockaddr_un::sun_path) less the final zero

Error Bad(std::string_view text, std::string_view why) {
  return {ErrorCode::kInvalid, "\"" + Printable(text) +
                                   "\" is not an address: " + std::string(why) +
                                   "; write \"host:port\", \"[v6]:port\" or \"unix:/path\""};
}

// Hex digits, colons, dots, and a zone behind '%' ("fe80::1%eth0"). Whether it is one the resolver
// decides; here it only must not read as something else when it is written again. IPv4 too: who
// writes "[${POD_IP}]:8081" need not know which of the two a pod gets.
bool LooksLikeIp(std::string_view host) {
  const std::string_view address = host.substr(0, host.find('%'));
  const bool v6 = address.find(':') != std::string_view::npos;
  return !address.empty() &&
         address.find_first_not_of(v6 ? "0123456789abcdefABCDEF:." : "0123456789.") ==
             std::string_view::npos;
}

Result<Address> ParseUnix(std::string_view text, std::string_view path) {
  if (path.empty()) return Bad(text, "the path is empty");
  if (path.size() > kUnixPathMax) return Bad(text, "the path is longer than 107 bytes");
  // The kernel would end the path at a zero byte, and bind another one.
  if (path.find('\0') != std::string_view::npos) return Bad(text, "the path has a zero byte");
  Address address;
  address.kind = Address::Kind::kUnix;
  address.path = std::string(path);
  return address;
}

}  // namespace

std::string Address::ToString() const {
  if (kind == Kind::kUnix) return "unix:" + path;
  const bool v6 = host.find(':') != std::string::npos;
  return (v6 ? "[" + host + "]" : host) + ":" + std::to_string(port);
}

bool Address::IsLoopback() const {
  if (kind == Kind::kUnix) return true;
  return host == "::1" || EqualsIgnoreCase(host, "localhost") ||
         (host.starts_with("127.") && host.find_first_not_of("0123456789.") == std::string::npos);
}

Result<Address> ParseAddress(std::string_view text) {
  if (text.starts_with("unix:")) return ParseUnix(text, text.substr(5));
  std::string_view host;
  std::string_view port;
  if (text.starts_with("[")) {
    const size_t close = text.find("]:");
    if (close == std::string_view::npos) return Bad(text, "\"]:port\" is missing");
    host = text.substr(1, close - 1);
    port = text.substr(close + 2);
    if (!LooksLikeIp(host)) return Bad(text, "brackets are for IP addresses only");
  } else {
    const size_t colon = text.find(':');
    if (colon == std::string_view::npos) return Bad(text, "the port is missing");
    if (text.find(':', colon + 1) != std::string_view::npos) {
      return Bad(text, "an IPv6 address needs brackets");
    }
    host = text.substr(0, colon);
    port = text.substr(colon + 1);
  }
  if (host.empty()) return Bad(text, "the host is empty");
  if (host.size() > 253) return Bad(text, "the host is longer than 253 bytes");
  for (const char c : host) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte <= ' ' || byte >= 0x7f || c == '/' || c == '@' || c == '[' || c == ']') {
      return Bad(text, "the host has a character no host name has");
    }
  }
  Result<uint64_t> number = ParseUint64(port);
  if (!number || *number > 65535) return Bad(text, "the port must be 0 to 65535");
  Address address;
  address.host = host == "*" ? "0.0.0.0" : std::string(host);
  address.port = static_cast<uint16_t>(*number);
  return address;
}

}  // namespace leasehold::base

#include "gate/tcp_peer.h"

#include "gate/peer_hello.h"
#include "loop/socket_facts.h"
#include "proto/proxy_protocol.h"

namespace leasehold::gate {
namespace {

constexpr std::string_view kVerdictFront("LHPEER\x01", 7);

}  // namespace

std::string VerdictBytes(PeerVerdict verdict) {
  return std::string(kVerdictFront) + static_cast<char>(verdict);
}

VerdictRead ReadVerdict(std::string_view bytes, PeerVerdict* verdict) {
  if (bytes.substr(0, kVerdictFront.size()) != kVerdictFront.substr(0, bytes.size())) {
    return VerdictRead::kBad;
  }
  if (bytes.size() < kVerdictBytes) return VerdictRead::kMore;
  *verdict = static_cast<PeerVerdict>(bytes[kVerdictFront.size()]);
  switch (*verdict) {
    case PeerVerdict::kAdmitted:
    case PeerVerdict::kNotAdmitted:
    case PeerVerdict::kRefused: return VerdictRead::kDone;
  }
  return VerdictRead::kBad;
}

std::string PeerHeader(int client_fd, std::string_view hello) {
  proto::ProxyHeader header;
  header.source = loop::RemoteEndpoint(client_fd);
  header.destination = loop::LocalEndpoint(client_fd);
  // A Unix socket has no address that the other side could use (the format's LOCAL).
  header.local = header.source.family == base::IpEndpoint::Family::kNone;
  header.hello = hello;
  return proto::WriteProxyHeader(header);
}

bool SidecarSpeaks(std::string_view first_bytes) {
  proto::ProxyHeader header;
  size_t size = 0;
  std::string_view why;
  PeerHello hello;
  return proto::ReadProxyHeader(first_bytes, &header, &size, &why) == proto::ProxyRead::kDone &&
         ParsePeerHello(header.hello, &hello);
}

}  // namespace leasehold::gate

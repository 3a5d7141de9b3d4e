// What a connected descriptor tells without being read or owned: its two ends, and the first bytes
// that wait in it. Nothing here blocks, keeps or closes the descriptor.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "base/ip_endpoint.h"
#include "base/time.h"

namespace leasehold::loop {

// Family kNone for a Unix socket, or one that is no longer connected. An IPv4 client of an IPv6
// listener shows as IPv4, at both ends.
base::IpEndpoint RemoteEndpoint(int fd);
base::IpEndpoint LocalEndpoint(int fd);

// "10.0.0.7:51234", "[::1]:80"; "unix" without a family.
std::string EndpointText(const base::IpEndpoint& endpoint);

// Copies what has arrived and nobody has read; it stays there. How many bytes: 0 when there is
// nothing.
size_t PeekBytes(int fd, std::span<char> into);

// Has what was sent to the other side stayed without any answer for `silence`, retransmitted in
// vain? False while nothing is under way (keep-alive probes see to that), while the other side lets
// us wait but answers (a window of zero), and for Unix sockets. `silence` must exceed the period of
// the keep-alive probes, which bound how old the last answer of a living peer can be.
bool LooksDead(int fd, base::Duration silence);

}  // namespace leasehold::loop

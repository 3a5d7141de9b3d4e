// Peer: the holder's gate, as the lease record last seen names it, for gates that forward
// (DESIGN 4, Forwarding). A plain value: app makes it from the record, peer_route.h decides what
// may be sent there. The record may be stale or forged; whoever is reached decides for itself
// whether it admits.
#pragma once

#include <cstdint>
#include <string>

#include "base/address.h"

namespace leasehold::gate {

struct Peer {
  // Where its gate of our name takes other sidecars' traffic. Empty: there is nobody to forward to
  // (nobody holds, this process does, or the holder advertises nothing for this gate).
  base::Address address;
  std::string process_id;  // of the holder: what is sent there is meant for no other
  uint64_t token = 0;
  bool draining = false;  // it is stepping down: hold instead of forwarding
  bool operator==(const Peer&) const = default;
};

}  // namespace leasehold::gate

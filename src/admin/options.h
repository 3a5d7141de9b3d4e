// Options of the localhost API and the signal socket, as `sidecar.conf` gives them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/address.h"

namespace leasehold::admin {

struct AdminOptions {
  std::string listen = "127.0.0.1:9090";  // empty: no API
  std::string token_file;                 // demanded when `listen` is not loopback
  std::vector<std::string>
      allowed_hosts;  // more Host names that are ours, beside the listen address and localhost
  uint32_t max_connections = 256;
};

struct SignalOptions {
  std::string socket;               // empty: no socket
  std::vector<int64_t> allow_uids;  // empty: whoever the mode 0660 lets in
  uint32_t max_clients = 64;
};

}  // namespace leasehold::admin

// Options of the localhost API and the signal socket, as `sidecar.conf` gives them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/address.h"
#include "base/time.h"

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

// Commands that are told of a lease's changes ([hooks]). Blanks part their words, quotes keep
// blanks in one word; no shell. Empty: none.
struct HookOptions {
  std::string on_active;
  std::string on_draining;
  std::string on_standby;
  base::Duration timeout = base::Duration::Seconds(30);  // then the command's group is killed
};

struct AuditOptions {
  std::string file;     // "stdout", a path, or empty: in memory only
  uint32_t keep = 256;  // entries in memory
};

}  // namespace leasehold::admin

// ApiServer: the localhost HTTP API (DESIGN 5): probes, status, leases, step-down, events, config,
// metrics. What there is stands in the table of routes.cc, who may ask in access.h: an address
// beyond loopback demands a token and then guards reads (also /metrics) with it, probes never;
// `Host` must be ours; pages of elsewhere may change nothing. Not TLS. Owned by app. Invariants: a
// step-down goes on whether or not its client waits; every buffer, wait and number of clients is
// bounded.
#pragma once

#include <memory>
#include <string>

#include "admin/control.h"
#include "admin/options.h"
#include "base/result.h"
#include "loop/loop.h"
#include "observe/event.h"
#include "observe/log.h"
#include "observe/metrics.h"

namespace leasehold::admin {

class ApiServer {
 public:
  // Binds now; an error names the option, its value and why or the remedy. `token` is the content
  // of token_file, empty: none (with token_file set, an empty content is an error).
  static base::Result<std::unique_ptr<ApiServer>> Start(
      loop::Loop& loop, const AdminOptions& options, const std::string& token, Control& control,
      observe::Metrics& metrics, observe::EventBus& events, observe::Log& log);
  virtual ~ApiServer() = default;
  virtual std::string bound() const = 0;  // "127.0.0.1:9090" with the real port
};

}  // namespace leasehold::admin

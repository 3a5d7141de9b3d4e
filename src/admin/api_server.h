// ApiServer: the localhost HTTP API (DESIGN 5): probes, status, leases, step-down, config, metrics.
// Loopback, token and Host rules are enforced here. Owned by app.
#pragma once

#include <memory>
#include <string>

#include "admin/control.h"
#include "admin/options.h"
#include "base/result.h"
#include "loop/loop.h"
#include "observe/log.h"
#include "observe/metrics.h"

namespace leasehold::admin {

class ApiServer {
 public:
  // Binds now; an error names the address and why. `token` is the content of token_file, empty:
  // none.
  static base::Result<std::unique_ptr<ApiServer>> Start(loop::Loop& loop,
                                                        const AdminOptions& options,
                                                        std::string token, Control& control,
                                                        observe::Metrics& metrics,
                                                        observe::Log& log);
  virtual ~ApiServer() = default;
  virtual std::string bound() const = 0;  // "127.0.0.1:9090" with the real port
};

}  // namespace leasehold::admin

// AppCheck: asks the application whether it is ready (HTTP 2xx/3xx, a TCP connect, or a command's
// exit code 0), on a fixed rhythm, one check at a time, each bounded. Ready after one success;
// unready after one failure. "Unready too long" is counted from the start of the last successful
// check, so that a step-down comes within unready_after of the application's death. Owned by app;
// decides nothing about the lease.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/result.h"
#include "base/time.h"
#include "health/options.h"
#include "loop/loop.h"

namespace leasehold::health {

// A parsed Options::check.
base::Status ValidateCheck(const std::string& check);

class AppCheck {
 public:
  struct Callbacks {
    std::function<void(bool ready, const std::string& why)> on_change;  // also the first verdict
    std::function<void()> on_unready_too_long;                          // once per unready spell
  };
  static base::Result<std::unique_ptr<AppCheck>> Start(loop::Loop& loop, const Options& options,
                                                       Callbacks callbacks);
  virtual ~AppCheck() = default;
  virtual bool ready() const = 0;
  virtual std::string last_error() const = 0;
};

}  // namespace leasehold::health

// SignalServer: the Unix socket (DESIGN 5): newline-delimited JSON, `hello` on connect, then
// events (observe::EventJson); clients may register to be waited for in drains. Pushed lines bear
// "event" (also "hello" and "error"), answers bear "op" and "ok" (the ops: signal_ops.h). Owned by
// app. Invariants: a slow
// reader is dropped, never waited for; a client that is gone or has sent its last byte counts as
// drained; Control::DrainProgress is called from the loop, never from inside an event.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "admin/control.h"
#include "admin/options.h"
#include "base/result.h"
#include "loop/loop.h"
#include "observe/event.h"
#include "observe/log.h"

namespace leasehold::admin {

class SignalServer {
 public:
  static base::Result<std::unique_ptr<SignalServer>> Start(loop::Loop& loop,
                                                           const SignalOptions& options,
                                                           Control& control,
                                                           observe::EventBus& events,
                                                           observe::Log& log);
  virtual ~SignalServer() = default;
  // Every registered client has said drained for this lease and token (vanished clients count as
  // drained).
  virtual bool AllDrained(const std::string& lease, uint64_t token) const = 0;
  virtual size_t clients() const = 0;
};

}  // namespace leasehold::admin

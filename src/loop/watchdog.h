// Watchdog: the sidecar's end of a small process of its own that starts a command, is its parent,
// and has all of it dead before a permit ends, also when the sidecar is stopped, killed or hangs.
// Made by Fork() before the loop and any thread; its session is its own, so that neither signals to
// the sidecar's group nor a terminal's Ctrl-Z reach it. Speaking to it from the loop is
// GuardedChild's (guarded_child.h); what it does is in watchdog_process.cc.
//
// Invariant: it outlives its command, and ends by itself when the sidecar's end is closed and
// nothing of the command is left.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/time.h"

namespace leasehold::loop {

struct WatchdogShared;

struct WatchdogOptions {
  std::vector<std::string> argv;  // argv[0] is looked up in PATH at each start
  // From TERM to KILL where nobody orders otherwise: the sidecar has died, or the command has ended
  // and left processes behind.
  base::Duration stop_timeout;
  // Called in the watchdog's process, when it acts for a sidecar that is gone. Must not wait for a
  // reader: the command would live as long.
  std::function<void(std::string_view event, std::string_view message)> say;
};

class Watchdog {
 public:
  // Forks. The calling process must have one thread; the watchdog keeps its limits, signal
  // dispositions, directory and open descriptors for the command.
  static base::Result<std::unique_ptr<Watchdog>> Fork(WatchdogOptions options);
  // Closes our end: TERM, then KILL to a command that still runs.
  ~Watchdog();
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

  int pid() const { return pid_; }
  const WatchdogOptions& options() const { return options_; }

  // For GuardedChild.
  int socket() const { return socket_; }
  WatchdogShared& shared() const { return *shared_; }
  // It does not answer: ends it. Its socket shows that it is gone.
  void EndIt();
  // The kernel is told that its exit is known; false while it has not ended.
  bool Reap();
  std::string HowItEnded() const;  // a phrase

 private:
  Watchdog(WatchdogOptions options, int pid, int socket, WatchdogShared* shared);

  const WatchdogOptions options_;
  const int pid_;
  const int socket_;
  WatchdogShared* const shared_;
  std::optional<int> status_;  // once it is reaped
};

}  // namespace leasehold::loop

#include "app/run.h"

#include <linux/close_range.h>
#include <sys/resource.h>
#include <unistd.h>

#include <memory>
#include <utility>

#include "app/sidecar.h"
#include "gate/process_gate.h"
#include "loop/watchdog.h"
#include "observe/log.h"

namespace leasehold::app {

namespace {

// Every gated connection takes two descriptors (and a spliced one pipes): as many as the system
// allows us.
void RaiseDescriptorLimit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

// What we were started with (a pipe of a script, a lock) is for the command, not for hooks and
// checks, whose leftovers would keep it open. Before Linux 5.11 it stays as it is.
void KeepInheritedFromHooks() { close_range(STDERR_FILENO + 1, ~0U, CLOSE_RANGE_CLOEXEC); }

base::Result<std::unique_ptr<loop::Watchdog>> StartWatchdog(const config::Config& config) {
  loop::WatchdogOptions options;
  options.argv = config.exec.command;
  options.stop_timeout = config.exec.stop_timeout;
  // In the watchdog's process, where there is no log of the sidecar's.
  options.say = [log = config.log, lease = config.exec.lease](std::string_view event,
                                                              std::string_view message) {
    observe::Log(log).Warn(event, message, {{"lease", lease}});
  };
  return loop::Watchdog::Fork(std::move(options));
}

}  // namespace

int Run(config::Config config) {
  std::unique_ptr<loop::Watchdog> watchdog;
  if (!config.exec.command.empty()) {
    // First of all: there is one thread and nothing open, and the command's limits are untouched.
    auto started = StartWatchdog(config);
    if (!started) {
      observe::Log(config.log).Error("exec.refused", started.error().message);
      return gate::kProcessLostExitCode;
    }
    watchdog = std::move(*started);
  }
  RaiseDescriptorLimit();
  KeepInheritedFromHooks();
  return Sidecar(std::move(config), std::move(watchdog)).Run();
}

}  // namespace leasehold::app

#include "app/run.h"

#include <sys/resource.h>

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
  return Sidecar(std::move(config), std::move(watchdog)).Run();
}

}  // namespace leasehold::app

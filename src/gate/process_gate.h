// ProcessGate: the gate whose traffic is a command (`leasehold exec`): open, the command runs;
// draining, it goes on until everybody else has finished, then gets TERM and, stop_timeout later,
// KILL; closed, nothing of it is left. It opens last and is what a drain ends with. Not here: that
// it is dead by the permit's end whatever becomes of this process, which is the watchdog's
// (loop/watchdog.h). Owned by the lease's driver.
//
// Invariant: it is started only under a permit that admits, under that permit's token, and never
// while anything of an earlier start is left.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "gate/gate.h"
#include "gate/process_options.h"
#include "loop/watchdog.h"

namespace leasehold::gate {

// The exit code when the command could not be guarded any more; what `timeout` and `docker run` use
// for failures of their own.
inline constexpr int kProcessLostExitCode = 125;

// What it borrows and tells beyond Host. All outlive it.
struct ProcessHost {
  loop::Watchdog& watchdog;
  // Variables for the command beside those that the gate knows itself; asked at each start.
  std::function<std::map<std::string, std::string>()> environment;
  // Descriptors whose locks must be held while the command lives; asked at each start.
  std::function<std::vector<int>()> keep_open;
  // The command has ended of its own and is not started again, or can be guarded no more: this
  // process is to step down and end with that exit code.
  std::function<void(int exit_code, const std::string& why)> on_finished;
  // It could not be started under this token.
  std::function<void(uint64_t token, const std::string& why)> on_start_failed;
};

std::unique_ptr<Gate> MakeProcessGate(const ProcessOptions& options, Host host,
                                      ProcessHost process_host);

}  // namespace leasehold::gate

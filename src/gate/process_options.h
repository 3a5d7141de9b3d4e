// Options of the command that runs only while the lease is held (`leasehold exec -- CMD`, [exec] in
// `sidecar.conf`).
#pragma once

#include <string>
#include <vector>

#include "base/time.h"

namespace leasehold::gate {

// What the command is called among the gates; no gate beside it may have the name.
inline constexpr const char* kProcessGateName = "exec";

enum class Restart {
  kNever,      // the command's end is ours: release, and exit with its code
  kOnFailure,  // exit code 0 ends like kNever; anything else starts it again while we hold
  kAlways,
};

struct ProcessOptions {
  std::vector<std::string> command;  // argv, from the command line; empty: none
  std::string lease;                 // whose; filled in when there is only one
  Restart restart = Restart::kNever;
  base::Duration restart_delay = base::Duration::Seconds(1);  // doubles to 30 s, then starts anew
  // From TERM to KILL in a step-down; it is a part of step_down_grace.
  base::Duration stop_timeout = base::Duration::Seconds(5);
};

}  // namespace leasehold::gate

// Run: the whole sidecar, from a checked configuration to the end of the process (DESIGN 2.5:
// SIGTERM steps down, releases, exits 0). The composition root's one entry; only cli and tests call
// it.
#pragma once

#include "config/config.h"

namespace leasehold::app {

// Returns the process's exit code (cli/exit_code.h): 0 ended as asked, 1 failed at run time, 2 the
// configuration cannot work here (a port in use, an unusable store). With a command
// (config.exec.command, its lease filled in) also that command's own, and 125 in place of 1. The
// process must have one thread: the command's watchdog is forked from it.
int Run(config::Config config);

}  // namespace leasehold::app

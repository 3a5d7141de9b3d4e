// Cli: from the program's arguments to its exit code. main.cc does nothing else; tests call
// Dispatch with a console of their own.
#pragma once

#include "cli/command_line.h"
#include "cli/console.h"
#include "loop/loop.h"

namespace leasehold::cli {

// Carries a parsed command out. `loop` is used by commands that ask a running sidecar.
int Dispatch(const CommandLine& command, loop::Loop& loop, Console& console);

// The whole program, on standard input, output and error.
int Main(int argc, const char* const* argv);

}  // namespace leasehold::cli

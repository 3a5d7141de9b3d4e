// Commands: one function per subcommand. Each says what it did on the console and returns the exit
// code; none ends the program. `loop` is for calls to a running sidecar; `run` makes its own.
#pragma once

#include "cli/command_line.h"
#include "cli/console.h"
#include "config/config.h"
#include "loop/loop.h"

namespace leasehold::cli {

// A configuration's errors and warnings as people read them; true if there is no error.
bool TellProblems(const config::LoadResult& loaded, Console& console);

int RunCommand(const CommandLine& command, Console& console);
int ExecCommand(const CommandLine& command, Console& console);
int CheckCommand(const CommandLine& command, Console& console);
int VersionCommand(const CommandLine& command, Console& console);
int StatusCommand(const CommandLine& command, loop::Loop& loop, Console& console);
int DescribeCommand(const CommandLine& command, loop::Loop& loop, Console& console);
int StepDownCommand(const CommandLine& command, loop::Loop& loop, Console& console);
int WaitCommand(const CommandLine& command, loop::Loop& loop, Console& console);
int DrainedCommand(const CommandLine& command, loop::Loop& loop, Console& console);
int EventsCommand(const CommandLine& command, loop::Loop& loop, Console& console);

}  // namespace leasehold::cli

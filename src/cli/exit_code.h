// ExitCode: the closed list of what the program's end tells a script. Printed by --help
// (command_line.cc), so a code is never given another meaning.
#pragma once

namespace leasehold::cli {

enum ExitCode : int {
  kOk = 0,
  kFailed = 1,              // it was tried and went wrong; standard error says why
  kUsage = 2,               // the command line or the configuration is wrong; nothing was tried
  kFailedPrecondition = 3,  // another process or token than expected, or a step-down is under way
  kNotReachable = 4,        // the sidecar could not be reached or did not answer
  kTimedOut = 5,            // it did not happen in time, or the outcome is unknown
  kNotHolder = 6,           // the asked process does not hold the lease
  // exec only, whose other codes are its command's own; the numbers are a shell's and `timeout`'s.
  kExecFailed = 125,     // leasehold itself failed, or was stopped at once
  kNotExecutable = 126,  // the command is no executable file
  kNotFound = 127,       // there is no such command
};

}  // namespace leasehold::cli

// What /proc shows of other processes: who descends from us, who carries a word in its environment.
// For ending what a command started, wherever it went. Snapshots: a process that forks meanwhile is
// found by the next look. Processes that /proc hides (hidepid, another pid namespace) are not
// found. Private to this room; blocking, some microseconds per process.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace leasehold::loop {

// All living descendants of `root`, parents before their children; `root` itself is not among them.
std::vector<pid_t> DescendantsOf(pid_t root);

// Living processes of a group; what has ended and waits to be reaped is not among them.
std::vector<pid_t> MembersOf(pid_t group);

// Processes whose environment at their start had `entry` ("NAME=value"), as far as we may read it.
// The caller itself is left out.
std::vector<pid_t> WithEnvironment(const std::string& entry);

}  // namespace leasehold::loop

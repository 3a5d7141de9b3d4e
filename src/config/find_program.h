// FindProgram: whether a command could be run, as execvp() would look for it. For warnings of
// `leasehold check` only: what is true now may not be when the command runs.
#pragma once

#include <string>

namespace leasehold::config {

// "": it can be run. Else why not, as the end of a sentence about it ("is not in PATH (...)").
std::string WhyNotRunnable(const std::string& program);

}  // namespace leasehold::config

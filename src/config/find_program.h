// FindProgram: whether a command could be run, as execvp(3) would look for it. What is true now may
// not be when the command runs: for what `leasehold check` and `leasehold exec` say beforehand.
#pragma once

#include <string>

namespace leasehold::config {

struct FoundProgram {
  enum class State { kRunnable, kNotExecutable, kAbsent };
  State state = State::kAbsent;
  std::string why;  // not kRunnable: a clause, "it is not executable for this user"
};

FoundProgram FindProgram(const std::string& program);

}  // namespace leasehold::config

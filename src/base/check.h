// CHECK: stops the program on a broken invariant of our own, with the condition, the place and a
// sentence. It is for what only a bug can do; what the world does (input, network, store, files) is
// a Result, never a CHECK.
#pragma once

namespace leasehold::base {

// Writes "CHECK failed: <condition> at <file>:<line>: <message>" to standard error and aborts.
[[noreturn]] void CheckFailed(const char* condition, const char* file, int line,
                              const char* message);

}  // namespace leasehold::base

#define CHECK(condition, message)                                              \
  do {                                                                         \
    if (!(condition)) {                                                        \
      ::leasehold::base::CheckFailed(#condition, __FILE__, __LINE__, message); \
    }                                                                          \
  } while (false)

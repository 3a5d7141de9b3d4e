// Child: runs a command in its own process group without a shell, bounded in time, output bounded
// and captured.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "loop/loop.h"

namespace leasehold::loop {

struct ChildOptions {
  std::vector<std::string> argv;           // argv[0] looked up in PATH
  std::map<std::string, std::string> env;  // added to ours
  base::Duration timeout;                  // KILL to the group after it; zero: none
  size_t output_bytes_max = 4096;          // of stdout and stderr together; the rest is dropped
  bool output_keep_last = false;           // keep the last of them rather than the first
  bool stderr_dropped = false;             // output is what goes to stdout; stderr goes nowhere
};

struct ChildExit {
  int code = -1;   // exit code, or -1
  int signal = 0;  // terminating signal, or 0
  bool timed_out = false;
  std::string output;
};

class Child {
 public:
  static base::Result<std::unique_ptr<Child>> Start(Loop& loop, const ChildOptions& options,
                                                    std::function<void(const ChildExit&)> on_exit);
  virtual ~Child() = default;  // KILLs the group if it still runs
  virtual int pid() const = 0;
  virtual void Signal(int signal) = 0;  // to the whole group
};

}  // namespace leasehold::loop

// HelperProcess: this very test program started once more in a helper mode (main.cc), as another
// process that races, holds, freezes and dies. Owned by a test; its destructor kills it by its id
// and waits for it.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace leasehold::store_contract {

class HelperProcess {
 public:
  // `arguments` as main.cc describes them.
  explicit HelperProcess(const std::vector<std::string>& arguments);
  ~HelperProcess();
  HelperProcess(const HelperProcess&) = delete;
  HelperProcess& operator=(const HelperProcess&) = delete;

  // The next line of its standard output, "" if it ends before one or none comes within 20 s.
  std::string Line();
  void Signal(int signal) const;
  // Waits for its end: exit code, or -signal.
  int Wait();

 private:
  pid_t pid_ = -1;
  int out_ = -1;
};

}  // namespace leasehold::store_contract

#include "app/run.h"

#include <sys/resource.h>

#include <utility>

#include "app/sidecar.h"

namespace leasehold::app {

namespace {

// Every gated connection takes two descriptors (and a spliced one pipes): as many as the system
// allows us.
void RaiseDescriptorLimit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

}  // namespace

int Run(config::Config config) {
  RaiseDescriptorLimit();
  return Sidecar(std::move(config)).Run();
}

}  // namespace leasehold::app

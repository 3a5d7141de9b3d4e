#include "app/run.h"

#include <utility>

#include "app/sidecar.h"

namespace leasehold::app {

int Run(config::Config config) { return Sidecar(std::move(config)).Run(); }

}  // namespace leasehold::app

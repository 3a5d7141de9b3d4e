// Options of the application check ([app] in `sidecar.conf`).
#pragma once

#include <string>

#include "base/time.h"

namespace leasehold::health {

enum class OnUnready { kStepDown, kKeep };

struct Options {
  std::string check;  // "http://host:port/path", "tcp://host:port", "exec:command args", "" = no
                      // check: always ready
  base::Duration interval = base::Duration::Seconds(1);
  base::Duration timeout = base::Duration::Seconds(1);
  base::Duration unready_after = base::Duration::Seconds(5);  // since the last successful check
  OnUnready on_unready = OnUnready::kStepDown;
};

}  // namespace leasehold::health

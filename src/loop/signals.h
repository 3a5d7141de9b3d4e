// Signals: process signals as loop callbacks. SIGPIPE is ignored by the first Loop of the process.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "loop/loop.h"

namespace leasehold::loop {

class Signals {
 public:
  static std::unique_ptr<Signals> Watch(Loop& loop, const std::vector<int>& signals,
                                        std::function<void(int)> on_signal);
  virtual ~Signals() = default;
};

}  // namespace leasehold::loop

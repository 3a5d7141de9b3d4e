// Environment: what room aws is told of the process's surroundings, as values, so that a test can
// say what it likes and nothing deep inside reads the real ones. Filled in by app.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>

namespace leasehold::aws {

struct Environment {
  std::map<std::string, std::string> variables;                    // AWS_* and HOME
  std::optional<std::string> Get(const std::string& name) const {  // empty counts as absent
    const auto found = variables.find(name);
    if (found == variables.end() || found->second.empty()) return std::nullopt;
    return found->second;
  }
  // The process's own.
  static Environment OfProcess();
};

}  // namespace leasehold::aws

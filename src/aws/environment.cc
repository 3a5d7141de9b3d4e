#include "aws/environment.h"

#include <unistd.h>

#include <string_view>

namespace leasehold::aws {

Environment Environment::OfProcess() {
  Environment result;
  if (environ == nullptr) return result;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const size_t equals = text.find('=');
    if (equals == std::string_view::npos) continue;
    const std::string_view name = text.substr(0, equals);
    if (!name.starts_with("AWS_") && name != "HOME") continue;
    // The first of two of the same name, as getenv does.
    result.variables.emplace(name, text.substr(equals + 1));
  }
  return result;
}

}  // namespace leasehold::aws

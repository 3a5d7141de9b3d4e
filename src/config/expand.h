// Expand: ${VAR} and ${VAR:-default} inside string values (DESIGN 8). "$${" is a literal "${". A
// default may not contain another "${". Pure: the environment is a function.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace leasehold::config {

// nullptr: not set.
using Environment = std::function<const char*(const char*)>;

// An unset variable without a default is an error that names it; an empty one counts as unset where
// there is a default (as in a shell). So is a value that its variables make longer than 64 KiB.
base::Result<std::string> Expand(std::string_view text, const Environment& environment);

}  // namespace leasehold::config

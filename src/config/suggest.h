// Nearest: what a mistyped name was probably meant to be. For "did you mean" in messages only.
#pragma once

#include <string_view>
#include <vector>

namespace leasehold::config {

// The candidate with the fewest single-character edits (insert, delete, replace, swap of
// neighbours) from `name`, if they are at most a third of its length and at most 3; else empty.
std::string_view Nearest(std::string_view name, const std::vector<std::string_view>& candidates);

}  // namespace leasehold::config

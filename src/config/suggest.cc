#include "config/suggest.h"

#include <algorithm>
#include <cstddef>

namespace leasehold::config {
namespace {

constexpr size_t kNameBytesMax =
    64;  // our longest key has 24; a longer name is no slip of the hand

// Restricted Damerau-Levenshtein distance by the usual three rows (Wagner and Fischer, 1974).
size_t Edits(std::string_view a, std::string_view b) {
  std::vector<size_t> before(b.size() + 1);
  std::vector<size_t> last(b.size() + 1);
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) last[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t replace = last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, replace});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        row[j] = std::min(row[j], before[j - 2] + 1);
      }
    }
    std::swap(before, last);
    std::swap(last, row);
  }
  return last[b.size()];
}

}  // namespace

std::string_view Nearest(std::string_view name, const std::vector<std::string_view>& candidates) {
  if (name.size() > kNameBytesMax) return {};
  std::string_view best;
  size_t fewest = std::min<size_t>(3, std::max<size_t>(1, name.size() / 3)) + 1;
  for (const std::string_view candidate : candidates) {
    const size_t edits = Edits(name, candidate);
    if (edits >= fewest) continue;
    fewest = edits;
    best = candidate;
  }
  return best;
}

}  // namespace leasehold::config

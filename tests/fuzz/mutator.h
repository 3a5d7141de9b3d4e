// Mutator: makes inputs out of a corpus for the replay program: a seed, changed in one to six small
// ways (bits, bytes, numbers, pieces cut, doubled, moved, taken from another seed or from the
// target's dictionary). Deterministic: same corpus, same seed, same mutants. Not guided by
// coverage: that is libFuzzer's part (fuzz.py).
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/random.h"

namespace leasehold::fuzz {

class Mutator {
 public:
  // `corpus` and `dictionary` outlive it; the corpus is not empty.
  Mutator(const std::vector<std::string>& corpus, const std::vector<std::string>& dictionary,
          size_t bytes_max);
  // The mutant of number `index`; any order.
  std::string Make(size_t index) const;

 private:
  void Change(std::string& input, base::Random& random) const;
  void Insert(std::string& input, std::string_view piece, base::Random& random) const;

  const std::vector<std::string>& corpus_;
  const std::vector<std::string>& dictionary_;
  const size_t bytes_max_;
};

// The words of a dictionary in libFuzzer's form: lines `name="text"` or `"text"`, with \xNN, \\ and
// \" inside, and `#` before comments.
std::vector<std::string> ParseDictionary(std::string_view text);

}  // namespace leasehold::fuzz

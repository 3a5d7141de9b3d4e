// What every fuzz target shares: the entry that libFuzzer and the replay program (replay.cc) both
// call, and Splitter, which cuts an input into pieces in ways drawn from the input itself, so that
// corpus files stay plain bytes of the format. A target asserts with CHECK, whose abort both take
// for a failure; it keeps nothing from one call to the next.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "base/random.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace leasehold::fuzz {

inline std::string_view View(const uint8_t* data, size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

// FNV-1a, 64 bits: equal inputs draw equal numbers, on any machine.
inline uint64_t Hash(std::string_view bytes) {
  uint64_t hash = 0xcbf29ce484222325ULL;
  for (const char c : bytes) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL;
  return hash;
}

// The ways a stream can arrive: whole, byte by byte, and `kWays` - 2 drawn ones.
class Splitter {
 public:
  static constexpr int kWays = 4;

  Splitter(std::string_view input, int way)
      : rest_(input), way_(way), random_(Hash(input) + static_cast<uint64_t>(way)) {}
  bool done() const { return rest_.empty(); }
  std::string_view Next() {
    const std::string_view piece = rest_.substr(0, Size());
    rest_.remove_prefix(piece.size());
    return piece;
  }

 private:
  size_t Size() {
    if (way_ == 0) return rest_.size();
    if (way_ == 1) return 1;
    // Mostly short pieces, where the states of a parser lie.
    const uint64_t bound = random_.Below(4) == 0 ? 512 : 12;
    return 1 + random_.Below(bound);
  }

  std::string_view rest_;
  const int way_;
  base::Random random_;
};

}  // namespace leasehold::fuzz

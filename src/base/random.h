// Seeded random numbers: xoshiro256** seeded by splitmix64 (Blackman and Vigna, "Scrambled linear
// pseudorandom number generators", 2018). Deterministic: same seed, same numbers. Not for secrets;
// process ids come from the operating system's entropy (loop::Loop::Entropy).
#pragma once

#include <cstdint>

#include "base/time.h"

namespace leasehold::base {

class Random {
 public:
  explicit Random(uint64_t seed);
  uint64_t Next();
  // Uniform in [0, bound); bound must be > 0. Bias below 2^-32 for bounds under 2^32.
  uint64_t Below(uint64_t bound);
  // Uniform in [0, 1).
  double Unit();
  // Uniform in [0, d); zero for d <= 0.
  Duration UpTo(Duration d);

 private:
  uint64_t state_[4];
};

}  // namespace leasehold::base

#include "base/random.h"

#include <bit>

#include "base/check.h"

namespace leasehold::base {

Random::Random(uint64_t seed) {
  for (uint64_t& word : state_) {  // splitmix64 fills the state so that no seed gives all zeros
    seed += 0x9e3779b97f4a7c15ULL;
    uint64_t z = seed;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    word = z ^ (z >> 31);
  }
}

uint64_t Random::Next() {
  const uint64_t result = std::rotl(state_[1] * 5, 7) * 9;
  const uint64_t t = state_[1] << 17;
  state_[2] ^= state_[0];
  state_[3] ^= state_[1];
  state_[1] ^= state_[2];
  state_[0] ^= state_[3];
  state_[2] ^= t;
  state_[3] = std::rotl(state_[3], 45);
  return result;
}

uint64_t Random::Below(uint64_t bound) {
  CHECK(bound > 0, "Random::Below needs a positive bound");
  return Next() % bound;
}

double Random::Unit() { return static_cast<double>(Next() >> 11) * 0x1.0p-53; }

Duration Random::UpTo(Duration d) {
  if (d <= Duration::Zero()) return Duration::Zero();
  return Duration::Nanos(static_cast<int64_t>(Below(static_cast<uint64_t>(d.nanos()))));
}

}  // namespace leasehold::base

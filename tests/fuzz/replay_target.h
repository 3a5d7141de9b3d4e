// ReplayTarget: what the replay program (replay.cc) is told of the target it was linked with. The
// one value is written by CMakeLists.txt, from the target's line there.
#pragma once

#include <cstddef>

namespace leasehold::fuzz {

struct ReplayTarget {
  const char* name;
  const char* fuzz_dir;    // the folder with corpus/ and dict/
  const char* failed_dir;  // where a mutant that fails is kept
  size_t bytes_max;        // of a mutant
  size_t mutants;
};
extern const ReplayTarget kReplayTarget;

}  // namespace leasehold::fuzz

#include "base/check.h"

#include <cstdio>
#include <cstdlib>

namespace leasehold::base {

void CheckFailed(const char* condition, const char* file, int line, const char* message) {
  std::fprintf(stderr, "CHECK failed: %s at %s:%d: %s\n", condition, file, line, message);
  std::abort();
}

}  // namespace leasehold::base

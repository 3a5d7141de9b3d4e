// Fence: the resource behind the applications, as DESIGN 1 wants one: it refuses what comes under a
// lower fencing token than the highest it applied, and an equal token of another process (a store
// that lost an acquisition can hand a token out twice). Beside it an unfenced resource that takes
// everything. It knows nothing of leases.
#pragma once

#include <cstdint>
#include <string>

namespace leasehold::simulation {

class Fence {
 public:
  // True: applied.
  bool Apply(uint64_t token, const std::string& process_id) {
    if (token < token_ || (token == token_ && process_id != process_id_)) return false;
    token_ = token;
    process_id_ = process_id;
    return true;
  }

 private:
  uint64_t token_ = 0;
  std::string process_id_;
};

}  // namespace leasehold::simulation

// Fence: the check that makes a resource safe against a former holder: what comes with a lower
// token than the highest it has seen is refused, and so is the same token from another process,
// since a store that lost acknowledged writes can give a token out twice. All applications of a run
// share one through a file, under its lock, as they would share a database. Owned by AppServer.
//
// Invariant: whatever runs inside Apply() runs in the order of tokens.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace leasehold::moves {

class Fence {
 public:
  // No path: lets everything through.
  explicit Fence(const std::string& path);
  ~Fence();
  Fence(const Fence&) = delete;
  Fence& operator=(const Fence&) = delete;

  // Calls `effect` under the lock, with whether (token, process) is let through. The highest token
  // is on the file before `effect` runs.
  void Apply(uint64_t token, std::string_view process,
             const std::function<void(bool let_through)>& effect);

 private:
  int fd_ = -1;
};

}  // namespace leasehold::moves

#include "moves/fence.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace leasehold::moves {
namespace {

// What the file holds: who came with the highest token.
struct Highest {
  uint64_t token = 0;
  char process[56] = {};  // a process id has 32 characters
};

[[noreturn]] void Die(const char* what) {
  std::perror(what);  // a fence that may have let something through proves nothing
  std::abort();
}

}  // namespace

Fence::Fence(const std::string& path) {
  if (path.empty()) return;
  fd_ = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (fd_ < 0) Die(path.c_str());
}

Fence::~Fence() {
  if (fd_ >= 0) close(fd_);
}

void Fence::Apply(uint64_t token, std::string_view process,
                  const std::function<void(bool let_through)>& effect) {
  if (fd_ < 0) return effect(true);
  Highest now;
  now.token = token;
  std::memcpy(now.process, process.data(), std::min(process.size(), sizeof now.process));
  if (flock(fd_, LOCK_EX) != 0) Die("lock of the fence");
  Highest before;
  const ssize_t got = pread(fd_, &before, sizeof before, 0);
  if (got != 0 && got != static_cast<ssize_t>(sizeof before)) Die("read of the fence");
  const bool same = std::memcmp(before.process, now.process, sizeof now.process) == 0;
  const bool let = token > before.token || (token == before.token && same);
  if (let && !(token == before.token && same) &&
      pwrite(fd_, &now, sizeof now, 0) != static_cast<ssize_t>(sizeof now)) {
    Die("write of the fence");
  }
  effect(let);
  if (flock(fd_, LOCK_UN) != 0) Die("unlock of the fence");
}

}  // namespace leasehold::moves

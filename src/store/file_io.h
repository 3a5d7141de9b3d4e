// Small blocking file work of the file store: an owned descriptor, whole-file reads, errors as
// sentences, file names from any text. For worker threads only: nothing here may run on the loop.
// Invariant: every descriptor is close-on-exec, and none is leaked on an error path.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

#include "base/result.h"

namespace leasehold::store {

// Owns a file descriptor; -1 is none.
class Fd {
 public:
  Fd() = default;
  explicit Fd(int fd) : fd_(fd) {}
  Fd(Fd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Fd& operator=(Fd&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  Fd(const Fd&) = delete;
  Fd& operator=(const Fd&) = delete;
  ~Fd();

  int get() const { return fd_; }
  bool valid() const { return fd_ >= 0; }
  // Gives the descriptor away; nobody closes it any more.
  int release() { return std::exchange(fd_, -1); }

 private:
  int fd_ = -1;
};

// "cannot <what>: <errno's text>; <what would be right>". kRefused for what stays so until somebody
// repairs it (permission, read-only, full, missing), kUnavailable for what may pass (I/O error, out
// of descriptors or memory).
base::Error FileError(const std::string& what, int error_number);

// openat with O_CLOEXEC and O_NOFOLLOW, repeated when interrupted; -1 and errno on failure. Files
// are made 0660 and left to the umask: instances of one host may run under a common group.
Fd OpenAt(int dir, const std::string& path, int flags);

// The whole file behind `fd` from its start, at most `bytes_max` of it (one more byte is read, so
// that a longer file shows as longer). `path` is for the message.
base::Result<std::string> ReadWhole(int fd, size_t bytes_max, const std::string& path);

// All of `text`; what is half written is the caller's to throw away.
base::Status WriteWhole(int fd, std::string_view text, const std::string& path);

base::Status Sync(int fd, const std::string& path);

// True if `path` under `dir` is the very file that `fd` has open: neither removed nor replaced.
bool IsStillAt(int fd, int dir, const std::string& path);

// `text` as part of a file name: letters, digits, '-' and '_' as they are, every other byte as %XX.
// No two texts give the same; '.' and '/' never appear.
std::string EncodeFileName(std::string_view text);

// The file name of a lease without its ending: "<prefix>.<lease>", each encoded. One too long for
// a directory entry is cut and gets a 128-bit hash of both; the record in the file bears the whole
// name, so that even a collision would be seen.
std::string LeaseFileName(std::string_view prefix, std::string_view lease);

}  // namespace leasehold::store

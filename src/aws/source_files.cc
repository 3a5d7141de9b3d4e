#include "aws/source_files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <string_view>

#include "base/text.h"

namespace leasehold::aws {
namespace {

using base::Error;
using base::ErrorCode;

// Far above any token: those of Kubernetes have about 1 KiB, and 4 KiB are what IAM takes for one.
constexpr size_t kTokenBytesMax = size_t{64} * 1024;

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }

 private:
  int fd_;
};

Error Unreadable(const std::string& path, int error) {
  const std::string what = "cannot read " + base::Printable(path) + ": ";
  if (error == ENOENT || error == ENOTDIR) {
    return {ErrorCode::kNotFound, what + "there is no such file"};
  }
  if (error == EACCES || error == EPERM) {
    return {ErrorCode::kRefused, what + "this user may not; give it the right to read the file"};
  }
  return {ErrorCode::kUnavailable, what + std::strerror(error)};
}

}  // namespace

base::Result<std::string> ReadSmallFile(const std::string& path, size_t bytes_max) {
  // Without O_NONBLOCK the open of a FIFO waits for its writer.
  const Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (file.get() < 0) return Unreadable(path, errno);
  struct stat facts {};
  if (fstat(file.get(), &facts) != 0) return Unreadable(path, errno);
  if (!S_ISREG(facts.st_mode) && !S_ISCHR(facts.st_mode)) {
    return Error{ErrorCode::kRefused, base::Printable(path) + " is " +
                                          (S_ISDIR(facts.st_mode) ? "a directory" : "no file") +
                                          "; a file would be right"};
  }
  std::string text;
  std::array<char, 4096> buffer;
  while (true) {
    const ssize_t n = read(file.get(), buffer.data(), buffer.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return Unreadable(path, errno);
    if (n == 0) return text;
    text.append(buffer.data(), static_cast<size_t>(n));
    if (text.size() > bytes_max) {
      return Error{ErrorCode::kLimit,
                   base::Printable(path) + " is longer than " + base::FormatSize(bytes_max)};
    }
  }
}

base::Result<std::string> ReadTokenFile(const std::string& path) {
  base::Result<std::string> text = ReadSmallFile(path, kTokenBytesMax);
  if (!text) return text;
  std::string& token = *text;
  if (token.ends_with('\n')) token.pop_back();
  if (token.ends_with('\r')) token.pop_back();
  if (token.empty()) {
    return Error{ErrorCode::kInvalid, base::Printable(path) + " is empty; it should hold a token"};
  }
  for (const char c : token) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7f) {
      return Error{ErrorCode::kInvalid, base::Printable(path) +
                                            " has a line break or another control byte inside its "
                                            "token; one line with the token would be right"};
    }
  }
  return text;
}

}  // namespace leasehold::aws

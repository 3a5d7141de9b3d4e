#include "store/file_io.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>

namespace leasehold::store {
namespace {

// Directory entries are 255 bytes at most on every Linux filesystem; what is left is for endings.
constexpr size_t kNameBytesMax = 200;
constexpr size_t kHashDigits = 32;

struct Remedy {
  int error_number;
  const char* what_would_be_right;
};

// What repeats until somebody repairs it, and how.
constexpr std::array<Remedy, 19> kDefinite = {{
    {EACCES, "the directory and its files must be readable and writable by this user"},
    {EPERM, "the directory and its files must be readable and writable by this user"},
    {EROFS, "the filesystem is read-only; mount it writable or set store.file.dir elsewhere"},
    {ENOSPC, "free some space there"},
    {EDQUOT, "free some space or raise the quota"},
    {EFBIG, "raise the file size limit of this process"},
    {ENOENT, "the directory must exist; was it removed or unmounted?"},
    {ENOTDIR, "every part of the path must be a directory"},
    {EISDIR, "it must be a file"},
    {ESPIPE, "it must be a file"},
    {ENXIO, "it must be a file"},
    {ELOOP, "it must not be a symbolic link"},
    {ENAMETOOLONG, "use a shorter store.file.dir"},
    {EXDEV, "the store's directories must be on one filesystem"},
    {ENOLCK, "the filesystem must support flock; use a local one"},
    {EOPNOTSUPP, "the filesystem must support flock and fsync; use a local one"},
    {ENOSYS, "the filesystem must support flock and fsync; use a local one"},
    {EEXIST, "another program works in this directory; give the store one of its own"},
    {EINVAL, "the filesystem must support flock and fsync; use a local one"},
}};

// FNV-1a, 64 bit (Fowler, Noll, Vo); two start values make 128 bits.
uint64_t Fnv1a(uint64_t hash, std::string_view text) {
  for (const char c : text) {
    hash ^= static_cast<unsigned char>(c);
    hash *= 0x100000001b3ULL;
  }
  return hash;
}

std::string HashHex(std::string_view text) {
  std::array<char, kHashDigits + 1> hex{};
  std::snprintf(hex.data(), hex.size(), "%016llx%016llx",
                static_cast<unsigned long long>(Fnv1a(0xcbf29ce484222325ULL, text)),
                static_cast<unsigned long long>(Fnv1a(0x9e3779b97f4a7c15ULL, text)));
  return std::string(hex.data(), kHashDigits);
}

}  // namespace

Fd::~Fd() {
  if (fd_ >= 0) close(fd_);
}

base::Error FileError(const std::string& what, int error_number) {
  // strerror's text for a known number is constant; no thread of ours sets another locale.
  std::string message = "cannot " + what + ": " + std::strerror(error_number);  // NOLINT
  for (const Remedy& remedy : kDefinite) {
    if (remedy.error_number != error_number) continue;
    return {base::ErrorCode::kRefused, message + "; " + remedy.what_would_be_right};
  }
  return {base::ErrorCode::kUnavailable, message};
}

Fd OpenAt(int dir, const std::string& path, int flags) {
  constexpr mode_t kMode = 0660;
  int fd = -1;
  do {
    fd = openat(dir, path.c_str(), flags | O_CLOEXEC | O_NOFOLLOW, kMode);
  } while (fd < 0 && errno == EINTR);
  return Fd(fd);
}

base::Result<std::string> ReadWhole(int fd, size_t bytes_max, const std::string& path) {
  std::string text(bytes_max + 1, '\0');
  size_t length = 0;
  while (length < text.size()) {
    const ssize_t n =
        pread(fd, text.data() + length, text.size() - length, static_cast<off_t>(length));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return FileError("read " + path, errno);
    if (n == 0) break;
    length += static_cast<size_t>(n);
  }
  text.resize(length);
  return text;
}

base::Status WriteWhole(int fd, std::string_view text, const std::string& path) {
  while (!text.empty()) {
    const ssize_t n = write(fd, text.data(), text.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return FileError("write " + path, errno);
    text.remove_prefix(static_cast<size_t>(n));
  }
  return {};
}

base::Status Sync(int fd, const std::string& path) {
  int result = 0;
  do {
    result = fsync(fd);
  } while (result != 0 && errno == EINTR);
  if (result != 0) return FileError("make " + path + " durable", errno);
  return {};
}

bool IsStillAt(int fd, int dir, const std::string& path) {
  struct stat open {};
  struct stat named {};
  return fstat(fd, &open) == 0 && open.st_nlink > 0 &&
         fstatat(dir, path.c_str(), &named, AT_SYMLINK_NOFOLLOW) == 0 &&
         open.st_dev == named.st_dev && open.st_ino == named.st_ino;
}

std::string EncodeFileName(std::string_view text) {
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  std::string name;
  for (const char c : text) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '-' || c == '_';
    if (plain) {
      name += c;
      continue;
    }
    const auto byte = static_cast<unsigned char>(c);
    name += '%';
    name += kDigits[byte >> 4U];
    name += kDigits[byte & 15U];
  }
  return name;
}

std::string LeaseFileName(std::string_view prefix, std::string_view lease) {
  std::string name = EncodeFileName(prefix) + "." + EncodeFileName(lease);
  if (name.size() <= kNameBytesMax) return name;
  const std::string hash = HashHex(name);
  name.resize(kNameBytesMax - kHashDigits - 1);
  // '.' never ends an encoded part, and a whole name has one '.': a cut name cannot look like one.
  return name + "." + hash;
}

}  // namespace leasehold::store

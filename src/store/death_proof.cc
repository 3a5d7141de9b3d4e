#include "store/death_proof.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <utility>

#include "base/check.h"

namespace leasehold::store {
namespace {

// A process id is 16 to 64 bytes, a boot id 36.
constexpr size_t kContentBytesMax = 1024;
// A pod that restarts every minute leaves 1440 a day; more are found by the next start.
constexpr int kCollectFilesMax = 2000;
// Each keeps a descriptor open for a moment; a process may have 1024.
constexpr size_t kCollectAtOnceMax = 64;
constexpr int64_t kCollectAgeMillis = int64_t{24} * 3600 * 1000;

// Locks exist inside one kernel only. On a directory that two machines share, a lock of the other
// one may be invisible here, and its holder would look dead; so each file names its kernel's boot.
// Empty where the kernel has no such file: then nothing is ever proven.
std::string BootId() {
  constexpr size_t kBytesMax = 64;
  const Fd fd = OpenAt(AT_FDCWD, "/proc/sys/kernel/random/boot_id", O_RDONLY);
  if (!fd.valid()) return "";
  base::Result<std::string> id = ReadWhole(fd.get(), kBytesMax, "boot_id");
  return id.ok() ? id.value() : "";
}

std::string Content(std::string_view process_id) {
  return std::string(process_id) + "\n" + BootId() + "\n";
}

std::string RelativeName(std::string_view process_id) {
  return std::string(kProcessDir) + "/" + EncodeFileName(process_id);
}

bool TryLock(int fd, int operation) {
  int result = 0;
  do {
    result = flock(fd, operation | LOCK_NB);
  } while (result != 0 && errno == EINTR);
  return result == 0;
}

bool Holds(int fd, const std::string& content) {
  const base::Result<std::string> text = ReadWhole(fd, kContentBytesMax, "a process file");
  return text.ok() && *text == content;
}

struct DirCloser {
  void operator()(DIR* dir) const { closedir(dir); }
};

// An old process file whose owner is dead, locked by us.
struct Dead {
  std::string process_id;
  std::string name;
  Fd fd;
};

std::optional<Dead> LockIfOldAndDead(int root, const std::string& entry, base::WallTime now) {
  std::string name = std::string(kProcessDir) + "/" + entry;
  Fd fd = OpenAt(root, name, O_RDONLY | O_NONBLOCK);
  struct stat info {};
  if (!fd.valid() || fstat(fd.get(), &info) != 0 || !S_ISREG(info.st_mode)) return std::nullopt;
  if (now.unix_ms - int64_t{info.st_mtime} * 1000 < kCollectAgeMillis) return std::nullopt;
  if (!TryLock(fd.get(), LOCK_EX) || !IsStillAt(fd.get(), root, name)) return std::nullopt;
  const base::Result<std::string> text = ReadWhole(fd.get(), kContentBytesMax, name);
  if (!text.ok()) return std::nullopt;
  std::string process_id = text->substr(0, text->find('\n'));
  if (EncodeFileName(process_id) != entry) return std::nullopt;  // not a file of ours
  return Dead{std::move(process_id), std::move(name), std::move(fd)};
}

}  // namespace

base::Result<ProcessFile> ProcessFile::Create(int root, std::string_view process_id, bool strict) {
  const std::string name = RelativeName(process_id);
  Fd fd = OpenAt(root, name, O_RDWR | O_CREAT);
  if (!fd.valid()) return FileError("create the process file " + name, errno);
  if (!TryLock(fd.get(), LOCK_EX)) {
    if (errno != EWOULDBLOCK) return FileError("lock the process file " + name, errno);
    return base::Error{base::ErrorCode::kConflict,
                       "another process that lives has the process id '" + std::string(process_id) +
                           "'; each process needs one of its own"};
  }
  const std::string content = Content(process_id);
  if (!Holds(fd.get(), content)) {
    if (ftruncate(fd.get(), 0) != 0) return FileError("empty the process file " + name, errno);
    base::Status written = WriteWhole(fd.get(), content, "the process file " + name);
    if (written.ok() && strict) written = Sync(fd.get(), "the process file " + name);
    if (!written.ok()) return written.error();
  }
  if (!IsStillAt(fd.get(), root, name)) {
    return base::Error{base::ErrorCode::kUnavailable,
                       "the process file " + name + " was removed while it was made"};
  }
  return ProcessFile(std::move(fd), name);
}

ProcessFile::~ProcessFile() { (void)fd_.release(); }

bool ProcessFile::InPlace(int root) const { return IsStillAt(fd_.get(), root, name_); }

void ProcessFile::Retire(int root) && {
  if (InPlace(root)) unlinkat(root, name_.c_str(), 0);
  const Fd closes = std::move(fd_);
}

// A shared lock is enough: it is refused exactly as long as the owner has its exclusive one, and
// two standbys that look at once do not take each other for the owner.
bool IsProvenDead(int root, std::string_view process_id) {
  const std::string name = RelativeName(process_id);
  const std::string boot_id = BootId();
  if (process_id.empty() || boot_id.empty()) return false;
  const Fd fd = OpenAt(root, name, O_RDONLY | O_NONBLOCK);
  if (!fd.valid()) return false;
  const std::string content = Content(process_id);
  if (!Holds(fd.get(), content)) return false;
  if (!TryLock(fd.get(), LOCK_SH)) return false;
  // Again under the lock: only now can nobody be changing or replacing it.
  return Holds(fd.get(), content) && IsStillAt(fd.get(), root, name);
}

void CollectDeadProcessFiles(
    int root, base::WallTime now,
    const std::function<std::optional<std::vector<std::string>>()>& named) {
  Fd dir_fd = OpenAt(root, kProcessDir, O_RDONLY | O_DIRECTORY);
  if (!dir_fd.valid()) return;
  const std::unique_ptr<DIR, DirCloser> dir(fdopendir(dir_fd.get()));
  if (dir == nullptr) return;
  (void)dir_fd.release();  // the DIR closes it
  std::vector<Dead> dead;
  for (int i = 0; i < kCollectFilesMax && dead.size() < kCollectAtOnceMax; ++i) {
    const dirent* entry = readdir(dir.get());  // NOLINT: one DIR per thread is safe
    if (entry == nullptr) break;
    std::optional<Dead> found = LockIfOldAndDead(root, entry->d_name, now);
    if (found) dead.push_back(std::move(*found));
  }
  if (dead.empty()) return;
  const std::optional<std::vector<std::string>> in_use = named();
  if (!in_use) return;
  for (const Dead& process : dead) {
    const bool used =
        std::find(in_use->begin(), in_use->end(), process.process_id) != in_use->end();
    if (!used) unlinkat(root, process.name.c_str(), 0);
  }
}

}  // namespace leasehold::store

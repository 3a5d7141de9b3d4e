#include "store/file_layout.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <memory>
#include <utility>

#include "base/text.h"
#include "store/record_json.h"

namespace leasehold::store {
namespace {

using base::ErrorCode;

struct DirCloser {
  void operator()(DIR* dir) const { closedir(dir); }
};

base::Status MakeDir(int root, const std::string& path, const std::string& shown) {
  constexpr mode_t kMode = 0770;
  if (mkdirat(root, path.c_str(), kMode) == 0 || errno == EEXIST) return {};
  return FileError("make the directory " + shown, errno);
}

base::Status MakePath(const std::string& dir) {
  for (size_t slash = dir.find('/', 1); slash != std::string::npos;
       slash = dir.find('/', slash + 1)) {
    const std::string part = dir.substr(0, slash);
    struct stat info {};
    if (stat(part.c_str(), &info) == 0) continue;
    if (base::Status made = MakeDir(AT_FDCWD, part, part); !made.ok()) return made;
  }
  struct stat info {};
  if (stat(dir.c_str(), &info) == 0 && S_ISDIR(info.st_mode)) return {};
  return MakeDir(AT_FDCWD, dir, dir);
}

// Two locks of one file through two opens must exclude each other. NFS that emulates flock by
// process-wide record locks fails here, and so does a filesystem without locks.
base::Status ProveLocking(int root, const std::string& dir) {
  const std::string name = std::string(kLockDir) + "/locking-works";
  const Fd first = OpenAt(root, name, O_RDWR | O_CREAT);
  const Fd second = OpenAt(root, name, O_RDWR | O_CREAT);
  if (!first.valid() || !second.valid()) return FileError("create " + dir + "/" + name, errno);
  const std::string lock = "lock files in " + dir;
  // Busy is proof as well: another process makes this test now, and we were kept out.
  if (flock(first.get(), LOCK_EX | LOCK_NB) != 0) {
    return errno == EWOULDBLOCK ? base::Status() : FileError(lock, errno);
  }
  if (flock(second.get(), LOCK_EX | LOCK_NB) != 0) {
    return errno == EWOULDBLOCK ? base::Status() : FileError(lock, errno);
  }
  return base::Error{ErrorCode::kUnsupported,
                     "the filesystem of " + dir +
                         " does not exclude a second flock of one file; use a local filesystem "
                         "(ext4, xfs, tmpfs), or the redis store for several hosts"};
}

// The process ids that records of every prefix name; nullopt if one of them cannot be read.
std::optional<std::vector<std::string>> NamedProcesses(int root) {
  Fd dir_fd = OpenAt(root, kLeaseDir, O_RDONLY | O_DIRECTORY);
  if (!dir_fd.valid()) return std::nullopt;
  const std::unique_ptr<DIR, DirCloser> dir(fdopendir(dir_fd.get()));
  if (dir == nullptr) return std::nullopt;
  (void)dir_fd.release();  // the DIR closes it
  std::vector<std::string> named;
  while (const dirent* entry = readdir(dir.get())) {  // NOLINT: one DIR per thread is safe
    const std::string name = entry->d_name;
    if (name == "." || name == "..") continue;
    const Fd fd = OpenAt(root, std::string(kLeaseDir) + "/" + name, O_RDONLY | O_NONBLOCK);
    if (!fd.valid()) return std::nullopt;
    const base::Result<std::string> text = ReadWhole(fd.get(), kRecordBytesMax, name);
    if (!text.ok()) return std::nullopt;
    base::Result<lease::Record> record = RecordFromJson(*text);
    if (!record.ok() || record->format > lease::kRecordFormat) return std::nullopt;
    named.push_back(std::move(record->process_id));
  }
  return named;
}

base::Result<Fd> MakeLayout(const FilePlace& place) {
  if (const base::Status made = MakePath(place.dir); !made.ok()) return made.error();
  Fd root = OpenAt(AT_FDCWD, place.dir, O_RDONLY | O_DIRECTORY);
  if (!root.valid()) return FileError("open the directory " + place.dir, errno);
  for (const char* part : {kLockDir, kProcessDir, kTempDir, kLeaseDir}) {
    const base::Status made = MakeDir(root.get(), part, place.dir + "/" + part);
    if (!made.ok()) return made.error();
  }
  if (place.strict) {
    const base::Status durable = Sync(root.get(), "the directory " + place.dir);
    if (!durable.ok()) return durable.error();
  }
  return root;
}

}  // namespace

base::Status RefuseNetworkFilesystem(int root, const std::string& dir) {
  struct Kind {
    uint32_t magic;
    const char* name;
  };
  constexpr std::array<Kind, 4> kNetwork = {
      {{0x6969, "NFS"}, {0xff534d42, "CIFS"}, {0xfe534d42, "SMB2"}, {0x517b, "SMB"}}};
  struct statfs info {};
  if (fstatfs(root, &info) != 0) return FileError("find out the filesystem of " + dir, errno);
  for (const Kind& kind : kNetwork) {
    if (static_cast<uint32_t>(info.f_type) != kind.magic) continue;
    return base::Error{ErrorCode::kUnsupported,
                       dir + " is on " + kind.name +
                           ", whose locks may not be seen by other hosts; use a local filesystem "
                           "(ext4, xfs, tmpfs), or the redis store for several hosts"};
  }
  return {};
}

LeaseFiles::LeaseFiles(const FilePlace& place, const std::string& lease) {
  const std::string base = LeaseFileName(place.prefix, lease);
  record = std::string(kLeaseDir) + "/" + base + kRecordEnding;
  lock = std::string(kLockDir) + "/" + base + ".lock";
  temp = std::string(kTempDir) + "/" + base + ".new";
  shown = place.dir + "/" + record;
}

base::Result<ProcessFile> PrepareDirectory(const FilePlace& place, base::WallTime now) {
  const base::Result<Fd> root = MakeLayout(place);
  if (!root.ok()) return root.error();
  if (const base::Status local = RefuseNetworkFilesystem(root->get(), place.dir); !local.ok()) {
    return local.error();
  }
  if (const base::Status locks = ProveLocking(root->get(), place.dir); !locks.ok()) {
    return locks.error();
  }
  base::Result<ProcessFile> own = ProcessFile::Create(root->get(), place.process_id, place.strict);
  if (!own.ok()) return own;
  const int dir = root->get();
  CollectDeadProcessFiles(dir, now, [dir] { return NamedProcesses(dir); });
  return own;
}

base::Result<Fd> OpenRoot(const FilePlace& place) {
  Fd root = OpenAt(AT_FDCWD, place.dir, O_RDONLY | O_DIRECTORY);
  if (!root.valid()) return FileError("open the directory " + place.dir, errno);
  struct stat info {};
  // Without leases/ it is not our store (an empty mount point, say), and no lease in it is absent.
  if (fstatat(root.get(), kLeaseDir, &info, 0) != 0) {
    return FileError("find " + place.dir + "/" + kLeaseDir, errno);
  }
  return root;
}

base::Result<std::optional<lease::Record>> LoadRecord(int root, const LeaseFiles& files,
                                                      const std::string& lease) {
  const Fd fd = OpenAt(root, files.record, O_RDONLY | O_NONBLOCK);
  if (!fd.valid() && errno == ENOENT) return std::optional<lease::Record>();
  if (!fd.valid()) return FileError("open " + files.shown, errno);
  const base::Result<std::string> text = ReadWhole(fd.get(), kRecordBytesMax, files.shown);
  if (!text.ok()) return text.error();
  base::Result<lease::Record> record = RecordFromJson(*text);
  std::string why;
  if (!record.ok()) {
    why = record.error().message;
  } else if (record->lease != lease && record->format <= lease::kRecordFormat) {
    why = "it is the record of another lease, '" + base::Printable(record->lease) + "'";
  } else {
    return std::optional<lease::Record>(std::move(record).value());
  }
  return base::Error{ErrorCode::kRefused, files.shown + " is no record of lease '" +
                                              base::Printable(lease) + "': " + why +
                                              "; repair it, or remove it while no instance runs"};
}

base::Status WriteTemp(int root, const std::string& name, std::string_view text, bool strict) {
  unlinkat(root, name.c_str(), 0);
  const Fd fd = OpenAt(root, name, O_WRONLY | O_CREAT | O_EXCL);
  if (!fd.valid()) return FileError("create " + name, errno);
  base::Status status = WriteWhole(fd.get(), text, name);
  if (status.ok() && strict) status = Sync(fd.get(), name);
  if (!status.ok()) unlinkat(root, name.c_str(), 0);
  return status;
}

base::Status SyncLeaseDir(int root) {
  const Fd dir = OpenAt(root, kLeaseDir, O_RDONLY | O_DIRECTORY);
  if (!dir.valid()) return FileError("open the directory " + std::string(kLeaseDir), errno);
  return Sync(dir.get(), "the directory " + std::string(kLeaseDir));
}

base::Status ProbeDirectory(const FilePlace& place) {
  const base::Result<Fd> root = OpenRoot(place);
  if (!root.ok()) return root.error();
  for (const char* part : {kLeaseDir, kLockDir, kTempDir, kProcessDir}) {
    // Effective, not real, ids: what open and rename will be judged by.
    if (faccessat(root->get(), part, W_OK | X_OK, AT_EACCESS) == 0) continue;
    return FileError("write in " + place.dir + "/" + part, errno);
  }
  const std::string name = std::string(kTempDir) + "/probe." + EncodeFileName(place.process_id);
  base::Status status =
      WriteTemp(root->get(), name, std::string(kRecordBytesMax, ' '), place.strict);
  unlinkat(root->get(), name.c_str(), 0);
  return status;
}

void RetireProcessFile(const FilePlace& place, const std::vector<std::string>& leases,
                       ProcessFile process_file) {
  const base::Result<Fd> root = OpenRoot(place);
  if (!root.ok()) return;
  for (const std::string& lease : leases) {
    const base::Result<std::optional<lease::Record>> record =
        LoadRecord(root->get(), LeaseFiles(place, lease), lease);
    if (!record.ok()) return;
    const std::optional<lease::Record>& found = *record;
    if (found && found->held() && found->process_id == place.process_id) return;
  }
  std::move(process_file).Retire(root->get());
}

}  // namespace leasehold::store

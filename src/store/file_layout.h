// Where the file store keeps what: its directories, how they are made and checked, and the names of
// a lease's files. leases/<name>.json holds the records, locks/<name>.lock their locks (never
// renamed, never removed), procs/ the process files (death_proof.h), tmp/<name> a record that is
// being written. Blocking; for worker threads. Knows no compare-and-set: that is file_register.h.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "lease/record.h"
#include "store/death_proof.h"
#include "store/file_io.h"

namespace leasehold::store {

inline constexpr const char* kLeaseDir = "leases";
inline constexpr const char* kLockDir = "locks";
inline constexpr const char* kTempDir = "tmp";
inline constexpr const char* kRecordEnding = ".json";

// Where and as whom; the same for every call of one store.
struct FilePlace {
  std::string dir;
  std::string prefix;
  std::string process_id;
  bool strict = true;  // fsync file and directory
};

// The files of one lease, relative to the store's directory; `shown` is for messages.
struct LeaseFiles {
  LeaseFiles(const FilePlace& place, const std::string& lease);
  std::string record;
  std::string lock;
  std::string temp;
  std::string shown;
};

// Makes the directories, proves that the filesystem locks, creates and locks our process file,
// throws away process files of the long dead. Errors: kRefused, kUnsupported, kConflict, or
// kUnavailable for what may pass.
base::Result<ProcessFile> PrepareDirectory(const FilePlace& place, base::WallTime now);

// The store's directory, opened by its path at every call: one that was replaced or unmounted under
// us must show as missing, not as the old one.
base::Result<Fd> OpenRoot(const FilePlace& place);

// The lease's record: nullopt if absent; kRefused if what lies there is none.
base::Result<std::optional<lease::Record>> LoadRecord(int root, const LeaseFiles& files,
                                                      const std::string& lease);

// A fresh file in tmp/ with `text`; what a crash left there under this name is thrown away. One
// writer per name at a time (whoever has the lease's lock).
base::Status WriteTemp(int root, const std::string& name, std::string_view text, bool strict);

// fsync of the directory of records: makes the renames in it last.
base::Status SyncLeaseDir(int root);

// Could a record be written now? Creates, fsyncs and removes a file of a record's largest size.
base::Status ProbeDirectory(const FilePlace& place);

// Refuses filesystems on which the locks of two hosts may not see each other (statfs(2) gives the
// numbers), however they behave within this one: two holders would be the price of a wrong guess.
base::Status RefuseNetworkFilesystem(int root, const std::string& dir);

// At an orderly end: removes our process file and drops its lock if none of `leases` has a record
// that names this process as holder. Otherwise keeps both until the process ends.
void RetireProcessFile(const FilePlace& place, const std::vector<std::string>& leases,
                       ProcessFile process_file);

}  // namespace leasehold::store

// Proof of death (DESIGN 3, file): each process keeps one file, procs/<process id>, locked from
// before its first register write until it ends; the kernel drops the lock when the last thread is
// gone, however it went. Who gets the lock knows that the process named in the file is dead.
// Blocking; for worker threads. Invariant: in every doubt the answer is "not proven": missing,
// unlinked or replaced file, other content, another machine's kernel.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "store/file_io.h"

namespace leasehold::store {

inline constexpr const char* kProcessDir = "procs";

// Our own file, locked. Destroying it does NOT drop the lock: this process may still act under a
// lease, and its permit ends by itself. The lock ends with the process, or by Retire.
class ProcessFile {
 public:
  // Creates and locks it under `root` (the store's directory, open). kConflict: another living
  // process has this process id.
  static base::Result<ProcessFile> Create(int root, std::string_view process_id, bool strict);
  ProcessFile(ProcessFile&&) = default;
  ProcessFile& operator=(ProcessFile&&) = default;
  ~ProcessFile();

  // False if somebody removed or replaced the file: it proves nothing any more, make a new one.
  bool InPlace(int root) const;
  // Removes the file, then drops the lock: in this order nobody can take its absence for a death.
  // Only when no record names this process as holder.
  void Retire(int root) &&;
  // For a process that acts on this one's behalf and must keep the lock while it does.
  int fd() const { return fd_.get(); }

 private:
  ProcessFile(Fd fd, std::string name) : fd_(std::move(fd)), name_(std::move(name)) {}
  Fd fd_;
  std::string name_;  // relative to the root
};

// True only if the process is proven dead. Creates nothing, changes nothing, blocks nobody.
bool IsProvenDead(int root, std::string_view process_id);

// Removes files of processes that are proven dead, started more than a day ago and are named by no
// record. `named` gives the process ids in all records, or nullopt if they cannot all be read (then
// nothing is removed); it is asked after the locks were taken, so that nothing can be written in
// between. Looks at a bounded number of files.
void CollectDeadProcessFiles(int root, base::WallTime now,
                             const std::function<std::optional<std::vector<std::string>>()>& named);

}  // namespace leasehold::store

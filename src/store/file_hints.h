// FileHints: push for the file store. Watches the directory of records (a renewal or a change of
// hands is a rename there) and that of process files (a process that ends closes its own, just
// before its lock is dropped), and turns what it sees into hints. A hint is never trusted: its
// receiver reads. Owned by the file store, on its loop; file reads go to workers. Invariant: after
// kPushDown no hint comes until the next kPushUp; none comes after Stop().
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "base/result.h"
#include "lease/record.h"
#include "loop/file_watch.h"
#include "loop/loop.h"
#include "loop/timer.h"
#include "observe/log.h"
#include "store/file_layout.h"
#include "store/lease_store.h"

namespace leasehold::store {

class FileHints {
 public:
  // `place` and `log` outlive it.
  FileHints(loop::Loop& loop, const FilePlace& place, observe::Log& log);
  ~FileHints();
  FileHints(const FileHints&) = delete;
  FileHints& operator=(const FileHints&) = delete;

  void Watch(const std::string& lease, LeaseStore::WatchCallback hint);
  // What a read or a conflict of the store's own showed: keeps the picture fresh.
  void Seen(const std::string& lease, const lease::Record& record);
  void Stop();

 private:
  // What a change of hands changes; a renewal leaves it as it is.
  struct Hands {
    std::string process_id;
    uint64_t token = 0;
    lease::RecordState state = lease::RecordState::kHeld;
    bool operator==(const Hands&) const = default;
  };
  struct Watched;

  void Arm();
  base::Status OpenWatches();
  void OnRecordChange(std::string_view file_name);
  void Reopen();
  void OnProcessFile(std::string_view file_name, bool closed_after_write);
  void Peek(const std::shared_ptr<Watched>& watched);
  void Peeked(Watched& watched, const base::Result<std::optional<lease::Record>>& record);
  void Tell(const Watched& watched, WatchEvent::Kind kind);
  void TellAll(WatchEvent::Kind kind);

  loop::Loop& loop_;
  const FilePlace& place_;
  observe::Log& log_;
  std::map<std::string, std::shared_ptr<Watched>> watched_;  // by lease
  std::unique_ptr<loop::FileWatch> records_;
  std::unique_ptr<loop::FileWatch> processes_;
  std::unique_ptr<loop::Timer> arm_;  // opens the watches, again after a failure
  bool reopen_ = false;               // the watched directory went, or events were lost
  bool told_down_ = false;
  std::shared_ptr<bool> alive_;
};

}  // namespace leasehold::store

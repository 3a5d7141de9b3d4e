// StateDir: what a sidecar remembers across restarts on one host (node.state_dir, DESIGN 2.1
// and 2.6): proof that its predecessor is dead, and the highest fencing token seen per lease. It
// holds an flock there for as long as the process lives and notes its process id; whoever gets the
// lock next knows that every process noted before is dead. Owned by Sidecar. Invariant: a process
// id is reported dead only by who holds the lock under which it was noted.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "app/state_note.h"
#include "base/result.h"
#include "lease/engine.h"
#include "loop/loop.h"
#include "observe/log.h"
#include "store/file_io.h"

namespace leasehold::app {

class StateDir {
 public:
  // Creates `dir` if its parent exists, locks it, reads what was noted and notes `process_id`
  // durably. Errors: in use by a living process, not writable, a network file system, an unreadable
  // note (never overwritten). Blocking, a few small file operations: for start-up only.
  static base::Result<std::unique_ptr<StateDir>> Open(loop::Loop& loop, const std::string& dir,
                                                      const std::string& process_id,
                                                      observe::Log& log);

  bool ProvenDead(std::string_view process_id) const;
  // The lock's descriptor, for a command that acts under a lease of this process: its successor
  // must not take it for dead while that command lives.
  int lock_fd() const { return place_->lock.get(); }
  lease::Memory MemoryOf(const std::string& lease) const;
  // Notes a token seen for a lease, with the record's TTL. Written soon, by a worker; only what is
  // new, and nothing of a record whose TTL is out of range.
  void Remember(const std::string& lease, uint64_t token, base::Duration ttl);

 private:
  struct Place {  // what a worker needs, shared so that it outlives this object
    std::string dir;
    store::Fd dir_fd;
    store::Fd lock;
  };
  StateDir(loop::Loop& loop, observe::Log& log, std::shared_ptr<Place> place,
           std::string process_id);

  base::Status Load();
  static base::Status WriteNote(const Place& place, const std::string& text);
  void WriteSoon();

  loop::Loop& loop_;
  observe::Log& log_;
  std::shared_ptr<Place> place_;
  StateNote note_;  // of this process; its former are bounded by kFormerMax
  bool writing_ = false;
  bool dirty_ = false;
  std::shared_ptr<StateDir*> self_;
};

}  // namespace leasehold::app

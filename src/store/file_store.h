// The embedded `file` store (DESIGN 3): one host, development and tests. A JSON file per lease,
// compared and replaced under an flock; a process's death proven by its lock; push by inotify. The
// adapter's loop side is here; the blocking work is in file_register, file_layout and death_proof,
// and runs on worker threads, so that a slow disk never stalls the loop.
#pragma once

#include <memory>
#include <string>

#include "loop/loop.h"
#include "observe/log.h"
#include "store/lease_store.h"
#include "store/options.h"

namespace leasehold::store {

// `loop` and `log` outlive the store. `process_id` is this process's identity in the records it
// writes, and names its process file; no two living processes share one.
//
// When its Close() finds a record that still names this process as holder, the process file stays
// locked until the process ends: the permit may still run, so nobody may be told of a death.
std::unique_ptr<LeaseStore> MakeFileStore(loop::Loop& loop, const FileOptions& options,
                                          std::string prefix, std::string process_id,
                                          observe::Log& log);

}  // namespace leasehold::store

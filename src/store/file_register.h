// The blocking half of the file store: one compare-and-set register per lease in a directory
// (file_layout.h says where things lie). For worker threads; knows no loop, no clock, no callbacks,
// keeps no state. Invariants: a record changes only by rename and only under its lock; what cannot
// be read as a record is never overwritten; no call waits for a lock.
#pragma once

#include <atomic>
#include <optional>
#include <string>

#include "base/result.h"
#include "lease/record.h"
#include "store/death_proof.h"
#include "store/file_layout.h"
#include "store/lease_store.h"

namespace leasehold::store {

// Lock-free: a rename is atomic. A strict store makes our own record durable before it shows it,
// because the asker may go on under it: the attempt that wrote it may have died before its fsync,
// and a token must not be lost in a power cut after work was done under it. Proves the holder's
// death where that can be done.
ReadResult ReadRecord(const FilePlace& place, const std::string& lease);

// The record as it lies there, nothing proven or synced: for hints.
base::Result<std::optional<lease::Record>> PeekRecord(const FilePlace& place,
                                                      const std::string& lease);

struct CasRequest {
  std::string lease;
  std::optional<lease::Version> expected;  // nullopt: absent
  lease::Record record;
};

struct CasAttempt {
  bool busy = false;  // somebody else has the lock, or makes our process file: try again
  CasResult result;   // if busy, `error` says who kept us waiting
  std::optional<ProcessFile> process_file;  // made by this attempt; the caller must keep it
};

// One attempt. `process_file` is ours so far, or nullptr. `cancelled` is looked at last before the
// rename, so that a call whose time is over does not write late if that can be helped.
CasAttempt TryCompareAndSet(const FilePlace& place, const CasRequest& request,
                            const ProcessFile* process_file, const std::atomic<bool>& cancelled);

}  // namespace leasehold::store

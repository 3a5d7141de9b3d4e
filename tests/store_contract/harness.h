// Harness: what the contract suite needs of one kind of store: make adapters on it, damage records
// behind their back, and break its server where it has one. One harness per adapter, one file:
// it ends with INSTANTIATE_TEST_SUITE_P (see file_harness.cc), nothing else has to be edited. Owned
// by the test; its destructor ends every server it started, by process id, and removes its files.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/result.h"
#include "lease/record.h"
#include "loop/loop.h"
#include "store/lease_store.h"

namespace leasehold::store_contract {

class Harness {
 public:
  virtual ~Harness() = default;

  // Brings the store up, empty. Called once, before anything else.
  virtual base::Status Start() = 0;
  // A new, unopened adapter on this store; the suite opens and closes it. Several exist at a time,
  // each with a process id of its own.
  virtual std::unique_ptr<store::LeaseStore> MakeStore(loop::Loop& loop, const std::string& prefix,
                                                       const std::string& process_id) = 0;

  // Puts something in the lease's place that is no record at all (garbage, a wrong type).
  virtual base::Status WriteGarbage(const std::string& prefix, const std::string& lease) = 0;
  // Puts `record` in the lease's place without the adapter's CompareAndSet, as another version of
  // this program or an operator's hand would: a higher format, a ttl_ms out of range.
  virtual base::Status WriteRecord(const std::string& prefix, const std::string& lease,
                                   const lease::Record& record) = 0;
  // A member's value in the adapter's own encoding that must come back as it went in
  // (Record::unknown).
  virtual std::string UnknownValue() const = 0;

  // Does the store prove a dead holder dead (ReadResult::holder_dead)?
  virtual bool ProvesDeath() const { return false; }

  // ---- only where there is a server; the suite asks HasServer() first ----
  virtual bool HasServer() const { return false; }
  virtual base::Status Kill() { return NoServer(); }     // SIGKILL, and waits until it is gone
  virtual base::Status Freeze() { return NoServer(); }   // SIGSTOP: accepts, never answers
  virtual base::Status Thaw() { return NoServer(); }     // SIGCONT
  virtual base::Status Restart() { return NoServer(); }  // after Kill: same address, same data

 private:
  static base::Status NoServer() {
    return base::Error{base::ErrorCode::kUnsupported, "this store has no server"};
  }
};

// What INSTANTIATE_TEST_SUITE_P takes: makes a fresh harness for each test.
using HarnessFactory = std::function<std::unique_ptr<Harness>()>;

}  // namespace leasehold::store_contract

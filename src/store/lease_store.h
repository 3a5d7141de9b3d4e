// LeaseStore: the contract every store adapter keeps (DESIGN 2.1): a compare-and-set register per
// lease name. An adapter decides nothing: it reports what it saw and whether the compare-and-set
// took. It never repeats a compare-and-set, never uses the store's own expiry, never reads lease
// semantics into a record. tests/store_contract/ says when an adapter is right; contract.md says it
// in prose.
//
// Every callback is called exactly once, later, from the loop, never from inside the call that took
// it, and not after Close() has called back. Calls may overlap; each is answered by its own
// deadline at the latest.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "lease/record.h"

namespace leasehold::store {

struct ReadResult {
  enum class Outcome {
    kAbsent,
    kRecord,
    kAmbiguous,  // no answer, or one that says nothing: may pass
    kRefused,    // credentials, permission, wrong type, unreadable record: repeats until repaired
  };
  Outcome outcome = Outcome::kAmbiguous;
  lease::Record record;
  lease::Version version;
  bool holder_dead =
      false;          // proof of death (file store): the record's process holds no lock any more
  std::string error;  // one sentence: object, value, what would be right
  // The store's own clock when it answered, where it tells; compared only with itself, to notice
  // time that this machine lost (DESIGN 2.2).
  std::optional<int64_t> store_unix_ms;
};

struct CasResult {
  enum class Outcome {
    kApplied,
    kConflict,   // the record is not the expected one; `record` if the store gave the current one
    kAmbiguous,  // may or may not have happened
    kRefused,    // did not happen, and repeats until repaired
  };
  Outcome outcome = Outcome::kAmbiguous;
  lease::Version version;  // kApplied: the new version; kConflict with record: the current one
  std::optional<lease::Record> record;
  bool absent = false;  // kConflict: there is no record
  std::string error;
  std::optional<int64_t> store_unix_ms;  // as in ReadResult
};

// "ok" (also of an absent record, and of a write that was applied), "conflict", "ambiguous",
// "refused": the results of StoreStats and of metrics.
std::string_view ResultName(ReadResult::Outcome outcome);
std::string_view ResultName(CasResult::Outcome outcome);

struct WatchEvent {
  enum class Kind {
    kChangedHands,  // released, acquired, draining: read at once
    kBeat,          // probably a renewal
    kPushUp,        // hints work from now on
    kPushDown,      // hints do not work; poll
  };
  Kind kind = Kind::kBeat;
};

struct StoreStats {
  bool connected = false;
  // operation ("read", "cas", "connect", ...) + result ("ok", "conflict", "ambiguous", "refused",
  // ...) -> count
  std::map<std::pair<std::string, std::string>, uint64_t> operations;
  base::Duration last_latency;
};

class LeaseStore {
 public:
  using ReadCallback = std::function<void(ReadResult)>;
  using CasCallback = std::function<void(CasResult)>;
  using WatchCallback = std::function<void(WatchEvent)>;
  // A warning or its end: ("eviction", true, "maxmemory-policy is allkeys-lru; ...").
  using TroubleCallback =
      std::function<void(std::string_view kind, bool active, std::string sentence)>;

  virtual ~LeaseStore() = default;

  // Checks what must hold before the first lease call (directory, policy, table). Calls back once
  // with an error only when starting would be unsafe or never work (kInvalid, kUnsupported,
  // kRefused); a store that cannot be reached now is NOT an error here: leases wait for it.
  // `trouble` reports later findings.
  virtual void Open(TroubleCallback trouble, std::function<void(base::Status)> done) = 0;

  // Strongly consistent. Answered within `timeout`.
  virtual void Read(std::string_view lease, base::Duration timeout, ReadCallback done) = 0;
  // Writes `record` if the current version equals `expected` (nullopt: if absent). `record` must be
  // valid.
  virtual void CompareAndSet(std::string_view lease, const std::optional<lease::Version>& expected,
                             const lease::Record& record, base::Duration timeout,
                             CasCallback done) = 0;
  // Hints for one lease until Close(). One watcher per lease. Stores without push never call it.
  virtual void Watch(std::string_view lease, WatchCallback hint) = 0;
  // Could this process write `lease` now? For standbys, now and then (DESIGN 3: store_full).
  // kRefused when not.
  virtual void ProbeWrite(std::string_view lease, base::Duration timeout,
                          std::function<void(base::Status)> done) = 0;

  // Descriptors whose locks prove to other instances that this process lives. A command that acts
  // under a lease inherits them, so that nobody is told of a death while it still does. Borrowed.
  virtual std::vector<int> DeathProofs() const { return {}; }

  virtual StoreStats stats() const = 0;
  virtual std::string Describe() const = 0;  // "redis at redis.internal:6379/0", no secrets
  virtual void Close(std::function<void()> done) = 0;
};

}  // namespace leasehold::store

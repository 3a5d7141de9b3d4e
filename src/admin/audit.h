// The audit: which instance had a lease when, each change once, for people who ask afterwards.
// AuditLog keeps the newest entries in memory (GET /v1/audit), counts them and hands each as one
// JSON line to a sink; LeaseAudit decides, per lease, which change is which record. Neither decides
// anything about a lease, and no entry holds a secret. Owned by app. Invariant: one term gives at
// most one entry that begins it and, on its holder, one that says it was lost.
//
// An entry (JSON, as a line of the file and in GET /v1/audit, {"records":[entry, ...]} with the
// newest first; `?lease=` and `?limit=` (100, at most 1000) choose):
//   "id"             unique for ever: "<process id of the instance that wrote it>-<count>"
//   "record"         lease_acquired    nobody is known to have had it before
//                    lease_handoff     another node had given it back: a planned move
//                    lease_failover    another node had it and did not give it back
//                    lease_reacquired  the same node had it before: taken back, or a restart
//                    lease_lost        it was lost, not given back (only its holder tells)
//   "term"           "<lease>/<token>/<process id>" of the holder: the same in every instance's
//                    entries about one term, which join by it
//   "lease", "token" the token is a decimal string
//   "holder"         {"node_id","process_id"} whose term it is
//   "former"         {"node_id","process_id","token","released"} of the term before; null: unknown
//   "reason"         lease_lost: one of the reasons of lease.lost; else ""
//   "taken_over_at"  the holder's wall clock at the acquisition (RFC 3339 with ms)
//   "noticed_at"     this instance's wall clock when it learned of the change
//   "source"         "holder": the entry is of the holder itself; "observer": of one that looked on
//   "recorded_by"    {"node_id","process_id"} of the instance that wrote the entry
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "admin/audit_sink.h"
#include "base/time.h"
#include "lease/engine.h"
#include "lease/record.h"
#include "observe/metrics.h"

namespace leasehold::admin {

enum class AuditRecord { kAcquired, kHandoff, kFailover, kReacquired, kLost };
std::string_view AuditRecordName(AuditRecord record);  // "lease_acquired", ...

struct AuditEntry {
  std::string id;           // given by AuditLog
  lease::Identity written;  // by AuditLog too: the instance that wrote it
  AuditRecord record = AuditRecord::kAcquired;
  std::string lease;
  uint64_t token = 0;
  lease::Identity holder;
  std::optional<lease::Former> former;
  std::string reason;
  base::WallTime taken_over_at;
  base::WallTime noticed_at;
  bool from_holder = false;
};
std::string AuditJson(const AuditEntry& entry);  // one line, no newline

class AuditLog {
 public:
  // `sink` may be null: in memory only. `metrics` is borrowed.
  AuditLog(uint32_t keep, lease::Identity self, observe::Metrics& metrics,
           std::unique_ptr<AuditSink> sink);

  void Add(AuditEntry entry);
  // {"records":[...]}: the newest `limit` of `lease` ("": of all), newest first.
  std::string Json(std::string_view lease, uint64_t limit) const;
  const std::deque<AuditEntry>& entries() const { return entries_; }  // oldest first
  // The last term of a lease that an earlier process wrote to the file.
  std::optional<AuditedTerm> Remembered(const std::string& lease) const;
  // What is not written yet is, or `limit` passes; then `done`, once, from the loop.
  void Close(base::Duration limit, std::function<void()> done);

 private:
  const uint32_t keep_;
  const lease::Identity self_;
  observe::Metrics& metrics_;
  std::unique_ptr<AuditSink> sink_;
  std::deque<AuditEntry> entries_;
  uint64_t count_ = 0;
};

// What becomes of one lease, as its driver tells it. Wall-clock times are for people only.
class LeaseAudit {
 public:
  // `log` outlives it; null: nothing is written.
  LeaseAudit(AuditLog* log, std::string lease, lease::Identity self);

  // An acquisition under `token` is being sent on the record seen: what its record says of the
  // former holder (Record::former), also in every later write of the term.
  std::string Acquiring(const std::optional<lease::Record>& seen, uint64_t token);
  void Acquired(uint64_t token, base::WallTime acquired_at);
  void Lost(uint64_t token, std::string_view reason);
  // The store has no record: whoever is seen next began while this process looked on.
  void SawNone() { looked_ = true; }
  // The record seen changed hands.
  void Saw(const lease::Record& record);

 private:
  struct Term {
    uint64_t token = 0;
    std::string process_id;
    bool operator==(const Term&) const = default;
  };
  bool Known(const Term& term) const;
  void Note(Term term);
  bool NeverOpened(const lease::Record& record, const std::optional<lease::Former>& former) const;
  void Write(AuditRecord record, uint64_t token, const lease::Identity& holder,
             const std::optional<lease::Former>& former, std::string_view reason,
             base::WallTime taken_over_at);

  AuditLog* log_;
  const std::string lease_;
  const lease::Identity self_;
  bool looked_ = false;  // the store was seen before: what is new now has happened since
  std::optional<lease::Former> last_seen_;
  std::optional<lease::Former> former_;  // of our own term, or the one being acquired
  uint64_t opened_token_ = 0;            // of our last term that became one
  base::WallTime acquired_at_;
  std::deque<Term> known_;  // accounted for, newest last
};

}  // namespace leasehold::admin

// Observer: what this process has seen of a lease's record, and from when on it may take it
// (DESIGN 2.2). Every answer of the store passes through See(). Local observation only: it compares
// versions and its own clock readings, never a time somebody else wrote. Owned by the engine;
// decides nothing about our own term.
#pragma once

#include <optional>
#include <set>
#include <string>

#include "base/time.h"
#include "lease/engine.h"
#include "lease/record.h"

namespace leasehold::lease {

class Observer {
 public:
  Observer(const Identity& self, const Timing& timing, const Memory& memory);

  struct Change {
    bool changed = false;  // the version differs from the last one seen, or this is the first sight
    bool hands = false;    // holder, token or released-ness differ
    bool gone_back = false;    // the store lost writes: see wait_until_
    bool token_lower = false;  // lower than the highest token ever seen
    bool token_twice = false;  // the highest token ever seen, but under another process
    bool duplicate_node_id =
        false;              // our node id beats under another process id (told once per process)
    bool unusable = false;  // ValidateRecord failed: never overwritten
  };
  // `record` empty: the store said absent. `now` is when the answer is processed.
  Change See(base::MonoTime now, const std::optional<Record>& record, const Version& version,
             bool holder_dead);
  // Our own confirmed write: seen, but nobody else's doing.
  void SeeOwnWrite(base::MonoTime now, const Record& record, const Version& version);
  // The term was just lost to `absent` or `store_regressed`: this process may re-acquire at once,
  // while nothing else has been seen since.
  void AllowImmediateReacquisition() { reacquire_at_once_ = true; }

  // From when on an acquisition may be sent; Never() while nothing was seen or the record is
  // unusable.
  base::MonoTime MayTakeAt() const;
  // The token an acquisition takes: max(record's, highest seen) + 1; nullopt: exhausted.
  std::optional<uint64_t> NextToken() const;

  bool seen_any() const { return seen_any_; }
  const std::optional<Record>& record() const { return record_; }
  std::optional<Version> expected()
      const;  // for a compare-and-set: the version seen, nullopt if absent
  uint64_t highest_token() const { return highest_token_; }
  bool token_lower() const { return record_ && record_->token < highest_token_; }
  const std::string& unusable() const {
    return unusable_;
  }  // why the record may not be overwritten; "" if it may
  bool of_other() const { return record_ && record_->process_id != self_.process_id; }
  bool held_by_other() const { return of_other() && record_->held(); }
  base::MonoTime changed_at() const { return changed_at_; }

 private:
  bool HandedOutTwice(const Record& record) const;
  bool GoneBack(const std::optional<Record>& record) const;
  // What outlives this record: the highest token, the process's beat, the TTL (never lowered by a
  // store gone back).
  void Remember(const Record& record, bool gone_back);

  const Identity& self_;
  const Timing& timing_;
  bool seen_any_ = false;
  bool ever_known_ = false;  // some record was, by this process or its state_dir
  std::optional<Record> record_;
  Version version_;
  base::MonoTime changed_at_;  // when the answer was processed in which a change was last seen
  base::MonoTime wait_until_;  // end of the window after the store has gone back
  bool holder_dead_ = false;
  bool reacquire_at_once_ = false;
  std::string unusable_;
  uint64_t highest_token_ = 0;
  std::string highest_token_process_;  // who was seen with it; "" unknown
  std::string last_process_;           // of the last record seen, with
  uint64_t last_process_beat_ = 0;     // its highest beat
  base::Duration last_ttl_;
  std::set<std::string> duplicates_told_;  // bounded: one entry per process seen under our node id
};

}  // namespace leasehold::lease

// Term: one holding of the lease, from acquisition to loss or release: its token, the confirmed
// write, and every write of it whose outcome is unknown. Judges what a record seen in the store
// means for it (DESIGN 2.3). Pure; owned by the engine.
#pragma once

#include <optional>
#include <vector>

#include "base/time.h"
#include "lease/events.h"
#include "lease/record.h"

namespace leasehold::lease {

class Term {
 public:
  // `record` is the acquisition that was confirmed, `sent_at` its first sending.
  Term(Record record, Version version, base::MonoTime sent_at);

  // A write of this term was sent; unresolved until confirmed, refused or overtaken.
  void Sent(uint64_t beat, RecordState state, base::MonoTime at);
  // The store answered that this write did not happen.
  void DidNotHappen(uint64_t beat);
  // The store answered that it did. Returns its sending time.
  base::MonoTime Applied(uint64_t beat, const Version& version);

  struct Verdict {
    enum class Kind {
      kOurs,  // still our last confirmed write, or ours without a known sending: extends nothing
      kConfirmed,  // one of our unresolved writes took: counts from `sent_at`
      kLost,       // definitive, with `reason`
    };
    Kind kind = Kind::kOurs;
    base::MonoTime sent_at;
    Reason reason = Reason::kNone;
  };
  // What `record` (nullopt: absent), seen in the store, means. `reads_confirm` false: nothing is
  // confirmed by it.
  Verdict Judge(const std::optional<Record>& record, const Version& version, bool reads_confirm);

  // The next write expects `version`: a record of this term that is older or newer than ours (while
  // releasing).
  void Adopt(const Version& version) { version_ = version; }

  uint64_t token() const { return record_.token; }
  const Version& version() const { return version_; }  // the one to expect in the next write
  const Record& record() const { return record_; }     // as last confirmed
  base::MonoTime confirmed_sent_at() const { return confirmed_sent_at_; }
  bool unresolved() const { return !unresolved_.empty(); }

 private:
  struct Attempt {
    uint64_t beat;
    RecordState state;
    base::MonoTime sent_at;
  };
  Record record_;
  Version version_;
  base::MonoTime confirmed_sent_at_;
  uint64_t last_beat_sent_;
  std::vector<Attempt> unresolved_;  // bounded by kUnresolvedMax, oldest forgotten first
};

}  // namespace leasehold::lease

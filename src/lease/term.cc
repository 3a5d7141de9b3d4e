#include "lease/term.h"

#include <algorithm>
#include <utility>

namespace leasehold::lease {
namespace {

// A TTL holds a few dozen attempts at most (back-off); a forgotten one still counts as ours, it
// only extends nothing.
constexpr size_t kUnresolvedMax = 64;

}  // namespace

Term::Term(Record record, Version version, base::MonoTime sent_at)
    : record_(std::move(record)),
      version_(std::move(version)),
      confirmed_sent_at_(sent_at),
      last_beat_sent_(record_.beat) {}

void Term::Sent(uint64_t beat, RecordState state, base::MonoTime at) {
  if (unresolved_.size() >= kUnresolvedMax) unresolved_.erase(unresolved_.begin());
  unresolved_.push_back({beat, state, at});
  last_beat_sent_ = beat;
}

void Term::DidNotHappen(uint64_t beat) {
  std::erase_if(unresolved_, [&](const Attempt& a) { return a.beat == beat; });
}

base::MonoTime Term::Applied(uint64_t beat, const Version& version) {
  for (const Attempt& attempt : unresolved_) {
    if (attempt.beat != beat) continue;
    record_.state = attempt.state;
    confirmed_sent_at_ = attempt.sent_at;
  }
  record_.beat = beat;
  version_ = version;
  // Every other unresolved write expected an older version, which is gone for good: it can take no
  // more.
  unresolved_.clear();
  return confirmed_sent_at_;
}

Term::Verdict Term::Judge(const std::optional<Record>& record, const Version& version,
                          bool reads_confirm) {
  using Kind = Verdict::Kind;
  if (!record) return {Kind::kLost, {}, Reason::kAbsent};
  if (record->process_id != record_.process_id || record->token > record_.token) {
    return {Kind::kLost, {}, Reason::kSuperseded};
  }
  if (record->token < record_.token || record->beat < record_.beat) {
    return {Kind::kLost, {}, Reason::kStoreRegressed};
  }
  if (record->beat == record_.beat) return {Kind::kOurs, {}, Reason::kNone};
  if (record->beat > last_beat_sent_)
    return {Kind::kLost, {}, Reason::kSuperseded};  // never sent by us
  const bool known = std::any_of(unresolved_.begin(), unresolved_.end(),
                                 [&](const Attempt& a) { return a.beat == record->beat; });
  if (known && reads_confirm)
    return {Kind::kConfirmed, Applied(record->beat, version), Reason::kNone};
  version_ = version;  // ours, so the next write must expect it; but it extends nothing
  return {Kind::kOurs, {}, Reason::kNone};
}

}  // namespace leasehold::lease

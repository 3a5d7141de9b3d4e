#include "lease/observer.h"

#include <limits>

namespace leasehold::lease {

using base::MonoTime;

Observer::Observer(const Identity& self, const Timing& timing, const Memory& memory)
    : self_(self),
      timing_(timing),
      ever_known_(memory.highest_token > 0 || memory.last_ttl > base::Duration::Zero()),
      highest_token_(memory.highest_token),
      last_ttl_(memory.last_ttl) {}

bool Observer::HandedOutTwice(const Record& record) const {
  return record.token == highest_token_ && !highest_token_process_.empty() &&
         record.process_id != highest_token_process_;
}

// No record where one was known, a lower token, the highest token under another process, or a lower
// beat of the same process: acknowledged writes are gone, and a holder whose write was lost may
// still have a permit.
bool Observer::GoneBack(const std::optional<Record>& record) const {
  if (!record) return ever_known_;
  if (record->token < highest_token_ || HandedOutTwice(*record)) return true;
  return record->process_id == last_process_ && record->beat < last_process_beat_;
}

void Observer::Remember(const Record& record, bool gone_back) {
  if (record.token > highest_token_ ||
      (record.token == highest_token_ && highest_token_process_.empty())) {
    highest_token_ = record.token;
    highest_token_process_ = record.process_id;
  }
  if (record.process_id != last_process_) {
    last_process_ = record.process_id;
    last_process_beat_ = 0;
  }
  if (record.beat > last_process_beat_) last_process_beat_ = record.beat;
  last_ttl_ = gone_back ? Max(last_ttl_, record.ttl()) : record.ttl();
}

Observer::Change Observer::See(MonoTime now, const std::optional<Record>& record,
                               const Version& version, bool holder_dead) {
  Change change;
  const bool same =
      seen_any_ && record.has_value() == record_.has_value() && (!record || version == version_);
  holder_dead_ = holder_dead;  // proof belongs to this very version
  if (same) return change;
  change.changed = true;
  change.hands = !seen_any_ || record.has_value() != record_.has_value() ||
                 (record && (record->process_id != record_->process_id ||
                             record->token != record_->token || record->held() != record_->held()));
  unusable_.clear();
  if (record) {
    if (const base::Status valid = ValidateRecord(*record); !valid) {
      unusable_ = valid.error().message;
      change.unusable = true;
    }
    change.duplicate_node_id =
        record_ && record->node_id == self_.node_id && record->process_id != self_.process_id &&
        record->process_id == record_->process_id && record->beat > record_->beat &&
        duplicates_told_.insert(record->process_id).second;
  }
  change.token_lower = record && record->token < highest_token_;
  change.token_twice = record && HandedOutTwice(*record);
  change.gone_back = GoneBack(record);
  // Seen going back again, the wait only grows: a lost holder's permit is no shorter for it.
  wait_until_ = change.gone_back
                    ? Max(wait_until_, now + timing_.Window(Max(last_ttl_, timing_.ttl)))
                    : MonoTime();
  reacquire_at_once_ = false;  // allowed for what was seen at the loss, not for what came after
  if (record && !change.unusable) Remember(*record, change.gone_back);
  seen_any_ = true;
  ever_known_ = ever_known_ || record.has_value();
  record_ = record;
  version_ = version;
  changed_at_ = now;
  return change;
}

void Observer::SeeOwnWrite(MonoTime now, const Record& record, const Version& version) {
  Remember(record, false);
  highest_token_process_ = record.process_id;
  seen_any_ = ever_known_ = true;
  record_ = record;
  version_ = version;
  changed_at_ = now;
  wait_until_ = MonoTime();
  holder_dead_ = false;
  reacquire_at_once_ = false;
  unusable_.clear();
}

MonoTime Observer::MayTakeAt() const {
  if (!seen_any_ || !unusable_.empty()) return MonoTime::Never();
  if (reacquire_at_once_) return changed_at_;
  const bool of_other = held_by_other() && !holder_dead_;
  // The RECORD's TTL, not our own.
  const MonoTime window_end = of_other ? changed_at_ + timing_.Window(record_->ttl()) : changed_at_;
  // Gone back: also if released, absent, proven dead or our own.
  return Max(window_end, wait_until_);
}

std::optional<uint64_t> Observer::NextToken() const {
  const uint64_t highest =
      record_ && record_->token > highest_token_ ? record_->token : highest_token_;
  if (highest == std::numeric_limits<uint64_t>::max()) return std::nullopt;
  return highest + 1;
}

std::optional<Version> Observer::expected() const {
  return record_ ? std::optional<Version>(version_) : std::nullopt;
}

}  // namespace leasehold::lease

#include "admin/audit.h"

#include <algorithm>
#include <utility>

#include "base/json_writer.h"
#include "base/text.h"
#include "loop/loop.h"

namespace leasehold::admin {
namespace {

using base::WallTime;
using lease::Former;
using lease::Identity;

// Terms remembered as accounted for. A store that went back shows terms of the last few writes
// again, not of hours ago.
constexpr size_t kKnownTermsMax = 64;
// A node id has at most 253 bytes and a process id 32, when Leasehold wrote the record; somebody
// else's record may say anything.
constexpr size_t kNameBytesMax = 253;

Former FormerOf(const lease::Record& record) {
  return {record.node_id, record.process_id, record.token, !record.held()};
}

AuditRecord RecordOf(const std::string& holder_node_id, const std::optional<Former>& former) {
  if (!former) return AuditRecord::kAcquired;
  if (former->node_id == holder_node_id) return AuditRecord::kReacquired;
  return former->released ? AuditRecord::kHandoff : AuditRecord::kFailover;
}

void WriteIdentity(base::JsonWriter& json, std::string_view key, const Identity& who) {
  json.Key(key).BeginObject();
  json.Member("node_id", std::string_view(who.node_id).substr(0, kNameBytesMax));
  json.Member("process_id", std::string_view(who.process_id).substr(0, kNameBytesMax));
  json.EndObject();
}

void WriteFormer(base::JsonWriter& json, const std::optional<Former>& former) {
  json.Key("former");
  if (!former) {
    json.Null();
    return;
  }
  json.BeginObject();
  json.Member("node_id", std::string_view(former->node_id).substr(0, kNameBytesMax));
  json.Member("process_id", std::string_view(former->process_id).substr(0, kNameBytesMax));
  json.Key("token").Token(former->token).Key("released").Bool(former->released).EndObject();
}

void WriteEntry(base::JsonWriter& json, const AuditEntry& entry) {
  const std::string term =
      entry.lease + "/" + std::to_string(entry.token) + "/" +
      std::string(std::string_view(entry.holder.process_id).substr(0, kNameBytesMax));
  json.BeginObject().Member("id", entry.id).Member("record", AuditRecordName(entry.record));
  json.Member("term", term).Member("lease", entry.lease).Key("token").Token(entry.token);
  WriteIdentity(json, "holder", entry.holder);
  WriteFormer(json, entry.former);
  json.Member("reason", entry.reason);
  json.Member("taken_over_at", base::FormatWallTime(entry.taken_over_at));
  json.Member("noticed_at", base::FormatWallTime(entry.noticed_at));
  json.Member("source", entry.from_holder ? "holder" : "observer");
  WriteIdentity(json, "recorded_by", entry.written);
  json.EndObject();
}

constexpr const char* kRecordsHelp = "Entries of the audit, by record.";

}  // namespace

std::string_view AuditRecordName(AuditRecord record) {
  switch (record) {
    case AuditRecord::kAcquired: return "lease_acquired";
    case AuditRecord::kHandoff: return "lease_handoff";
    case AuditRecord::kFailover: return "lease_failover";
    case AuditRecord::kReacquired: return "lease_reacquired";
    case AuditRecord::kLost: return "lease_lost";
  }
  return "lease_acquired";
}

std::string AuditJson(const AuditEntry& entry) {
  std::string line;
  base::JsonWriter json(line);
  WriteEntry(json, entry);
  return line;
}

// ---- AuditLog ----

AuditLog::AuditLog(uint32_t keep, Identity self, observe::Metrics& metrics,
                   std::unique_ptr<AuditSink> sink)
    : keep_(keep), self_(std::move(self)), metrics_(metrics), sink_(std::move(sink)) {
  // Every series exists from the start, so that increase() sees its first entry.
  for (const AuditRecord record :
       {AuditRecord::kAcquired, AuditRecord::kHandoff, AuditRecord::kFailover,
        AuditRecord::kReacquired, AuditRecord::kLost}) {
    metrics_.AddCounter("leasehold_audit_records_total", kRecordsHelp,
                        {{"record", std::string(AuditRecordName(record))}});
  }
}

void AuditLog::Add(AuditEntry entry) {
  entry.id = self_.process_id + "-" + std::to_string(++count_);
  entry.written = self_;
  metrics_
      .AddCounter("leasehold_audit_records_total", kRecordsHelp,
                  {{"record", std::string(AuditRecordName(entry.record))}})
      .Add();
  if (sink_) sink_->Write(AuditJson(entry));
  entries_.push_back(std::move(entry));
  if (entries_.size() > keep_) entries_.pop_front();
}

std::string AuditLog::Json(std::string_view lease, uint64_t limit) const {
  std::string body;
  base::JsonWriter json(body);
  json.BeginObject().Key("records").BeginArray();
  for (auto entry = entries_.rbegin(); entry != entries_.rend() && limit > 0; ++entry) {
    if (!lease.empty() && entry->lease != lease) continue;
    WriteEntry(json, *entry);
    --limit;
  }
  json.EndArray().EndObject();
  return body;
}

std::optional<AuditedTerm> AuditLog::Remembered(const std::string& lease) const {
  if (!sink_) return std::nullopt;
  const auto found = sink_->remembered().find(lease);
  return found == sink_->remembered().end() ? std::nullopt : std::optional(found->second);
}

void AuditLog::Close(base::Duration limit, std::function<void()> done) {
  if (sink_) return sink_->Close(limit, std::move(done));
  done();
}

// ---- LeaseAudit ----

LeaseAudit::LeaseAudit(AuditLog* log, std::string lease, Identity self)
    : log_(log), lease_(std::move(lease)), self_(std::move(self)) {
  if (log_ == nullptr) return;
  const std::optional<AuditedTerm> last = log_->Remembered(lease_);
  if (!last) return;
  // Written by an earlier process: not written again, and what has come since is new.
  looked_ = true;
  Note({last->token, last->process_id});
}

std::string LeaseAudit::Acquiring(const std::optional<lease::Record>& seen, uint64_t token) {
  looked_ = true;
  if (!seen) {
    former_.reset();
    return "";
  }
  // Our own acquisition that landed too late to become a term: whom it followed on still counts.
  const bool unopened = seen->process_id == self_.process_id && seen->token != opened_token_;
  if (!unopened || !former_) former_ = FormerOf(*seen);
  return lease::MakeFormer(token, *former_);
}

void LeaseAudit::Acquired(uint64_t token, WallTime acquired_at) {
  opened_token_ = token;
  acquired_at_ = acquired_at;
  const Term term{token, self_.process_id};
  if (Known(term)) return;
  Note(term);
  Write(RecordOf(self_.node_id, former_), token, self_, former_, "", acquired_at);
}

void LeaseAudit::Lost(uint64_t token, std::string_view reason) {
  Write(AuditRecord::kLost, token, self_, former_, reason, acquired_at_);
}

void LeaseAudit::Saw(const lease::Record& record) {
  const bool first = !std::exchange(looked_, true);
  const std::optional<Former> before = std::exchange(last_seen_, FormerOf(record));
  if (record.process_id == self_.process_id || !record.held()) return;
  const Term term{record.token, record.process_id};
  if (Known(term)) return;
  std::optional<Former> former = lease::ParseFormer(record);
  if (!former) former = before;
  const bool never_opened = NeverOpened(record, former);
  Note(term);
  // Whom a process finds holding when it first looks took over before its time.
  if (first || never_opened) return;
  const WallTime noticed = loop::Loop::WallNow();
  Write(RecordOf(record.node_id, former), record.token, {record.node_id, record.process_id}, former,
        "", record.acquired_at_unix_ms > 0 ? WallTime{record.acquired_at_unix_ms} : noticed);
}

// The same process acquired twice in a row and says that it follows on somebody else: its first
// acquisition never became a term, and is written already.
bool LeaseAudit::NeverOpened(const lease::Record& record,
                             const std::optional<Former>& former) const {
  if (known_.empty() || !former) return false;
  const Term& last = known_.back();
  return last.process_id == record.process_id && last.token < record.token &&
         former->token < last.token;
}

bool LeaseAudit::Known(const Term& term) const {
  return std::find(known_.begin(), known_.end(), term) != known_.end();
}

void LeaseAudit::Note(Term term) {
  known_.push_back(std::move(term));
  if (known_.size() > kKnownTermsMax) known_.pop_front();
}

void LeaseAudit::Write(AuditRecord record, uint64_t token, const Identity& holder,
                       const std::optional<Former>& former, std::string_view reason,
                       WallTime taken_over_at) {
  if (log_ == nullptr) return;
  AuditEntry entry;
  entry.record = record;
  entry.lease = lease_;
  entry.token = token;
  entry.holder = holder;
  entry.former = former;
  entry.reason = reason;
  entry.taken_over_at = taken_over_at;
  entry.noticed_at = loop::Loop::WallNow();
  entry.from_holder = holder.process_id == self_.process_id;
  log_->Add(std::move(entry));
}

}  // namespace leasehold::admin

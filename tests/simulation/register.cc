#include "simulation/register.h"

#include <algorithm>
#include <limits>

namespace leasehold::simulation {

Register::Register(const StorePlan& plan, std::optional<lease::Record> first)
    : numbered_versions_(plan.numbered_versions) {
  if (first) CompareAndSet(0, std::nullopt, *first);
}

const Register::Entry* Register::current() const {
  return history_.empty() ? nullptr : &history_.back();
}

bool Register::CompareAndSet(TrueNs at, const std::optional<lease::Version>& expected,
                             const lease::Record& record) {
  const Entry* now = current();
  if (now ? (!expected || *expected != now->version) : expected.has_value()) return false;
  ++revision_;
  lease::Version version = lease::MakeVersion(record);
  if (numbered_versions_) version += "#" + std::to_string(revision_);
  history_.push_back({at, record, std::move(version)});
  return true;
}

TrueNs Register::LoseWrites(size_t count) {
  history_.resize(history_.size() - std::min(count, history_.size()));
  return history_.empty() ? -1 : history_.back().at;
}

std::optional<lease::Record> FirstRecord(const StorePlan& plan, int64_t ttl_ms) {
  if (plan.start == StorePlan::Start::kAbsent) return std::nullopt;
  lease::Record record;
  record.lease = kLeaseName;
  record.node_id = "old";
  record.process_id = "old-process";
  record.token = 41;
  record.beat = 977;
  record.ttl_ms = ttl_ms;
  record.unknown = {{"written_by", "\"a later program\""}};
  switch (plan.start) {
    case StorePlan::Start::kReleased: record.state = lease::RecordState::kReleased; break;
    case StorePlan::Start::kUnusable: record.format = lease::kRecordFormat + 1; break;
    case StorePlan::Start::kNearlyExhausted:
      record.token = std::numeric_limits<uint64_t>::max() - 3;
      record.state = lease::RecordState::kReleased;
      break;
    case StorePlan::Start::kHeldByDead:
    case StorePlan::Start::kAbsent: break;
  }
  return record;
}

}  // namespace leasehold::simulation

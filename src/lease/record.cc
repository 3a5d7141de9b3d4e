#include "lease/record.h"

#include <algorithm>
#include <vector>

#include "base/text.h"

namespace leasehold::lease {
namespace {

// The longest node id of ours (config/combinations.cc). A longer name is of no Leasehold, and could
// make our record longer than stores read.
constexpr size_t kFormerNameBytesMax = 253;

base::Error Invalid(const Record& record, std::string_view what) {
  std::string message = "the record of lease '";
  message.append(record.lease).append("' has ").append(what);
  message.append("; it is left as it is");
  return {base::ErrorCode::kInvalid, std::move(message)};
}

}  // namespace

std::string_view RecordStateName(RecordState state) {
  switch (state) {
    case RecordState::kHeld: return "held";
    case RecordState::kDraining: return "draining";
    case RecordState::kReleased: return "released";
  }
  CHECK(false, "a RecordState outside its list");
}

std::optional<RecordState> ParseRecordState(std::string_view name) {
  for (const auto state : {RecordState::kHeld, RecordState::kDraining, RecordState::kReleased}) {
    if (name == RecordStateName(state)) return state;
  }
  return std::nullopt;
}

// Read from the right it is unambiguous whatever the process id holds: token and beat are digits.
Version MakeVersion(const Record& record) {
  Version version = record.process_id;
  version.append("/").append(std::to_string(record.token));
  version.append("/").append(std::to_string(record.beat));
  return version;
}

std::string MakeFormer(uint64_t token, const Former& before) {
  if (std::max(before.node_id.size(), before.process_id.size()) > kFormerNameBytesMax) return "";
  std::string text = std::to_string(token);
  text.append("/").append(std::to_string(before.token));
  text.append(before.released ? "/released/" : "/held/");
  text.append(before.process_id).append("/").append(before.node_id);
  return text;
}

std::optional<Former> ParseFormer(const Record& record) {
  constexpr size_t kParts = 5;  // token, former token, how, process id, node id
  const std::vector<std::string_view> parts = base::Split(record.former, '/');
  if (parts.size() != kParts || (parts[2] != "released" && parts[2] != "held")) return std::nullopt;
  const base::Result<uint64_t> own = base::ParseUint64(parts[0]);
  const base::Result<uint64_t> token = base::ParseUint64(parts[1]);
  if (!own || !token || *own != record.token) return std::nullopt;
  Former former;
  former.token = *token;
  former.released = parts[2] == "released";
  former.process_id = parts[3];
  former.node_id = parts[4];
  return former;
}

// The format is looked at first: what the other members of a higher format mean is not ours to
// judge.
base::Status ValidateRecord(const Record& record) {
  if (record.format < 1 || record.format > kRecordFormat) {
    return Invalid(record, "format " + std::to_string(record.format) + ", but this program knows " +
                               "formats 1 to " + std::to_string(kRecordFormat) +
                               " (a newer Leasehold wrote it: upgrade this one)");
  }
  if (record.lease.empty()) return Invalid(record, "an empty lease name");
  if (record.node_id.empty()) return Invalid(record, "an empty node_id, which must name a holder");
  if (record.process_id.empty()) {
    return Invalid(record, "an empty process_id, which must name a holder's process");
  }
  if (record.ttl_ms < kTtlMillisMin || record.ttl_ms > kTtlMillisMax) {
    return Invalid(record, "ttl_ms " + std::to_string(record.ttl_ms) + ", which must be from " +
                               std::to_string(kTtlMillisMin) + " to " +
                               std::to_string(kTtlMillisMax));
  }
  return {};
}

}  // namespace leasehold::lease

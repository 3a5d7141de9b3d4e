// A lease record as JSON text, as the file store keeps it and anybody may have edited it. Asserted
// of any text: an error that is a printable sentence, or a record that shows exactly what the text
// says; it is written and read back the same, members that we do not know included; a record that
// may be acted on has a format, an identity and a TTL that are ours; a higher format is never one.
#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <vector>

#include "fuzz/fuzz_target.h"
#include "lease/record.h"
#include "proto/json.h"
#include "store/record_json.h"

namespace leasehold::fuzz {
namespace {

using lease::Record;
using proto::Json;

void CheckSentence(const base::Error& error) {
  CHECK(!error.message.empty(), "an error without a sentence");
  CHECK(error.message.size() < 1024, "a sentence without bound");
  for (const char c : error.message) CHECK(c >= ' ' && c < 0x7f, "a sentence shows raw bytes");
}

bool IsOurs(std::string_view name) {
  constexpr std::array<std::string_view, 11> kOurs = {
      "format", "lease", "node_id", "process_id",          "token", "beat",
      "ttl_ms", "state", "peers",   "acquired_at_unix_ms", "former"};
  return std::find(kOurs.begin(), kOurs.end(), name) != kOurs.end();
}

// Read once more, member by member.
void CheckMembers(std::string_view text, const Record& record) {
  const base::Result<Json> json = Json::Parse(text);
  CHECK(json.ok() && json->is_object(), "a record out of no object");
  const uint64_t format = json->Uint("format").value_or(0);
  CHECK(format > UINT32_MAX ? record.format == UINT32_MAX : record.format == format, "format");
  for (const auto& [name, value] : record.unknown) {
    const std::optional<Json> member = json->Find(name);
    CHECK(member && member->Dump() == value, "a member we do not know was changed");
  }
  const std::vector<std::string> keys = json->Keys();
  const auto others =
      std::count_if(keys.begin(), keys.end(), [](const std::string& key) { return !IsOurs(key); });
  CHECK(record.unknown.size() == static_cast<size_t>(others), "a member we do not know was lost");
  if (record.format > lease::kRecordFormat) return;  // read as far as it can be
  CHECK(json->String("lease") == record.lease, "lease");
  CHECK(json->String("node_id") == record.node_id, "node_id");
  CHECK(json->String("process_id") == record.process_id, "process_id");
  CHECK(json->Token("token") == record.token, "token");
  CHECK(json->Token("beat") == record.beat, "beat");
  CHECK(json->Int("ttl_ms") == record.ttl_ms, "ttl_ms");
  CHECK(json->String("state") == lease::RecordStateName(record.state), "state");
  const std::optional<Json> peers = json->Find("peers");
  CHECK(record.peers.size() == (peers ? peers->size() : 0), "a peer more or less");
}

void CheckUsable(const Record& record) {
  const base::Status valid = lease::ValidateRecord(record);
  if (!valid) {
    CHECK(!valid.error().message.empty(), "refused without a sentence");
    return;
  }
  CHECK(record.format == lease::kRecordFormat, "a record of another format is acted on");
  CHECK(!record.lease.empty() && !record.node_id.empty() && !record.process_id.empty(), "of whom?");
  CHECK(record.ttl_ms >= 500 && record.ttl_ms <= 24 * 3600 * 1000, "a TTL out of range");
  CHECK(record.ttl() == base::Duration::Millis(record.ttl_ms), "another TTL");
}

void CheckFormer(const Record& record) {
  const std::optional<lease::Former> former = lease::ParseFormer(record);
  if (!former) return;
  const std::string written = lease::MakeFormer(record.token, *former);
  CHECK(written == record.former || former->node_id.size() > 253 || former->process_id.size() > 253,
        "who had it before changes when it is written again");
}

}  // namespace
}  // namespace leasehold::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace leasehold::fuzz;  // NOLINT(google-build-using-namespace): this file's own
  namespace store = leasehold::store;
  const std::string_view input = View(data, size);
  const auto record = store::RecordFromJson(input);
  if (!record) {
    CheckSentence(record.error());
    return 0;
  }
  CheckMembers(input, *record);
  CheckUsable(*record);
  CheckFormer(*record);
  const auto written = store::RecordToJson(*record);
  CHECK(written.ok(), "a record that was read cannot be written");
  CHECK(written->ends_with('\n') && written->find('\n') + 1 == written->size(), "not one line");
  const auto again = store::RecordFromJson(*written);
  CHECK(again.ok() && *again == *record, "a record does not come back as it went");
  const auto twice = store::RecordToJson(*again);
  CHECK(twice.ok() && *twice == *written, "written twice, a record changes");
  return 0;
}

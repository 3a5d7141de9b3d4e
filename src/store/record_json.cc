#include "store/record_json.h"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include "base/json_writer.h"
#include "base/text.h"
#include "proto/json.h"

namespace leasehold::store {
namespace {

using lease::Record;
using proto::Json;

constexpr std::array<std::string_view, 11> kMembers = {
    "format", "lease", "node_id", "process_id",          "token", "beat",
    "ttl_ms", "state", "peers",   "acquired_at_unix_ms", "former"};

bool IsOurs(std::string_view name) {
  return std::find(kMembers.begin(), kMembers.end(), name) != kMembers.end();
}

base::Error Invalid(std::string message) { return {base::ErrorCode::kInvalid, std::move(message)}; }

// Reads one member after another; keeps the first complaint. In a higher format nothing is required
// and nothing is wrong: what does not fit stays at its default.
class MemberReader {
 public:
  MemberReader(const Json& object, bool lenient) : object_(object), lenient_(lenient) {}

  void Text(std::string_view name, std::string& out) {
    if (std::optional<std::string> value = object_.String(name)) {
      out = std::move(*value);
    } else {
      Complain(name, "a string");
    }
  }

  void Number64(std::string_view name, uint64_t& out) {
    const std::optional<Json> member = object_.Find(name);
    const std::optional<uint64_t> value = member ? member->AsToken() : std::nullopt;
    if (!value) return Complain(name, "a decimal string from \"0\" to \"18446744073709551615\"");
    out = *value;
  }

  void Millis(std::string_view name, int64_t& out) {
    if (const std::optional<int64_t> value = object_.Int(name)) {
      out = *value;
    } else {
      Complain(name, "an integer");
    }
  }

  void State(lease::RecordState& out) {
    const std::string name = object_.String("state").value_or("");
    if (const std::optional<lease::RecordState> state = lease::ParseRecordState(name)) {
      out = *state;
    } else {
      Complain("state", "\"held\", \"draining\" or \"released\"");
    }
  }

  void Peers(std::map<std::string, std::string>& out) {
    const std::optional<Json> peers = object_.Find("peers");
    if (!peers) return;
    if (!peers->is_object()) return Complain("peers", "an object of gate names and addresses");
    for (const std::string& gate : peers->Keys()) {
      if (std::optional<std::string> address = peers->String(gate)) {
        out.emplace(gate, std::move(*address));
      } else {
        Complain("peers", "an object of gate names and addresses, all of them strings");
      }
    }
  }

  const std::string& complaint() const { return complaint_; }

 private:
  void Complain(std::string_view name, std::string_view right) {
    if (lenient_ || !complaint_.empty()) return;
    const std::optional<Json> member = object_.Find(name);
    complaint_ = "the record has ";
    if (member) {
      complaint_.append(name).append(" = ").append(base::Printable(member->Dump(), 60));
    } else {
      complaint_.append("no member ").append(name);
    }
    complaint_.append(", which must be ").append(right);
  }

  const Json& object_;
  bool lenient_;
  std::string complaint_;
};

// The format, first and always required: everything else depends on it. Larger than any number of
// ours is still a higher format, not an error.
std::optional<uint32_t> ReadFormat(const Json& object) {
  const std::optional<uint64_t> format = object.Uint("format");
  if (!format) return std::nullopt;
  return static_cast<uint32_t>(std::min<uint64_t>(*format, std::numeric_limits<uint32_t>::max()));
}

std::string Write(const Record& record) {
  std::string text;
  base::JsonWriter json(text);
  json.BeginObject().Key("format").Uint(record.format).Member("lease", record.lease);
  json.Member("node_id", record.node_id).Member("process_id", record.process_id);
  json.Key("token").Token(record.token).Key("beat").Token(record.beat);
  json.Key("ttl_ms").Int(record.ttl_ms).Member("state", lease::RecordStateName(record.state));
  json.Key("peers").BeginObject();
  for (const auto& [gate, address] : record.peers) json.Member(gate, address);
  json.EndObject().Key("acquired_at_unix_ms").Int(record.acquired_at_unix_ms);
  if (!record.former.empty()) json.Member("former", record.former);
  for (const auto& [name, value] : record.unknown) json.Key(name).Raw(value);
  json.EndObject();
  text += '\n';
  return text;
}

// The unknown members in one spelling, so that they compare; nullopt if one is not JSON.
std::optional<std::map<std::string, std::string>> Normal(
    const std::map<std::string, std::string>& unknown) {
  std::map<std::string, std::string> normal;
  for (const auto& [name, value] : unknown) {
    const base::Result<Json> parsed = Json::Parse(value);
    if (!parsed.ok()) return std::nullopt;
    normal.emplace(name, parsed->Dump());
  }
  return normal;
}

}  // namespace

base::Result<std::string> RecordToJson(const Record& record) {
  const std::string which = "the record of lease '" + base::Printable(record.lease) + "' ";
  for (const auto& [name, value] : record.unknown) {
    if (IsOurs(name)) {
      return Invalid(which + "keeps an unknown member '" + name + "', which is one of its own");
    }
  }
  Record normal = record;
  std::optional<std::map<std::string, std::string>> unknown = Normal(record.unknown);
  if (!unknown) return Invalid(which + "keeps an unknown member whose value is not JSON");
  normal.unknown = std::move(*unknown);
  std::string text = Write(normal);
  if (text.size() > kRecordBytesMax) {
    return Invalid(which + "takes " + std::to_string(text.size()) + " bytes, but at most " +
                   std::to_string(kRecordBytesMax) + " are kept");
  }
  // The proof that it can be read back is to read it back: bytes that are not UTF-8 have been
  // replaced by now, a number that JSON cannot hold is refused.
  const base::Result<Record> back = RecordFromJson(text);
  if (!back.ok()) return Invalid(which + "cannot be kept as JSON: " + back.error().message);
  if (*back != normal) {
    return Invalid(which + "cannot be kept exactly: its names and addresses must be UTF-8");
  }
  return text;
}

base::Result<Record> RecordFromJson(std::string_view text) {
  proto::JsonLimits limits;
  limits.bytes_max = kRecordBytesMax;
  const base::Result<Json> parsed = Json::Parse(text, limits);
  if (!parsed.ok()) return Invalid("it is not JSON of a record: " + parsed.error().message);
  const Json& object = *parsed;
  if (!object.is_object()) {
    return Invalid("it holds " + std::string(proto::JsonTypeName(object.type())) +
                   " where a record must be an object");
  }
  Record record;
  const std::optional<uint32_t> format = ReadFormat(object);
  if (!format) return Invalid("the record has no member format with an integer from 1 on");
  record.format = *format;
  MemberReader reader(object, record.format > lease::kRecordFormat);
  reader.Text("lease", record.lease);
  reader.Text("node_id", record.node_id);
  reader.Text("process_id", record.process_id);
  reader.Number64("token", record.token);
  reader.Number64("beat", record.beat);
  reader.Millis("ttl_ms", record.ttl_ms);
  reader.State(record.state);
  reader.Peers(record.peers);
  if (object.Find("acquired_at_unix_ms")) {  // for people only: its absence harms nobody
    reader.Millis("acquired_at_unix_ms", record.acquired_at_unix_ms);
  }
  record.former = object.String("former").value_or("");  // for people only
  if (!reader.complaint().empty()) return Invalid(reader.complaint());
  for (const std::string& name : object.Keys()) {
    if (!IsOurs(name)) record.unknown.emplace(name, object.Find(name)->Dump());
  }
  return record;
}

}  // namespace leasehold::store

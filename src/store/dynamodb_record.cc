#include "store/dynamodb_record.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <map>
#include <optional>

#include "base/json_writer.h"
#include "base/text.h"

namespace leasehold::store {
namespace {

using base::Error;
using base::ErrorCode;
using base::Result;
using lease::Record;
using proto::Json;

constexpr std::array<std::string_view, 12> kOurs = {
    kDynamoDbKey, "format", "lease",  "node_id", "process_id",
    "token",      "beat",   "ttl_ms", "state",   "acquired_at_unix_ms",
    "former",     "peers"};

bool IsOurs(std::string_view name) {
  return std::find(kOurs.begin(), kOurs.end(), name) != kOurs.end();
}

std::string Typed(std::string_view type, std::string_view value) {
  std::string json;
  base::JsonWriter(json).BeginObject().Member(type, value).EndObject();
  return json;
}

std::string Text(std::string_view value) { return Typed("S", value); }
std::string Number(const std::string& value) { return Typed("N", value); }

std::string Peers(const std::map<std::string, std::string>& peers) {
  std::string json;
  base::JsonWriter writer(json);
  writer.BeginObject().Key("M").BeginObject();
  for (const auto& [gate, address] : peers) writer.Key(gate).Raw(Text(address));
  writer.EndObject().EndObject();
  return json;
}

DynamoDbAttributes Encode(const Record& record) {
  DynamoDbAttributes attributes = {
      {"format", Number(std::to_string(record.format))},
      {"lease", Text(record.lease)},
      {"node_id", Text(record.node_id)},
      {"process_id", Text(record.process_id)},
      {"token", Text(std::to_string(record.token))},
      {"beat", Text(std::to_string(record.beat))},
      {"ttl_ms", Number(std::to_string(record.ttl_ms))},
      {"state", Text(lease::RecordStateName(record.state))},
      {"acquired_at_unix_ms", Number(std::to_string(record.acquired_at_unix_ms))},
  };
  if (!record.former.empty()) attributes.emplace_back("former", Text(record.former));
  if (!record.peers.empty()) attributes.emplace_back("peers", Peers(record.peers));
  return attributes;
}

// DynamoDB shows numbers without exponent or fraction where they have none.
template <typename T>
std::optional<T> ParseNumber(std::string_view text) {
  T number = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc() || stop != end) return std::nullopt;
  return number;
}

// Reads one attribute after another; keeps the first complaint. In a higher format nothing is
// required and nothing is wrong: what does not fit stays at its default.
class AttributeReader {
 public:
  AttributeReader(const Json& item, bool lenient) : item_(item), lenient_(lenient) {}

  void Text(std::string_view name, std::string& out) {
    if (std::optional<std::string> text = Value(name, "S")) {
      out = std::move(*text);
    } else {
      Complain(name, "a string");
    }
  }

  void OptionalText(std::string_view name, std::string& out) {
    if (item_.Find(name)) Text(name, out);
  }

  void Number64(std::string_view name, uint64_t& out) {
    const Result<uint64_t> number = base::ParseUint64(Value(name, "S").value_or(""));
    if (!number) return Complain(name, "a string of a whole number from 0 to 2^64 - 1");
    out = *number;
  }

  void Millis(std::string_view name, int64_t& out) {
    const std::optional<int64_t> number = ParseNumber<int64_t>(Value(name, "N").value_or(""));
    if (!number) return Complain(name, "a whole number of 64 bits");
    out = *number;
  }

  void State(lease::RecordState& out) {
    const auto state = lease::ParseRecordState(Value("state", "S").value_or(""));
    if (!state) return Complain("state", "held, draining or released");
    out = *state;
  }

  void Peers(std::map<std::string, std::string>& out) {
    const std::optional<Json> typed = item_.Find("peers");
    if (!typed) return;
    const Json gates = typed->Find("M").value_or(Json());
    if (!gates.is_object()) return Complain("peers", "a map of gate names and addresses");
    for (const std::string& gate : gates.Keys()) {
      std::optional<std::string> address = gates.Find(gate)->String("S");
      if (!address) return Complain("peers", "a map of gate names and addresses, all strings");
      out.emplace(gate, std::move(*address));
    }
  }

  const std::string& complaint() const { return complaint_; }

 private:
  std::optional<std::string> Value(std::string_view name, std::string_view type) const {
    const std::optional<Json> typed = item_.Find(name);
    return typed ? typed->String(type) : std::nullopt;
  }

  void Complain(std::string_view name, std::string_view right) {
    if (lenient_ || !complaint_.empty()) return;
    const std::optional<Json> found = item_.Find(name);
    complaint_ =
        found ? "its attribute " + std::string(name) + " is " + base::Printable(found->Dump(), 60)
              : "it has no attribute " + std::string(name);
    complaint_.append(", which must be ").append(right);
  }

  const Json& item_;
  bool lenient_;
  std::string complaint_;
};

Error NotARecord(std::string_view key, const std::string& what) {
  return {ErrorCode::kInvalid, "the DynamoDB item \"" + base::Printable(key) +
                                   "\" is not a lease record: " + what +
                                   "; it is left alone: repair or remove it by hand"};
}

// First and always required: everything else depends on it. Larger than any number of ours is still
// a higher format, not an error.
std::optional<uint32_t> ReadFormat(const Json& item) {
  const std::optional<Json> typed = item.Find("format");
  const auto number = ParseNumber<uint64_t>(typed ? typed->String("N").value_or("") : "");
  if (!number) return std::nullopt;
  return static_cast<uint32_t>(std::min<uint64_t>(*number, std::numeric_limits<uint32_t>::max()));
}

}  // namespace

std::string DynamoDbKeyOf(std::string_view prefix, std::string_view lease) {
  std::string key;
  for (const char c : prefix) {
    const std::string_view escaped = c == ':' ? "%3A" : c == '%' ? "%25" : "";
    escaped.empty() ? key += c : key += escaped;
  }
  return key + ":lease:" + std::string(lease);
}

std::string DynamoDbCheckKey(std::string_view prefix) {
  const std::string key = DynamoDbKeyOf(prefix, "");
  return key.substr(0, key.size() - std::string_view("lease:").size()) + "check";
}

Result<DynamoDbAttributes> EncodeItem(const Record& record) {
  DynamoDbAttributes attributes = Encode(record);
  // The proof that it can be read back is to read it back: bytes that are not UTF-8 have been
  // replaced by now, and a zero byte is not read by us.
  std::string text;
  base::JsonWriter json(text);
  json.BeginObject().Key(kDynamoDbKey).Raw(Text("-"));
  for (const auto& [name, value] : attributes) json.Key(name).Raw(value);
  json.EndObject();
  Record known = record;
  known.unknown.clear();
  const Result<Json> parsed = Json::Parse(text);
  const Result<Record> back =
      parsed ? DecodeItem("-", record.lease, *parsed) : Result<Record>(parsed.error());
  if (!back || *back != known) {
    return Error{ErrorCode::kInvalid, "the record of lease \"" + base::Printable(record.lease) +
                                          "\" cannot be kept exactly in DynamoDB: its names and "
                                          "addresses must be UTF-8 without zero bytes"};
  }
  return attributes;
}

Result<DynamoDbAttributes> EncodeUnknown(const Record& record) {
  DynamoDbAttributes attributes;
  for (const auto& [name, value] : record.unknown) {
    if (IsOurs(name) || !Json::Parse(value)) {
      return Error{ErrorCode::kInvalid,
                   "the record of lease \"" + base::Printable(record.lease) +
                       "\" keeps an unknown attribute \"" + base::Printable(name) +
                       "\", which bears a name of Leasehold's or is not DynamoDB's JSON"};
    }
    attributes.emplace_back(name, value);
  }
  return attributes;
}

Result<Record> DecodeItem(std::string_view key, std::string_view lease, const Json& item) {
  if (!item.is_object()) return NotARecord(key, "it is " + std::string(JsonTypeName(item.type())));
  const std::optional<Json> pk = item.Find(kDynamoDbKey);
  if (!pk || pk->String("S") != std::string(key)) {
    return NotARecord(key, "another item was shown, or one without its key pk");
  }
  Record record;
  const std::optional<uint32_t> format = ReadFormat(item);
  if (!format) return NotARecord(key, "it has no attribute format with a whole number from 1 on");
  record.format = *format;
  const bool lenient = record.format > lease::kRecordFormat;
  AttributeReader reader(item, lenient);
  reader.Text("lease", record.lease);
  reader.Text("node_id", record.node_id);
  reader.Text("process_id", record.process_id);
  reader.Number64("token", record.token);
  reader.Number64("beat", record.beat);
  reader.Millis("ttl_ms", record.ttl_ms);
  reader.State(record.state);
  reader.Peers(record.peers);
  // For people only: their absence harms nobody.
  if (item.Find("acquired_at_unix_ms")) {
    reader.Millis("acquired_at_unix_ms", record.acquired_at_unix_ms);
  }
  reader.OptionalText("former", record.former);
  if (!reader.complaint().empty()) return NotARecord(key, reader.complaint());
  if (!lenient && record.lease != lease) {
    return NotARecord(key, "it is of lease \"" + base::Printable(record.lease) + "\"");
  }
  for (const std::string& name : item.Keys()) {
    if (!IsOurs(name)) record.unknown.emplace(name, item.Find(name)->Dump());
  }
  return record;
}

}  // namespace leasehold::store

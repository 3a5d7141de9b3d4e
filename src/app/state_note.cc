#include "app/state_note.h"

#include <optional>
#include <utility>

#include "base/json_writer.h"
#include "base/text.h"
#include "lease/record.h"
#include "proto/json.h"

namespace leasehold::app {
namespace {

using proto::Json;

constexpr int64_t kNoteFormat = 1;

base::Error Wrong(std::string why) { return {base::ErrorCode::kInvalid, std::move(why)}; }

base::Status ReadFormer(const Json& note, StateNote& out) {
  const std::optional<Json> former = note.Find("former");
  if (!former) return {};
  if (!former->is_array()) return Wrong("\"former\" must be an array of process ids");
  for (const Json& id : former->Elements()) {
    const std::optional<std::string_view> text = id.AsString();
    if (!text || text->empty()) return Wrong("\"former\" must be an array of process ids");
    out.former.emplace_back(*text);
  }
  return {};
}

base::Status ReadLeases(const Json& note, StateNote& out) {
  const std::optional<Json> leases = note.Find("leases");
  if (!leases || !leases->is_object()) return Wrong("\"leases\" must be an object");
  for (const std::string& name : leases->Keys()) {
    const std::optional<Json> lease = leases->Find(name);
    const std::optional<uint64_t> token = lease->Token("highest_token");
    const std::optional<int64_t> ttl_ms = lease->Int("ttl_ms");
    const std::string which = "lease \"" + base::Printable(name) + "\" ";
    if (!token || !ttl_ms) return Wrong(which + "lacks highest_token or ttl_ms");
    // Bounded before it becomes a Duration, which would overflow.
    if (*ttl_ms < 0 || *ttl_ms > lease::kTtlMillisMax) {
      return Wrong(which + "has ttl_ms " + std::to_string(*ttl_ms) + ", which must be from 0 to " +
                   std::to_string(lease::kTtlMillisMax));
    }
    out.leases[name] = {*token, base::Duration::Millis(*ttl_ms)};
  }
  return {};
}

}  // namespace

std::string StateNoteText(const StateNote& note) {
  std::string text;
  base::JsonWriter json(text);
  json.BeginObject().Key("format").Int(kNoteFormat).Member("process_id", note.process_id);
  json.Key("former").BeginArray();
  for (const std::string& id : note.former) json.String(id);
  json.EndArray().Key("leases").BeginObject();
  for (const auto& [name, memory] : note.leases) {
    json.Key(name).BeginObject().Key("highest_token").Token(memory.highest_token);
    json.Key("ttl_ms").Int(memory.last_ttl.millis()).EndObject();
  }
  json.EndObject().EndObject();
  return text + "\n";
}

base::Result<StateNote> ParseStateNote(std::string_view text) {
  const base::Result<Json> note = Json::Parse(text);
  if (!note) return Wrong(note.error().message);
  if (note->Int("format") != kNoteFormat) return Wrong("\"format\" must be 1");
  StateNote out;
  out.process_id = note->String("process_id").value_or("");
  if (out.process_id.empty()) return Wrong("\"process_id\" must name the process that wrote it");
  if (base::Status status = ReadFormer(*note, out); !status) return status.error();
  if (base::Status status = ReadLeases(*note, out); !status) return status.error();
  return out;
}

bool IsRecordTtl(base::Duration ttl) {
  return ttl >= base::Duration::Millis(lease::kTtlMillisMin) &&
         ttl <= base::Duration::Millis(lease::kTtlMillisMax);
}

}  // namespace leasehold::app

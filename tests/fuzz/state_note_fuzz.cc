// The note in node.state_dir, which tells the highest fencing token seen: losing it could hand out
// a token twice. Asserted of any text: an error that is a printable sentence, or a note that holds
// every lease the text names with the very token it says; written and read again it is the same.
#include <optional>
#include <string>

#include "app/state_note.h"
#include "fuzz/fuzz_target.h"
#include "proto/json.h"

namespace leasehold::fuzz {
namespace {

using app::StateNote;
using proto::Json;

bool Same(const StateNote& a, const StateNote& b) {
  if (a.process_id != b.process_id || a.former != b.former) return false;
  if (a.leases.size() != b.leases.size()) return false;
  for (const auto& [name, memory] : a.leases) {
    const auto at = b.leases.find(name);
    if (at == b.leases.end() || at->second.highest_token != memory.highest_token) return false;
    if (at->second.last_ttl != memory.last_ttl) return false;
  }
  return true;
}

void CheckSentence(const base::Error& error) {
  CHECK(!error.message.empty(), "an error without a sentence");
  CHECK(error.message.size() < 1024, "a sentence without bound");
  for (const char c : error.message) CHECK(c >= ' ' && c < 0x7f, "a sentence shows raw bytes");
}

// Nothing that the text tells of tokens is forgotten or lowered.
void CheckTokens(std::string_view text, const StateNote& note) {
  const base::Result<Json> json = Json::Parse(text);
  CHECK(json.ok(), "a note out of no JSON");
  const std::optional<Json> leases = json->Find("leases");
  CHECK(leases && leases->is_object(), "no leases, and no error");
  CHECK(leases->size() == note.leases.size(), "a lease is forgotten");
  for (const auto& [name, memory] : note.leases) {
    const std::optional<Json> lease = leases->Find(name);
    CHECK(lease && lease->Token("highest_token") == memory.highest_token, "another token");
    CHECK(memory.last_ttl >= base::Duration::Zero(), "a negative TTL");
    CHECK(lease->Int("ttl_ms") == memory.last_ttl.millis(), "another TTL");
  }
  CHECK(json->String("process_id") == note.process_id && !note.process_id.empty(), "whose note?");
}

}  // namespace
}  // namespace leasehold::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace leasehold::fuzz;  // NOLINT(google-build-using-namespace): this file's own
  namespace app = leasehold::app;
  const std::string_view input = View(data, size);
  const auto note = app::ParseStateNote(input);
  if (!note) {
    CheckSentence(note.error());
    return 0;
  }
  CheckTokens(input, *note);
  const std::string written = app::StateNoteText(*note);
  const auto again = app::ParseStateNote(written);
  CHECK(again.ok() && Same(*again, *note), "a note does not come back as it went");
  CHECK(app::StateNoteText(*again) == written, "written twice, a note changes");
  return 0;
}

// XML as services answer it. Asserted of any text: elements are told in pairs, where they stand,
// within the limits; a leaf's text is what a second, plain decoding of its place gives; written
// again from what was told, it is told the same; what is escaped can always be read, and is what it
// was where XML can carry it.
#include <optional>
#include <string>
#include <vector>

#include "base/utf8.h"
#include "fuzz/fuzz_target.h"
#include "proto/sqs_limits.h"
#include "proto/xml.h"

namespace leasehold::fuzz {
namespace {

constexpr proto::XmlLimits kLimits = {.bytes_max = 1024, .depth_max = 6, .elements_max = 40};

struct Event {
  enum class Kind { kStart, kText, kEnd };
  Kind kind;
  std::string text;  // or name
  size_t at = 0;
  bool operator==(const Event& other) const { return kind == other.kind && text == other.text; }
};

class Recorder : public proto::XmlVisitor {
 public:
  void OnStart(std::string_view name, size_t at) override {
    events.push_back({Event::Kind::kStart, std::string(name), at});
  }
  void OnText(std::string_view piece) override {
    if (events.empty() || events.back().kind != Event::Kind::kText) {
      events.push_back({Event::Kind::kText, "", 0});
    }
    events.back().text += piece;
  }
  void OnEnd(std::string_view name, size_t at) override {
    events.push_back({Event::Kind::kEnd, std::string(name), at});
  }
  std::vector<Event> events;
};

void CheckSentence(const base::Error& error) {
  CHECK(!error.message.empty() && error.message.size() < 512, "no sentence, or without bound");
  for (const char c : error.message) CHECK(c >= ' ' && c < 0x7f, "a sentence shows raw bytes");
}

void AppendUtf8(uint32_t point, std::string& out) {
  const auto push = [&out](uint32_t byte) { out += static_cast<char>(byte); };
  if (point < 0x80) return push(point);
  if (point < 0x800) {
    push(0xc0 | point >> 6);
  } else {
    if (point < 0x10000) {
      push(0xe0 | point >> 12);
    } else {
      push(0xf0 | point >> 18);
      push(0x80 | (point >> 12 & 63));
    }
    push(0x80 | (point >> 6 & 63));
  }
  push(0x80 | (point & 63));
}

// "&...;" at `raw[i]`, of a document that is known to be right.
void AppendReference(std::string_view raw, size_t& i, std::string& out) {
  const size_t end = raw.find(';', i);
  const std::string name(raw.substr(i + 1, end - i - 1));
  i = end + 1;
  if (name.starts_with("#")) {
    const bool hex = name.starts_with("#x");
    AppendUtf8(static_cast<uint32_t>(std::stoul(name.substr(hex ? 2 : 1), nullptr, hex ? 16 : 10)),
               out);
    return;
  }
  out += name == "lt"     ? '<'
         : name == "gt"   ? '>'
         : name == "amp"  ? '&'
         : name == "quot" ? '"'
                          : '\'';
}

std::string Decoded(std::string_view raw) {
  std::string out;
  for (size_t i = 0; i < raw.size();) {
    if (raw[i] == '&') {
      AppendReference(raw, i, out);
    } else if (raw[i] == '\r') {
      out += '\n';
      i += raw.substr(i).starts_with("\r\n") ? 2 : 1;
    } else {
      out += raw[i++];
    }
  }
  return out;
}

void CheckPairs(std::string_view text, const std::vector<Event>& events) {
  std::vector<const Event*> open;
  size_t elements = 0;
  size_t last = 0;
  for (const Event& event : events) {
    if (event.kind == Event::Kind::kText) {
      CHECK(!open.empty(), "text outside");
      continue;
    }
    CHECK(event.at >= last && event.at <= text.size(), "a place before the last, or outside");
    last = event.at;
    if (event.kind == Event::Kind::kStart) {
      open.push_back(&event);
      CHECK(++elements <= kLimits.elements_max && open.size() <= kLimits.depth_max, "a limit");
      CHECK(event.at > 0 && text[event.at - 1] == '>', "not behind a tag");
      continue;
    }
    CHECK(!open.empty() && open.back()->text == event.text, "not in pairs");
    open.pop_back();
  }
  CHECK(open.empty() && elements > 0, "an element that was not closed, or none at all");
}

void CheckLeaves(std::string_view text, const std::vector<Event>& events) {
  for (size_t i = 0; i + 1 < events.size(); ++i) {
    if (events[i].kind != Event::Kind::kStart) continue;
    const bool has_text = events[i + 1].kind == Event::Kind::kText;
    const Event& end = events[i + (has_text ? 2 : 1)];
    if (end.kind != Event::Kind::kEnd) continue;
    const std::string_view raw = text.substr(events[i].at, end.at - events[i].at);
    if (raw.find('<') != std::string_view::npos) continue;  // comments, CDATA
    CHECK(Decoded(raw) == (has_text ? events[i + 1].text : ""), "another text");
  }
}

void CheckAgain(const std::vector<Event>& events) {
  std::string written;
  for (const Event& event : events) {
    if (event.kind == Event::Kind::kText) {
      written += proto::XmlEscape(event.text);
    } else {
      // A local name may be none by itself ("a:1").
      if (event.text.empty() || event.text[0] < 'A') return;
      written += (event.kind == Event::Kind::kStart ? "<" : "</") + event.text + ">";
    }
  }
  Recorder again;
  proto::XmlLimits limits = kLimits;
  limits.bytes_max = written.size();
  CHECK(proto::ReadXml(written, again, limits).ok(), "written again, it cannot be read");
  CHECK(again.events == events, "written again, it is another");
}

void CheckEscape(std::string_view input) {
  const std::string escaped = proto::XmlEscape(input);
  CHECK(escaped.find_first_of("<>\"\r") == std::string::npos, "not escaped");
  Recorder recorder;
  CHECK(proto::ReadXml("<a>" + escaped + "</a>", recorder).ok(), "escaped, it cannot be read");
  const std::string read = recorder.events.size() == 3 ? recorder.events[1].text : "";
  CHECK(proto::XmlEscape(read) == escaped, "escaped twice, it is another");
  if (proto::sqs::IsMessageText(input)) CHECK(read == input, "a text that came back another");
}

}  // namespace
}  // namespace leasehold::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace leasehold::fuzz;  // NOLINT(google-build-using-namespace): this file's own
  const std::string_view input = View(data, size);
  CheckEscape(input);
  Recorder recorder;
  const leasehold::base::Status status = leasehold::proto::ReadXml(input, recorder, kLimits);
  if (!status) {
    CheckSentence(status.error());
    return 0;
  }
  CHECK(input.size() <= kLimits.bytes_max, "a limit");
  CheckPairs(input, recorder.events);
  CheckLeaves(input, recorder.events);
  CheckAgain(recorder.events);
  return 0;
}

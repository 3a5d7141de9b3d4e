// Server-sent events as the command line reads them, from whatever answers on that port. Asserted
// of any bytes: the same events, place and end in whatever pieces they arrive; they are those of a
// plain reading of the whole (Model, after WHATWG HTML 9.2.6); nothing is longer than its bound.
#include <string>
#include <utility>
#include <vector>

#include "client/event_stream.h"
#include "fuzz/fuzz_target.h"

namespace leasehold::fuzz {
namespace {

// Small, so that inputs reach it; the command line's is 1 MiB.
constexpr size_t kLineBytesMax = 64;

struct Read {
  std::vector<std::pair<std::string, std::string>> events;
  std::string last_id;
  bool failed = false;
  bool operator==(const Read&) const = default;
};

Read ReadInPieces(std::string_view input, int way) {
  Read read;
  client::EventStreamParser parser(kLineBytesMax, [&](const client::ServerEvent& event) {
    CHECK(event.name.size() <= kLineBytesMax, "a name longer than a line");
    CHECK(event.data.size() <= kLineBytesMax, "data longer than its bound");
    read.events.emplace_back(event.name, event.data);
  });
  for (Splitter pieces(input, way); !pieces.done() && !read.failed;) {
    const std::string bytes(pieces.Next());
    const base::Status fed = parser.Feed(bytes);
    read.failed = !fed.ok();
    CHECK(fed.ok() || !fed.error().message.empty(), "an error without a sentence");
  }
  read.last_id = parser.last_id();
  return read;
}

// Lines first, then fields: the whole text at once.
class Model {
 public:
  Read Of(std::string_view text) {
    if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);
    std::string line;
    for (size_t i = 0; i < text.size() && !read_.failed; ++i) {
      const bool crlf = text[i] == '\r' && i + 1 < text.size() && text[i + 1] == '\n';
      if (text[i] != '\r' && text[i] != '\n') {
        line += text[i];
      } else {
        Line(std::exchange(line, {}));
        if (crlf) ++i;
      }
    }
    return read_;
  }

 private:
  void Line(const std::string& line) {
    if (line.empty()) return End();
    const size_t colon = line.find(':');
    const std::string field = line.substr(0, colon);
    std::string value = colon == std::string::npos ? "" : line.substr(colon + 1);
    if (value.starts_with(' ')) value.erase(0, 1);
    if (field == "event") name_ = value;
    if (field == "data") data_ += value + '\n';
    if (field == "id" && value.find('\0') == std::string::npos) id_ = value;
  }
  void End() {
    read_.last_id = id_;
    if (!data_.empty()) {
      data_.pop_back();
      read_.events.emplace_back(name_.empty() ? "message" : name_, data_);
    }
    name_.clear();
    data_.clear();
  }

  Read read_;
  std::string name_, data_, id_;
};

}  // namespace
}  // namespace leasehold::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace leasehold::fuzz;  // NOLINT(google-build-using-namespace): this file's own
  const std::string_view input = View(data, size);
  const Read whole = ReadInPieces(input, 0);
  for (int way = 1; way < Splitter::kWays; ++way) {
    CHECK(ReadInPieces(input, way) == whole, "events depend on the pieces they arrive in");
  }
  const Read model = Model().Of(input);
  if (whole.failed) {
    CHECK(whole.events.size() <= model.events.size(), "an event that nobody sent");
    for (size_t i = 0; i < whole.events.size(); ++i) {
      CHECK(whole.events[i] == model.events[i], "an event is not what was sent");
    }
  } else {
    CHECK(whole == model, "events are not those that were sent");
  }
  return 0;
}

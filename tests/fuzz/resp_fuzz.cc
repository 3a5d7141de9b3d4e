// Replies of a Redis server, which may be anybody who answers on that port. Asserted of any bytes
// through a reader with small limits: the same replies, and the same end, in whatever pieces they
// arrive; no reply is larger, wider or deeper than its limits; a reply written again as RESP is
// read the same; and where a plain, strict reading of the protocol (Model) sees replies within the
// limits, those are what the reader gives. A command is read back as the array of its arguments.
#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "base/text.h"
#include "fuzz/fuzz_target.h"
#include "proto/resp.h"

namespace leasehold::fuzz {
namespace {

using proto::Reply;

constexpr proto::RespLimits kLimits{256, 32, 3};

struct Counts {
  size_t elements = 0;
  size_t bytes = 0;
  size_t depth = 0;
};

// As it came over the wire.
std::string Written(const Reply& reply) {  // NOLINT(misc-no-recursion): depth is checked
  switch (reply.kind()) {
    case Reply::Kind::kNil: return "$-1\r\n";
    case Reply::Kind::kStatus: return "+" + reply.text() + "\r\n";
    case Reply::Kind::kError: return "-" + reply.text() + "\r\n";
    case Reply::Kind::kInteger: return ":" + std::to_string(reply.integer()) + "\r\n";
    case Reply::Kind::kString:
      return "$" + std::to_string(reply.text().size()) + "\r\n" + reply.text() + "\r\n";
    case Reply::Kind::kArray: break;
  }
  std::string out = "*" + std::to_string(reply.elements().size()) + "\r\n";
  for (const Reply& element : reply.elements()) out += Written(element);
  return out;
}

void Count(const Reply& reply, size_t depth, Counts& out) {  // NOLINT(misc-no-recursion)
  if (reply.is_array()) out.depth = std::max(out.depth, depth + 1);
  out.bytes += reply.text().size();
  out.elements += reply.elements().size();
  for (const Reply& element : reply.elements()) Count(element, depth + 1, out);
}

struct Read {
  std::vector<std::string> replies;
  bool failed = false;
};

void Take(proto::RespReader& reader, Read& read) {
  while (!read.failed) {
    base::Result<std::optional<Reply>> next = reader.Next();
    if (!next.ok()) {
      CHECK(!next.error().message.empty(), "an error without a sentence");
      CHECK(next.error().message == base::Printable(next.error().message, 512), "a raw sentence");
      read.failed = true;
    } else if (!next->has_value()) {
      return;
    } else {
      Counts counts;
      Count(**next, 0, counts);
      CHECK(counts.elements <= kLimits.elements_max, "a reply is wider than its limit");
      CHECK(counts.bytes <= kLimits.reply_bytes_max, "a reply is larger than its limit");
      CHECK(counts.depth <= kLimits.depth_max, "a reply is deeper than its limit");
      CHECK(!(*next)->Describe().empty(), "a reply without a description");
      read.replies.push_back(Written(**next));
    }
  }
}

// In pieces of at most a reply's limit, as the real reader is fed (64 KiB of 1 MiB).
Read ReadInPieces(std::string_view input, int way) {
  proto::RespReader reader(kLimits);
  Read read;
  for (Splitter pieces(input, way); !pieces.done() && !read.failed;) {
    for (std::string_view piece = pieces.Next(); !piece.empty() && !read.failed;) {
      const std::string bytes(piece.substr(0, kLimits.reply_bytes_max));
      piece.remove_prefix(bytes.size());
      read.failed = !reader.Feed(bytes).ok();
      if (!read.failed) Take(reader, read);
    }
  }
  return read;
}

// RESP2 by the book, without limits of its own but a depth.
class Model {
 public:
  explicit Model(std::string_view input) : rest_(input) {}

  // The bytes of the next reply as Written would give them; nullopt: none that is whole and right.
  std::optional<std::string> Next() {
    const size_t before = rest_.size();
    elements_ = depth_ = 0;
    std::optional<std::string> reply = One(0);
    taken_ = before - rest_.size();
    return reply;
  }
  bool within_limits() const {
    return taken_ <= kLimits.reply_bytes_max && elements_ <= kLimits.elements_max &&
           depth_ <= kLimits.depth_max;
  }

 private:
  std::optional<std::string_view> Line() {
    const size_t end = rest_.find("\r\n");
    if (end == std::string_view::npos) return std::nullopt;
    const std::string_view line = rest_.substr(0, end);
    rest_.remove_prefix(end + 2);
    return line;
  }
  // Plain digits, "-" before them, nothing that would be written otherwise.
  static std::optional<int64_t> Number(std::string_view text) {
    const bool negative = text.starts_with('-');
    const base::Result<uint64_t> digits = base::ParseUint64(text.substr(negative ? 1 : 0));
    if (!digits || *digits > 1000000000 || (negative && *digits == 0)) return std::nullopt;
    const auto value = static_cast<int64_t>(*digits);
    return negative ? -value : value;
  }
  std::optional<std::string> One(size_t depth) {  // NOLINT(misc-no-recursion)
    if (rest_.empty() || depth > 6) return std::nullopt;
    const char type = rest_[0];
    rest_.remove_prefix(1);
    const std::optional<std::string_view> line = Line();
    if (!line) return std::nullopt;
    if (type == '+' || type == '-') return type + std::string(*line) + "\r\n";
    const std::optional<int64_t> number = Number(*line);
    if (!number) return std::nullopt;
    if (type == ':') return ":" + std::to_string(*number) + "\r\n";
    if (*number == -1 && (type == '$' || type == '*')) return "$-1\r\n";
    if (*number < 0) return std::nullopt;
    const auto size = static_cast<size_t>(*number);
    if (type == '$') return Bulk(size);
    return type == '*' ? Array(size, depth) : std::nullopt;
  }
  std::optional<std::string> Bulk(size_t size) {
    if (size + 2 > rest_.size() || rest_.substr(size, 2) != "\r\n") return std::nullopt;
    std::string out = "$" + std::to_string(size) + "\r\n" + std::string(rest_.substr(0, size + 2));
    rest_.remove_prefix(size + 2);
    return out;
  }
  std::optional<std::string> Array(size_t size, size_t depth) {  // NOLINT(misc-no-recursion)
    elements_ += size;
    depth_ = std::max(depth_, depth + 1);
    std::string out = "*" + std::to_string(size) + "\r\n";
    for (size_t i = 0; i < size; ++i) {
      const std::optional<std::string> element = One(depth + 1);
      if (!element) return std::nullopt;
      out += *element;
    }
    return out;
  }

  std::string_view rest_;
  size_t taken_ = 0;
  size_t elements_ = 0;
  size_t depth_ = 0;
};

void CheckAgainstModel(std::string_view input, const Read& read) {
  Model model(input);
  for (size_t i = 0;; ++i) {
    const std::optional<std::string> reply = model.Next();
    if (!reply) return;
    if (!model.within_limits()) {
      CHECK(read.replies.size() == i && read.failed, "a reply over a limit was given");
      return;
    }
    CHECK(i < read.replies.size(), "a reply that is whole and right was not given");
    CHECK(read.replies[i] == *reply, "a reply is not what was sent");
  }
}

void CheckWrittenAgain(const Read& read) {
  for (const std::string& written : read.replies) {
    // Ours may be longer than theirs ("*-1" is written "$-1"), hence other limits.
    proto::RespReader reader;
    CHECK(reader.Feed(written).ok(), "a reply cannot be fed again");
    const base::Result<std::optional<Reply>> again = reader.Next();
    CHECK(again.ok() && again->has_value(), "a reply cannot be read again");
    CHECK(Written(**again) == written, "a reply changes when it is read again");
  }
}

void CheckCommand(std::string_view input) {
  const std::vector<std::string_view> arguments = base::Split(input, '\n');
  const std::string command = proto::FormatRespCommand(arguments);
  proto::RespReader reader;
  CHECK(reader.Feed(command).ok(), "a command cannot be fed");
  const base::Result<std::optional<Reply>> back = reader.Next();
  if (arguments.size() > proto::RespLimits{}.elements_max) return;
  CHECK(back.ok() && back->has_value() && (*back)->is_array(), "a command is no array");
  CHECK((*back)->elements().size() == arguments.size(), "a command's arguments are miscounted");
  for (size_t i = 0; i < arguments.size(); ++i) {
    CHECK((*back)->elements()[i].is_string(), "an argument is no string");
    CHECK((*back)->elements()[i].text() == arguments[i], "an argument changes on its way");
  }
}

}  // namespace
}  // namespace leasehold::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace leasehold::fuzz;  // NOLINT(google-build-using-namespace): this file's own
  const std::string_view input = View(data, size);
  const Read whole = ReadInPieces(input, 0);
  for (int way = 1; way < Splitter::kWays; ++way) {
    const Read pieces = ReadInPieces(input, way);
    CHECK(pieces.replies == whole.replies, "replies depend on the pieces they arrive in");
    CHECK(pieces.failed == whole.failed, "failing depends on the pieces");
  }
  CheckAgainstModel(input, whole);
  CheckWrittenAgain(whole);
  CheckCommand(input);
  return 0;
}

// Line structure, framing and limits of HTTP/1 messages. RFC 9112 is the source; where it lets a
// recipient choose between repairing and refusing, this refuses.
#include <algorithm>

#include "proto/http1.h"
#include "proto/http1_syntax.h"

namespace leasehold::proto::http1 {
namespace {

// Chunk extensions mean nothing to anybody here; this many bytes of them in one message are
// patience, more are an attack (CASES: "endless chunk extension").
constexpr uint32_t kExtensionBytesMax = 4096;
// 15 hexadecimal digits fit 60 bits.
constexpr uint8_t kChunkSizeDigitsMax = 15;
// RFC 9112 2.2 asks to ignore at least one empty line before a request line; two are taken.
constexpr uint8_t kBlankBytesMax = 4;
// Room for method, blanks and version around a request target.
constexpr size_t kRequestLineExtra = 32;
constexpr size_t kCrlfSize = 2;

std::string_view TrimValue(std::string_view text) {
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  return text;
}

void FinishFields(std::vector<Header>& fields) {
  for (Header& field : fields) {
    field.value = TrimValue(field.value);
    field.id = ClassifyHeader(field.name);
  }
}

int HexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

bool IsMethodChar(char c) {
  return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '-' || c == '_';
}

bool IsControl(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return byte < 0x20 || byte == 0x7f;
}

}  // namespace

Parser::Parser(Kind kind, const Limits& limits)
    : syntax_(std::make_unique<Syntax>(kind == Kind::kRequest)), kind_(kind), limits_(limits) {}

Parser::~Parser() = default;

bool Parser::idle() const { return state_ == State::kHead && !began_; }
bool Parser::in_head() const { return state_ == State::kHead && began_; }

size_t Parser::memory() const {
  return sizeof(*this) + sizeof(Syntax) + block_.capacity() + trailer_block_.capacity() +
         trailers_.capacity() * sizeof(Header);
}

bool Parser::Fail(int status, const char* message) {
  error_ = ParseError{kind_ == Kind::kResponse ? 502 : status, message};
  state_ = State::kError;
  return false;
}

Step Parser::Next(std::string_view input) {
  switch (state_) {
    case State::kHead: return ReadHead(input);
    case State::kLength: return ReadLength(input);
    case State::kChunked: return ReadChunked(input);
    case State::kUntilClose:
      if (input.empty()) return Step{};
      return Step{Event::kBody, input.size(), input};
    case State::kTrailers: return ReadTrailers(input);
    case State::kDone:
      state_ = State::kHead;
      began_ = false;
      blank_bytes_ = 0;
      return Step{Event::kComplete, 0, {}};
    case State::kError: break;
  }
  return ErrorStep();
}

Step Parser::Finish() {
  if (state_ == State::kUntilClose || state_ == State::kDone) {
    state_ = State::kDone;
    return Next({});
  }
  if (idle()) return Step{};
  if (state_ != State::kError) Fail(400, "the peer ended in the middle of a message");
  return ErrorStep();
}

// ---- head ----

void Parser::BeginMessage() {
  began_ = true;
  block_.clear();
  trailers_.clear();
  common().headers.clear();
  line_start_ = scanned_ = 0;
  body_bytes_ = 0;
  extension_bytes_ = 0;
}

bool Parser::SkipBlankLines(std::string_view& input, size_t& consumed) {
  while (consumed < input.size()) {
    const char c = input[consumed];
    const bool lf_due = blank_bytes_ % 2 == 1;
    if (!lf_due && c != '\r' && c != '\n') break;
    if (c != (lf_due ? '\n' : '\r') || blank_bytes_ >= kBlankBytesMax || kind_ == Kind::kResponse) {
      return Fail(400, "a message must begin with its first line, not with line breaks");
    }
    ++blank_bytes_;
    ++consumed;
  }
  input.remove_prefix(consumed);
  return true;
}

Step Parser::ReadHead(std::string_view input) {
  if (input.empty()) return Step{};
  size_t skipped = 0;
  if (!began_) {
    if (!SkipBlankLines(input, skipped)) return ErrorStep();
    if (input.empty()) return Step{Event::kNeedMore, skipped, {}};
    BeginMessage();
  }
  size_t taken = 0;
  switch (Collect(block_, input, true, taken)) {
    case Block::kBad: return ErrorStep();
    case Block::kUnfinished: return Step{Event::kNeedMore, skipped + taken, {}};
    case Block::kEnded: break;
  }
  return HeadArrived(skipped + taken);
}

Step Parser::HeadArrived(size_t consumed) {
  HeadCommon& head = common();
  const int status = syntax_->CheckHead(block_, head.headers, limits_.headers_max);
  if (status != 0) {
    Fail(status, syntax_->why);
    return ErrorStep();
  }
  FinishFields(head.headers);
  const std::string_view block = block_;
  if (!AcceptHead(block.substr(0, block.find('\r')))) return ErrorStep();
  left_ = head.content_length;
  switch (head.framing) {
    case Framing::kNone: state_ = State::kDone; break;
    case Framing::kLength:
      if (!CountBody(left_)) return ErrorStep();
      state_ = State::kLength;
      break;
    case Framing::kChunked:
      state_ = State::kChunked;
      chunk_ = Chunk::kSize;
      size_digits_ = 0;
      left_ = 0;
      break;
    case Framing::kUntilClose: state_ = State::kUntilClose; break;
  }
  return Step{Event::kHead, consumed, {}};
}

// The common case, a whole block in one piece of input, is looked through where it lies and copied
// once.
Parser::Block Parser::Collect(std::string& block, std::string_view input, bool first_line,
                              size_t& consumed) {
  const size_t had = block.size();
  size_t end = 0;
  Block found;
  if (had == 0) {
    found = FindEnd(input, first_line, end);
    const size_t keep = found == Block::kEnded ? end : input.size();
    if (keep > limits_.head_bytes_max && found != Block::kBad) found = Block::kBad;
    if (found != Block::kBad) block.assign(input.data(), keep);
  } else {
    block.append(input.substr(0, limits_.head_bytes_max + 1 - had));
    found = FindEnd(block, first_line, end);
    if (found == Block::kEnded) block.resize(end);
    if (block.size() > limits_.head_bytes_max && found != Block::kBad) found = Block::kBad;
  }
  if (found == Block::kBad) {
    if (state_ != State::kError) FailTooLarge(first_line);
    return found;
  }
  consumed = block.size() - had;
  if (found == Block::kUnfinished && !CheckUnfinished(block, had, first_line)) return Block::kBad;
  return found;
}

void Parser::FailTooLarge(bool first_line) {
  if (kind_ == Kind::kRequest && first_line && line_start_ == 0) {
    Fail(414, "the request target is longer than target_bytes_max");
  } else {
    Fail(431, "the head is larger than head_bytes_max");
  }
}

Parser::Block Parser::FindEnd(std::string_view block, bool first_line, size_t& end) {
  for (;;) {
    const size_t lf = block.find('\n', scanned_);
    if (lf == std::string_view::npos) {
      scanned_ = block.size();
      return Block::kUnfinished;
    }
    if (lf == 0 || block[lf - 1] != '\r') {
      Fail(400, "a line ends with LF alone; lines end with CRLF");
      return Block::kBad;
    }
    const bool first = first_line && line_start_ == 0;
    const std::string_view line = block.substr(line_start_, lf - 1 - line_start_);
    line_start_ = scanned_ = lf + 1;
    if (line.empty() && !first) {
      end = lf + 1;
      return Block::kEnded;
    }
    if (!CheckLine(line, first)) return Block::kBad;
  }
}

bool Parser::CheckLine(std::string_view line, bool first) {
  if (first) return CheckFirstLine(line);
  if (line.front() == ' ' || line.front() == '\t') {
    return Fail(400, "a header field is folded over several lines");
  }
  return true;
}

bool Parser::CheckFirstLine(std::string_view line) {
  if (kind_ == Kind::kResponse) {
    // "HTTP/1.1 200"
    if (line.size() < 12 || line.substr(0, 5) != "HTTP/") {
      return Fail(502, "the answer is not HTTP");
    }
    return true;
  }
  if (line.size() > limits_.target_bytes_max + kRequestLineExtra) {
    return Fail(414, "the request target is longer than target_bytes_max");
  }
  const std::string_view method = line.substr(0, line.find(' '));
  if (method.empty() || !std::all_of(method.begin(), method.end(), IsMethodChar)) {
    return Fail(400, "the request line does not begin with a method");
  }
  // "... HTTP/1.1"; HTTP/0.9 has no version at all.
  if (line.size() < 9 || line.substr(line.size() - 9, 6) != " HTTP/" ||
      line[line.size() - 2] != '.') {
    return Fail(400, "the request line does not end with \"HTTP/1.1\" or \"HTTP/1.0\"");
  }
  const char major = line[line.size() - 3];
  const char minor = line.back();
  if (major != '1' || (minor != '0' && minor != '1')) {
    return Fail(505, "only HTTP/1.1 and HTTP/1.0 are spoken here");
  }
  return true;
}

// A head that is still growing: what can never become right is refused now rather than at a
// time-out (a TLS hello on a plain port, say).
bool Parser::CheckUnfinished(std::string_view block, size_t from, bool first_line) {
  for (const char c : block.substr(from)) {
    if (IsControl(c) && c != '\r' && c != '\n' && c != '\t') {
      return Fail(400, "a control character in the head; is this HTTP?");
    }
  }
  if (kind_ == Kind::kRequest && first_line && line_start_ == 0 &&
      block.size() > limits_.target_bytes_max + kRequestLineExtra) {
    return Fail(414, "the request target is longer than target_bytes_max");
  }
  return true;
}

// ---- body ----

bool Parser::CountBody(uint64_t bytes) {
  body_bytes_ += bytes;
  if (limits_.body_bytes_max == 0 || body_bytes_ <= limits_.body_bytes_max) return true;
  return Fail(413, "the body is larger than body_bytes_max");
}

Step Parser::ReadLength(std::string_view input) {
  if (input.empty()) return Step{};
  const auto size = static_cast<size_t>(std::min<uint64_t>(left_, input.size()));
  left_ -= size;
  if (left_ == 0) state_ = State::kDone;
  return Step{Event::kBody, size, input.substr(0, size)};
}

Step Parser::ReadChunked(std::string_view input) {
  size_t at = 0;
  while (at < input.size()) {
    if (chunk_ == Chunk::kData) {
      const auto size = static_cast<size_t>(std::min<uint64_t>(left_, input.size() - at));
      left_ -= size;
      if (left_ == 0) chunk_ = Chunk::kDataCr;
      return Step{Event::kBody, at + size, input.substr(at, size)};
    }
    if (!ChunkByte(input[at++])) return ErrorStep();
    if (state_ == State::kTrailers) {
      Step step = ReadTrailers(input.substr(at));
      step.consumed += at;
      return step;
    }
  }
  return Step{Event::kNeedMore, at, {}};
}

bool Parser::ChunkByte(char c) {
  switch (chunk_) {
    case Chunk::kSize: return ChunkSizeByte(c);
    case Chunk::kExtension:
      if (c == '\r') {
        chunk_ = Chunk::kSizeLf;
        return true;
      }
      if (IsControl(c) && c != '\t') return Fail(400, "a control character in a chunk extension");
      if (++extension_bytes_ > kExtensionBytesMax) return Fail(400, "chunk extensions without end");
      return true;
    case Chunk::kSizeLf:
      if (c != '\n') return Fail(400, "a chunk size line does not end with CRLF");
      size_digits_ = 0;
      if (left_ > 0) {
        chunk_ = Chunk::kData;
        return CountBody(left_);
      }
      state_ = State::kTrailers;
      trailer_block_.clear();
      line_start_ = scanned_ = 0;
      return true;
    case Chunk::kDataCr:
      chunk_ = Chunk::kDataLf;
      return c == '\r' || Fail(400, "a chunk's bytes are not followed by CRLF");
    case Chunk::kDataLf:
      chunk_ = Chunk::kSize;
      return c == '\n' || Fail(400, "a chunk's bytes are not followed by CRLF");
    case Chunk::kData: break;  // ReadChunked's
  }
  return Fail(400, "malformed chunk");
}

bool Parser::ChunkSizeByte(char c) {
  const int digit = HexDigit(c);
  if (digit >= 0) {
    if (++size_digits_ > kChunkSizeDigitsMax) return Fail(400, "a chunk size has too many digits");
    left_ = left_ * 16 + static_cast<uint64_t>(digit);
    return true;
  }
  if (size_digits_ > 0 && c == '\r') {
    chunk_ = Chunk::kSizeLf;
    return true;
  }
  if (size_digits_ > 0 && c == ';') {
    chunk_ = Chunk::kExtension;
    return true;
  }
  return Fail(400, "a chunk size must be hexadecimal digits");
}

Step Parser::ReadTrailers(std::string_view input) {
  if (input.empty()) return Step{};
  size_t taken = 0;
  switch (Collect(trailer_block_, input, false, taken)) {
    case Block::kBad: return ErrorStep();
    case Block::kUnfinished: return Step{Event::kNeedMore, taken, {}};
    case Block::kEnded: break;
  }
  if (trailer_block_.size() > kCrlfSize) {
    const int status = syntax_->CheckTrailers(trailer_block_, trailers_, limits_.headers_max);
    if (status != 0) {
      Fail(status, syntax_->why);
      return ErrorStep();
    }
    FinishFields(trailers_);
  }
  state_ = State::kDone;
  Step step = Next({});
  step.consumed = taken;
  return step;
}

}  // namespace leasehold::proto::http1

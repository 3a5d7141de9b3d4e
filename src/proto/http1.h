// HTTP/1.1 and 1.0 messages, sans I/O: RequestParser and ResponseParser turn bytes into a head,
// body pieces, trailers and an end. Pull style: the owner feeds Next() what it has, looks at one
// event, and calls again with the rest; not calling again is the pause (back-pressure, pipelining).
// Syntax of heads and trailers is llhttp's in strict mode (http1_syntax.cc is its one door); line
// structure, framing and limits are ours, because an ambiguity let through here is a smuggled
// request elsewhere: everything ambiguous is an error. Owned by one connection each; not for HTTP/2
// and not for tunnels (after a 101 the owner stops calling). Invariants: after kError only kError.
// Views in a head live until the next message begins. Nothing is allocated per message once the
// buffers have grown to the traffic's size.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "proto/http1_message.h"

namespace leasehold::proto::http1 {

struct Syntax;  // the door to llhttp (http1_syntax.h)

// What a server answers and says; `message` is a static sentence. For a response parser `status` is
// 502.
struct ParseError {
  int status = 0;
  const char* message = "";
};

struct Limits {
  size_t head_bytes_max = size_t{16} * 1024;   // first line and headers, and again trailers: 431
  size_t target_bytes_max = size_t{8} * 1024;  // 414
  uint64_t body_bytes_max = 0;                 // 413; 0: no limit
  size_t headers_max = 256;                    // 431
};

enum class Event : uint8_t {
  kNeedMore,  // all input is consumed and nothing more can be said
  kHead,      // head() is complete (a response's: also each 1xx)
  kBody,      // `body` is a piece of the input, valid as long as the input
  kComplete,  // the message is over; trailers() holds its trailers. The next call begins a new one
  kError,     // error() says why
};

struct Step {
  Event event = Event::kNeedMore;
  size_t consumed = 0;  // bytes of the input done with; feed the rest again
  std::string_view body;
};

class Parser {
 public:
  virtual ~Parser();
  Parser(const Parser&) = delete;
  Parser& operator=(const Parser&) = delete;

  // Call with the unconsumed rest until kNeedMore (also when the rest is empty: an end may be due).
  Step Next(std::string_view input);
  // The peer sent its last byte: kComplete for a body that runs until close, kNeedMore between
  // messages, kError in the middle of one.
  Step Finish();
  const ParseError& error() const { return error_; }
  const std::vector<Header>& trailers() const { return trailers_; }
  // Nothing of a message has been seen (a blank line before a request does not count).
  bool idle() const;
  // Some but not all of a head has been seen.
  bool in_head() const;
  // Bytes of memory held for buffers.
  size_t memory() const;

 protected:
  enum class Kind : uint8_t { kRequest, kResponse };
  Parser(Kind kind, const Limits& limits);
  virtual HeadCommon& common() = 0;
  // Looks at a syntactically right head: fills it, decides the framing. False: error_ is set.
  virtual bool AcceptHead(std::string_view first_line) = 0;
  bool Fail(int status, const char* message);
  bool AcceptFields(HeadCommon& head);  // what both kinds share of it
  const Limits& limits() const { return limits_; }

  std::unique_ptr<Syntax> syntax_;

 private:
  enum class State : uint8_t { kHead, kLength, kChunked, kUntilClose, kTrailers, kDone, kError };
  enum class Chunk : uint8_t { kSize, kExtension, kSizeLf, kData, kDataCr, kDataLf };
  // Looking for the empty line that ends a block of lines (a head, trailers).
  enum class Block : uint8_t { kUnfinished, kEnded, kBad };
  Step ReadHead(std::string_view input);
  Step HeadArrived(size_t consumed);
  Step ReadLength(std::string_view input);
  Step ReadChunked(std::string_view input);
  bool ChunkByte(char c);
  bool ChunkSizeByte(char c);
  Step ReadTrailers(std::string_view input);
  // Adds input to `block` up to its end; `consumed` says how much of it that took.
  Block Collect(std::string& block, std::string_view input, bool first_line, size_t& consumed);
  Block FindEnd(std::string_view block, bool first_line, size_t& end);
  void FailTooLarge(bool first_line);
  bool CheckLine(std::string_view line, bool first);
  bool CheckFirstLine(std::string_view line);
  bool CheckUnfinished(std::string_view block, size_t from, bool first_line);
  bool SkipBlankLines(std::string_view& input, size_t& consumed);
  bool CountBody(uint64_t bytes);
  void BeginMessage();
  Step ErrorStep() const { return Step{Event::kError, 0, {}}; }

  const Kind kind_;
  State state_ = State::kHead;
  Chunk chunk_ = Chunk::kSize;
  bool began_ = false;            // buffers belong to the message under way
  uint8_t blank_bytes_ = 0;       // of blank lines before a request
  uint8_t size_digits_ = 0;       // of the chunk size being read
  uint32_t extension_bytes_ = 0;  // of all chunk extensions of this message
  size_t line_start_ = 0;         // of the line being looked at, in the block
  size_t scanned_ = 0;            // bytes of the block already looked at
  uint64_t left_ = 0;             // of the body, or of the chunk
  uint64_t body_bytes_ = 0;
  const Limits limits_;
  std::string block_;  // the head
  std::string trailer_block_;
  std::vector<Header> trailers_;
  ParseError error_;
};

class RequestParser final : public Parser {
 public:
  explicit RequestParser(const Limits& limits) : Parser(Kind::kRequest, limits) {}
  const RequestHead& head() const { return head_; }

 private:
  HeadCommon& common() override { return head_; }
  bool AcceptHead(std::string_view first_line) override;
  bool AcceptTarget();
  bool AcceptHost();
  bool AcceptExpectation(std::string_view value);
  RequestHead head_;
};

class ResponseParser final : public Parser {
 public:
  explicit ResponseParser(const Limits& limits) : Parser(Kind::kResponse, limits) {}
  const ResponseHead& head() const { return head_; }
  // Before the head of the next answer: is it the answer to a HEAD request? Stays until changed.
  void ExpectAnswerToHead(bool yes) { answer_to_head_ = yes; }

 private:
  HeadCommon& common() override { return head_; }
  bool AcceptHead(std::string_view first_line) override;
  ResponseHead head_;
  bool answer_to_head_ = false;
};

}  // namespace leasehold::proto::http1

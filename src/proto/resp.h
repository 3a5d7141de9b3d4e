// RESP: the wire format of Redis, version 2: requests formatted, replies read, without I/O. The one
// door to hiredis (its formatter and its reader; 0.14 and 1.x give the same behaviour here).
// Replies come out as our own immutable Reply. Bounded: a reply larger, wider or deeper than its
// limits is an error, not memory; RESP3 types are errors, because nobody here asks for them. After
// an error a reader is spent: replies would be out of step, so the connection must be closed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace leasehold::proto {

// One command with its arguments, as bytes to send. `arguments` must not be empty.
std::string FormatRespCommand(std::span<const std::string_view> arguments);

class Reply {
 public:
  enum class Kind { kNil, kString, kStatus, kError, kInteger, kArray };

  static Reply Nil() { return Reply(Kind::kNil); }
  static Reply Text(Kind kind, std::string text);  // kString, kStatus or kError
  static Reply Integer(int64_t value);
  static Reply Array(std::vector<Reply> elements);

  Kind kind() const { return kind_; }
  bool is_error() const { return kind_ == Kind::kError; }
  bool is_string() const { return kind_ == Kind::kString; }
  bool is_array() const { return kind_ == Kind::kArray; }
  // Empty, zero and empty for kinds that have none.
  const std::string& text() const { return text_; }
  int64_t integer() const { return integer_; }
  const std::vector<Reply>& elements() const { return elements_; }
  // For messages: "error \"READONLY ...\"", "array of 3"; cut, printable.
  std::string Describe() const;

 private:
  explicit Reply(Kind kind) : kind_(kind) {}

  Kind kind_;
  int64_t integer_ = 0;
  std::string text_;
  std::vector<Reply> elements_;
};

struct RespLimits {
  // A lease record is under 2 KiB and INFO under 16 KiB; 1 MiB leaves room for odd unknown fields.
  size_t reply_bytes_max = 1024 * 1024;
  size_t elements_max = 4096;  // of one reply, nested ones included
  size_t depth_max = 4;        // arrays inside arrays; our scripts use two. hiredis allows seven
};

class RespReader {
 public:
  explicit RespReader(const RespLimits& limits = {});
  ~RespReader();
  RespReader(const RespReader&) = delete;
  RespReader& operator=(const RespReader&) = delete;

  // Copies the bytes in. Fails (kLimit) when more than a reply's size waits to be taken.
  base::Status Feed(std::span<const char> bytes);
  // The next complete reply; nullopt: more bytes are needed. kInvalid: not RESP2; kLimit: over a
  // limit.
  base::Result<std::optional<Reply>> Next();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace leasehold::proto

// Outgoing: the pieces of one message that leave in one system call: a head, body pieces straight
// from the read buffer, chunk framing around them. Views only: what they show must live until
// Flush(). Lives on the stack of one callback. Pieces of a body added between two flushes become
// one chunk, since chunk borders mean nothing.
#pragma once

#include <array>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "loop/stream.h"
#include "proto/http1_write.h"

namespace leasehold::gate {

class Outgoing {
 public:
  Outgoing(loop::Stream& to, uint64_t& bytes_counter) : to_(to), bytes_counter_(bytes_counter) {}
  Outgoing(const Outgoing&) = delete;
  Outgoing& operator=(const Outgoing&) = delete;

  void AddHead(std::string_view head) { Add(head); }
  void AddBody(std::string_view piece, bool chunked) {
    if (count_ + kReserve > pieces_.size()) Flush();
    if (chunked && chunk_bytes_ == 0) {
      size_at_ = count_;
      Add({});
    }
    if (chunked) chunk_bytes_ += piece.size();
    Add(piece);
  }
  // What ends a chunked body: the last chunk, with trailers and the empty line if there are any.
  void AddChunkedEnd(std::string_view end) {
    CloseChunk();
    Add(end);
  }
  void Flush() {
    CloseChunk();
    if (count_ == 0) return;
    for (size_t i = 0; i < count_; ++i) bytes_counter_ += pieces_[i].size();
    to_.Writev({pieces_.data(), count_});
    count_ = 0;
  }
  bool empty() const { return count_ == 0; }

 private:
  // Room that AddBody leaves for the end of a chunk and of the body, and a size line.
  static constexpr size_t kReserve = 4;

  void Add(std::string_view piece) { pieces_[count_++] = piece; }
  void CloseChunk() {
    if (chunk_bytes_ == 0) return;
    char* const end =
        std::to_chars(size_line_.data(), size_line_.data() + 16, chunk_bytes_, 16).ptr;
    end[0] = '\r';
    end[1] = '\n';
    pieces_[size_at_] = {size_line_.data(), static_cast<size_t>(end + 2 - size_line_.data())};
    chunk_bytes_ = 0;
    Add(proto::http1::kCrlf);
  }

  loop::Stream& to_;
  uint64_t& bytes_counter_;
  size_t count_ = 0;
  size_t size_at_ = 0;
  uint64_t chunk_bytes_ = 0;
  std::array<std::string_view, 28> pieces_;  // below what one sendmsg of the stream takes (32)
  std::array<char, 18> size_line_;           // 16 hexadecimal digits and CRLF
};

}  // namespace leasehold::gate

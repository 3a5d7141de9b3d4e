// ClientStream: the stream of a client whose bytes a fuzz target feeds in, and whose other side is
// a string. The client reads everything at once, or nothing at all: then what is written stays
// queued. Owned by what is fuzzed; a ClientEnd, which outlives it, is what the target keeps.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "loop/stream.h"

namespace leasehold::fuzz {

struct ClientEnd {
  bool reads_nothing = false;
  std::string received;  // and, of one that reads nothing, queued
  bool no_more = false;  // the last byte was written
  bool over = false;     // the stream was destroyed
  bool stopped = false;  // it is not read from now
  loop::StreamListener* listener = nullptr;

  // False when the other side is gone.
  bool Send(std::string_view bytes) {
    if (over) return false;
    listener->OnData({bytes.data(), bytes.size()});
    return !over;
  }
  void End() {
    if (!over) listener->OnEnd();
  }
};

class ClientStream final : public loop::Stream {
 public:
  explicit ClientStream(ClientEnd& end) : end_(end) {}
  ~ClientStream() override { end_.over = true; }
  void SetListener(loop::StreamListener* listener) override { end_.listener = listener; }
  void StartReading() override { end_.stopped = false; }
  void StopReading() override { end_.stopped = true; }
  bool reading() const override { return !end_.stopped; }
  void Write(std::string_view bytes) override { Take(bytes); }
  void Writev(std::span<const std::string_view> pieces) override {
    for (const std::string_view piece : pieces) Take(piece);
  }
  size_t queued() const override { return end_.reads_nothing ? end_.received.size() : 0; }
  void ShutdownWrite() override { end_.no_more = true; }
  void ResetOnClose() override {}
  bool is_tls() const override { return false; }
  const std::string& peer() const override { return peer_; }
  std::string peer_host() const override { return peer_; }
  int peer_uid() const override { return 1000; }
  void SetUserTimeout(base::Duration /*d*/) override {}
  void SetKeepAlive(base::Duration /*period*/) override {}
  int Detach() override { return -1; }

 private:
  void Take(std::string_view bytes) {
    CHECK(!end_.no_more || bytes.empty(), "written after the last byte");
    end_.received += bytes;
  }

  ClientEnd& end_;
  const std::string peer_ = "127.0.0.1";
};

}  // namespace leasehold::fuzz

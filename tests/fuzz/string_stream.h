// StringStream: a loop::Stream whose other side is a string, for code that writes to one. Takes
// everything at once; reads nothing.
#pragma once

#include <string>

#include "loop/stream.h"

namespace leasehold::fuzz {

class StringStream final : public loop::Stream {
 public:
  explicit StringStream(std::string& to) : to_(to) {}
  void SetListener(loop::StreamListener* /*listener*/) override {}
  void StartReading() override {}
  void StopReading() override {}
  bool reading() const override { return false; }
  void Write(std::string_view bytes) override { to_ += bytes; }
  void Writev(std::span<const std::string_view> pieces) override {
    for (const std::string_view piece : pieces) to_ += piece;
  }
  size_t queued() const override { return 0; }
  void ShutdownWrite() override {}
  void ResetOnClose() override {}
  bool is_tls() const override { return false; }
  const std::string& peer() const override { return to_; }
  std::string peer_host() const override { return {}; }
  int peer_uid() const override { return -1; }
  void SetUserTimeout(base::Duration /*d*/) override {}
  void SetKeepAlive(base::Duration /*period*/) override {}
  int Detach() override { return -1; }

 private:
  std::string& to_;
};

}  // namespace leasehold::fuzz

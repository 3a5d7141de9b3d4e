// SocketPeer: a blocking-free recorder on one loop::Stream, and small socket makers, for tests of
// anything that speaks over sockets. Records what the StreamListener hears; `on_*` run inside the
// callback, so that a test can destroy things there.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "base/address.h"
#include "loop/stream.h"

namespace leasehold::testing {

class SocketPeer final : public loop::StreamListener {
 public:
  void Adopt(std::unique_ptr<loop::Stream> stream, bool read = true) {
    stream_ = std::move(stream);
    stream_->SetListener(this);
    if (read) stream_->StartReading();
  }

  void OnData(std::span<const char> bytes) override {
    received.append(bytes.data(), bytes.size());
    if (on_data) on_data();
  }
  void OnEnd() override {
    ++ends;
    if (on_end) on_end();
  }
  bool MayFlush() override { return may_flush; }
  void OnDrained() override {
    ++drains;
    if (on_drained) on_drained();
  }
  void OnClosed(const base::Error& error) override {
    ++closes;
    closed = error;
    if (on_closed) on_closed();
  }

  loop::Stream& stream() { return *stream_; }
  bool has_stream() const { return stream_ != nullptr; }
  void Destroy() { stream_.reset(); }
  std::unique_ptr<loop::Stream> Release() { return std::move(stream_); }

  std::string received;
  bool may_flush = true;
  int ends = 0;
  int drains = 0;
  int closes = 0;
  std::optional<base::Error> closed;
  std::function<void()> on_data;
  std::function<void()> on_end;
  std::function<void()> on_drained;
  std::function<void()> on_closed;

 private:
  std::unique_ptr<loop::Stream> stream_;
};

// A connected pair of non-blocking descriptors over loopback TCP; {-1, -1} when the system refuses.
std::pair<int, int> TcpPair();
// The same over a Unix socket pair.
std::pair<int, int> UnixPair();
// A loopback TCP port nobody listens on: bound, noted and closed. Another process may take it.
uint16_t ClosedPort();
// A fresh directory under the system's temporary one, removed with its files by the destructor.
class TempDir {
 public:
  TempDir();
  ~TempDir();
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;
  const std::string& path() const { return path_; }
  std::string File(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

base::Address TcpAddress(const std::string& host, uint16_t port);
base::Address UnixAddress(const std::string& path);

}  // namespace leasehold::testing

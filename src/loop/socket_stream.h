// SocketStream: the Stream over one TCP or Unix descriptor of our own, watched by a Poller; for
// this room's own files (everybody else sees Stream). Invariant: while nothing is wrong UV_READABLE
// stays armed, so a request costs recv and sendmsg and no epoll_ctl; UV_WRITABLE is armed only
// while something is queued. What arrived before a reset or a failed write is delivered before
// OnClosed.
#pragma once

#include <sys/uio.h>

#include <optional>
#include <string>

#include "loop/lifetime.h"
#include "loop/poller.h"
#include "loop/stream.h"

namespace leasehold::loop {

class SocketStream final : public Stream {
 public:
  SocketStream(Loop& loop, int fd, std::string peer);
  ~SocketStream() override;

  void SetListener(StreamListener* listener) override { listener_ = listener; }
  void StartReading() override;
  void StopReading() override { reading_ = false; }
  bool reading() const override { return reading_; }
  void Write(std::string_view bytes) override;
  void Writev(std::span<const std::string_view> pieces) override;
  size_t queued() const override { return queue_.size() - queue_head_; }
  void ShutdownWrite() override;
  bool Quiet() const override;
  void ResetOnClose() override { reset_on_close_ = true; }
  bool is_tls() const override { return false; }
  const std::string& peer() const override { return peer_; }
  std::string peer_host() const override;
  int peer_uid() const override;
  void SetUserTimeout(base::Duration d) override;
  void SetKeepAlive(base::Duration period) override;
  int Detach() override;

 private:
  static void OnReady(void* self, int status, int events);
  void HandleReady(int status, int events);
  void ReadOnce();
  void Deliver(std::span<const char> bytes);
  void Flush();
  void NoticeError();
  void Break(int error_number);
  void Settle();
  void Report();
  void UpdateInterest();
  bool MayWrite() const { return fd_ >= 0 && !broken_ && !closed_ && !end_asked_; }
  size_t SendPieces(std::span<const iovec> pieces);
  void Enqueue(std::string_view bytes);

  Loop& loop_;
  int fd_;
  std::string peer_;
  Poller poller_;
  Poster poster_;
  StreamListener* listener_ = nullptr;
  bool* gone_ = nullptr;
  std::string queue_;  // from queue_head_ on: taken by Write, not yet by the kernel
  size_t queue_head_ = 0;
  std::optional<base::Error> broken_;  // why; reported when nothing received is left to deliver
  bool reading_ = false;
  bool ended_ = false;      // the peer's last byte was read
  bool end_asked_ = false;  // ShutdownWrite was called
  bool quiet_ = false;      // hung up in order: only ERR and HUP would come, and come for ever
  bool closed_ = false;     // OnClosed was called
  bool reset_on_close_ = false;
};

}  // namespace leasehold::loop

// TlsStream: the client side of TLS 1.2 or newer over another Stream, through OpenSSL memory BIOs;
// for this room's own files (everybody else gets one from Connect with TlsOptions). It owns the
// inner stream and is its listener. Invariant: no plaintext is delivered and none is sent before
// the server's certificate was verified as asked; an end without close_notify is an error, never an
// end.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "loop/connect.h"
#include "loop/lifetime.h"
#include "loop/stream.h"
#include "loop/tls_context.h"

namespace leasehold::loop {

class TlsStream final : public Stream, private StreamListener {
 public:
  // Called once, from the loop: ok when the handshake is done and the certificate is good. The
  // stream may be moved out or destroyed inside it.
  using HandshakeCallback = std::function<void(base::Status)>;

  // `target` is what messages call the server. Errors: a certificate or key file that cannot be
  // used.
  static base::Result<std::unique_ptr<TlsStream>> Start(Loop& loop, std::unique_ptr<Stream> inner,
                                                        const TlsOptions& options,
                                                        std::string target,
                                                        HandshakeCallback on_handshake);
  ~TlsStream() override;

  void SetListener(StreamListener* listener) override { listener_ = listener; }
  void StartReading() override;
  void StopReading() override;
  bool reading() const override { return reading_; }
  void Write(std::string_view bytes) override;
  void Writev(std::span<const std::string_view> pieces) override;
  size_t queued() const override { return inner_->queued(); }
  void ShutdownWrite() override;
  bool Quiet() const override;
  void ResetOnClose() override;
  bool is_tls() const override { return true; }
  const std::string& peer() const override { return inner_->peer(); }
  std::string peer_host() const override { return inner_->peer_host(); }
  int peer_uid() const override { return -1; }
  void SetUserTimeout(base::Duration d) override { inner_->SetUserTimeout(d); }
  void SetKeepAlive(base::Duration period) override { inner_->SetKeepAlive(period); }
  int Detach() override { return -1; }

 private:
  TlsStream(Loop& loop, std::unique_ptr<Stream> inner, std::string target,
            HandshakeCallback on_handshake, SslPointer ssl);
  void OnData(std::span<const char> bytes) override;
  void OnEnd() override;
  void OnDrained() override;
  void OnClosed(const base::Error& error) override;

  void Handshake();
  void FinishHandshake(base::Status status);
  void Pump();
  bool DeliverOne();
  void FlushToInner();
  void Break(base::Error error);
  bool MayWrite() const { return !shaking_ && !broken_ && !closed_ && !end_asked_; }

  std::unique_ptr<Stream> inner_;
  std::string target_;
  HandshakeCallback on_handshake_;
  SslPointer ssl_;
  Poster poster_;
  StreamListener* listener_ = nullptr;
  bool* gone_ = nullptr;
  std::optional<base::Error> broken_;  // reported when nothing decrypted is left to deliver
  bool shaking_ = true;
  bool reading_ = false;
  bool ended_ = false;  // close_notify was delivered as OnEnd
  bool inner_ended_ = false;
  bool end_asked_ = false;
  bool closed_ = false;  // OnClosed was called
  bool reset_on_close_ = false;
};

}  // namespace leasehold::loop

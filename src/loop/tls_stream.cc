#include "loop/tls_stream.h"

#include <openssl/err.h>
#include <openssl/ssl.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/check.h"

namespace leasehold::loop {
namespace {

constexpr size_t kRecordBytes = 16 * 1024;  // largest plaintext of one TLS record (RFC 8446, 5.1)

bool HasInput(SSL* ssl) { return SSL_pending(ssl) > 0 || BIO_ctrl_pending(SSL_get_rbio(ssl)) > 0; }

}  // namespace

base::Result<std::unique_ptr<TlsStream>> TlsStream::Start(Loop& loop, std::unique_ptr<Stream> inner,
                                                          const TlsOptions& options,
                                                          std::string target,
                                                          HandshakeCallback on_handshake) {
  base::Result<SslPointer> ssl = MakeClientSsl(options, target);
  if (!ssl) return ssl.error();
  std::unique_ptr<TlsStream> stream(new TlsStream(loop, std::move(inner), std::move(target),
                                                  std::move(on_handshake), std::move(*ssl)));
  TlsStream* self = stream.get();
  self->inner_->SetListener(self);
  self->inner_->StartReading();
  self->poster_.Post([self] { self->Handshake(); });
  return stream;
}

TlsStream::TlsStream(Loop& loop, std::unique_ptr<Stream> inner, std::string target,
                     HandshakeCallback on_handshake, SslPointer ssl)
    : inner_(std::move(inner)),
      target_(std::move(target)),
      on_handshake_(std::move(on_handshake)),
      ssl_(std::move(ssl)),
      poster_(loop) {}

TlsStream::~TlsStream() {
  CallGuard::MarkGone(gone_);
  if (!reset_on_close_) ShutdownWrite();  // close_notify: the peer sees an end, not a cut
}

void TlsStream::StartReading() {
  CHECK(listener_ != nullptr, "SetListener comes before StartReading");
  reading_ = true;
  if (!broken_ && !inner_ended_) inner_->StartReading();
  if (HasInput(ssl_.get()) || broken_ || inner_ended_) poster_.Post([this] { Pump(); });
}

void TlsStream::StopReading() {
  reading_ = false;
  inner_->StopReading();
}

void TlsStream::Write(std::string_view bytes) {
  while (!bytes.empty() && MayWrite()) {
    const std::string_view part = bytes.substr(0, 4 * kRecordBytes);
    bytes.remove_prefix(part.size());
    ERR_clear_error();
    size_t written = 0;
    // A memory BIO takes everything, so a write is whole or the session is broken.
    if (SSL_write_ex(ssl_.get(), part.data(), part.size(), &written) != 1) {
      Break(DescribeTlsError(ssl_.get(), target_));
      return;
    }
    FlushToInner();
  }
}

// One record and one system call for the pieces of a small message.
void TlsStream::Writev(std::span<const std::string_view> pieces) {
  std::string joined;
  for (const std::string_view piece : pieces) joined.append(piece);
  Write(joined);
}

void TlsStream::ShutdownWrite() {
  if (!MayWrite()) return;
  end_asked_ = true;
  ERR_clear_error();
  SSL_shutdown(ssl_.get());  // queues close_notify; the peer's own is read like any record
  FlushToInner();
  inner_->ShutdownWrite();
}

bool TlsStream::Quiet() const {
  const bool alive = !shaking_ && !broken_ && !closed_ && !ended_ && !inner_ended_;
  return alive && !HasInput(ssl_.get()) && inner_->Quiet();
}

void TlsStream::ResetOnClose() {
  reset_on_close_ = true;
  inner_->ResetOnClose();
}

void TlsStream::FlushToInner() {
  char* bytes = nullptr;
  BIO* out = SSL_get_wbio(ssl_.get());
  const long size = BIO_get_mem_data(out, &bytes);
  if (size <= 0) return;
  inner_->Write({bytes, static_cast<size_t>(size)});
  (void)BIO_reset(out);
}

void TlsStream::OnData(std::span<const char> bytes) {
  while (!bytes.empty()) {
    size_t taken = 0;
    if (BIO_write_ex(SSL_get_rbio(ssl_.get()), bytes.data(), bytes.size(), &taken) != 1) {
      Break({base::ErrorCode::kLimit, "TLS with " + target_ + ": out of memory"});
      return;
    }
    bytes = bytes.subspan(taken);
  }
  CallGuard guard(gone_);
  if (shaking_) Handshake();
  if (!guard.gone() && !shaking_) Pump();
}

void TlsStream::Handshake() {
  if (!shaking_) return;
  ERR_clear_error();
  const int result = SSL_do_handshake(ssl_.get());
  const int error = result == 1 ? SSL_ERROR_NONE : SSL_get_error(ssl_.get(), result);
  FlushToInner();  // also an alert that tells the server why
  if (error == SSL_ERROR_NONE) return FinishHandshake({});
  if (error != SSL_ERROR_WANT_READ) FinishHandshake(DescribeTlsError(ssl_.get(), target_));
}

void TlsStream::FinishHandshake(base::Status status) {
  shaking_ = false;
  inner_->StopReading();
  if (!status) {
    broken_ = status.error();
    closed_ = true;  // told through the handshake callback
  }
  const HandshakeCallback done = std::move(on_handshake_);
  done(std::move(status));
}

// Delivers what can be decrypted, then the end or the break that follows it.
void TlsStream::Pump() {
  CallGuard guard(gone_);
  while (reading_ && !closed_ && !ended_) {
    const bool more = DeliverOne();
    if (guard.gone()) return;
    if (!more) break;
  }
  if (!broken_ || closed_) return;
  if (!reading_ && !ended_ && HasInput(ssl_.get())) return;  // StartReading comes back here
  closed_ = true;
  reading_ = false;
  if (listener_ != nullptr) listener_->OnClosed(*broken_);
}

// False when nothing more can be had now. May destroy this object.
bool TlsStream::DeliverOne() {
  std::array<char, kRecordBytes> plain;
  ERR_clear_error();
  size_t size = 0;
  if (SSL_read_ex(ssl_.get(), plain.data(), plain.size(), &size) == 1) {
    listener_->OnData({plain.data(), size});
    return true;
  }
  const int error = SSL_get_error(ssl_.get(), 0);
  FlushToInner();
  if (error == SSL_ERROR_ZERO_RETURN) {
    ended_ = true;
    listener_->OnEnd();
  } else if (error != SSL_ERROR_WANT_READ) {
    if (!broken_) broken_ = DescribeTlsError(ssl_.get(), target_);
    inner_->StopReading();
  } else if (inner_ended_ && !broken_) {
    broken_ = base::Error{base::ErrorCode::kClosed,
                          "TLS with " + target_ +
                              ": the connection ended without close_notify, so what was received "
                              "may be cut short"};
  }
  return false;
}

void TlsStream::OnEnd() {
  inner_ended_ = true;
  if (shaking_) {
    FinishHandshake(
        base::Error{base::ErrorCode::kUnavailable,
                    "TLS with " + target_ + ": the server closed the connection in the handshake"});
    return;
  }
  Pump();
}

void TlsStream::OnDrained() {
  if (!shaking_ && listener_ != nullptr) listener_->OnDrained();
}

void TlsStream::OnClosed(const base::Error& error) {
  if (shaking_)
    return FinishHandshake(base::Error{error.code, "TLS with " + target_ + ": " + error.message});
  if (!broken_) broken_ = error;
  Pump();
}

void TlsStream::Break(base::Error error) {
  if (broken_) return;
  broken_ = std::move(error);
  poster_.Post([this] { Pump(); });
}

}  // namespace leasehold::loop

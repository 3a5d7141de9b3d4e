#include "gate/tcp_connection.h"

#include <utility>

#include "loop/stream.h"

namespace leasehold::gate {

TcpConnection::TcpConnection(Owner& owner, loop::Loop& loop, const Options& options, int fd)
    : owner_(owner),
      loop_(loop),
      options_(options),
      parked_(loop::ParkedSocket::Park(loop, fd,
                                       [this] { owner_.OnOver(*this, End::kClientLeft, {}); })) {}

void TcpConnection::Begin(Ticket ticket) {
  ticket_ = std::move(ticket);
  loop::ConnectOptions options;
  options.timeout = options_.connect_timeout;
  connecting_ = loop::Connect(loop_, options_.upstream, options,
                              [this](base::Result<std::unique_ptr<loop::Stream>> upstream) {
                                Connected(std::move(upstream));
                              });
}

void TcpConnection::Connected(base::Result<std::unique_ptr<loop::Stream>> upstream) {
  if (!upstream.ok()) {
    parked_->ResetOnClose();
    owner_.OnOver(*this, End::kNoUpstream, upstream.error());
    return;
  }
  if (!owner_.MayPassChunk()) {
    parked_->ResetOnClose();
    owner_.OnOver(*this, End::kNotAdmitted, {});
    return;
  }
  loop::RelayOptions options;
  options.buffer_bytes = options_.buffer_bytes;
  options.idle_timeout = options_.tunnel_idle_timeout;
  const int upstream_fd = upstream.value()->Detach();
  relay_ = loop::Relay::Start(
      loop_, parked_->Release(), upstream_fd, {}, {}, options,
      [this] { return owner_.MayPassChunk(); },
      [this](const base::Status& status, const loop::RelayStats&) {
        if (!status.ok()) {
          relay_->ResetOnClose();
        }
        owner_.OnOver(*this, status.ok() ? End::kDone : End::kBroken, status);
      });
  parked_.reset();
}

void TcpConnection::ResetOnClose() {
  if (parked_ != nullptr) {
    parked_->ResetOnClose();
  }
  if (relay_ != nullptr) {
    relay_->ResetOnClose();
  }
}

loop::RelayStats TcpConnection::stats() const {
  return relay_ == nullptr ? loop::RelayStats{} : relay_->stats();
}

}  // namespace leasehold::gate

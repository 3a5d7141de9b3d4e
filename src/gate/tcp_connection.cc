#include "gate/tcp_connection.h"

#include <utility>

#include "loop/socket_facts.h"
#include "loop/stream.h"
#include "proto/proxy_protocol.h"

namespace leasehold::gate {

TcpConnection::TcpConnection(Owner& owner, loop::Loop& loop, const Options& options, Client client)
    : owner_(owner),
      loop_(loop),
      options_(options),
      client_(std::move(client.name)),
      first_(std::move(client.first)),
      look_at_first_(!client.by_sidecar && !options.peer_listen.empty()),
      by_sidecar_(client.by_sidecar),
      parked_(loop::ParkedSocket::Park(loop, client.fd,
                                       [this] { owner_.OnOver(*this, End::kClientLeft, {}); })),
      fd_(client.fd) {
  if (!look_at_first_) return;
  parked_->PeekFirst(proto::kProxyHeaderBytesMax, [this](const std::string& bytes) {
    if (!IsClient(bytes)) owner_.OnOver(*this, End::kSidecar, {});
  });
}

// Is it the client that it seems to be? Asked of its first bytes.
bool TcpConnection::IsClient(std::string_view first_bytes) {
  look_at_first_ = false;
  sidecar_ = SidecarSpeaks(first_bytes);
  return !sidecar_;
}

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
  Carry(upstream.value()->Detach(), {}, [this] { return owner_.MayPassChunk(); });
}

void TcpConnection::ForwardTo(TcpForwardAsk ask) {
  ask_ = std::move(ask);
  forward_ = std::make_unique<TcpForward>(
      loop_, ask_.to, PeerHeader(fd_, ask_.hello), options_.connect_timeout,
      [this](const TcpForwardAnswer& answer) { Answered(answer); });
}

TcpForwardAsk TcpConnection::Withdraw() {
  forward_.reset();
  return std::exchange(ask_, {});
}

void TcpConnection::Answered(const TcpForwardAnswer& answer) {
  const TcpForwardAsk ask = Withdraw();
  if (answer.verdict == PeerVerdict::kAdmitted) {
    forwarded_at_ = loop::Loop::Now();
    peer_fd_ = answer.fd;
    // What is carried there is the holder's work, and its permit's: none of ours is asked.
    Carry(answer.fd, answer.first, [] { return true; });
  }
  owner_.OnVerdict(*this, ask, answer.verdict, answer.why);
}

void TcpConnection::Carry(int other_fd, std::string_view first_for_client,
                          std::function<bool()> may_pass) {
  loop::RelayOptions options;
  options.buffer_bytes = options_.buffer_bytes;
  options.idle_timeout = options_.tunnel_idle_timeout;
  if (look_at_first_) {
    options.look_at_first = [this](std::string_view bytes) { return IsClient(bytes); };
  }
  relay_ = loop::Relay::Start(loop_, parked_->Release(), other_fd, std::exchange(first_, {}),
                              first_for_client, options, std::move(may_pass),
                              [this](const base::Status& status, const loop::RelayStats&) {
                                if (!status.ok()) {
                                  relay_->ResetOnClose();
                                }
                                const End broken = sidecar_ ? End::kSidecar : End::kBroken;
                                owner_.OnOver(*this, status.ok() ? End::kDone : broken, status);
                              });
  parked_.reset();
}

bool TcpConnection::PeerLooksDead() const {
  return with_peer() && loop::LooksDead(by_sidecar_ ? fd_ : peer_fd_, kPeerTimeout);
}

void TcpConnection::ResetOnClose() {
  if (parked_ != nullptr) {
    parked_->ResetOnClose();
  }
  if (relay_ != nullptr) {
    relay_->ResetOnClose();
  }
}

void TcpConnection::SayRefused() {
  if (parked_ == nullptr) return;  // its bytes were about to go on: the relay resets it
  loop::AdoptSocket(loop_, parked_->Release(), client_)->Write(VerdictBytes(PeerVerdict::kRefused));
}

loop::RelayStats TcpConnection::stats() const {
  return relay_ == nullptr ? loop::RelayStats{} : relay_->stats();
}

}  // namespace leasehold::gate

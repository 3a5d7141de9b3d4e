#include "loop/socket_stream.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>
#include <uv.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "base/check.h"
#include "loop/socket_address.h"

namespace leasehold::loop {
namespace {

// Pieces in one sendmsg: an HTTP answer is a handful. More are sent in several calls.
constexpr size_t kPiecesMax = 32;
// A drained queue larger than this is given back to the allocator: idle connections stay small.
constexpr size_t kIdleQueueBytes = 16 * 1024;

ssize_t Receive(int fd, std::span<char> into, int flags) {
  ssize_t n = 0;
  do {
    n = recv(fd, into.data(), into.size(), flags);
  } while (n < 0 && errno == EINTR);
  return n;
}

bool WouldBlock(int error_number) { return error_number == EAGAIN || error_number == EWOULDBLOCK; }

}  // namespace

SocketStream::SocketStream(Loop& loop, int fd, std::string peer)
    : loop_(loop), fd_(fd), peer_(std::move(peer)), poster_(loop) {
  CHECK(fd >= 0, "a stream needs an open descriptor");
  const int error = poller_.Open(loop, fd, this, &SocketStream::OnReady);
  if (error != 0) Break(-error);
}

SocketStream::~SocketStream() {
  CallGuard::MarkGone(gone_);
  poller_.Close();
  if (fd_ < 0) return;
  if (reset_on_close_) {
    const linger now{1, 0};
    setsockopt(fd_, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
  }
  close(fd_);
}

void SocketStream::StartReading() {
  CHECK(listener_ != nullptr, "SetListener comes before StartReading");
  reading_ = true;
  if (broken_) {
    poster_.Post([this] { Settle(); });
  } else {
    UpdateInterest();
  }
}

void SocketStream::Write(std::string_view bytes) { Writev({&bytes, 1}); }

void SocketStream::Writev(std::span<const std::string_view> pieces) {
  while (!pieces.empty() && MayWrite()) {
    std::array<iovec, kPiecesMax> vector;
    const size_t count = std::min(pieces.size(), vector.size());
    for (size_t i = 0; i < count; ++i) {
      vector[i] = {const_cast<char*>(pieces[i].data()), pieces[i].size()};
    }
    size_t sent = queued() == 0 ? SendPieces({vector.data(), count}) : 0;
    if (broken_) return;
    for (size_t i = 0; i < count; ++i) {
      const size_t skip = std::min(sent, pieces[i].size());
      sent -= skip;
      Enqueue(pieces[i].substr(skip));
    }
    pieces = pieces.subspan(count);
  }
  if (queued() > 0) UpdateInterest();
}

// Sends what the kernel takes now and returns how much that was.
size_t SocketStream::SendPieces(std::span<const iovec> pieces) {
  size_t total = 0;
  for (const iovec& piece : pieces) total += piece.iov_len;
  if (total == 0) return 0;
  msghdr message{};
  message.msg_iov = const_cast<iovec*>(pieces.data());
  message.msg_iovlen = pieces.size();
  ssize_t n = 0;
  do {
    n = sendmsg(fd_, &message, MSG_NOSIGNAL);
  } while (n < 0 && errno == EINTR);
  if (n >= 0) return static_cast<size_t>(n);
  if (!WouldBlock(errno)) Break(errno);
  return 0;
}

void SocketStream::Enqueue(std::string_view bytes) {
  if (bytes.empty()) return;
  if (queue_head_ > queue_.size() / 2) {  // moves each byte at most once per halving
    queue_.erase(0, queue_head_);
    queue_head_ = 0;
  }
  queue_.append(bytes);
}

void SocketStream::Flush() {
  if (listener_ != nullptr && !listener_->MayFlush()) return Break(ECANCELED);
  const iovec rest{queue_.data() + queue_head_, queued()};
  queue_head_ += SendPieces({&rest, 1});
  if (broken_ || queued() > 0) return;
  queue_.clear();
  queue_head_ = 0;
  if (queue_.capacity() > kIdleQueueBytes) queue_.shrink_to_fit();
  if (end_asked_) shutdown(fd_, SHUT_WR);
  if (listener_ != nullptr) listener_->OnDrained();
}

void SocketStream::ShutdownWrite() {
  if (!MayWrite()) return;
  end_asked_ = true;
  // Fails only for a connection that is broken already, which the poller reports.
  if (queued() == 0) shutdown(fd_, SHUT_WR);
}

bool SocketStream::Quiet() const {
  if (fd_ < 0 || broken_ || closed_ || ended_) return false;
  pollfd look{fd_, POLLIN | POLLRDHUP,
              0};  // a peek would take a pending error away from the reader
  return poll(&look, 1, 0) == 0;
}

void SocketStream::OnReady(void* self, int status, int events) {
  static_cast<SocketStream*>(self)->HandleReady(status, events);
}

void SocketStream::HandleReady(int status, int events) {
  CallGuard guard(gone_);
  if ((events & UV_WRITABLE) != 0 && queued() > 0) Flush();
  if (guard.gone() || fd_ < 0) return;
  const bool trouble = status < 0 || (events & Poller::kErrorsOnly) != 0;
  if (!broken_ && reading_ && !ended_) {
    if (trouble || (events & UV_READABLE) != 0) ReadOnce();
  } else if (!broken_ && trouble) {
    NoticeError();
  }
  if (guard.gone() || fd_ < 0) return;
  UpdateInterest();
}

// Exactly one recv per wake-up: a short read says that the socket is empty, and epoll says when it
// is not. Neither a second recv for EAGAIN nor one busy connection starving the rest.
void SocketStream::ReadOnce() {
  const std::span<char> buffer = loop_.scratch();
  const ssize_t n = Receive(fd_, buffer, 0);
  if (n > 0) {
    listener_->OnData(buffer.first(static_cast<size_t>(n)));
  } else if (n == 0) {
    ended_ = true;
    listener_->OnEnd();
  } else if (!WouldBlock(errno)) {
    Break(errno);
  }
}

// An error or hang-up while nobody reads, or after the peer's end.
void SocketStream::NoticeError() {
  int error_number = 0;
  socklen_t size = sizeof(error_number);
  getsockopt(fd_, SOL_SOCKET, SO_ERROR, &error_number, &size);
  if (error_number != 0) {
    Break(error_number);
  } else {
    quiet_ = true;
  }
}

// From here on nothing is written. The report waits for Settle, because a caller may be inside
// Write, and because bytes that came before the reset are still to be delivered.
void SocketStream::Break(int error_number) {
  if (broken_) return;
  broken_ = SystemError("connection with " + peer_, error_number);
  queue_.clear();
  queue_head_ = 0;
  poller_.Watch(0);
  poster_.Post([this] { Settle(); });
}

// Delivers one chunk of what came before the break, or reports the break when nothing is left. A
// listener that is not reading keeps both waiting until it does.
void SocketStream::Settle() {
  if (closed_ || fd_ < 0) return;
  if (ended_) return Report();
  const std::span<char> buffer = loop_.scratch();
  const ssize_t n = Receive(fd_, buffer, reading_ ? 0 : MSG_PEEK);
  if (n <= 0) return Report();
  if (!reading_) return;
  CallGuard guard(gone_);
  listener_->OnData(buffer.first(static_cast<size_t>(n)));
  if (!guard.gone()) poster_.Post([this] { Settle(); });
}

void SocketStream::Report() {
  closed_ = true;
  reading_ = false;
  if (listener_ != nullptr) listener_->OnClosed(*broken_);
}

void SocketStream::UpdateInterest() {
  int want = 0;
  if (!broken_ && !closed_) {
    if (reading_ && !ended_) want |= UV_READABLE;
    if (queued() > 0) want |= UV_WRITABLE;
    if (want == 0 && !quiet_) want = Poller::kErrorsOnly;
  }
  poller_.Watch(want);
}

std::string SocketStream::peer_host() const {
  const size_t colon = peer_.rfind(':');
  if (colon == std::string::npos) return peer_;
  const std::string host = peer_.substr(0, colon);
  return host.starts_with('[') && host.ends_with(']') ? host.substr(1, host.size() - 2) : host;
}

int SocketStream::peer_uid() const {
  int domain = 0;
  socklen_t size = sizeof(domain);
  if (getsockopt(fd_, SOL_SOCKET, SO_DOMAIN, &domain, &size) != 0 || domain != AF_UNIX) return -1;
  ucred peer{};
  size = sizeof(peer);
  if (getsockopt(fd_, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) return -1;
  return static_cast<int>(peer.uid);
}

void SocketStream::SetUserTimeout(base::Duration d) {
  const unsigned timeout_ms = static_cast<unsigned>(std::clamp<int64_t>(d.millis(), 0, 1 << 30));
  setsockopt(fd_, IPPROTO_TCP, TCP_USER_TIMEOUT, &timeout_ms, sizeof(timeout_ms));  // Unix: refused
}

void SocketStream::SetKeepAlive(base::Duration period) {
  const int on = 1;
  const int seconds = static_cast<int>(std::clamp<int64_t>(period.millis() / 1000, 1, 1 << 15));
  // Two that stay unanswered: when the third is due, the connection is given up.
  const int probes = 2;
  if (setsockopt(fd_, IPPROTO_TCP, TCP_KEEPIDLE, &seconds, sizeof(seconds)) != 0) return;  // Unix
  setsockopt(fd_, IPPROTO_TCP, TCP_KEEPINTVL, &seconds, sizeof(seconds));
  setsockopt(fd_, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof(probes));
  setsockopt(fd_, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
}

int SocketStream::Detach() {
  CHECK(queued() == 0, "bytes taken by Write would be lost");
  poller_.Close();
  reading_ = false;
  return std::exchange(fd_, -1);
}

std::unique_ptr<Stream> AdoptSocket(Loop& loop, int fd, std::string peer) {
  return std::make_unique<SocketStream>(loop, fd, std::move(peer));
}

}  // namespace leasehold::loop

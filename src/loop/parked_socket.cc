#include "loop/parked_socket.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>
#include <uv.h>

#include <utility>

#include "loop/lifetime.h"
#include "loop/poller.h"
#include "loop/socket_facts.h"

namespace leasehold::loop {
namespace {

// Has the peer of this socket gone for good, as far as the kernel can tell?
enum class Peer { kThere, kEnded, kLeft };

Peer LookAt(int fd) {
  pollfd entry{fd, POLLRDHUP, 0};
  if (poll(&entry, 1, 0) < 0) {
    return Peer::kThere;  // EINTR, ENOMEM: look again at the next event
  }
  if ((entry.revents & (POLLHUP | POLLERR | POLLNVAL)) != 0) {
    return Peer::kLeft;
  }
  if ((entry.revents & POLLRDHUP) == 0) {
    return Peer::kThere;
  }
  char byte = 0;
  return recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) > 0 ? Peer::kEnded : Peer::kLeft;
}

class ParkedSocketImpl : public ParkedSocket {
 public:
  ParkedSocketImpl(Loop& loop, int fd, std::function<void()> on_left)
      : poster_(loop), fd_(fd), on_left_(std::move(on_left)) {
    if (poller_.Open(loop, fd, this, &ParkedSocketImpl::OnReady) != 0) {
      // Not watchable (out of memory, say): the peer's leaving is seen when bytes move.
      return;
    }
    poller_.Watch(UV_DISCONNECT);
  }

  ~ParkedSocketImpl() override {
    poller_.Close();
    if (fd_ < 0) {
      return;
    }
    if (reset_) {
      const linger now{1, 0};
      setsockopt(fd_, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
    }
    close(fd_);
  }

  void PeekFirst(size_t bytes_max, std::function<void(const std::string&)> on_first) override {
    peek_bytes_max_ = bytes_max;
    on_first_ = std::move(on_first);
    if (poller_.open()) {
      poller_.Watch(UV_DISCONNECT | UV_READABLE);
    }
  }

  int Release() override {
    poller_.Close();
    return std::exchange(fd_, -1);
  }

  void ResetOnClose() override { reset_ = true; }

 private:
  static void OnReady(void* owner, int status, int events) {
    auto* self = static_cast<ParkedSocketImpl*>(owner);
    if (self->on_first_ != nullptr && status >= 0 && (events & UV_READABLE) != 0) {
      self->TakeFirst();
    }
    self->Look(status);
  }

  // Once, or unread bytes would wake the loop for ever.
  void TakeFirst() {
    std::string bytes(peek_bytes_max_, '\0');
    bytes.resize(PeekBytes(fd_, bytes));
    poller_.Watch(UV_DISCONNECT);
    // From the loop's next turn, and moved, so that the callback may destroy this object.
    poster_.Post([this, bytes = std::move(bytes), on_first = std::exchange(on_first_, nullptr)] {
      if (fd_ >= 0 && !bytes.empty()) on_first(bytes);
    });
  }

  void Look(int status) {
    const Peer peer = status < 0 ? Peer::kLeft : LookAt(fd_);
    if (peer == Peer::kThere) {
      return;
    }
    if (peer == Peer::kEnded) {
      poller_.Watch(Poller::kErrorsOnly);  // the end stays readable: watching it would spin
      return;
    }
    poller_.Close();
    // Posted and moved, as above.
    poster_.Post([this] { std::exchange(on_left_, nullptr)(); });
  }

  Poster poster_;
  Poller poller_;
  int fd_;
  bool reset_ = false;
  std::function<void()> on_left_;
  size_t peek_bytes_max_ = 0;
  std::function<void(const std::string&)> on_first_;
};

}  // namespace

std::unique_ptr<ParkedSocket> ParkedSocket::Park(Loop& loop, int fd,
                                                 std::function<void()> on_left) {
  return std::make_unique<ParkedSocketImpl>(loop, fd, std::move(on_left));
}

}  // namespace leasehold::loop

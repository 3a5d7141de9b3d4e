#include "lib/raw_socket.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "base/check.h"

namespace leasehold::testing {
namespace {

struct Sockaddr {
  sockaddr_storage storage{};
  socklen_t length = 0;
  sockaddr* get() { return reinterpret_cast<sockaddr*>(&storage); }
};

// Literals only: a test knows its addresses.
Sockaddr ToSockaddr(const base::Address& address) {
  Sockaddr result;
  if (address.kind == base::Address::Kind::kUnix) {
    auto* un = reinterpret_cast<sockaddr_un*>(&result.storage);
    un->sun_family = AF_UNIX;
    CHECK(address.path.size() < sizeof(un->sun_path), "a test's socket path is too long");
    std::memcpy(un->sun_path, address.path.data(), address.path.size());
    result.length = sizeof(sockaddr_un);
  } else if (address.host.find(':') != std::string::npos) {
    auto* in6 = reinterpret_cast<sockaddr_in6*>(&result.storage);
    in6->sin6_family = AF_INET6;
    in6->sin6_port = htons(address.port);
    CHECK(inet_pton(AF_INET6, address.host.c_str(), &in6->sin6_addr) == 1, "not an IPv6 literal");
    result.length = sizeof(sockaddr_in6);
  } else {
    auto* in = reinterpret_cast<sockaddr_in*>(&result.storage);
    in->sin_family = AF_INET;
    in->sin_port = htons(address.port);
    CHECK(inet_pton(AF_INET, address.host.c_str(), &in->sin_addr) == 1, "not an IPv4 literal");
    result.length = sizeof(sockaddr_in);
  }
  return result;
}

// What is sent is to leave at once, not when what went before is acknowledged. (No-op on Unix.)
void SendAtOnce(int fd) {
  const int on = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
}

}  // namespace

std::unique_ptr<RawSocket> RawSocket::Connect(const base::Address& address) {
  Sockaddr to = ToSockaddr(address);
  const int fd = socket(to.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  CHECK(fd >= 0, "a test needs a socket");
  SendAtOnce(fd);
  if (connect(fd, to.get(), to.length) != 0 && errno != EINPROGRESS) {
    close(fd);
    auto refused = std::make_unique<RawSocket>(-1);
    refused->reset_ = true;
    return refused;
  }
  return std::make_unique<RawSocket>(fd);
}

size_t RawSocket::Send(std::string_view bytes) {
  const ssize_t sent = send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
  return sent > 0 ? static_cast<size_t>(sent) : 0;
}

void RawSocket::ShutdownWrite() { shutdown(fd_, SHUT_WR); }

void RawSocket::Close() {
  if (fd_ >= 0) {
    close(std::exchange(fd_, -1));
  }
}

void RawSocket::GoDeaf() {
  sock_filter drop_all{BPF_RET | BPF_K, 0, 0, 0};
  const sock_fprog program{1, &drop_all};
  CHECK(setsockopt(fd_, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof(program)) == 0,
        "a test needs a socket filter");
}

void RawSocket::CloseWithReset() {
  const linger now{1, 0};
  setsockopt(fd_, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
  Close();
}

bool RawSocket::Poll() {
  bool any = false;
  char buffer[64 * 1024];
  while (!over() && fd_ >= 0) {
    const ssize_t got = recv(fd_, buffer, sizeof(buffer), 0);
    if (got > 0) {
      received_.append(buffer, static_cast<size_t>(got));
    } else if (got == 0) {
      ended_ = true;
    } else if (errno == EAGAIN || errno == EINTR) {
      return any;
    } else {
      reset_ = true;
    }
    any = true;
  }
  return any;
}

RawServer::RawServer(const base::Address& address, int backlog) : address_(address) {
  Sockaddr at = ToSockaddr(address);
  fd_ = socket(at.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  CHECK(fd_ >= 0, "a test needs a socket");
  const int on = 1;
  setsockopt(fd_, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  CHECK(bind(fd_, at.get(), at.length) == 0, "a test's server cannot bind");
  CHECK(listen(fd_, backlog) == 0, "a test's server cannot listen");
  if (address_.kind == base::Address::Kind::kTcp) {
    socklen_t length = sizeof(at.storage);
    CHECK(getsockname(fd_, at.get(), &length) == 0, "a test's server has no name");
    address_.port = at.storage.ss_family == AF_INET6
                        ? ntohs(reinterpret_cast<sockaddr_in6*>(&at.storage)->sin6_port)
                        : ntohs(reinterpret_cast<sockaddr_in*>(&at.storage)->sin_port);
  }
}

std::unique_ptr<RawSocket> RawServer::Accept() {
  const int fd = accept4(fd_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
  if (fd < 0) return nullptr;
  SendAtOnce(fd);
  return std::make_unique<RawSocket>(fd);
}

void RawServer::Close() {
  if (fd_ >= 0) {
    close(std::exchange(fd_, -1));
    if (address_.kind == base::Address::Kind::kUnix) {
      unlink(address_.path.c_str());
    }
  }
}

}  // namespace leasehold::testing

#include "loop/listener.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>
#include <uv.h>

#include <cerrno>
#include <utility>

#include "loop/lifetime.h"
#include "loop/poller.h"
#include "loop/socket_address.h"
#include "loop/timer.h"

namespace leasehold::loop {
namespace {

// Connections taken in one wake-up: enough to empty a burst quickly, few enough that accepting
// never holds up the connections that are there already.
constexpr int kAcceptBatch = 64;
// Out of descriptors: nothing gets better within a millisecond, and the pending connection would
// keep waking the loop.
constexpr base::Duration kExhaustedPause = base::Duration::Millis(100);
constexpr base::Duration kTroubleInterval = base::Duration::Seconds(1);

// The descriptor while it is being set up: closed on every early return.
class OwnFd {
 public:
  explicit OwnFd(int fd) : fd_(fd) {}
  ~OwnFd() {
    if (fd_ >= 0) close(fd_);
  }
  OwnFd(const OwnFd&) = delete;
  OwnFd& operator=(const OwnFd&) = delete;
  int get() const { return fd_; }
  int Release() { return std::exchange(fd_, -1); }

 private:
  int fd_;
};

struct FileIdentity {
  dev_t device = 0;
  ino_t inode = 0;
  bool operator==(const FileIdentity&) const = default;
};

enum class PathState { kFree, kStale, kLive, kNotASocket, kUnclear };

struct PathFinding {
  PathState state = PathState::kFree;
  FileIdentity file;
  int error_number = 0;
};

// Whether somebody still listens at `path`. A refused connect is the kernel's word that no process
// does.
PathFinding InspectPath(const std::string& path) {
  struct stat info {};
  if (lstat(path.c_str(), &info) != 0) {
    return {errno == ENOENT ? PathState::kFree : PathState::kUnclear, {}, errno};
  }
  const FileIdentity file{info.st_dev, info.st_ino};
  if (!S_ISSOCK(info.st_mode)) return {PathState::kNotASocket, file, 0};
  const OwnFd probe(socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (probe.get() < 0) return {PathState::kUnclear, file, errno};
  const SocketAddress address = FromPath(path);
  if (connect(probe.get(), address.get(), address.length) == 0 || errno == EAGAIN) {
    return {PathState::kLive, file, 0};  // EAGAIN: its backlog is full, so it lives
  }
  return {errno == ECONNREFUSED ? PathState::kStale : PathState::kUnclear, file, errno};
}

bool StillThere(const std::string& path, const FileIdentity& file) {
  struct stat info {};
  return lstat(path.c_str(), &info) == 0 && FileIdentity{info.st_dev, info.st_ino} == file;
}

// Makes way for a bind to `path`, or says why that is not ours to do.
base::Status ClearPath(const std::string& path) {
  const PathFinding found = InspectPath(path);
  const std::string name = "cannot listen on unix:" + path;
  switch (found.state) {
    case PathState::kFree: return {};
    case PathState::kLive:
      return base::Error{base::ErrorCode::kConflict,
                         name + ": another process listens there; stop it or choose another path"};
    case PathState::kNotASocket:
      return base::Error{base::ErrorCode::kConflict,
                         name +
                             ": a file that is not a socket is in the way; remove it or choose "
                             "another path"};
    case PathState::kUnclear: return SystemError(name, found.error_number);
    case PathState::kStale: break;
  }
  // Looked at again, so that a socket another process put there meanwhile is left alone.
  if (StillThere(path, found.file) && unlink(path.c_str()) != 0 && errno != ENOENT) {
    return SystemError(name + ": the socket left by a dead process cannot be removed", errno);
  }
  return {};
}

base::Result<SocketAddress> ListenAddress(const base::Address& address) {
  if (address.kind == base::Address::Kind::kUnix) return FromPath(address.path);
  const std::string& host = address.host == "localhost" ? "127.0.0.1" : address.host;
  std::optional<SocketAddress> literal = FromLiteral(host, address.port);
  if (literal) return *literal;
  return base::Error{base::ErrorCode::kInvalid,
                     "cannot listen on " + address.ToString() + ": \"" + address.host +
                         "\" is not an address of this machine; write an IPv4 or [IPv6] address, "
                         "\"localhost\" or \"*\""};
}

void SetOption(int fd, int level, int option) {
  const int on = 1;
  setsockopt(fd, level, option, &on,
             sizeof(on));  // each is a refinement; bind or listen would fail
}

class ListenerImpl final : public Listener {
 public:
  ListenerImpl(Loop& loop, base::Address bound, int fd, FileIdentity file, AcceptCallback on_accept,
               TroubleCallback on_trouble, int backlog)
      : bound_(std::move(bound)),
        fd_(fd),
        file_(file),
        backlog_(backlog),
        on_accept_(std::move(on_accept)),
        on_trouble_(std::move(on_trouble)),
        retry_(loop, [this] { UpdateInterest(); }) {}

  ~ListenerImpl() override {
    CallGuard::MarkGone(gone_);
    poller_.Close();
    if (bound_.kind == base::Address::Kind::kUnix && StillThere(bound_.path, file_)) {
      unlink(bound_.path.c_str());
    }
    close(fd_);
  }

  base::Status Watch(Loop& loop) {
    const int error = poller_.Open(loop, fd_, this, [](void* self, int, int) {
      static_cast<ListenerImpl*>(self)->AcceptBatch();
    });
    if (error != 0) return SystemError("cannot listen on " + bound_.ToString(), -error);
    UpdateInterest();
    return {};
  }

  const base::Address& bound() const override { return bound_; }
  void Pause() override {
    paused_ = true;
    UpdateInterest();
  }
  void Resume() override {
    paused_ = false;
    UpdateInterest();
  }
  void AcceptWaiting() override { AcceptBatch(backlog_); }

 private:
  void UpdateInterest() { poller_.Watch(paused_ || retry_.armed() ? 0 : UV_READABLE); }

  void AcceptBatch(int most = kAcceptBatch) {
    CallGuard guard(gone_);
    for (int i = 0; i < most && !paused_; ++i) {
      SocketAddress peer;
      peer.length = sizeof(peer.storage);
      const int fd = accept4(fd_, peer.get(), &peer.length, SOCK_NONBLOCK | SOCK_CLOEXEC);
      if (fd < 0) {
        if (!HandleError(errno)) break;
        continue;
      }
      on_accept_(fd, bound_.kind == base::Address::Kind::kUnix ? "unix" : peer.ToString());
      if (guard.gone()) return;
    }
    UpdateInterest();  // also after an error status, which stops the watching
  }

  // True: go on with the next connection.
  bool HandleError(int error_number) {
    switch (error_number) {
      case EAGAIN: return false;
      // The pending connection had an error of its own (accept(2)): the next one is another matter.
      case EINTR:
      case ECONNABORTED:
      case EPROTO:
      case ENETDOWN:
      case ENOPROTOOPT:
      case EHOSTDOWN:
      case ENONET:
      case EHOSTUNREACH:
      case EOPNOTSUPP:
      case ENETUNREACH:
      case EPERM: return true;
      default: break;
    }
    retry_.StartAfter(kExhaustedPause);
    const base::MonoTime now = Loop::Now();
    if (now < next_trouble_) return false;
    next_trouble_ = now + kTroubleInterval;
    if (on_trouble_) {
      on_trouble_(SystemError("cannot accept on " + bound_.ToString() + ", trying again every " +
                                  std::to_string(kExhaustedPause.millis()) + " ms",
                              error_number));
    }
    return false;
  }

  base::Address bound_;
  int fd_;
  FileIdentity file_;
  int backlog_;
  AcceptCallback on_accept_;
  TroubleCallback on_trouble_;
  Poller poller_;
  Timer retry_;
  base::MonoTime next_trouble_;
  bool* gone_ = nullptr;
  bool paused_ = false;
};

// Bound but not yet listening, with the file's mode already right: nobody can connect before that.
base::Status BindUnix(int fd, const base::Address& address, const SocketAddress& where,
                      unsigned mode, FileIdentity* file) {
  base::Status cleared = ClearPath(address.path);
  if (!cleared) return cleared;
  const std::string name = "cannot listen on " + address.ToString();
  if (bind(fd, where.get(), where.length) != 0) return SystemError(name, errno);
  struct stat info {};
  if (chmod(address.path.c_str(), mode) != 0 || lstat(address.path.c_str(), &info) != 0) {
    const int error_number = errno;
    unlink(address.path.c_str());
    return SystemError(name + ": its mode cannot be set", error_number);
  }
  *file = {info.st_dev, info.st_ino};
  return {};
}

base::Status BindTcp(int fd, const SocketAddress& where, base::Address* bound) {
  SetOption(fd, SOL_SOCKET, SO_REUSEADDR);
  SetOption(fd, IPPROTO_TCP, TCP_NODELAY);  // accepted sockets inherit it: no call per connection
  const std::string name = "cannot listen on " + bound->ToString();
  if (bind(fd, where.get(), where.length) != 0) return SystemError(name, errno);
  SocketAddress real;
  real.length = sizeof(real.storage);
  if (getsockname(fd, real.get(), &real.length) != 0) return SystemError(name, errno);
  bound->port = real.port();
  return {};
}

}  // namespace

base::Result<std::unique_ptr<Listener>> Listener::Open(Loop& loop, const base::Address& address,
                                                       const ListenOptions& options,
                                                       AcceptCallback on_accept,
                                                       TroubleCallback on_trouble) {
  base::Result<SocketAddress> where = ListenAddress(address);
  if (!where) return where.error();
  const std::string name = "cannot listen on " + address.ToString();
  OwnFd fd(socket(where->storage.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (fd.get() < 0) return SystemError(name, errno);
  base::Address bound = address;
  FileIdentity file;
  const base::Status status = where->is_unix()
                                  ? BindUnix(fd.get(), address, *where, options.unix_mode, &file)
                                  : BindTcp(fd.get(), *where, &bound);
  if (!status) return status.error();
  if (listen(fd.get(), options.backlog) != 0) {
    const int error_number = errno;
    if (where->is_unix() && StillThere(address.path, file)) unlink(address.path.c_str());
    return SystemError(name, error_number);
  }
  auto listener =
      std::make_unique<ListenerImpl>(loop, std::move(bound), fd.Release(), file,
                                     std::move(on_accept), std::move(on_trouble), options.backlog);
  const base::Status watched = listener->Watch(loop);
  if (!watched) return watched.error();
  return std::unique_ptr<Listener>(std::move(listener));
}

}  // namespace leasehold::loop

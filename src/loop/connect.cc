#include "loop/connect.h"

#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>
#include <uv.h>

#include <cerrno>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include "base/text.h"
#include "loop/lifetime.h"
#include "loop/poller.h"
#include "loop/socket_address.h"
#include "loop/socket_stream.h"
#include "loop/timer.h"
#include "loop/tls_stream.h"

namespace leasehold::loop {
namespace {

// A Unix listener whose backlog is full answers EAGAIN and tells nobody when there is room again.
constexpr base::Duration kBacklogRetry = base::Duration::Millis(5);
// Addresses of one name that are tried; a resolver that gives more is not taken at its word.
constexpr size_t kAddressesMax = 16;

class Attempt;

// Outlives the attempt: libuv keeps the request until the worker is done with it.
struct Resolution {
  uv_getaddrinfo_t request{};
  Loop* loop = nullptr;
  Attempt* attempt = nullptr;  // null: cancelled
};

class Attempt final : public Connecting {
 public:
  Attempt(Loop& loop, const base::Address& address, const ConnectOptions& options,
          ConnectCallback done)
      : loop_(loop),
        address_(address),
        no_delay_(options.no_delay),
        done_(std::move(done)),
        poster_(loop),
        deadline_(Loop::Now() + options.timeout),
        deadline_timer_(loop, [this] { OnDeadline(); }),
        next_timer_(loop, [this] { OnNext(); }) {
    if (options.tls != nullptr) tls_ = *options.tls;
    deadline_timer_.StartAt(deadline_);
  }

  ~Attempt() override {
    CancelResolution();
    CloseSocket();
  }

  void Start();
  void OnResolved(int status, const addrinfo* found);

 private:
  void Resolve();
  void TryNext();
  void TryConnect();
  void OnWritable();
  void OnConnected();
  void OnHandshake(const base::Status& status);
  void OnDeadline();
  void OnNext();
  void AttemptFailed(base::Error error);
  void Finish(base::Result<std::unique_ptr<Stream>> result);
  void CancelResolution();
  void CloseSocket();
  bool ConnectedToItself() const;
  std::string Target() const;
  std::string Name() const { return "cannot connect to " + Target(); }

  Loop& loop_;
  base::Address address_;
  bool no_delay_;
  std::optional<TlsOptions> tls_;
  ConnectCallback done_;
  Poster poster_;
  base::MonoTime deadline_;
  Timer deadline_timer_;
  Timer next_timer_;  // this address's share of the deadline, or a retry of a full Unix backlog
  bool retry_same_ = false;
  Resolution* resolution_ = nullptr;
  std::vector<SocketAddress> addresses_;
  size_t next_address_ = 0;
  SocketAddress current_;
  int fd_ = -1;
  Poller poller_;
  std::unique_ptr<TlsStream> handshaking_;
  bool finished_ = false;
};

void Attempt::Start() {
  if (address_.kind == base::Address::Kind::kUnix) {
    addresses_.push_back(FromPath(address_.path));
  } else if (std::optional<SocketAddress> literal = FromLiteral(address_.host, address_.port)) {
    addresses_.push_back(*literal);
  } else if (base::EqualsIgnoreCase(address_.host, "localhost")) {
    // Never asked of a name server (RFC 6761 6.3); small containers have no hosts file either.
    for (const char* loopback : {"127.0.0.1", "::1"}) {
      addresses_.push_back(*FromLiteral(loopback, address_.port));
    }
  } else {
    Resolve();
    return;
  }
  TryNext();
}

// What is being connected to, with the address a name stood for: "db.internal:5432
// (10.0.0.7:5432)".
std::string Attempt::Target() const {
  std::string written = address_.ToString();
  if (current_.length == 0 || current_.is_unix()) return written;
  const std::string real = current_.ToString();
  return real == written ? written : written + " (" + real + ")";
}

void Attempt::Resolve() {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  resolution_ = new Resolution{{}, &loop_, this};
  resolution_->request.data = resolution_;
  const int error = uv_getaddrinfo(
      loop_.raw(), &resolution_->request,
      [](uv_getaddrinfo_t* request, int status, addrinfo* found) {
        const std::unique_ptr<Resolution> own(static_cast<Resolution*>(request->data));
        if (own->attempt != nullptr) {
          own->loop->NoteWake();
          own->attempt->OnResolved(status, found);
        }
        uv_freeaddrinfo(found);
      },
      address_.host.c_str(), nullptr, &hints);
  if (error == 0) return;
  delete std::exchange(resolution_, nullptr);
  Finish(SystemError("cannot resolve \"" + address_.host + "\"", -error));
}

void Attempt::OnResolved(int status, const addrinfo* found) {
  resolution_ = nullptr;
  if (status != 0) {
    Finish(base::Error{base::ErrorCode::kUnavailable,
                       "cannot resolve the host name \"" + address_.host + "\" of " +
                           address_.ToString() + ": " + uv_strerror(status)});
    return;
  }
  for (; found != nullptr && addresses_.size() < kAddressesMax; found = found->ai_next) {
    if (found->ai_family != AF_INET && found->ai_family != AF_INET6) continue;
    SocketAddress address = FromSockaddr(found->ai_addr, found->ai_addrlen);
    // The port sits at the same place in both families (RFC 3493).
    reinterpret_cast<sockaddr_in*>(&address.storage)->sin_port = htons(address_.port);
    addresses_.push_back(address);
  }
  TryNext();
}

// The next address gets its even share of the time that is left, so that one that swallows packets
// does not cost the others their chance.
void Attempt::TryNext() {
  if (next_address_ == addresses_.size()) {
    Finish(base::Error{
        base::ErrorCode::kUnavailable,
        "cannot resolve the host name \"" + address_.host + "\": it has no IPv4 or IPv6 address"});
    return;
  }
  const auto left = static_cast<int64_t>(addresses_.size() - next_address_);
  current_ = addresses_[next_address_++];
  if (left > 1) next_timer_.StartAfter((deadline_ - Loop::Now()) / left);
  TryConnect();
}

void Attempt::TryConnect() {
  fd_ = socket(current_.storage.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd_ < 0) return AttemptFailed(SystemError(Name(), errno));
  if (no_delay_ && !current_.is_unix()) {
    const int on = 1;
    setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  }
  int result = 0;
  do {
    result = connect(fd_, current_.get(), current_.length);
  } while (result != 0 && errno == EINTR);
  if (result == 0) return OnConnected();
  if (errno == EAGAIN && current_.is_unix()) {
    CloseSocket();
    retry_same_ = true;
    next_timer_.StartAfter(kBacklogRetry);
    return;
  }
  if (errno != EINPROGRESS) return AttemptFailed(SystemError(Name(), errno));
  const int error = poller_.Open(
      loop_, fd_, this, [](void* self, int, int) { static_cast<Attempt*>(self)->OnWritable(); });
  if (error != 0) return AttemptFailed(SystemError(Name(), -error));
  poller_.Watch(UV_WRITABLE);
}

void Attempt::OnWritable() {
  int error_number = 0;
  socklen_t size = sizeof(error_number);
  if (getsockopt(fd_, SOL_SOCKET, SO_ERROR, &error_number, &size) != 0) error_number = errno;
  if (error_number != 0) {
    AttemptFailed(SystemError(Name(), error_number));
  } else {
    OnConnected();
  }
}

// A connect to a closed local port may be given that very port as its own and so meet itself
// (simultaneous open, RFC 9293 section 3.5). Nobody listens there: it is a refusal.
bool Attempt::ConnectedToItself() const {
  if (!current_.IsLoopback()) return false;
  SocketAddress own;
  own.length = sizeof(own.storage);
  return getsockname(fd_, own.get(), &own.length) == 0 && own.port() == current_.port() &&
         own.ToString() == current_.ToString();
}

void Attempt::OnConnected() {
  poller_.Close();
  next_timer_.Stop();
  if (ConnectedToItself()) return AttemptFailed(SystemError(Name(), ECONNREFUSED));
  auto stream = std::make_unique<SocketStream>(loop_, std::exchange(fd_, -1), current_.ToString());
  if (!tls_) {
    Finish(std::unique_ptr<Stream>(std::move(stream)));
    return;
  }
  base::Result<std::unique_ptr<TlsStream>> tls = TlsStream::Start(
      loop_, std::move(stream), *tls_, Target(), [this](const base::Status& s) { OnHandshake(s); });
  if (!tls) {
    Finish(tls.error());
    return;
  }
  handshaking_ = std::move(*tls);
}

void Attempt::OnHandshake(const base::Status& status) {
  if (!status) {
    Finish(status.error());
  } else {
    Finish(std::unique_ptr<Stream>(std::move(handshaking_)));
  }
}

void Attempt::OnNext() {
  if (std::exchange(retry_same_, false)) {
    TryConnect();
  } else {
    AttemptFailed(SystemError(Name(), ETIMEDOUT));
  }
}

void Attempt::OnDeadline() {
  std::string doing = Name();
  if (resolution_ != nullptr) doing = "cannot resolve the host name \"" + address_.host + "\"";
  if (handshaking_ != nullptr) doing = "TLS with " + Target();
  Finish(base::Error{base::ErrorCode::kTimeout, doing + ": no answer in time"});
}

void Attempt::AttemptFailed(base::Error error) {
  CloseSocket();
  next_timer_.Stop();
  if (next_address_ < addresses_.size()) {
    TryNext();
  } else {
    Finish(std::move(error));
  }
}

void Attempt::CancelResolution() {
  if (resolution_ == nullptr) return;
  resolution_->attempt = nullptr;
  uv_cancel(reinterpret_cast<uv_req_t*>(&resolution_->request));  // too late is no matter
  resolution_ = nullptr;
}

void Attempt::CloseSocket() {
  poller_.Close();
  if (fd_ >= 0) close(std::exchange(fd_, -1));
}

// The only place `done` is called from, always on a later turn: the caller may still be inside
// Connect(), and may destroy this object in the callback.
void Attempt::Finish(base::Result<std::unique_ptr<Stream>> result) {
  if (finished_) return;  // the deadline came first
  finished_ = true;
  deadline_timer_.Stop();
  next_timer_.Stop();
  CancelResolution();
  CloseSocket();
  auto shared = std::make_shared<base::Result<std::unique_ptr<Stream>>>(std::move(result));
  poster_.Post([this, shared] {
    const ConnectCallback done = std::move(done_);
    done(std::move(*shared));
  });
}

}  // namespace

std::unique_ptr<Connecting> Connect(Loop& loop, const base::Address& address,
                                    const ConnectOptions& options, ConnectCallback done) {
  auto attempt = std::make_unique<Attempt>(loop, address, options, std::move(done));
  attempt->Start();
  return attempt;
}

}  // namespace leasehold::loop

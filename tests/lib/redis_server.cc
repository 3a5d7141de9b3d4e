#include "redis_server.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <utility>

#include "loop/loop.h"

namespace leasehold::testing {
namespace {

using base::Duration;
using base::Error;
using base::ErrorCode;
using base::MonoTime;
using base::Result;
using base::Status;

constexpr Duration kPatience = Duration::Seconds(5);
constexpr int kPortTries = 8;   // another process may take a port between our close and its bind
constexpr int kPollMillis = 2;  // between two looks at a starting server

Error Failed(const std::string& what) {
  return {ErrorCode::kInternal, what + ": " + std::strerror(errno)};
}

std::string Format(const std::vector<std::string>& words) {
  const std::vector<std::string_view> views(words.begin(), words.end());
  return proto::FormatRespCommand(views);
}

// A blocking connection with time-outs, closed by its destructor.
class Connection {
 public:
  explicit Connection(uint16_t port) : fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    timeval patience{kPatience.millis() / 1000, 0};
    setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
    setsockopt(fd_, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    connected_ = connect(fd_, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0;
  }
  ~Connection() { close(fd_); }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  bool connected() const { return connected_; }
  bool Send(const std::string& bytes) const {
    return send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL) ==
           static_cast<ssize_t>(bytes.size());
  }
  Result<proto::Reply> Receive() {
    while (true) {
      Result<std::optional<proto::Reply>> next = reader_.Next();
      if (!next) return next.error();
      if (next->has_value()) return **next;
      char buffer[4096];
      const ssize_t size = recv(fd_, buffer, sizeof(buffer), 0);
      if (size <= 0) return Failed("no answer from redis-server");
      if (Status fed = reader_.Feed({buffer, static_cast<size_t>(size)}); !fed) return fed.error();
    }
  }

 private:
  int fd_;
  bool connected_ = false;
  proto::RespReader reader_;
};

// In the child, between fork and exec: only async-signal-safe calls.
[[noreturn]] void Exec(const std::vector<char*>& argv, pid_t parent, int log) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(126);  // the parent died before the line above
  dup2(log, STDOUT_FILENO);
  dup2(log, STDERR_FILENO);
  execvp(argv[0], argv.data());
  _exit(127);
}

}  // namespace

Result<std::unique_ptr<RedisCerts>> RedisCerts::Make() {
  auto certs = std::make_unique<RedisCerts>();
  const std::string script = "set -e; cd " + certs->dir_.path() +
                             R"sh(
ca() { openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 \
         -keyout $1.key -out $1.crt -subj /CN=$1; }
leaf() { openssl req -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes \
           -keyout $1.key -out $1.csr -subj /CN=$1
         printf 'subjectAltName=IP:127.0.0.1,DNS:localhost\n' > ext
         openssl x509 -req -in $1.csr -CA ca.crt -CAkey ca.key -CAcreateserial -days 2 \
           -extfile ext -out $1.crt; }
{ ca ca; ca other; leaf server; leaf client; } >log 2>&1
)sh";
  if (std::system(script.c_str()) != 0) {
    return Error{ErrorCode::kInternal, "openssl made no certificates; see its log"};
  }
  return certs;
}

Result<std::unique_ptr<RedisServer>> RedisServer::Start(const RedisServerOptions& options) {
  Status status;
  for (int i = 0; i < kPortTries; ++i) {
    std::unique_ptr<RedisServer> server(new RedisServer(options));
    server->port_ = ClosedPort();
    server->tls_port_ = options.certs == nullptr ? uint16_t{0} : ClosedPort();
    status = server->Launch();
    if (status.ok()) return server;
  }
  return status.error();
}

RedisServer::~RedisServer() { (void)Kill9(); }

Status RedisServer::Launch() {
  std::vector<std::string> words = {"redis-server", "--port",      std::to_string(port_),
                                    "--bind",       "127.0.0.1",   "--dir",
                                    dir_.path(),    "--save",      "",
                                    "--appendonly", "yes",         "--appendfsync",
                                    "always",       "--daemonize", "no"};
  if (options_.certs != nullptr) {
    const RedisCerts& certs = *options_.certs;
    words.insert(words.end(), {"--tls-port", std::to_string(tls_port_), "--tls-cert-file",
                               certs.File("server.crt"), "--tls-key-file", certs.File("server.key"),
                               "--tls-ca-cert-file", certs.ca(), "--tls-auth-clients",
                               options_.tls_wants_client_cert ? "yes" : "no"});
  }
  words.insert(words.end(), options_.args.begin(), options_.args.end());
  std::vector<char*> argv;
  argv.reserve(words.size() + 1);
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  const int log = open(dir_.File("log").c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  if (log < 0) return Failed("no log file for redis-server");
  const pid_t parent = getpid();
  pid_ = fork();
  if (pid_ == 0) Exec(argv, parent, log);
  close(log);
  if (pid_ < 0) return Failed("cannot start redis-server");
  return WaitUntilReady();
}

bool RedisServer::Exited() {
  int status = 0;
  if (pid_ <= 0 || waitpid(pid_, &status, WNOHANG) != pid_) return false;
  pid_ = -1;
  return true;
}

// Ready: it answers, be it with NOAUTH, and is not loading.
Status RedisServer::WaitUntilReady() {
  const MonoTime end = loop::Loop::Now() + kPatience * 2;
  while (loop::Loop::Now() < end) {
    if (Exited()) return Error{ErrorCode::kInternal, "redis-server ended at once: " + dir_.path()};
    const Result<proto::Reply> answer = Command({"PING"});
    if (answer.ok() && !answer->text().starts_with("LOADING")) return {};
    poll(nullptr, 0, kPollMillis);
  }
  return Error{ErrorCode::kTimeout, "redis-server did not answer in time"};
}

Status RedisServer::Stop() {
  if (pid_ > 0 && kill(pid_, SIGSTOP) == 0) {
    int status = 0;  // it really stands still before anybody measures
    if (waitpid(pid_, &status, WUNTRACED) == pid_) return {};
  }
  return Failed("cannot freeze redis-server");
}

Status RedisServer::Cont() {
  if (pid_ > 0 && kill(pid_, SIGCONT) == 0) return {};
  return Failed("cannot thaw redis-server");
}

Status RedisServer::Kill9() {
  if (pid_ <= 0) return {};
  kill(pid_, SIGKILL);
  int status = 0;
  waitpid(std::exchange(pid_, -1), &status, 0);
  return {};
}

Status RedisServer::Restart() { return Launch(); }

void RedisServer::SetAuth(std::string user, std::string password) {
  user_ = std::move(user);
  password_ = std::move(password);
}

Result<proto::Reply> RedisServer::Command(const std::vector<std::string>& words) const {
  Connection connection(port_);
  if (!connection.connected()) return Failed("cannot connect to redis-server");
  if (!password_.empty()) {
    if (!connection.Send(Format({"AUTH", user_, password_}))) return Failed("cannot send AUTH");
    const Result<proto::Reply> answer = connection.Receive();
    if (!answer.ok() || answer->is_error()) return answer;
  }
  if (!connection.Send(Format(words))) return Failed("cannot send to redis-server");
  return connection.Receive();
}

std::shared_ptr<void> RedisServer::StartCommand(const std::vector<std::string>& words) const {
  auto connection = std::make_shared<Connection>(port_);
  (void)connection->Send(Format(words));
  return connection;
}

}  // namespace leasehold::testing

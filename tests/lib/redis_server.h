// RedisServer: a real redis-server of a test, on loopback ports of its own, in a directory of its
// own. Started, frozen, killed and restarted by process id; it dies with the test process, even
// when that aborts (PR_SET_PDEATHSIG). Keeps its data over Restart (append-only file, fsync
// always). RedisCerts makes the certificates for --tls-port with the openssl command.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "proto/resp.h"
#include "socket_peer.h"

namespace leasehold::testing {

// A CA, a server certificate for 127.0.0.1 and localhost, a client certificate, and a CA that
// signed neither.
class RedisCerts {
 public:
  static base::Result<std::unique_ptr<RedisCerts>> Make();
  std::string File(const std::string& name) const { return dir_.File(name); }
  std::string ca() const { return File("ca.crt"); }
  std::string other_ca() const { return File("other.crt"); }

 private:
  TempDir dir_;
};

struct RedisServerOptions {
  std::vector<std::string> args;      // more command line: {"--requirepass", "secret"}
  const RedisCerts* certs = nullptr;  // given: a TLS port too
  bool tls_wants_client_cert = false;
};

class RedisServer {
 public:
  // Ready to answer when it returns.
  static base::Result<std::unique_ptr<RedisServer>> Start(const RedisServerOptions& options = {});
  ~RedisServer();
  RedisServer(const RedisServer&) = delete;
  RedisServer& operator=(const RedisServer&) = delete;

  uint16_t port() const { return port_; }
  uint16_t tls_port() const { return tls_port_; }
  std::string url() const { return "redis://127.0.0.1:" + std::to_string(port_); }
  std::string tls_url() const { return "rediss://127.0.0.1:" + std::to_string(tls_port_); }
  pid_t pid() const { return pid_; }
  const std::string& dir() const { return dir_.path(); }

  base::Status Stop();     // SIGSTOP: the kernel accepts, nobody answers
  base::Status Cont();     // SIGCONT
  base::Status Kill9();    // and waits until it is gone
  base::Status Restart();  // after Kill9: same ports, same data, ready when it returns

  // One command on a plain connection of its own, blocking, 5 s at most. A leading AUTH is sent
  // when SetAuth was called. An error reply is a reply.
  base::Result<proto::Reply> Command(const std::vector<std::string>& words) const;
  void SetAuth(std::string user, std::string password);
  // Sends a command and leaves its answer: for scripts that do not end. The connection stays open
  // until the returned object dies.
  std::shared_ptr<void> StartCommand(const std::vector<std::string>& words) const;

 private:
  explicit RedisServer(RedisServerOptions options) : options_(std::move(options)) {}
  base::Status Launch();
  base::Status WaitUntilReady();
  bool Exited();

  RedisServerOptions options_;
  TempDir dir_;
  uint16_t port_ = 0;
  uint16_t tls_port_ = 0;
  pid_t pid_ = -1;
  std::string user_;
  std::string password_;
};

}  // namespace leasehold::testing

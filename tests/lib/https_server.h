// HttpsServer: a small HTTP/1.1 service behind TLS, in a process of its own (Python's), for tests
// of clients that keep connections. Whatever is asked, it answers 200 with
// "<port of the client's end> <bytes of the request's body>", so that a test sees which connection
// was used; it keeps connections. Ended by its destructor, by process id.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/result.h"
#include "lib/socket_peer.h"
#include "loop/child.h"
#include "loop/loop.h"

namespace leasehold::testing {

class HttpsServer {
 public:
  // With the certificate of this name (certificates.h).
  static base::Result<std::unique_ptr<HttpsServer>> Start(loop::Loop& loop,
                                                          const std::string& certificate);
  // 0 until it listens: turn the loop, ask again.
  uint16_t port();
  // It has ended, which it does not do by itself; what it said.
  const std::string& last_words() const { return last_words_; }
  bool ended() const { return ended_; }

 private:
  HttpsServer() = default;
  TempDir dir_;
  uint16_t port_ = 0;
  bool ended_ = false;
  std::string last_words_;
  std::unique_ptr<loop::Child> child_;
};

}  // namespace leasehold::testing

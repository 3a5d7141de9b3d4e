// HttpPool: HTTP/1.1 calls to one origin over kept connections, TLS or plain: for services that are
// asked often (DynamoDB, SQS). Bodies are whole and bounded, as in http_call.h. Owned by whoever
// talks to the service; not for streams, and not a cache. It repeats nothing, except a call marked
// `idempotent` whose kept connection had been closed before a byte of the answer came: once, on
// a new connection, within the same deadline.
//
// Invariants: `done` is called once, later, from the loop, never after its HttpCall is destroyed;
// the pool may be destroyed while calls are out: they are cancelled, `done` is not called (their
// HttpCall may be destroyed afterwards). A kept connection that was closed by the service, or said
// something unasked, is not used again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/address.h"
#include "base/result.h"
#include "base/time.h"
#include "client/http_call.h"
#include "loop/connect.h"
#include "loop/loop.h"

namespace leasehold::client {

struct HttpPoolOptions {
  base::Address address;                // host and port; the name is looked up at every connect
  std::optional<loop::TlsOptions> tls;  // nullopt: plain
  base::Duration connect_timeout = base::Duration::Seconds(2);
  // AWS closes idle connections after about 20 s (SQS) to 60 s (DynamoDB): ours go first, so that a
  // call rarely meets a closing one.
  base::Duration idle_timeout = base::Duration::Seconds(15);
  size_t idle_max = 16;          // kept for later calls
  size_t connections_max = 512;  // above it a call fails at once with kLimit
};

class HttpPool {
 public:
  HttpPool(loop::Loop& loop, HttpPoolOptions options);
  ~HttpPool();
  HttpPool(const HttpPool&) = delete;
  HttpPool& operator=(const HttpPool&) = delete;

  // `request.address` is not looked at; `request.host_header` empty: the pool's address.
  // `request.timeout` bounds the whole call, connecting included. Errors: kTimeout (no complete
  // answer in time), kUnavailable (could not connect, or no HTTP), kClosed (the connection ended
  // before the answer did), kLimit (too many connections, or too long an answer), kInvalid (the
  // request cannot be written). Destroying the call closes its connection.
  // `idempotent`: it may be sent again as said above.
  [[nodiscard]] std::unique_ptr<HttpCall> Start(
      HttpRequest request, bool idempotent, std::function<void(base::Result<HttpResponse>)> done);

  size_t connections() const;  // in use, idle and being made
  size_t idle() const;
  uint64_t connects() const;  // made since the start

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace leasehold::client

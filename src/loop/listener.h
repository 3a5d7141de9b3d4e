// Listener: a listening TCP or Unix socket. Accepts in batches, hands over non-blocking
// close-on-exec descriptors. Survives running out of descriptors (pauses, retries, tells
// `on_trouble` once a second at most).
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/address.h"
#include "base/result.h"
#include "loop/loop.h"

namespace leasehold::loop {

struct ListenOptions {
  int backlog = 1024;
  unsigned unix_mode = 0660;  // mode of the socket file
};

class Listener {
 public:
  // The callee owns `fd`. Called from the loop.
  using AcceptCallback = std::function<void(int fd, std::string peer)>;
  using TroubleCallback = std::function<void(const base::Error&)>;

  // Binds and listens now. A Unix path left by a dead process is replaced; one in use is an error;
  // so is a path that is not a socket. TCP sets SO_REUSEADDR. Host names are resolved only if
  // literal or "localhost".
  static base::Result<std::unique_ptr<Listener>> Open(Loop& loop, const base::Address& address,
                                                      const ListenOptions& options,
                                                      AcceptCallback on_accept,
                                                      TroubleCallback on_trouble);
  virtual ~Listener() = default;  // stops listening; removes its Unix path

  // Where it really listens (port 0 resolved).
  virtual const base::Address& bound() const = 0;
  virtual void Pause() = 0;  // stop accepting; connections wait in the kernel's backlog
  virtual void Resume() = 0;
  // Accepts now, inside this call, what waits in the backlog (no more than it may hold): before
  // the listener is destroyed, which resets whoever waits.
  virtual void AcceptWaiting() = 0;
};

}  // namespace leasehold::loop

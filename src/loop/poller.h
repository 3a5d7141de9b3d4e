// Poller: readiness of one descriptor (uv_poll), for this room's own files. It borrows the
// descriptor and never closes it. Invariant: Close() takes the descriptor out of the loop at once,
// so the owner may close or hand on the descriptor right after; libuv's handle lives on until its
// close callback.
#pragma once

#include "loop/loop.h"

namespace leasehold::loop {

class Poller {
 public:
  // `status` < 0: the descriptor reported an error and is no longer watched. No std::function: this
  // is the hottest call of the program.
  using Callback = void (*)(void* owner, int status, int events);

  // Nothing but errors and hang-ups, which the kernel always reports. libuv needs some event to
  // watch; urgent data is the one that does not happen.
  static const int kErrorsOnly;

  Poller() = default;
  ~Poller() { Close(); }
  Poller(const Poller&) = delete;
  Poller& operator=(const Poller&) = delete;

  // 0, or libuv's (negative) error number. `owner` must outlive this object.
  int Open(Loop& loop, int fd, void* owner, Callback on_ready);
  // Replaces the watched events (uv_poll_event bits, 0: none). Costs nothing when they are the
  // same.
  void Watch(int events);
  int events() const;
  void Close();
  bool open() const { return impl_ != nullptr; }

 private:
  struct Impl;
  Impl* impl_ = nullptr;
};

}  // namespace leasehold::loop

// ParkedSocket: a connected descriptor that nobody reads from yet (held by a gate, or waiting for
// its upstream), watched for its peer's leaving. What the peer sends stays in the kernel. Owned by
// whoever parked it; closes the descriptor unless it was released.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "loop/loop.h"

namespace leasehold::loop {

class ParkedSocket {
 public:
  // Takes ownership of `fd`. `on_left` is called once, from the loop, when the peer reset the
  // connection, or ended it with nothing unread. A peer that ended after bytes we have not read may
  // have half-closed and be waiting for its answer: TCP cannot tell, so it has not left. (A Unix
  // socket can tell.) The callback may destroy this object.
  static std::unique_ptr<ParkedSocket> Park(Loop& loop, int fd, std::function<void()> on_left);
  virtual ~ParkedSocket() = default;

  // The first bytes that wait in it, at most `bytes_max`, which stay there. `on_first` is called
  // once, from the loop, when there are any; it may destroy this object.
  virtual void PeekFirst(size_t bytes_max, std::function<void(const std::string&)> on_first) = 0;
  // Gives the descriptor away, no longer watched; only destruction remains.
  virtual int Release() = 0;
  // Destruction resets the connection (RST) instead of closing it in order.
  virtual void ResetOnClose() = 0;
};

}  // namespace leasehold::loop

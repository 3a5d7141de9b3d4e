// Relay: moves bytes between two connected descriptors, both ways, half-close kept, bounded memory,
// back-pressure by construction. Copies while chunks are small; a direction that moves bulk splices
// through a pipe, which measured half of copying's CPU a byte.
// Every chunk asks `may_pass` first with a fresh clock, so a stalled loop cannot carry bytes past
// expiry.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>

#include "base/result.h"
#include "base/time.h"
#include "loop/loop.h"

namespace leasehold::loop {

struct RelayOptions {
  // A direction's largest copied chunk, at most 64 KiB; below 32 KiB it never splices (a splicing
  // direction may hold up to 1 MiB in its pipe).
  size_t buffer_bytes = 64 * 1024;
  base::Duration idle_timeout;  // zero: none
  // Shown the first bytes read from a, before they go on; false refuses them, like may_pass. Null:
  // nobody looks.
  std::function<bool(std::string_view)> look_at_first = nullptr;
};

struct RelayStats {
  uint64_t a_to_b = 0;
  uint64_t b_to_a = 0;
};

class Relay {
 public:
  // `done` once, from the loop: ok when both sides ended in order, an error otherwise (reset,
  // refused by may_pass (kRefused), idle time-out (kTimeout)). After an error both sides are reset
  // (RST) when the relay is destroyed, so that no peer takes a cut for an end; bytes that came
  // before a peer's reset are passed on first. Takes ownership of both descriptors, non-blocking.
  // `first_for_b`/`first_for_a` are sent before anything else.
  using DoneCallback = std::function<void(base::Status, const RelayStats&)>;
  static std::unique_ptr<Relay> Start(Loop& loop, int fd_a, int fd_b, std::string_view first_for_b,
                                      std::string_view first_for_a, const RelayOptions& options,
                                      std::function<bool()> may_pass, DoneCallback done);
  virtual ~Relay() = default;  // closes both sides at once; `done` is not called
  virtual RelayStats stats() const = 0;
  // Closes both sides with RST when destroyed.
  virtual void ResetOnClose() = 0;
};

}  // namespace leasehold::loop

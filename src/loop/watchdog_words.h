// What a sidecar and its watchdog (watchdog.h) say to one another: orders and reports, one per
// message of a SOCK_SEQPACKET pair, and the memory both see. Both ends are the same program,
// forked, so plain structs will do. Private to this room.
//
// Invariant: an expiry that was stored is in force at once. It needs no message, so that nothing of
// a renewal can be lost or wait in a queue, and a watchdog that wakes up reads the newest one.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/time.h"

namespace leasehold::loop {

struct WatchdogShared {
  std::atomic<int64_t> expiry_ns{0};  // boot clock; 0: over. Written by the sidecar
  // The command's process group while it has members, so that its number cannot be anybody else's;
  // 0: none. Written by the watchdog.
  std::atomic<int32_t> group{0};
};
static_assert(std::atomic<int64_t>::is_always_lock_free, "the memory is shared by processes");

struct WatchdogOrder {
  enum Kind : int32_t {
    kStart,      // the environment's additions follow, "NAME=value\0" each; descriptors ride along
    kTerminate,  // TERM to the group, KILL at `at_ns`
    kKill,
    kLook,  // the expiry is sooner than it was
  };
  Kind kind = kKill;
  int64_t at_ns = 0;
};

struct WatchdogReport {
  enum Kind : int32_t {
    kStarted,      // value: the command's process id
    kStartFailed,  // value: errno
    kExited,       // the command itself; what it left behind is being ended. value: wait status
    kEnded,        // nothing of it is left. value: wait status of the command
  };
  enum Cause : int32_t {
    kItself,      // it ended of its own
    kTerminated,  // after a TERM that was ordered
    kKilled,      // by a KILL that was ordered, or was due after TERM
    kExpired,     // by the watchdog: the permit was ending
  };
  Kind kind = kEnded;
  int32_t value = 0;
  Cause cause = kItself;
};

// The group is killed so long before the permit ends: what a timer of a busy machine is late, and a
// KILL takes until the last thread has left user space. The safety margin between the permit's end
// and another instance's right to act (20 ms at least, 200 ms at a TTL of 10 s) comes on top.
inline constexpr base::Duration kKillBeforeExpiry = base::Duration::Millis(30);

// LEASE_* and their values: the longest are a path of 107 bytes and names of at most 253.
inline constexpr size_t kOrderBytesMax = 8192;
// The locks that prove this process alive: the store's and node.state_dir's. A few to spare.
inline constexpr size_t kKeptDescriptorsMax = 8;

}  // namespace leasehold::loop

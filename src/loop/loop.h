// Loop: one libuv event loop, and the only clock of the process. Owned by app (or a test);
// everything else borrows it. Not thread-safe, save Work(), whose function runs on libuv's worker
// pool. Invariant: callbacks given to this room are called later, from the loop, never from inside
// the call that took them.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "base/result.h"
#include "base/time.h"

struct uv_loop_s;

namespace leasehold::loop {

class Loop {
 public:
  Loop();
  // All handles must have been closed; runs the loop until their close callbacks are done. Work (a
  // name look-up, say) that does not end within 200 ms is left to its thread. libuv joins those
  // threads at exit(), so a program that must end at once ends by _exit() or std::quick_exit().
  ~Loop();
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;

  // A fresh CLOCK_BOOTTIME reading (vDSO, no system call). The only one lease logic may use.
  static base::MonoTime Now();
  // The reading taken when the loop last woke up. For connection time-outs and latency, never for a
  // permit.
  base::MonoTime CachedNow() const { return cached_now_; }
  static base::WallTime WallNow();
  // Operating-system entropy, for process ids and seeds.
  static uint64_t Entropy();

  void Run();   // until Stop() and nothing else, or no handle is left
  void Stop();  // from a callback
  // One turn: waits until something happens, then runs what is due. False when nothing is left to
  // wait for. For tests and for commands that wait for one condition.
  bool RunOnce();
  // Runs `task` on the next turn of the loop. Order kept.
  void Post(std::function<void()> task);
  // `work` on a worker thread, then `done` on the loop. Work must own what it touches. `done` is
  // not called when the loop is destroyed first.
  void Work(std::function<void()> work, std::function<void()> done);

  // Largest lateness of a timer or wake-up since the last call, for metrics: how long callbacks
  // stalled the loop.
  base::Duration TakeLateness();
  // 64 KiB shared by all readers on this loop, valid only inside one callback.
  std::span<char> scratch();

  // For this room's own files only.
  uv_loop_s* raw();
  // Every callback from libuv starts with this: the first one of a wake-up reads the clock.
  void NoteWake() {
    if (!awake_) Wake();
  }
  void NoteLateness(base::Duration late) { lateness_ = base::Max(lateness_, late); }

 private:
  struct Impl;
  void Wake();
  std::unique_ptr<Impl> impl_;
  base::MonoTime cached_now_;
  base::Duration lateness_;
  bool awake_ = false;  // the clock was read since the loop last went to sleep
};

}  // namespace leasehold::loop

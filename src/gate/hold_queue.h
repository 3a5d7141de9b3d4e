// HoldQueue: requests or connections that wait for the gate to open, oldest deadline first,
// bounded. Intrusive: an entry is part of the waiting object, so that holding allocates nothing,
// and an entry that is destroyed (its client left) frees its place by itself. Not a timer: whoever
// owns the queue asks for next_deadline(). Owned by GateCore. Held is not in flight.
#pragma once

#include <cstdint>

#include "base/time.h"

namespace leasehold::gate {

class HoldQueue;

// Base class of whatever can be held. One entry is in one queue at most. Must not outlive the queue
// while it is held.
class HoldEntry {
 public:
  HoldEntry() = default;
  HoldEntry(const HoldEntry&) = delete;
  HoldEntry& operator=(const HoldEntry&) = delete;

  bool held() const { return queue_ != nullptr; }
  // When waiting ends in a refusal. Kept after the entry left the queue, so that an object held
  // again (its admission failed, say) does not start a new wait.
  base::MonoTime hold_deadline() const { return deadline_; }
  void LeaveQueue();  // nothing happens if it is not held
  // Waiting begins elsewhere (at a peer that has yet to admit) and counts all the same.
  void BeginWait(base::MonoTime deadline) { deadline_ = base::Min(deadline_, deadline); }
  // Other work begins in the same object (the next request of a connection), or a peer had admitted
  // it: it may wait anew.
  void ForgetDeadline() { deadline_ = base::MonoTime::Never(); }

 protected:
  ~HoldEntry() { LeaveQueue(); }

 private:
  friend class HoldQueue;
  HoldQueue* queue_ = nullptr;
  HoldEntry* earlier_ = nullptr;
  HoldEntry* later_ = nullptr;
  base::MonoTime deadline_ = base::MonoTime::Never();
};

class HoldQueue {
 public:
  explicit HoldQueue(uint32_t size_max) : size_max_(size_max) {}
  ~HoldQueue();  // lets every entry go
  HoldQueue(const HoldQueue&) = delete;
  HoldQueue& operator=(const HoldQueue&) = delete;

  bool full() const { return size_ >= size_max_; }
  uint32_t size() const { return size_; }
  // False if the queue is full. Entries with one time-out come out in the order they went in; one
  // that is put back with its old deadline comes out where it was.
  [[nodiscard]] bool Push(HoldEntry& entry, base::MonoTime deadline);
  HoldEntry* front() const { return front_; }
  HoldEntry* Pop();                      // nullptr when empty
  base::MonoTime next_deadline() const;  // Never() when empty

 private:
  friend class HoldEntry;
  void Unlink(HoldEntry& entry);

  uint32_t size_max_;
  uint32_t size_ = 0;
  HoldEntry* front_ = nullptr;
  HoldEntry* back_ = nullptr;
};

}  // namespace leasehold::gate

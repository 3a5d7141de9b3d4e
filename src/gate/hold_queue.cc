#include "gate/hold_queue.h"

#include "base/check.h"

namespace leasehold::gate {

void HoldEntry::LeaveQueue() {
  if (queue_ != nullptr) {
    queue_->Unlink(*this);
  }
}

HoldQueue::~HoldQueue() {
  while (Pop() != nullptr) {
  }
}

bool HoldQueue::Push(HoldEntry& entry, base::MonoTime deadline) {
  CHECK(!entry.held(), "an entry can wait in one queue at a time");
  if (full()) {
    return false;
  }
  // From the back: with one time-out for all, which is the rule, the walk ends where it starts.
  HoldEntry* before = back_;
  while (before != nullptr && before->deadline_ > deadline) {
    before = before->earlier_;
  }
  HoldEntry* after = before == nullptr ? front_ : before->later_;
  entry.queue_ = this;
  entry.deadline_ = deadline;
  entry.earlier_ = before;
  entry.later_ = after;
  (before == nullptr ? front_ : before->later_) = &entry;
  (after == nullptr ? back_ : after->earlier_) = &entry;
  ++size_;
  return true;
}

HoldEntry* HoldQueue::Pop() {
  HoldEntry* entry = front_;
  if (entry != nullptr) {
    Unlink(*entry);
  }
  return entry;
}

base::MonoTime HoldQueue::next_deadline() const {
  return front_ == nullptr ? base::MonoTime::Never() : front_->deadline_;
}

void HoldQueue::Unlink(HoldEntry& entry) {
  CHECK(entry.queue_ == this && size_ > 0, "the entry waits in another queue");
  (entry.earlier_ == nullptr ? front_ : entry.earlier_->later_) = entry.later_;
  (entry.later_ == nullptr ? back_ : entry.later_->earlier_) = entry.earlier_;
  entry.queue_ = nullptr;
  entry.earlier_ = nullptr;
  entry.later_ = nullptr;
  --size_;
}

}  // namespace leasehold::gate

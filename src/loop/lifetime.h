// Lifetime helpers of this room: objects here may be destroyed inside their own callbacks and
// while a task they posted is still under way. Both are guarded with these two, and in no other
// way.
#pragma once

#include <functional>
#include <memory>
#include <utility>

#include "loop/loop.h"

namespace leasehold::loop {

// Tells the caller of a callback whether the object was destroyed inside it. The object holds a
// `bool* gone_` that is null outside callbacks, and its destructor calls MarkGone(gone_).
class CallGuard {
 public:
// GCC at -O3 does not see that the destructor takes the address back before the guard ends.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdangling-pointer"
#endif
  explicit CallGuard(bool*& slot) : slot_(slot), outer_(slot) { slot_ = &gone_; }
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic pop
#endif
  ~CallGuard() {
    if (!gone_) {
      slot_ = outer_;
    } else if (outer_ != nullptr) {
      *outer_ = true;
    }
  }
  CallGuard(const CallGuard&) = delete;
  CallGuard& operator=(const CallGuard&) = delete;

  bool gone() const { return gone_; }
  static void MarkGone(bool* slot) {
    if (slot != nullptr) *slot = true;
  }

 private:
  bool*& slot_;
  bool* outer_;
  bool gone_ = false;
};

// Posts tasks that are dropped when the owner is destroyed first.
class Poster {
 public:
  explicit Poster(Loop& loop) : loop_(loop) {}
  void Post(std::function<void()> task) {
    if (!alive_) alive_ = std::make_shared<char>();
    loop_.Post([alive = std::weak_ptr<char>(alive_), task = std::move(task)] {
      if (!alive.expired()) task();
    });
  }

 private:
  Loop& loop_;
  std::shared_ptr<char> alive_;  // made by the first Post: most objects never need it
};

}  // namespace leasehold::loop

#include "loop/timer.h"

#include <uv.h>

#include <utility>

#include "base/check.h"

namespace leasehold::loop {
namespace {

constexpr uint64_t kNanosPerMilli = 1000000;
// Longer waits are cut here and re-armed: far below where milliseconds since boot would overflow.
constexpr base::Duration kLongestWait = base::Duration::Seconds(24 * 3600);

}  // namespace

struct Timer::Impl {
  uv_timer_t handle{};
  Loop* loop = nullptr;
  std::function<void()> on_fire;
  base::MonoTime at = base::MonoTime::Never();
  bool firing = false;
  bool gone = false;  // the Timer is destroyed; libuv still has the handle

  // libuv counts whole milliseconds of its own clock. Rounding the instant up on that clock (not
  // the span) wakes at the first tick that is not early.
  void Arm() {
    const base::Duration wait =
        base::Min(kLongestWait, base::Max(base::Duration::Zero(), at - Loop::Now()));
    uv_update_time(loop->raw());  // a stalled turn must not shorten the wait
    const uint64_t due_ns = uv_hrtime() + static_cast<uint64_t>(wait.nanos());
    const uint64_t due_ms = (due_ns + kNanosPerMilli - 1) / kNanosPerMilli;
    const uint64_t now_ms = uv_now(loop->raw());
    const uint64_t timeout =
        wait == base::Duration::Zero() || due_ms <= now_ms ? 0 : due_ms - now_ms;
    CHECK(uv_timer_start(&handle, &Impl::OnTimer, timeout, 0) == 0, "the timer is not closing");
  }

  static void OnTimer(uv_timer_t* handle) {
    Impl* self = static_cast<Impl*>(handle->data);
    self->loop->NoteWake();
    const base::MonoTime now = Loop::Now();
    if (now < self->at) {
      self->Arm();
      return;
    }
    self->loop->NoteLateness(now - self->at);
    self->at = base::MonoTime::Never();
    self->firing = true;
    self->on_fire();
    self->firing = false;
    if (self->gone) self->on_fire = nullptr;
  }
};

Timer::Timer(Loop& loop, std::function<void()> on_fire) : impl_(new Impl) {
  impl_->loop = &loop;
  impl_->on_fire = std::move(on_fire);
  impl_->handle.data = impl_;
  CHECK(uv_timer_init(loop.raw(), &impl_->handle) == 0, "uv_timer_init never fails");
}

Timer::~Timer() {
  impl_->gone = true;
  if (!impl_->firing) impl_->on_fire = nullptr;  // lets go of what it captured now
  uv_close(reinterpret_cast<uv_handle_t*>(&impl_->handle),
           [](uv_handle_t* handle) { delete static_cast<Impl*>(handle->data); });
}

void Timer::StartAt(base::MonoTime at) {
  impl_->at = at;
  if (at.is_never()) {
    uv_timer_stop(&impl_->handle);
  } else {
    impl_->Arm();
  }
}

void Timer::StartAfter(base::Duration d) {
  StartAt(d == base::Duration::Max() ? base::MonoTime::Never() : Loop::Now() + d);
}

void Timer::Stop() { StartAt(base::MonoTime::Never()); }

bool Timer::armed() const { return !impl_->at.is_never(); }

}  // namespace leasehold::loop

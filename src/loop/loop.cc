#include "loop/loop.h"

#include <sys/random.h>
#include <uv.h>

#include <cerrno>
#include <csignal>
#include <ctime>
#include <utility>
#include <vector>

#include "base/check.h"

namespace leasehold::loop {
namespace {

// One read takes at most this much: one full window of a loopback or LAN socket's default buffer,
// and what HAProxy and nginx need several reads for (their buffers are 16 and 8 KiB).
constexpr size_t kScratchBytes = 64 * 1024;

// How long a loop being destroyed waits for the worker pool and for killed children. A name server
// that never answers would otherwise hold up the end of the process for half a minute.
constexpr uint64_t kTeardownMs = 200;

int64_t ReadClock(clockid_t clock) {
  timespec t{};
  CHECK(clock_gettime(clock, &t) == 0,
        "the kernel has no such clock; Linux 2.6.39 or newer is needed");
  return static_cast<int64_t>(t.tv_sec) * 1000000000 + t.tv_nsec;
}

struct WorkRequest {
  uv_work_t request{};
  std::function<void()> work;
  std::function<void()> done;
  const bool* closing = nullptr;
  Loop* loop = nullptr;
};

}  // namespace

struct Loop::Impl {
  uv_loop_t uv{};
  uv_prepare_t prepare{};  // the last thing before the loop sleeps
  uv_idle_t idle{};        // runs posted tasks; active only while there are some
  uv_timer_t patience{};   // the end of what the destructor waits for
  std::vector<std::function<void()>> tasks;
  std::vector<std::function<void()>> running;
  std::unique_ptr<char[]> scratch = std::make_unique<char[]>(kScratchBytes);
  bool closing = false;
  bool single_turn = false;  // inside RunOnce

  static Loop* Of(void* data) { return static_cast<Loop*>(data); }

  static void OnPrepare(uv_prepare_t* handle) {
    Loop* loop = Of(handle->data);
    if (loop->awake_) {
      loop->NoteLateness(Now() - loop->cached_now_);
      if (loop->impl_->single_turn) uv_stop(handle->loop);  // a timer or task ran: do not sleep now
    }
    loop->awake_ = false;
  }

  static void OnIdle(uv_idle_t* handle) {
    Loop* loop = Of(handle->data);
    loop->NoteWake();
    Impl& impl = *loop->impl_;
    impl.running.swap(impl.tasks);
    for (std::function<void()>& task : impl.running) {
      std::function<void()> once = std::move(task);  // what it captured dies right after it ran
      once();
    }
    impl.running.clear();
    if (impl.tasks.empty()) uv_idle_stop(handle);
  }

  // Whoever borrowed the loop must be gone before it. A child that was killed is the exception: its
  // handle stays until the kernel reports the exit.
  static void ExpectClosing(uv_handle_t* handle, void*) {
    CHECK(uv_is_closing(handle) != 0 || handle->type == UV_PROCESS,
          "an object that borrows the loop outlives it");
  }
};

Loop::Loop() : impl_(std::make_unique<Impl>()), cached_now_(Now()) {
  // A write to a closed connection is an error result, not the death of the process.
  CHECK(std::signal(SIGPIPE, SIG_IGN) != SIG_ERR, "SIGPIPE cannot be ignored");
  CHECK(uv_loop_init(&impl_->uv) == 0, "no event loop: out of descriptors or memory at start");
  CHECK(uv_prepare_init(&impl_->uv, &impl_->prepare) == 0, "uv_prepare_init never fails");
  CHECK(uv_idle_init(&impl_->uv, &impl_->idle) == 0, "uv_idle_init never fails");
  impl_->prepare.data = this;
  impl_->idle.data = this;
  uv_prepare_start(&impl_->prepare, &Impl::OnPrepare);
  uv_unref(reinterpret_cast<uv_handle_t*>(&impl_->prepare));
}

Loop::~Loop() {
  impl_->closing = true;
  uv_close(reinterpret_cast<uv_handle_t*>(&impl_->prepare), nullptr);
  uv_close(reinterpret_cast<uv_handle_t*>(&impl_->idle), nullptr);
  impl_->tasks.clear();
  uv_walk(&impl_->uv, &Impl::ExpectClosing, nullptr);
  auto* patience = reinterpret_cast<uv_handle_t*>(&impl_->patience);
  CHECK(uv_timer_init(&impl_->uv, &impl_->patience) == 0, "uv_timer_init never fails");
  uv_timer_start(
      &impl_->patience, [](uv_timer_t* timer) { uv_stop(timer->loop); }, kTeardownMs, 0);
  uv_unref(patience);
  uv_run(&impl_->uv, UV_RUN_DEFAULT);
  uv_close(patience, nullptr);
  uv_run(&impl_->uv, UV_RUN_NOWAIT);
  // Busy: a worker still runs and will touch the loop when it ends, so the loop must stay.
  if (uv_loop_close(&impl_->uv) != 0) (void)impl_.release();
}

base::MonoTime Loop::Now() { return base::MonoTime::FromNanos(ReadClock(CLOCK_BOOTTIME)); }

base::WallTime Loop::WallNow() { return {ReadClock(CLOCK_REALTIME) / 1000000}; }

uint64_t Loop::Entropy() {
  uint64_t value = 0;
  ssize_t n = 0;
  do {
    n = getrandom(&value, sizeof(value), 0);
  } while (n < 0 && errno == EINTR);
  CHECK(n == sizeof(value), "getrandom gives 8 bytes whole on every Linux since 3.17");
  return value;
}

void Loop::Wake() {
  cached_now_ = Now();
  awake_ = true;
}

void Loop::Run() { uv_run(&impl_->uv, UV_RUN_DEFAULT); }

bool Loop::RunOnce() {
  awake_ = false;
  impl_->single_turn = true;
  const bool more = uv_run(&impl_->uv, UV_RUN_ONCE) != 0;
  impl_->single_turn = false;
  return more;
}

void Loop::Stop() { uv_stop(&impl_->uv); }

void Loop::Post(std::function<void()> task) {
  if (impl_->closing) return;
  impl_->tasks.push_back(std::move(task));
  uv_idle_start(&impl_->idle, &Impl::OnIdle);
}

void Loop::Work(std::function<void()> work, std::function<void()> done) {
  auto* item = new WorkRequest{{}, std::move(work), std::move(done), &impl_->closing, this};
  item->request.data = item;
  const int error = uv_queue_work(
      &impl_->uv, &item->request,
      [](uv_work_t* request) { static_cast<WorkRequest*>(request->data)->work(); },
      [](uv_work_t* request, int) {
        std::unique_ptr<WorkRequest> own(static_cast<WorkRequest*>(request->data));
        if (*own->closing) return;
        own->loop->NoteWake();
        own->done();
      });
  CHECK(error == 0, "uv_queue_work fails only for a null function");
}

base::Duration Loop::TakeLateness() { return std::exchange(lateness_, base::Duration::Zero()); }

std::span<char> Loop::scratch() { return {impl_->scratch.get(), kScratchBytes}; }

uv_loop_s* Loop::raw() { return &impl_->uv; }

}  // namespace leasehold::loop

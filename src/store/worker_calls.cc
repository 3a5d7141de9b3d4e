#include "store/worker_calls.h"

#include <utility>

#include "base/text.h"
#include "loop/timer.h"

namespace leasehold::store {
namespace {

// Between two attempts at a lock: a holder keeps it for one fsync, 0.1 ms (NVMe) to 20 ms (disk).
constexpr base::Duration kPauseMin = base::Duration::Millis(1);
constexpr base::Duration kPauseMax = base::Duration::Millis(20);

}  // namespace

struct WorkerCalls::Pending {
  uint64_t id = 0;
  Call call;
  base::Duration timeout;
  base::Duration pause = kPauseMin;
  std::atomic<bool> cancelled{false};
  Attempt last;                           // the worker's while an attempt runs
  std::string waiting;                    // of the last attempt that came back
  std::unique_ptr<loop::Timer> deadline;  // both gone once answered
  std::unique_ptr<loop::Timer> retry;
};

WorkerCalls::WorkerCalls(loop::Loop& loop)
    : loop_(loop),
      random_(loop::Loop::Entropy()),
      running_(std::make_shared<size_t>(0)),
      alive_(std::make_shared<bool>(true)) {}

WorkerCalls::~WorkerCalls() {
  *alive_ = false;
  for (const auto& [id, pending] : pending_) {
    pending->cancelled.store(true, std::memory_order_release);
    pending->deadline.reset();
    pending->retry.reset();
  }
}

void WorkerCalls::Start(base::Duration timeout, Call call) {
  auto pending = std::make_shared<Pending>();
  pending->id = next_id_++;
  pending->call = std::move(call);
  pending->timeout = timeout;
  pending->deadline =
      std::make_unique<loop::Timer>(loop_, [this, id = pending->id] { TimeOver(id); });
  pending->retry = std::make_unique<loop::Timer>(loop_, [this, id = pending->id] {
    if (const auto found = pending_.find(id); found != pending_.end()) Try(found->second);
  });
  // A time-out that is over already still lets the answer come later, from the loop.
  pending->deadline->StartAfter(base::Max(timeout, base::Duration::Zero()));
  pending_.emplace(pending->id, pending);
  Try(pending);
}

void WorkerCalls::Try(const std::shared_ptr<Pending>& pending) {
  ++*running_;
  loop_.Work(
      [pending] {
        if (pending->cancelled.load(std::memory_order_acquire)) return;
        pending->last = pending->call.work(pending->cancelled);
      },
      [this, pending, running = running_, alive = alive_] {
        --*running;
        if (pending->call.settle) pending->call.settle();
        if (*alive) Attempted(pending);
      });
}

void WorkerCalls::Attempted(const std::shared_ptr<Pending>& pending) {
  const auto found = pending_.find(pending->id);
  if (found == pending_.end()) return;  // answered already: its time was over
  if (pending->last.busy) {
    pending->waiting = pending->last.waiting;
    pending->retry->StartAfter(pending->pause + random_.UpTo(pending->pause));
    pending->pause = base::Min(pending->pause * 2, kPauseMax);
    return;
  }
  pending_.erase(found);
  pending->deadline.reset();
  pending->retry.reset();
  pending->call.finish();
}

void WorkerCalls::TimeOver(uint64_t id) {
  const auto found = pending_.find(id);
  if (found == pending_.end()) return;
  const std::shared_ptr<Pending> pending = found->second;
  pending_.erase(found);
  pending->cancelled.store(true, std::memory_order_release);
  pending->deadline.reset();
  pending->retry.reset();
  const std::string& what =
      pending->waiting.empty() ? "the file system gave no answer" : pending->waiting;
  pending->call.give_up(what + " within " + base::FormatDuration(pending->timeout));
}

void WorkerCalls::GiveUpAll(const std::string& why) {
  // Taken out first: a callback may start new calls, or end this object.
  std::map<uint64_t, std::shared_ptr<Pending>> given_up;
  given_up.swap(pending_);
  for (const auto& [id, pending] : given_up) {
    pending->cancelled.store(true, std::memory_order_release);
    pending->deadline.reset();
    pending->retry.reset();
  }
  for (const auto& [id, pending] : given_up) pending->call.give_up(why);
}

}  // namespace leasehold::store

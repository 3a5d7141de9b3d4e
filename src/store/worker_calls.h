// WorkerCalls: blocking work on worker threads, each call answered exactly once by its deadline,
// from the loop. A worker that is still busy when the time is over goes on by itself; its late end
// answers nobody. Work that must wait for another (a lock) does not wait: it says busy and is tried
// again. Owned by a store adapter; knows nothing of leases. Invariant: of finish and give_up
// exactly one is called, once, never from inside Start().
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "base/random.h"
#include "base/time.h"
#include "loop/loop.h"

namespace leasehold::store {

class WorkerCalls {
 public:
  struct Attempt {
    bool busy = false;    // try again
    std::string waiting;  // busy: for what, for the sentence when the time is over
  };

  struct Call {
    // On a worker thread, maybe several times, never twice at once; must own what it touches.
    // `cancelled` turns true when the time is over.
    std::function<Attempt(const std::atomic<bool>& cancelled)> work;
    // On the loop after every attempt, also one that ends after its answer or after this object: to
    // keep what the attempt made. May be empty.
    std::function<void()> settle;
    std::function<void()> finish;                     // the last attempt is done
    std::function<void(const std::string&)> give_up;  // it is not; a sentence says why
  };

  explicit WorkerCalls(loop::Loop& loop);
  // Answers nobody any more. Workers may go on.
  ~WorkerCalls();
  WorkerCalls(const WorkerCalls&) = delete;
  WorkerCalls& operator=(const WorkerCalls&) = delete;

  void Start(base::Duration timeout, Call call);
  // Gives up every call at once, from inside this call.
  void GiveUpAll(const std::string& why);
  size_t outstanding() const { return pending_.size(); }
  // Work that a worker has or will have, also that of calls already given up.
  size_t running() const { return *running_; }

 private:
  struct Pending;
  void Try(const std::shared_ptr<Pending>& pending);
  void Attempted(const std::shared_ptr<Pending>& pending);
  void TimeOver(uint64_t id);

  loop::Loop& loop_;
  base::Random random_;
  uint64_t next_id_ = 1;
  std::map<uint64_t, std::shared_ptr<Pending>> pending_;
  std::shared_ptr<size_t> running_;  // shared with work that may outlive this object
  std::shared_ptr<bool> alive_;      // false once this object is gone
};

}  // namespace leasehold::store

// HookLane: the hooks of one lease, one after another. Owned by Hooks. What is told is the state
// there is now: a waiting on_active or on_draining whose state is over is dropped, a running one is
// killed with its process group, so that the next begins at once. on_standby is never dropped nor
// ended early, because it undoes what on_active did; one that waits stands for the standbys after
// it. It runs at most hooks.timeout, as every hook does. Invariants: after each on_active that was
// begun comes an on_standby; at most one hook runs, and nothing piles up.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "admin/hooks.h"
#include "base/time.h"
#include "lease/permit.h"
#include "loop/child.h"
#include "loop/loop.h"
#include "observe/log.h"
#include "observe/metrics.h"

namespace leasehold::admin {

enum class HookState { kActive, kDraining, kStandby };

class HookLane {
 public:
  struct Host {  // all of it outlives the lane
    loop::Loop& loop;
    const HookCommands& commands;
    const lease::Identity& self;
    observe::Metrics& metrics;
    observe::Log& log;
    const lease::Permit& permit;
    std::function<void()> on_settled;
    std::function<void()> on_idle;
  };
  struct Change {
    HookState state = HookState::kStandby;
    uint64_t token = 0;
    std::string reason;
    base::MonoTime drain_end;  // kDraining
  };

  HookLane(Host host, std::string lease);
  ~HookLane();

  void Tell(Change change);
  bool settled() const;
  bool idle() const { return child_ == nullptr && waiting_.empty(); }
  void Abort();

 private:
  const std::vector<std::string>& CommandOf(HookState state) const;
  void DropWaiting(const std::function<bool(const Change&)>& over);
  void EndRunning();
  void BeginSoon();
  void Begin();
  bool Start(const Change& change);
  void OnExit(const loop::ChildExit& exit);
  base::Duration GraceLeft(const Change& change) const;
  void Count(HookState state, std::string_view result);

  Host host_;
  const std::string lease_;
  HookState state_ = HookState::kStandby;
  std::deque<Change> waiting_;
  std::unique_ptr<loop::Child> child_;
  Change running_;  // while child_
  base::MonoTime began_;
  bool ended_ = false;  // by us: its state was over
  bool begin_posted_ = false;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

std::string_view HookName(HookState state);  // "on_active", ...

}  // namespace leasehold::admin

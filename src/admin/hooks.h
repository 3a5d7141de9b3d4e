// Hooks ([hooks]): commands that are told when a lease becomes active, draining or standby here.
// Per lease they run one after another, in order, in HookLane; leases do not wait for one another.
// Not a way to decide anything: what a hook does or fails to do changes neither lease nor gates. It
// can only delay a planned release, up to grace, while on_draining waits or runs. Owned by app.
// Invariants: gates have acted before a hook is begun (it begins on the loop's next turn); a loss
// is never delayed; at most one hook per lease runs, and two wait.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "admin/options.h"
#include "base/result.h"
#include "base/time.h"
#include "lease/engine.h"
#include "lease/events.h"
#include "lease/permit.h"
#include "loop/loop.h"
#include "loop/timer.h"
#include "observe/log.h"
#include "observe/metrics.h"

namespace leasehold::admin {

class HookLane;

// Where a hook of a state is configured, split into words; empty: none.
struct HookCommands {
  std::vector<std::string> on_active, on_draining, on_standby;
  base::Duration timeout;
  bool none() const { return on_active.empty() && on_draining.empty() && on_standby.empty(); }
};
// An error names the option, its value and what would be right.
base::Result<HookCommands> ParseHooks(const HookOptions& options);

class Hooks {
 public:
  // The rest is borrowed and outlives it.
  Hooks(loop::Loop& loop, HookCommands commands, lease::Identity self, observe::Metrics& metrics,
        observe::Log& log);
  ~Hooks();  // KILLs what still runs

  // `permit` outlives this; `on_settled`: Settled() has become true.
  void AddLease(const std::string& lease, const lease::Permit& permit,
                std::function<void()> on_settled);
  // The lease's gates have acted on this.
  void OnValve(const std::string& lease, const lease::ValveEffect& effect);
  // No on_draining waits or runs: a planned release need not wait for hooks.
  bool Settled(const std::string& lease) const;

  // The process ends: what waits or runs may still, at most `limit` long, then it is killed. Calls
  // back once, from the loop.
  void Finish(base::Duration limit, std::function<void()> done);
  // Kills what runs and drops what waits.
  void Abort();

 private:
  void LookFinished();

  loop::Loop& loop_;
  const HookCommands commands_;
  const lease::Identity self_;
  observe::Metrics& metrics_;
  observe::Log& log_;
  std::map<std::string, std::unique_ptr<HookLane>> lanes_;
  std::function<void()> on_finished_;
  loop::Timer finish_limit_;
};

}  // namespace leasehold::admin

#include "admin/hooks.h"

#include <utility>

#include "admin/hook_lane.h"
#include "base/text.h"

namespace leasehold::admin {

base::Result<HookCommands> ParseHooks(const HookOptions& options) {
  HookCommands commands;
  commands.timeout = options.timeout;
  const struct {
    std::string_view name;
    const std::string& text;
    std::vector<std::string>& words;
  } hooks[] = {{"on_active", options.on_active, commands.on_active},
               {"on_draining", options.on_draining, commands.on_draining},
               {"on_standby", options.on_standby, commands.on_standby}};
  for (const auto& hook : hooks) {
    if (hook.text.empty()) continue;
    base::Result<std::vector<std::string>> words = base::SplitCommand(hook.text);
    if (!words) {
      return base::Error{base::ErrorCode::kInvalid, "hooks." + std::string(hook.name) + " = \"" +
                                                        base::Printable(hook.text) +
                                                        "\": " + words.error().message};
    }
    hook.words = std::move(*words);
  }
  return commands;
}

Hooks::Hooks(loop::Loop& loop, HookCommands commands, lease::Identity self,
             observe::Metrics& metrics, observe::Log& log)
    : loop_(loop),
      commands_(std::move(commands)),
      self_(std::move(self)),
      metrics_(metrics),
      log_(log),
      finish_limit_(loop, [this] {
        log_.Warn("hook.ended", "a hook still runs at the end of the process and is killed");
        Abort();
      }) {}

Hooks::~Hooks() = default;

void Hooks::AddLease(const std::string& lease, const lease::Permit& permit,
                     std::function<void()> on_settled) {
  HookLane::Host host{loop_,
                      commands_,
                      self_,
                      metrics_,
                      log_,
                      permit,
                      std::move(on_settled),
                      [this] {
        LookFinished(); }};
  lanes_.emplace(lease, std::make_unique<HookLane>(std::move(host), lease));
}

void Hooks::OnValve(const std::string& lease, const lease::ValveEffect& effect) {
  HookLane::Change change;
  switch (effect.valve) {
    case lease::Valve::kHolding: return;  // still active; told as lease.at_risk
    case lease::Valve::kOpen: change.state = HookState::kActive; break;
    case lease::Valve::kDraining: change.state = HookState::kDraining; break;
    case lease::Valve::kClosed: change.state = HookState::kStandby; break;
  }
  change.token = effect.token;
  change.reason = lease::ReasonName(effect.reason);
  change.drain_end = effect.drain_end;
  if (const auto lane = lanes_.find(lease); lane != lanes_.end()) {
    lane->second->Tell(std::move(change));
  }
}

bool Hooks::Settled(const std::string& lease) const {
  const auto lane = lanes_.find(lease);
  return lane == lanes_.end() || lane->second->settled();
}

void Hooks::Finish(base::Duration limit, std::function<void()> done) {
  on_finished_ = std::move(done);
  finish_limit_.StartAfter(limit);
  LookFinished();
}

void Hooks::Abort() {
  for (const auto& [name, lane] : lanes_) lane->Abort();
  LookFinished();
}

void Hooks::LookFinished() {
  if (!on_finished_) return;
  for (const auto& [name, lane] : lanes_) {
    if (!lane->idle()) return;
  }
  finish_limit_.Stop();
  loop_.Post(std::exchange(on_finished_, nullptr));
}

}  // namespace leasehold::admin

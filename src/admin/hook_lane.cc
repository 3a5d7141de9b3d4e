#include "admin/hook_lane.h"

#include <algorithm>
#include <csignal>
#include <utility>

#include "base/text.h"

namespace leasehold::admin {
namespace {

using base::Duration;
using base::MonoTime;
using loop::Loop;

// What a hook said last, for its line in the log: a message or two of a shell.
constexpr size_t kOutputBytesMax = 240;

constexpr const char* kRunsHelp =
    "Hooks by result: ok, failed (exit code or signal), timeout, ended (its state was over), "
    "dropped (it was over before it began), not_started.";
constexpr std::string_view kResults[] = {"ok",    "failed",  "timeout",
                                         "ended", "dropped", "not_started"};

std::string_view StateWord(HookState state) {
  switch (state) {
    case HookState::kActive: return "active";
    case HookState::kDraining: return "draining";
    case HookState::kStandby: return "standby";
  }
  return "standby";
}

std::string_view ResultOf(const loop::ChildExit& exit, bool ended) {
  if (exit.timed_out) return "timeout";
  if (ended) return "ended";
  return exit.code == 0 ? "ok" : "failed";
}

std::string_view LastWords(std::string_view output) {
  while (output.ends_with('\n')) output.remove_suffix(1);
  return base::Trim(output);
}

std::string SentenceOf(std::string_view result, const loop::ChildExit& exit, Duration timeout) {
  if (result == "ok") return "the hook has ended";
  if (result == "ended") return "the hook was ended: its state is over";
  if (result == "timeout") {
    return "the hook ran longer than hooks.timeout = " + base::FormatDuration(timeout) +
           " and was killed with its process group";
  }
  return exit.signal != 0 ? "the hook ended by signal " + std::to_string(exit.signal)
                          : "the hook ended with exit code " + std::to_string(exit.code);
}

}  // namespace

std::string_view HookName(HookState state) {
  switch (state) {
    case HookState::kActive: return "on_active";
    case HookState::kDraining: return "on_draining";
    case HookState::kStandby: return "on_standby";
  }
  return "on_standby";
}

HookLane::HookLane(Host host, std::string lease)
    : host_(std::move(host)), lease_(std::move(lease)) {
  // Every series exists from the start, so that increase() sees its first run.
  for (const HookState state : {HookState::kActive, HookState::kDraining, HookState::kStandby}) {
    if (CommandOf(state).empty()) continue;
    for (const std::string_view result : kResults) {
      host_.metrics.AddCounter("leasehold_hook_runs_total", kRunsHelp,
                               {{"lease", lease_},
                                {"hook", std::string(HookName(state))},
                                {"result", std::string(result)}});
    }
  }
}

HookLane::~HookLane() { *alive_ = false; }

const std::vector<std::string>& HookLane::CommandOf(HookState state) const {
  switch (state) {
    case HookState::kActive: return host_.commands.on_active;
    case HookState::kDraining: return host_.commands.on_draining;
    case HookState::kStandby: break;
  }
  return host_.commands.on_standby;
}

bool HookLane::settled() const {
  if (child_ && running_.state == HookState::kDraining) return false;
  return std::none_of(waiting_.begin(), waiting_.end(),
                      [](const Change& change) { return change.state == HookState::kDraining; });
}

void HookLane::Tell(Change change) {
  if (change.state == state_) {
    // A drain for failed renewals that has become a planned one: its hook tells of the newer.
    for (Change& waiting : waiting_) {
      if (waiting.state == change.state && change.state == HookState::kDraining) waiting = change;
    }
    return;
  }
  state_ = change.state;
  DropWaiting([](const Change& waiting) { return waiting.state != HookState::kStandby; });
  if (child_ && running_.state != HookState::kStandby) EndRunning();
  if (!CommandOf(change.state).empty()) {
    const bool standby_waits = !waiting_.empty();
    if (change.state == HookState::kStandby && standby_waits) {
      Count(change.state, "dropped");
    } else {
      waiting_.push_back(std::move(change));
    }
  }
  BeginSoon();
}

void HookLane::DropWaiting(const std::function<bool(const Change&)>& over) {
  std::erase_if(waiting_, [&](const Change& waiting) {
    if (!over(waiting)) return false;
    Count(waiting.state, "dropped");
    host_.log.Debug("hook.dropped", "the hook is not run: its state was over before it began",
                    {{"lease", lease_},
                     {"hook", HookName(waiting.state)},
                     {"token", std::to_string(waiting.token)}});
    return true;
  });
}

// KILL, and the whole group at once: one that may ignore a TERM, or leave a child that does, would
// make the next wait. Its exit is reported as any other.
void HookLane::EndRunning() {
  if (!std::exchange(ended_, true)) child_->Signal(SIGKILL);
}

// On the next turn: every gate has acted by then.
void HookLane::BeginSoon() {
  if (waiting_.empty() || child_ || std::exchange(begin_posted_, true)) return;
  host_.loop.Post([this, alive = alive_] {
    if (!*alive) return;
    begin_posted_ = false;
    Begin();
  });
}

void HookLane::Begin() {
  const bool was_settled = settled();
  // A process that stood still may find its permit over before its engine has said so.
  if (!host_.permit.MayAct(Loop::Now())) {
    DropWaiting([](const Change& waiting) { return waiting.state != HookState::kStandby; });
  }
  while (!child_ && !waiting_.empty()) {
    const Change change = std::move(waiting_.front());
    waiting_.pop_front();
    Start(change);
  }
  if (!was_settled && settled()) host_.on_settled();
  if (idle()) host_.on_idle();
}

Duration HookLane::GraceLeft(const Change& change) const {
  if (change.state != HookState::kDraining) return Duration::Zero();
  const MonoTime end = Min(change.drain_end, host_.permit.expiry());
  return Max(end - Loop::Now(), Duration::Zero());
}

bool HookLane::Start(const Change& change) {
  loop::ChildOptions options;
  options.argv = CommandOf(change.state);
  options.timeout = host_.commands.timeout;
  options.output_bytes_max = kOutputBytesMax;
  options.output_keep_last = true;
  options.env = {{"LEASE_NAME", lease_},
                 {"LEASE_STATE", std::string(StateWord(change.state))},
                 {"FENCING_TOKEN", std::to_string(change.token)},
                 {"GRACE_MS", std::to_string(GraceLeft(change).millis())},
                 {"LEASE_REASON", change.reason},
                 {"LEASE_NODE_ID", host_.self.node_id},
                 {"LEASE_PROCESS_ID", host_.self.process_id}};
  auto child = loop::Child::Start(host_.loop, options,
                                  [this](const loop::ChildExit& exit) { OnExit(exit); });
  if (!child) {
    Count(change.state, "not_started");
    host_.log.Warn("hook.not_started", child.error().message,
                   {{"lease", lease_},
                    {"hook", HookName(change.state)},
                    {"token", std::to_string(change.token)}});
    return false;
  }
  child_ = std::move(*child);
  running_ = change;
  began_ = Loop::Now();
  ended_ = false;
  // The program only: an argument may be a secret.
  host_.log.Info("hook.started", "the hook runs",
                 {{"lease", lease_},
                  {"hook", HookName(change.state)},
                  {"token", std::to_string(change.token)},
                  {"program", base::Printable(options.argv[0])},
                  {"pid", child_->pid()}});
  return true;
}

void HookLane::OnExit(const loop::ChildExit& exit) {
  const Duration took = Loop::Now() - began_;
  const std::string_view result = ResultOf(exit, ended_);
  const HookState state = running_.state;
  Count(state, result);
  host_.metrics
      .AddHistogram("leasehold_hook_seconds", "How long hooks ran.",
                    {{"lease", lease_}, {"hook", std::string(HookName(state))}},
                    {0.01, 0.05, 0.1, 0.5, 1, 2.5, 5, 10, 20, 30, 60, 300})
      .Observe(took.seconds());
  const bool well = result == "ok" || result == "ended";
  host_.log.Write(well ? observe::LogLevel::kInfo : observe::LogLevel::kWarn, "hook.ended",
                  SentenceOf(result, exit, host_.commands.timeout),
                  {{"lease", lease_},
                   {"hook", HookName(state)},
                   {"token", std::to_string(running_.token)},
                   {"result", result},
                   {"exit_code", exit.code},
                   {"signal", exit.signal},
                   {"ms", static_cast<uint64_t>(took.millis())},
                   {"output", base::Printable(LastWords(exit.output), kOutputBytesMax)}});
  child_.reset();
  if (state == HookState::kDraining && settled()) host_.on_settled();
  BeginSoon();
  if (idle()) host_.on_idle();
}

void HookLane::Abort() {
  DropWaiting([](const Change&) { return true; });
  child_.reset();  // KILLs its group
}

void HookLane::Count(HookState state, std::string_view result) {
  host_.metrics
      .AddCounter("leasehold_hook_runs_total", kRunsHelp,
                  {{"lease", lease_},
                   {"hook", std::string(HookName(state))},
                   {"result", std::string(result)}})
      .Add();
}

}  // namespace leasehold::admin

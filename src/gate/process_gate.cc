#include "gate/process_gate.h"

#include <algorithm>
#include <utility>

#include "base/text.h"
#include "lease/events.h"
#include "loop/guarded_child.h"
#include "loop/timer.h"

namespace leasehold::gate {
namespace {

using base::Duration;
using base::MonoTime;
using loop::GuardedExit;
using loop::Loop;

// In a step-down the KILL comes so long before its end: what a kernel takes to end a process, and
// its end to be told, so that the release follows a death that is known.
constexpr Duration kDeadBeforeDrainEnd = Duration::Millis(50);
// A pause before a restart doubles up to this (process_options.h), and begins anew after a run that
// was longer than this: what fails at its start has failed by then.
constexpr Duration kRestartDelayMax = Duration::Seconds(30);
constexpr Duration kSettledAfter = Duration::Seconds(10);

constexpr int kSignalExitCode = 128;  // + signal, as a shell has it

std::string Describe(const GuardedExit& exit) {
  return exit.signal != 0 ? "ended by signal " + std::to_string(exit.signal)
                          : "ended with exit code " + std::to_string(exit.code);
}

}  // namespace

class ProcessGate final : public Gate {
 public:
  ProcessGate(const ProcessOptions& options, Host host, ProcessHost process_host);
  ~ProcessGate() override { *alive_ = false; }

  base::Status Start() override { return {}; }
  base::Status SetValve(const ValveChange& change) override;
  bool empty() const override { return !child_.alive(); }
  GateStatus status() const override;
  const Options& options() const override { return gate_options_; }
  bool ends_last() const override { return true; }
  void OthersEmpty() override;
  void OnPermit(MonoTime expiry) override;

 private:
  base::Status StartCommand();
  std::map<std::string, std::string> Environment() const;
  void Terminate();
  void Kill();

  void OnStarted(int pid);
  void OnStartFailed(const std::string& why);
  void OnExit(const GuardedExit& exit);
  void OnEnd(const GuardedExit& exit);
  void OnOwnEnd(const GuardedExit& exit);
  void OnLost(const std::string& why, bool ran);
  void StartAgain();
  void Finish(int exit_code, const std::string& why);
  observe::Counter& Exits(const char* result);

  const ProcessOptions options_;
  const Options gate_options_;  // name and lease; the rest says nothing of a command
  const Host host_;
  const ProcessHost process_host_;
  ValveChange change_;
  loop::GuardedChild child_;
  loop::Timer terminate_timer_;
  loop::Timer restart_timer_;
  uint64_t token_ = 0;     // of the last start
  MonoTime started_at_;    // likewise
  bool stopping_ = false;  // TERM or KILL was ordered
  bool finished_ = false;
  Duration restart_delay_;
  observe::Counter& starts_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);  // the metrics outlive us
};

ProcessGate::ProcessGate(const ProcessOptions& options, Host host, ProcessHost process_host)
    : options_(options),
      gate_options_([&] {
        Options made;
        made.name = kProcessGateName;
        made.lease = options.lease;
        return made;
      }()),
      host_(std::move(host)),
      process_host_(std::move(process_host)),
      child_(host_.loop, process_host_.watchdog,
             {[this](int pid) { OnStarted(pid); },
              [this](const std::string& why) { OnStartFailed(why); },
              [this](const GuardedExit& exit) { OnExit(exit); },
              [this](const GuardedExit& exit) { OnEnd(exit); },
              [this](const std::string& why, bool ran) { OnLost(why, ran); }}),
      terminate_timer_(host_.loop, [this] { Terminate(); }),
      restart_timer_(host_.loop, [this] { StartAgain(); }),
      restart_delay_(options.restart_delay),
      starts_(host_.metrics.AddCounter("leasehold_exec_starts_total",
                                       "Starts of the command that runs under the lease",
                                       {{"lease", host_.lease}})) {
  for (const char* result : {"ok", "failed", "stopped", "killed", "expired", "not_started"}) {
    Exits(result);
  }
  host_.metrics.AddCollector([this, alive = alive_](observe::Samples& samples) {
    if (!*alive) return;
    samples.Gauge("leasehold_exec_running", "1 while the command that runs under the lease lives",
                  {{"lease", host_.lease}}, child_.alive() ? 1 : 0);
  });
}

observe::Counter& ProcessGate::Exits(const char* result) {
  return host_.metrics.AddCounter(
      "leasehold_exec_exits_total",
      "Ends of the command: ok and failed of its own, stopped after TERM, killed for not heeding "
      "it or after a loss, expired by the watchdog, not_started",
      {{"lease", host_.lease}, {"result", result}});
}

GateStatus ProcessGate::status() const {
  GateStatus status;
  status.name = kProcessGateName;
  status.type = "process";
  status.upstream = base::Printable(options_.command[0]);  // arguments may be secrets
  status.state = std::string(lease::ValveName(change_.valve));
  status.in_flight = child_.alive() ? 1 : 0;
  return status;
}

// ---- the valve ----

base::Status ProcessGate::SetValve(const ValveChange& change) {
  change_ = change;
  terminate_timer_.Stop();
  switch (change.valve) {
    case lease::Valve::kOpen:
      // One that was told to end in a drain that healed is started again when it has ended.
      if (finished_ || child_.alive() || restart_timer_.armed()) return {};
      return StartCommand();
    case lease::Valve::kHolding: return {};
    case lease::Valve::kDraining:
      restart_timer_.Stop();
      if (child_.alive()) {
        terminate_timer_.StartAt(change.drain_end - kDeadBeforeDrainEnd - options_.stop_timeout);
      }
      return {};
    case lease::Valve::kClosed:
      restart_timer_.Stop();
      if (child_.alive()) Kill();
      return {};
  }
  return {};
}

// A drain for failed renewals may still heal, and releases nothing before its end: there the
// command goes on as long as it can.
void ProcessGate::OthersEmpty() {
  if (change_.valve != lease::Valve::kDraining) return;
  if (change_.reason == lease::ReasonName(lease::Reason::kRenewalsFailed)) return;
  Terminate();
}

void ProcessGate::OnPermit(MonoTime expiry) {
  if (child_.alive() && host_.permit.valve() != lease::Valve::kClosed) child_.SetExpiry(expiry);
}

void ProcessGate::Terminate() {
  if (!child_.alive() || std::exchange(stopping_, true)) return;
  terminate_timer_.Stop();
  const MonoTime now = Loop::Now();
  const MonoTime kill_at = base::Max(
      now, base::Min(now + options_.stop_timeout, change_.drain_end - kDeadBeforeDrainEnd));
  child_.Terminate(kill_at);
  host_.log.Info("exec.term", "the command is told to end; what is left of it then is killed",
                 {{"lease", host_.lease},
                  {"token", std::to_string(token_)},
                  {"reason", change_.reason},
                  {"kill_after", kill_at - now}});
}

void ProcessGate::Kill() {
  stopping_ = true;
  child_.Kill();
  host_.log.Warn(
      "exec.kill",
      change_.lost ? "the lease is lost: the command is killed at once"
                   : "the step-down has ended before the command: it is killed",
      {{"lease", host_.lease}, {"token", std::to_string(token_)}, {"reason", change_.reason}});
}

// ---- the command ----

base::Status ProcessGate::StartCommand() {
  if (!host_.permit.MayAdmit(Loop::Now())) {
    host_.on_expired();
    return {};
  }
  token_ = host_.permit.token();
  stopping_ = false;
  started_at_ = Loop::Now();
  return child_.Start(Environment(), "LEASE_WATCHDOG", process_host_.keep_open(),
                      host_.permit.expiry());
}

std::map<std::string, std::string> ProcessGate::Environment() const {
  std::map<std::string, std::string> env = process_host_.environment();
  env["FENCING_TOKEN"] = std::to_string(token_);
  env["LEASE_NAME"] = host_.lease;
  env["LEASE_STATE"] = "active";
  env["LEASE_NODE_ID"] = host_.node_id;
  env["LEASE_PROCESS_ID"] = host_.process_id;
  // No other process has it: what descends from the command is known by it, should the watchdog
  // die.
  env["LEASE_WATCHDOG"] = std::to_string(process_host_.watchdog.pid()) + "." + host_.process_id;
  return env;
}

void ProcessGate::OnStarted(int pid) {
  starts_.Add();
  host_.log.Info("exec.started", "the command runs",
                 {{"lease", host_.lease},
                  {"token", std::to_string(token_)},
                  {"pid", pid},
                  {"command", base::Printable(options_.command[0])}});
}

void ProcessGate::OnStartFailed(const std::string& why) {
  Exits("not_started").Add();
  host_.log.Error("exec.start_failed", why,
                  {{"lease", host_.lease}, {"token", std::to_string(token_)}});
  if (change_.valve == lease::Valve::kDraining) return host_.on_empty();
  if (change_.valve == lease::Valve::kOpen && stopping_) return StartAgain();
  if (change_.valve != lease::Valve::kClosed) process_host_.on_start_failed(token_, why);
}

void ProcessGate::OnExit(const GuardedExit& exit) {
  std::string_view message;
  switch (exit.cause) {
    case GuardedExit::Cause::kItself: message = "the command has ended of its own"; break;
    case GuardedExit::Cause::kTerminated: message = "the command has ended as it was told"; break;
    case GuardedExit::Cause::kKilled: message = "the command was killed"; break;
    case GuardedExit::Cause::kExpired:
      message = "the permit was ending: the watchdog has killed the command";
      break;
  }
  const observe::Field how = exit.signal != 0 ? observe::Field("signal", exit.signal)
                                              : observe::Field("exit_code", exit.code);
  const bool expected = exit.cause == GuardedExit::Cause::kTerminated ||
                        (exit.cause == GuardedExit::Cause::kItself && exit.code == 0);
  host_.log.Write(expected ? observe::LogLevel::kInfo : observe::LogLevel::kWarn, "exec.exited",
                  message,
                  {{"lease", host_.lease},
                   {"token", std::to_string(token_)},
                   how,
                   {"ran", Loop::Now() - started_at_}});
}

// Nothing of it is left.
void ProcessGate::OnEnd(const GuardedExit& exit) {
  const bool ordered = std::exchange(stopping_, false);
  if (exit.cause == GuardedExit::Cause::kItself && !ordered) return OnOwnEnd(exit);
  switch (exit.cause) {
    case GuardedExit::Cause::kItself:
    case GuardedExit::Cause::kTerminated: Exits("stopped").Add(); break;
    case GuardedExit::Cause::kKilled: Exits("killed").Add(); break;
    case GuardedExit::Cause::kExpired: Exits("expired").Add(); break;
  }
  if (change_.valve == lease::Valve::kDraining) return host_.on_empty();
  // A renewal came in the last moment, a drain healed, or the next term has begun meanwhile.
  StartAgain();
}

void ProcessGate::OnOwnEnd(const GuardedExit& exit) {
  Exits(exit.code == 0 ? "ok" : "failed").Add();
  const bool again = options_.restart == Restart::kAlways ||
                     (options_.restart == Restart::kOnFailure && exit.code != 0);
  if (!again) {
    return Finish(exit.signal != 0 ? kSignalExitCode + exit.signal : exit.code,
                  "the command " + Describe(exit));
  }
  if (Loop::Now() - started_at_ >= kSettledAfter) restart_delay_ = options_.restart_delay;
  const Duration delay = restart_delay_;
  restart_delay_ = base::Min(restart_delay_ * 2, base::Max(kRestartDelayMax, delay));
  if (change_.valve == lease::Valve::kDraining) return host_.on_empty();
  if (change_.valve == lease::Valve::kClosed) return;
  host_.log.Info("exec.restart", "the command is started again after a pause",
                 {{"lease", host_.lease}, {"pause", delay}});
  restart_timer_.StartAfter(delay);
}

// If the lease is held; otherwise its next opening does it.
void ProcessGate::StartAgain() {
  if (change_.valve != lease::Valve::kOpen || finished_) return;
  if (base::Status started = StartCommand(); !started) OnStartFailed(started.error().message);
}

void ProcessGate::OnLost(const std::string& why, bool ran) {
  if (ran) Exits("killed").Add();
  Finish(kProcessLostExitCode, why);
}

void ProcessGate::Finish(int exit_code, const std::string& why) {
  restart_timer_.Stop();
  if (change_.valve == lease::Valve::kDraining) host_.on_empty();
  // What happens to the watchdog after the command has ended is no news about it.
  if (!std::exchange(finished_, true)) process_host_.on_finished(exit_code, why);
}

std::unique_ptr<Gate> MakeProcessGate(const ProcessOptions& options, Host host,
                                      ProcessHost process_host) {
  return std::make_unique<ProcessGate>(options, std::move(host), std::move(process_host));
}

}  // namespace leasehold::gate

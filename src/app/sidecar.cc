#include "app/sidecar.h"

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <utility>

#include "admin/lease_metrics.h"
#include "app/make_gate.h"
#include "app/make_store.h"
#include "app/store_metrics.h"
#include "base/text.h"
#include "lease/trace.h"

namespace leasehold::app {
namespace {

using base::Duration;
using loop::Loop;

// How often the wall clock is compared with the boot clock: a paused virtual machine is noticed
// within this.
constexpr Duration kClockWatchInterval = Duration::Millis(500);

// How long the process's end waits for on_standby of its last step-down, which the release does not
// wait for: with the default grace (20 s), and no gate that forwards, it stays within the 30 s that
// Kubernetes gives a pod.
constexpr Duration kHookExitMax = Duration::Seconds(5);
// And for the audit's last lines, where its disk hangs.
constexpr Duration kAuditCloseMax = Duration::Millis(500);

std::string RandomProcessId() {
  char text[33];
  std::snprintf(text, sizeof text, "%016lx%016lx", static_cast<unsigned long>(Loop::Entropy()),
                static_cast<unsigned long>(Loop::Entropy()));
  return text;
}

std::string_view PolicyName(gate::StandbyPolicy policy) {
  switch (policy) {
    case gate::StandbyPolicy::kRefuse: return "refuse";
    case gate::StandbyPolicy::kClose: return "close";
    case gate::StandbyPolicy::kReject: return "reject";
    case gate::StandbyPolicy::kHold: return "hold";
    case gate::StandbyPolicy::kForward: return "forward";
  }
  return "reject";
}

// At level debug: each event that a lease's engine was given, and what it answered, in the words of
// the golden traces (lease/trace.h). With it an incident can be read step by step.
auto StepLog(observe::Log& log, const std::string& lease) {
  return [&log, lease](const lease::Event& event, const lease::Effects& effects) {
    std::string answered;
    for (const lease::Effect& effect : effects) {
      answered += (answered.empty() ? "" : "; ") + lease::EffectText(effect);
    }
    log.Debug("lease.step", answered.empty() ? "nothing to do" : answered,
              {{"lease", lease}, {"told", lease::EventText(event)}});
  };
}

}  // namespace

Sidecar::Sidecar(config::Config config, std::unique_ptr<loop::Watchdog> watchdog)
    : config_(std::move(config)),
      watchdog_(std::move(watchdog)),
      log_(config_.log),
      process_id_(RandomProcessId()),
      started_(Loop::Now()),
      started_wall_(Loop::WallNow()) {}

Sidecar::~Sidecar() = default;

int Sidecar::Run() {
  signals_ =
      loop::Signals::Watch(loop_, {SIGTERM, SIGINT}, [this](int signal) { OnSignal(signal); });
  clock_watch_ = std::make_unique<loop::Timer>(loop_, [this] { WatchClock(); });
  WatchClock();
  log_.Info("sidecar.starting", "opening the store",
            {{"version", LEASEHOLD_VERSION}, {"node", config_.node.id}, {"process", process_id_}});
  OpenStore();
  loop_.Run();
  return exit_code_;
}

// ---- starting, in order ----

void Sidecar::OpenStore() {
  auto store = MakeStore(loop_, config_.store, process_id_, aws_, log_);
  if (!store) {
    Refuse("store.refused", store.error(), 2);
    return;
  }
  store_ = std::move(store).value();
  store_->Open([this](std::string_view kind, bool active,
                      const std::string& sentence) { OnTrouble(kind, active, sentence); },
               [this](const base::Status& status) { OnStoreOpen(status); });
}

void Sidecar::OnStoreOpen(const base::Status& status) {
  if (finishing_) return;
  if (!status) {
    Refuse("store.refused", status.error(), 2);
    return;
  }
  // The API and the socket come first, so that whoever asks during a slow start is answered.
  if (OpenStateDir() && OpenRecords() && MakeLeases() && StartSurfaces() && StartGates() &&
      StartHealth())
    StartLeases();
}

bool Sidecar::OpenStateDir() {
  if (config_.node.state_dir.empty()) return true;
  auto opened = StateDir::Open(loop_, config_.node.state_dir, process_id_, log_);
  if (!opened) return Refuse("node.refused", opened.error(), 2);
  state_dir_ = std::move(*opened);
  return true;
}

bool Sidecar::OpenRecords() {
  std::unique_ptr<admin::AuditSink> sink;
  if (!config_.audit.file.empty()) {
    auto opened =
        admin::AuditSink::Open(loop_, config_.audit.file, config_.node.id, metrics_, log_);
    if (!opened) return Refuse("audit.refused", opened.error(), 2);
    sink = std::move(*opened);
  }
  const lease::Identity self{config_.node.id, process_id_};
  audit_ = std::make_unique<admin::AuditLog>(config_.audit.keep, self, metrics_, std::move(sink));
  auto hooks = admin::ParseHooks(config_.hooks);
  if (!hooks) return Refuse("hooks.refused", hooks.error(), 2);
  if (!hooks->none()) {
    hooks_ = std::make_unique<admin::Hooks>(loop_, std::move(*hooks), self, metrics_, log_);
  }
  return true;
}

bool Sidecar::MakeLeases() {
  const lease::Identity identity{config_.node.id, process_id_};
  for (const lease::Options& configured : config_.leases) {
    lease::Options options = configured;
    options.reads_confirm = config_.store.type != "redis" || config_.store.redis.wait_replicas == 0;
    LeaseDriver::Host host{loop_, log_, metrics_, events_, *store_, {}, {}, {}, {}, {}};
    host.listeners_drained = [this](const std::string& name, uint64_t token) {
      const bool told = !signal_socket_ || signal_socket_->AllDrained(name, token);
      return told && (!hooks_ || hooks_->Settled(name));
    };
    host.see_clocks = [this](std::optional<int64_t> store_unix_ms) { SeeClocks(store_unix_ms); };
    host.proven_dead = [this](const std::string& process) {
      return state_dir_ && state_dir_->ProvenDead(process);
    };
    host.remember = [this](const std::string& name, uint64_t token, Duration ttl) {
      if (state_dir_) state_dir_->Remember(name, token, ttl);
    };
    host.on_stopped = [this](bool ok, const std::string& why) { OnLeaseStopped(ok, why); };
    host.on_valve = [this, name = options.name](const lease::ValveEffect& effect) {
      if (hooks_) hooks_->OnValve(name, effect);
    };
    host.audit = audit_.get();
    if (log_.Enabled(observe::LogLevel::kDebug)) host.on_step = StepLog(log_, options.name);
    const lease::Memory memory = state_dir_ ? state_dir_->MemoryOf(options.name) : lease::Memory{};
    drivers_.push_back(
        std::make_unique<LeaseDriver>(std::move(host), options, identity, Loop::Entropy(), memory));
    LeaseDriver& driver = *drivers_.back();
    if (hooks_) {
      hooks_->AddLease(options.name, driver.permit(), [&driver] { driver.LookSoon(); });
    }
    for (const gate::Options& gate : config_.gates) {
      if (gate.lease != options.name) continue;
      gate::Host gate_host = HostOf(driver, options);
      if (!gate.peer_secret_file.empty()) {
        base::Result<std::string> read = config::ReadSecretFile(gate.peer_secret_file);
        if (!read) {
          const std::string where = "gate \"" + gate.name + "\": peer_secret_file: ";
          return Refuse("gate.refused", {read.error().code, where + read.error().message}, 2);
        }
        gate_host.peer_secret = std::move(read).value();
      }
      auto made = MakeGate(gate, std::move(gate_host), aws_);
      if (!made) {
        const std::string where = "gate \"" + gate.name + "\": ";
        return Refuse("gate.refused", {made.error().code, where + made.error().message}, 2);
      }
      driver.AddGate(std::move(made).value());
    }
    if (watchdog_ && config_.exec.lease == options.name) AddCommand(driver, options);
  }
  return true;
}

gate::Host Sidecar::HostOf(LeaseDriver& driver, const lease::Options& options) {
  return {loop_,
          log_,
          metrics_,
          driver.permit(),
          options.name,
          config_.node.id,
          process_id_,
          options.drain_tunnels,
          [&driver] { driver.LookSoon(); },
          [&driver] { driver.LookSoon(); },
          driver.sequence(),
          [&driver] { return driver.state_name(); },
          [&driver] { driver.DoubtPeer(); },
          {},
          options.step_down_grace};
}

// After all other gates: it opens when they listen, and is what a drain ends with.
void Sidecar::AddCommand(LeaseDriver& driver, const lease::Options& options) {
  gate::ProcessHost process{*watchdog_, {}, {}, {}, {}};
  process.environment = [this] {
    std::map<std::string, std::string> env;
    if (api_) env["LEASE_ADMIN"] = api_->bound();
    if (signal_socket_) env["LEASE_SOCKET"] = config_.signal.socket;
    return env;
  };
  process.keep_open = [this] {
    std::vector<int> fds = store_->DeathProofs();
    if (state_dir_) fds.push_back(state_dir_->lock_fd());
    return fds;
  };
  process.on_finished = [this](int exit_code, const std::string& why) {
    OnCommandFinished(exit_code, why);
  };
  process.on_start_failed = [&driver](uint64_t token, const std::string& why) {
    driver.Feed(lease::StartFailed{token, why});
  };
  driver.AddGate(gate::MakeProcessGate(config_.exec, HostOf(driver, options), std::move(process)));
}

bool Sidecar::StartSurfaces() {
  if (!config_.admin.listen.empty()) {
    std::string token;
    if (!config_.admin.token_file.empty()) {
      base::Result<std::string> read = config::ReadSecretFile(config_.admin.token_file);
      if (!read) {
        return Refuse("admin.refused",
                      {read.error().code, "admin.token_file: " + read.error().message}, 2);
      }
      token = *read;
    }
    auto api = admin::ApiServer::Start(loop_, config_.admin, token, *this, metrics_, events_, log_);
    if (!api) return Refuse("admin.refused", api.error(), 2);
    api_ = std::move(*api);
    log_.Info("admin.listen", "the API answers", {{"address", api_->bound()}});
  }
  if (!config_.signal.socket.empty()) {
    auto socket = admin::SignalServer::Start(loop_, config_.signal, *this, events_, log_);
    if (!socket) return Refuse("signal.refused", socket.error(), 2);
    signal_socket_ = std::move(*socket);
    log_.Info("signal.listen", "the signal socket answers", {{"path", config_.signal.socket}});
  }
  admin::AddLeaseMetrics(metrics_, *this, loop_);
  AddStoreMetrics(metrics_, *store_);
  return true;
}

bool Sidecar::StartGates() {
  for (const auto& driver : drivers_) {
    if (base::Status started = driver->StartGates(); !started) {
      return Refuse("gate.refused", started.error(), 2);
    }
  }
  return true;
}

bool Sidecar::StartHealth() {
  if (config_.app.check.empty()) {
    OnAppChange(true, "no app.check is configured");
    return true;
  }
  health::AppCheck::Callbacks callbacks;
  callbacks.on_change = [this](bool ready, const std::string& why) { OnAppChange(ready, why); };
  callbacks.on_unready_too_long = [this] { OnAppUnreadyTooLong(); };
  auto check = health::AppCheck::Start(loop_, config_.app, std::move(callbacks));
  if (!check) return Refuse("app.refused", check.error(), 2);
  app_check_ = std::move(*check);
  return true;
}

void Sidecar::StartLeases() {
  log_.Info("sidecar.started", "ready; applications that are ready compete for their leases",
            {{"store", store_->Describe()},
             {"leases", static_cast<int>(drivers_.size())},
             {"ms", static_cast<uint64_t>((Loop::Now() - started_).millis())}});
  for (const auto& driver : drivers_) driver->Start();
}

bool Sidecar::Refuse(std::string_view event, const base::Error& error, int exit_code) {
  log_.Error(event, error.message);
  exit_code_ = exit_code;
  Finish();
  return false;
}

// ---- what happens ----

void Sidecar::OnSignal(int signal) {
  ++stop_signals_;
  const std::string_view name = signal == SIGTERM ? "SIGTERM" : "SIGINT";
  if (stop_signals_ > 1 || drivers_.empty()) {
    log_.Warn("sidecar.stopping",
              drivers_.empty() ? "stopping before the store has answered"
                               : "stopping at once; a lease still held runs out by itself",
              {{"signal", name}});
    exit_code_ = stop_signals_ > 1 ? failed_code() : exit_code_;
    if (hooks_) hooks_->Abort();
    return Finish();
  }
  // A service manager signals all processes of a service: ours were told to end, the command first.
  if (exit_code_ == 128 + signal) exit_code_ = 0;
  log_.Info("sidecar.stopping", "stepping down, then releasing; once more stops at once",
            {{"signal", name}});
  LeaveAll();
}

void Sidecar::LeaveAll() {
  leaving_ = true;
  for (const auto& driver : drivers_) driver->Leave();
}

void Sidecar::OnLeaseStopped(bool ok, const std::string& why) {
  ++leases_stopped_;
  if (!ok) {
    log_.Error("lease.refused", why);
    exit_code_ = failed_code();
    // One lease that may not start ends the process in order: the others step down.
    LeaveAll();
  }
  if (leases_stopped_ == drivers_.size()) Finish();
}

void Sidecar::OnCommandFinished(int exit_code, const std::string& why) {
  log_.Write(exit_code == 0 ? observe::LogLevel::kInfo : observe::LogLevel::kWarn,
             "sidecar.stopping", why + "; stepping down, then releasing",
             {{"exit_code", exit_code}});
  // What ends after we were told to end has ended as it should.
  if (stop_signals_ == 0) exit_code_ = exit_code;
  LeaveAll();
}

void Sidecar::OnAppChange(bool ready, const std::string& why) {
  if (app_check_ || !config_.app.check.empty()) {
    observe::Event event;
    event.name = ready ? "app.ready" : "app.unready";
    event.detail = why;
    event.at = Loop::WallNow();
    log_.Write(ready ? observe::LogLevel::kInfo : observe::LogLevel::kWarn, event.name,
               ready ? "the application is ready" : "the application is not ready: " + why);
    events_.Publish(std::move(event));
  }
  for (const auto& driver : drivers_) driver->Feed(lease::AppState{ready});
}

void Sidecar::OnAppUnreadyTooLong() {
  if (config_.app.on_unready == health::OnUnready::kKeep) return;
  for (const auto& driver : drivers_) driver->Feed(lease::AppUnreadyTooLong{});
}

void Sidecar::OnTrouble(std::string_view kind, bool active, const std::string& sentence) {
  if (active) {
    troubles_[std::string(kind)] = sentence;
  } else {
    troubles_.erase(std::string(kind));
  }
  observe::Event event;
  event.name = active ? "store.degraded" : "store.recovered";
  event.detail = sentence;
  event.at = Loop::WallNow();
  log_.Write(active ? observe::LogLevel::kWarn : observe::LogLevel::kInfo, event.name, sentence,
             {{"kind", kind}});
  events_.Publish(std::move(event));
}

void Sidecar::WatchClock() {
  clock_watch_->StartAfter(kClockWatchInterval);
  SeeClocks(std::nullopt);
}

// Told to every lease before the answer that waited meanwhile is judged: such an answer confers no
// permit.
void Sidecar::SeeClocks(std::optional<int64_t> store_unix_ms) {
  const bool wall = lost_time_.SeeWall(Loop::Now(), Loop::WallNow());
  const bool store = store_unix_ms && lost_time_.SeeStore(Loop::Now(), *store_unix_ms);
  if (wall || store) TellLostTime();
}

void Sidecar::TellLostTime() {
  log_.Warn("node.lost_time",
            "this machine's clocks show time that its boot clock did not count; renewing at once, "
            "admissions are held until that is confirmed");
  for (const auto& driver : drivers_) driver->Feed(lease::LostTime{});
}

// ---- ending ----

// After every lease is released or given up: what hooks and audit have left, then surfaces, gates,
// store, and the loop runs out of work.
void Sidecar::Finish() {
  if (std::exchange(finishing_, true)) return;
  const auto records = [this] {
    if (!audit_) return CloseAll();
    audit_->Close(kAuditCloseMax, [this] { CloseAll(); });
  };
  loop_.Post([this, records] {
    if (!hooks_ || stop_signals_ > 1) return records();
    hooks_->Finish(kHookExitMax, records);
  });
}

void Sidecar::CloseAll() {
  loop_.Post([this] {
    app_check_.reset();
    clock_watch_.reset();
    signal_socket_.reset();
    api_.reset();
    hooks_.reset();
    drivers_.clear();
    audit_.reset();
    signals_.reset();
    const auto stop = [this] {
      log_.Info("sidecar.stopped", "everything is closed", {{"exit_code", exit_code_}});
      loop_.Stop();
    };
    if (!store_) return stop();  // it could not even be made
    store_->Close(stop);
  });
}

// ---- admin::Control ----

LeaseDriver* Sidecar::Find(std::string_view lease) const {
  for (const auto& driver : drivers_) {
    if (driver->name() == lease) return driver.get();
  }
  return nullptr;
}

admin::LeaseView Sidecar::WithPolicy(admin::LeaseView view) const {
  for (admin::GateView& shown : view.gates) {
    for (const gate::Options& gate : config_.gates) {
      if (gate.name == shown.name) shown.standby = std::string(PolicyName(gate.standby));
    }
  }
  return view;
}

admin::NodeView Sidecar::node() const {
  admin::NodeView view;
  view.node_id = config_.node.id;
  view.process_id = process_id_;
  view.version = LEASEHOLD_VERSION;
  view.store = store_->Describe();
  view.store_connected = store_->stats().connected;
  view.app_checked = !config_.app.check.empty();
  view.app_ready = !app_check_ || app_check_->ready();
  view.app_error = app_check_ ? app_check_->last_error() : "";
  view.started_at = started_wall_;
  view.uptime = Loop::Now() - started_;
  view.shutting_down = leaving_ || stop_signals_ > 0;
  // Many leases have one store: what all of them suffer from is said once.
  const auto add = [&view](const std::string& sentence) {
    if (sentence.empty()) return;
    if (std::ranges::find(view.troubles, sentence) != view.troubles.end()) return;
    view.troubles.push_back(sentence);
  };
  for (const auto& [kind, sentence] : troubles_) add(sentence);
  for (const auto& driver : drivers_) {
    add(driver->store_trouble());
    add(driver->write_trouble());
  }
  return view;
}

std::vector<admin::LeaseView> Sidecar::leases() const {
  std::vector<admin::LeaseView> views;
  for (const auto& driver : drivers_) views.push_back(WithPolicy(driver->View()));
  return views;
}

std::optional<admin::LeaseView> Sidecar::lease(std::string_view name) const {
  const LeaseDriver* driver = Find(name);
  if (driver == nullptr) return std::nullopt;
  return WithPolicy(driver->View());
}

base::Status Sidecar::StepDown(const admin::StepDownAsk& ask,
                               std::function<void(const lease::StepDownDone&)> done) {
  LeaseDriver* driver = Find(ask.lease);
  if (driver == nullptr) {
    return base::Error{
        base::ErrorCode::kNotFound,
        "there is no lease \"" + base::Printable(ask.lease) + "\" in this sidecar's configuration"};
  }
  driver->StepDown(ask, std::move(done));
  return {};
}

std::string Sidecar::ConfigJson() const { return config::ToJson(config_); }

void Sidecar::DrainProgress(const std::string& lease) {
  if (LeaseDriver* driver = Find(lease)) driver->LookSoon();
}

}  // namespace leasehold::app

// Sidecar: builds the rooms in order, owns them, answers admin's questions, and shuts down in one
// readable sequence. The composition root: nothing includes it but run.cc. Every room borrows from
// here.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "admin/api_server.h"
#include "admin/audit.h"
#include "admin/control.h"
#include "admin/hooks.h"
#include "admin/signal_server.h"
#include "app/aws_access.h"
#include "app/lease_driver.h"
#include "app/lost_time.h"
#include "app/state_dir.h"
#include "config/config.h"
#include "gate/process_gate.h"
#include "health/app_check.h"
#include "loop/loop.h"
#include "loop/signals.h"
#include "loop/timer.h"
#include "loop/watchdog.h"
#include "observe/event.h"
#include "observe/log.h"
#include "observe/metrics.h"
#include "store/lease_store.h"

namespace leasehold::app {

class Sidecar : public admin::Control {
 public:
  // `watchdog`: of the command that runs under a lease; null if there is none.
  explicit Sidecar(config::Config config, std::unique_ptr<loop::Watchdog> watchdog = nullptr);
  ~Sidecar() override;

  // Runs to the end. Exit codes as app/run.h.
  int Run();

  // admin::Control
  admin::NodeView node() const override;
  std::vector<admin::LeaseView> leases() const override;
  std::optional<admin::LeaseView> lease(std::string_view name) const override;
  base::Status StepDown(const admin::StepDownAsk& ask,
                        std::function<void(const lease::StepDownDone&)> done) override;
  std::string ConfigJson() const override;
  void DrainProgress(const std::string& lease) override;
  const admin::AuditLog* audit() const override { return audit_.get(); }

 private:
  // Start, in this order; each returns false after having logged why and set the exit code.
  void OpenStore();
  void OnStoreOpen(const base::Status& status);
  bool MakeLeases();
  gate::Host HostOf(LeaseDriver& driver, const lease::Options& options);
  void AddCommand(LeaseDriver& driver, const lease::Options& options);
  bool OpenStateDir();
  bool OpenRecords();
  bool StartGates();
  bool StartSurfaces();
  bool StartHealth();
  void StartLeases();
  bool Refuse(std::string_view event, const base::Error& error, int exit_code);

  void OnSignal(int signal);
  void LeaveAll();
  void OnLeaseStopped(bool ok, const std::string& why);
  void OnCommandFinished(int exit_code, const std::string& why);
  void OnAppChange(bool ready, const std::string& why);
  void OnAppUnreadyTooLong();
  void OnTrouble(std::string_view kind, bool active, const std::string& sentence);
  void WatchClock();
  void SeeClocks(std::optional<int64_t> store_unix_ms);
  void TellLostTime();
  void Finish();
  void CloseAll();

  admin::LeaseView WithPolicy(admin::LeaseView view) const;
  LeaseDriver* Find(std::string_view lease) const;

  const config::Config config_;
  const std::unique_ptr<loop::Watchdog> watchdog_;  // null: no command
  loop::Loop loop_;
  observe::Log log_;
  observe::Metrics metrics_;
  observe::EventBus events_;
  const std::string process_id_;
  const base::MonoTime started_;
  const base::WallTime started_wall_;
  LostTimeDetector lost_time_;
  std::unique_ptr<StateDir> state_dir_;  // null: node.state_dir is not set
  AwsAccess aws_{loop_, log_};
  std::unique_ptr<store::LeaseStore> store_;
  std::unique_ptr<admin::AuditLog> audit_;
  std::vector<std::unique_ptr<LeaseDriver>> drivers_;
  std::unique_ptr<admin::Hooks> hooks_;  // null: none are configured
  std::unique_ptr<admin::ApiServer> api_;
  std::unique_ptr<admin::SignalServer> signal_socket_;
  std::unique_ptr<health::AppCheck> app_check_;
  std::unique_ptr<loop::Signals> signals_;
  std::unique_ptr<loop::Timer> clock_watch_;
  std::map<std::string, std::string> troubles_;  // kind -> sentence, while active
  size_t leases_stopped_ = 0;
  int stop_signals_ = 0;
  bool leaving_ = false;  // asked to by a signal, the command's end or a lease that may not start
  bool finishing_ = false;
  // What a failure of ours ends with: a command's own codes are low numbers.
  int failed_code() const { return watchdog_ ? gate::kProcessLostExitCode : 1; }
  int exit_code_ = 0;
};

}  // namespace leasehold::app

// Control: what the API and the signal socket may see and ask. app implements it; admin knows
// nothing of engines, stores and gates beyond these views.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "lease/engine.h"

namespace leasehold::admin {

class AuditLog;

struct GateView {
  std::string name, type, lease, listen, upstream, state, standby;
  uint64_t connections = 0;
  uint64_t in_flight = 0;
  uint64_t held = 0;
  uint64_t forwarding = 0;  // at the holder's gate
  std::string peer_listen;  // "" none
  std::string peer;         // the holder's gate, where it forwards to; "" unknown
};

struct LeaseView {
  lease::View view;
  lease::Timing timing;
  // Derived with a fresh clock: holding and the permit not over. Probes use this, nothing else.
  bool may_act = false;
  base::Duration to_expiry;  // zero when not holding
  bool store_answered_within_ttl = false;
  std::vector<GateView> gates;
};

struct NodeView {
  std::string node_id;
  std::string process_id;
  std::string version;
  std::string store;  // LeaseStore::Describe()
  bool store_connected = false;
  bool app_checked = false;  // a check is configured
  bool app_ready = false;
  std::string app_error;
  base::WallTime started_at;
  base::Duration uptime;
  bool shutting_down = false;
  std::vector<std::string> troubles;  // sentences of what is degraded now
};

struct StepDownAsk {
  std::string lease;
  lease::Precondition expected;
  bool take_back = true;
};

class Control {
 public:
  virtual ~Control() = default;
  virtual NodeView node() const = 0;
  virtual std::vector<LeaseView> leases() const = 0;
  virtual std::optional<LeaseView> lease(std::string_view name) const = 0;
  // Calls back once, from the loop, when the step-down has its outcome (at most grace + hold-off +
  // a few calls later), at once for a failed precondition. kNotFound when there is no such lease.
  virtual base::Status StepDown(const StepDownAsk& ask,
                                std::function<void(const lease::StepDownDone&)> done) = 0;
  // The configuration in force as JSON, secrets masked.
  virtual std::string ConfigJson() const = 0;
  // A registered listener set changed (someone registered, said drained, vanished): re-evaluate
  // drains. Called from the loop, once per turn and lease, never from inside EventBus::Publish.
  virtual void DrainProgress(const std::string& lease) = 0;
  // Who had which lease when; null: nothing is recorded.
  virtual const AuditLog* audit() const { return nullptr; }
};

}  // namespace leasehold::admin

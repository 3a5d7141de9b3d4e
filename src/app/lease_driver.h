// LeaseDriver: carries one lease engine's effects out (store calls, gates' valves, notices,
// answers) and brings what happened back in as events, one at a time, in order. It decides nothing
// about the lease. Owned by Sidecar. Invariant: effects are carried out in order and synchronously,
// so that every gate is shut before a release is sent.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "admin/audit.h"
#include "admin/control.h"
#include "app/lease_report.h"
#include "gate/gate.h"
#include "lease/engine.h"
#include "loop/loop.h"
#include "loop/timer.h"
#include "observe/event.h"
#include "observe/log.h"
#include "observe/metrics.h"
#include "store/lease_store.h"

namespace leasehold::app {

class LeaseDriver {
 public:
  // What it borrows; all outlive it.
  struct Host {
    loop::Loop& loop;
    observe::Log& log;
    observe::Metrics& metrics;
    observe::EventBus& events;
    store::LeaseStore& store;
    // Every registered listener has said drained for (lease, token).
    std::function<bool(const std::string&, uint64_t)> listeners_drained;
    // Before an answer is judged: has this machine lost time? By its own clocks, and the store's
    // where that was told.
    std::function<void(std::optional<int64_t> store_unix_ms)> see_clocks;
    // A process that node.state_dir proved dead may be taken over at once.
    std::function<bool(const std::string& process_id)> proven_dead;
    // A token was seen, with the TTL of its record: to be remembered across restarts.
    std::function<void(const std::string& lease, uint64_t token, base::Duration ttl)> remember;
    // The engine stopped: ok, or refused to start with why.
    std::function<void(bool ok, const std::string& why)> on_stopped;
    // The lease's gates have acted on this (hooks). May be empty.
    std::function<void(const lease::ValveEffect&)> on_valve = {};
    // Where changes of the holder are written. May be null.
    admin::AuditLog* audit = nullptr;
    // What the engine was told and what it answered, each time, before any of it is carried out
    // (the log's debug level, tests' checkers). May be empty.
    std::function<void(const lease::Event&, const lease::Effects&)> on_step = {};
  };

  LeaseDriver(Host host, const lease::Options& options, const lease::Identity& identity,
              uint64_t seed, const lease::Memory& memory);
  ~LeaseDriver();

  // Gates are made with permit() and added before Start().
  void AddGate(std::unique_ptr<gate::Gate> gate);
  base::Status StartGates();
  void Start();

  // Brings an event in; carried out before this returns unless it came from inside another one.
  void Feed(lease::Event event);
  // SIGTERM: step down, release, stop. Gates that forward first send what they held to the next
  // holder and let what is forwarded finish, sqs gates what SQS still has to answer, for
  // step_down_grace at most.
  void Leave();
  // A gate doubts what the record says of the holder: read it again, though not all the time.
  void DoubtPeer();
  // A gate saw the permit over, or became empty; a listener said drained. Looked at on the next
  // turn.
  void LookSoon();

  // Answered through `done` on a later turn.
  void StepDown(const admin::StepDownAsk& ask,
                std::function<void(const lease::StepDownDone&)> done);

  const lease::Engine& engine() const { return engine_; }
  const lease::Permit& permit() const { return engine_.permit(); }
  std::string_view state_name() const { return lease::StateName(engine_.state()); }
  uint64_t* sequence() { return &sequence_; }  // for its gates: gate::Host::sequence
  const std::string& name() const { return options_.name; }
  admin::LeaseView View() const;
  bool stopped() const { return stopped_; }
  // The last write probe's complaint; empty if the store could be written.
  const std::string& write_trouble() const { return report_.write_trouble(); }
  // Why the lease's own calls fail, while they are store.degraded; else empty.
  const std::string& store_trouble() const { return report_.store_trouble(); }

 private:
  void Pump();
  void Carry(const lease::ReadEffect& effect);
  void Carry(const lease::CasEffect& effect);
  void Carry(const lease::ValveEffect& effect);
  void Carry(const lease::NoticeEffect& effect);
  void Carry(const lease::StepDownDone& effect);
  void Carry(const lease::StoppedEffect& effect);

  void OnRead(uint64_t op, store::ReadResult result);
  void OnCas(uint64_t op, lease::CasEffect::Purpose purpose, base::MonoTime sent_at,
             store::CasResult result);
  void OnWatch(store::WatchEvent event);
  void TellPermit();
  void CheckDrained();
  void TellPeers();
  void TellNoPeer(const gate::Options& gate);
  void CheckLeft();
  void Arm();
  void ProbeWrite();
  void Audit(const lease::NoticeEffect& effect);

  Host host_;
  const lease::Options options_;
  const lease::Identity identity_;
  lease::Engine engine_;
  std::vector<std::unique_ptr<gate::Gate>> gates_;
  loop::Timer deadline_;
  loop::Timer probe_;
  loop::Timer leave_end_;
  std::deque<lease::Event> queue_;
  base::MonoTime told_expiry_;  // of the permit, to the gates
  uint64_t sequence_ = 0;       // forwarded under the token of the term, over all gates
  bool pumping_ = false;
  bool look_posted_ = false;
  bool stopped_ = false;
  bool leaving_ = false;
  bool gates_leave_ = false;  // the lease is not held here any more, and the gates were told
  std::optional<lease::Record> told_peers_;  // the record that the gates' peers were told from
  base::MonoTime next_doubt_;
  int64_t acquired_at_unix_ms_ = 0;  // of the term under way, for people
  std::string former_;               // Record::former of that term
  uint64_t next_request_ = 1;
  std::map<uint64_t, std::function<void(const lease::StepDownDone&)>> requests_;
  LeaseReport report_;
  admin::LeaseAudit audit_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);  // late store answers check it
};

}  // namespace leasehold::app

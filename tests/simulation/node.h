// Node: one machine with a boot clock and a wall clock, and one process of the program at a time on
// it: the real LeaseDriver (so the real engine), real gate cores in simulated gates, and what the
// Sidecar does around them (looking at clocks, remembering tokens, the listeners of a drain).
//
// It is the machine that the simulated loop room runs on: messages, timers and posted turns reach
// the process when it is awake, in order, late by what a machine is late.
//
// Not here: which fault comes when (faults.h), what is right (checkers).
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "app/lease_driver.h"
#include "app/lost_time.h"
#include "base/random.h"
#include "lease/engine.h"
#include "simulation/clock.h"
#include "simulation/facts.h"
#include "simulation/scenario.h"
#include "simulation/sim_gate.h"
#include "simulation/sim_loop.h"
#include "simulation/sim_store.h"

namespace leasehold::simulation {

class World;

class Node final : public Machine {
 public:
  Node(World& world, int index);
  ~Node() override;
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;

  void Start();  // a new process, at once
  bool running() const { return life_ != nullptr; }
  bool asleep() const { return asleep_; }
  // Ends with the process: for what must not reach the next one.
  std::weak_ptr<bool> Alive() const { return alive_; }
  // Hands the engine an event: now, or when the process wakes. Dropped if there is no process.
  void Offer(lease::Event event);
  // A message reached the process: `task` now, or when it wakes; `lost` instead if it ends first.
  void Arrives(std::function<void()> task, std::function<void()> lost = {});
  // The same from the store, which may have given up on a machine that was away.
  void ArrivesFromStore(std::function<void()> task);

  // ---- Machine ----
  base::MonoTime BootNow() const override { return clock_.At(True()); }
  base::WallTime WallNow() const override;
  void PostTurn(std::function<void()> task) override;
  void CallAt(base::MonoTime at, std::function<void()> task) override;

  // ---- faults ----
  void Freeze(TrueNs until);  // SIGSTOP; the boot clock runs
  // Stopped in the middle of its own code, which goes on with `rest` before all else when it wakes;
  // never if it ends before.
  void StopHere(std::function<void()> rest);
  void FreezeBetween();        // the same from inside the process's own code, for a drawn while
  void Suspend(TrueNs until);  // the machine; the boot clock stands still
  void Wake();
  void Crash();
  void SetAppReady(bool ready);
  void SetPush(bool up);
  void Hint(bool urgent);
  void SteerClock(int64_t rate_ppb) { clock_.SetRate(True(), rate_ppb); }
  void StepWallClock(int64_t by_ms) { wall_offset_ms_ += by_ms; }
  void AskStepDown(const lease::Precondition& expected, bool take_back);
  void Terminate();  // SIGTERM

  const NodePlan& plan() const { return *plan_; }
  const Process* process() const { return process_; }
  const lease::Engine* engine() const;
  std::vector<SimGate*>& gates();
  SimGate* GateAt(const std::string& address);  // whose peer listener that is
  bool app_ready() const { return app_ready_; }
  bool push_up() const { return push_up_; }
  bool terminating() const { return terminating_; }
  bool MayAct() const;

 private:
  struct Life;  // what ends with the process

  TrueNs True() const;
  std::string Who() const;
  app::LeaseDriver::Host MakeHost();
  gate::Host MakeGateHost();
  void MakeGates();
  void OnStep(const lease::Event& event, const lease::Effects& effects);
  bool AnswersLatestCall(const lease::Event& event) const;
  void SeeClocks(std::optional<int64_t> store_unix_ms);
  void WatchClock();
  void Remember(uint64_t token, base::Duration ttl);
  bool ProvenDead(const std::string& process_id) const;
  void DrawListener(const lease::ValveEffect& effect);
  void Stopped();
  void AppUnreadySince(uint64_t flap);
  void Sleep(TrueNs until);
  void End();  // the process is gone
  // Runs `what` unless the process it was meant for is gone.
  void Later(TrueNs at, std::function<void()> what);
  TrueNs Lateness();

  World& world_;
  const int index_;
  const NodePlan* plan_;  // of the process that runs: the configuration changes between restarts
  base::Random random_;
  BootClock clock_;
  int64_t wall_offset_ms_ = 0;
  lease::Memory memory_;  // node.state_dir
  Process* process_ = nullptr;
  std::shared_ptr<bool> alive_;
  std::unique_ptr<Life> life_;

  bool app_ready_ = true;
  uint64_t app_flaps_ = 0;
  bool push_up_ = true;
  bool terminating_ = false;

  bool asleep_ = false;
  std::vector<std::function<void()>> rest_;  // of StopHere
  bool suspended_ = false;
  TrueNs asleep_since_ = 0;
  base::MonoTime asleep_from_;
  uint64_t sleeps_ = 0;
  struct Waiting {
    std::function<void()> task;
    std::function<void()> lost;
    bool from_store = false;
  };
  std::vector<Waiting> inbox_;  // messages and posted turns that came while asleep, in order
  std::vector<std::function<void()>> overdue_;  // timers that were due meanwhile
};

}  // namespace leasehold::simulation

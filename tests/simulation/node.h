// Node: the driver's part of a run: one machine with a boot clock, one engine at a time on it, and
// the simulated gate that the engine's permit rules. It keeps the driver contract: effects carried
// out in order, synchronously; every store call answered, by its time-out at the latest; a Tick at
// NextDeadline(), never early, often late, very late when the process was frozen.
//
// Not here: which fault comes when (faults.h), what is right (checkers).
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/random.h"
#include "lease/engine.h"
#include "simulation/clock.h"
#include "simulation/facts.h"
#include "simulation/scenario.h"

namespace leasehold::simulation {

class World;

class Node {
 public:
  Node(World& world, int index);
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;

  void Start();  // a new process, at once
  bool running() const { return engine_ != nullptr; }
  bool asleep() const { return asleep_; }
  // Hands the engine an event: now, or when the process wakes. Dropped if there is no process.
  void Offer(lease::Event event);

  // ---- faults ----
  void Freeze(TrueNs until);   // SIGSTOP; the boot clock runs
  void Suspend(TrueNs until);  // the machine; the boot clock stands still
  void Wake();
  void Crash();
  void SetAppReady(bool ready);
  void SetPush(bool up);
  void SteerClock(int64_t rate_ppb) { clock_.SetRate(True(), rate_ppb); }
  void AskStepDown(const lease::Precondition& expected, bool take_back);
  void Terminate();  // SIGTERM

  const NodePlan& plan() const { return plan_; }
  const Process* process() const { return process_; }
  const lease::Engine* engine() const { return engine_.get(); }
  bool app_ready() const { return app_ready_; }
  bool push_up() const { return push_up_; }
  bool terminating() const { return terminating_; }
  bool MayAct() const;

 private:
  struct Call {
    uint64_t op = 0;
    bool read = false;
    base::MonoTime deadline;
  };

  TrueNs True() const;
  base::MonoTime Now() const { return clock_.At(True()); }
  std::string Who() const;

  void Step(const lease::Event& event);
  bool AnswersLatestCall(const lease::Event& event) const;
  void CarryOut(const lease::Effect& effect);
  void CarryOut(const lease::ReadEffect& effect);
  void CarryOut(const lease::CasEffect& effect);
  void CarryOut(const lease::ValveEffect& effect);
  void CarryOut(const lease::NoticeEffect& effect);
  void CarryOut(const lease::StepDownDone& effect);
  void CarryOut(const lease::StoppedEffect& effect);

  void BeginCall(uint64_t op, bool read, base::Duration timeout);
  void ScheduleTimeout(const Call& call);
  void TimedOut(uint64_t op);
  bool EndCall(uint64_t op);
  void Answer(uint64_t op, const lease::Event& answer);

  void ScheduleTick();
  void TickDue(TrueNs scheduled_for);
  void ScheduleAct();
  void DrainStarted(uint64_t token, base::Duration grace);
  void AppUnreadySince(uint64_t flap);
  void Sleep(TrueNs until);
  void End();  // the process is gone
  // Runs `what` unless the process it was meant for is gone.
  void Later(TrueNs at, std::function<void()> what);
  TrueNs Lateness();

  World& world_;
  const int index_;
  const NodePlan& plan_;
  base::Random random_;
  BootClock clock_;

  Process* process_ = nullptr;
  std::unique_ptr<lease::Engine> engine_;
  lease::Memory memory_;  // node.state_dir
  std::vector<Call> calls_;
  Call latest_call_;
  TrueNs tick_at_ = 0;  // the scheduled tick that counts; 0: none
  uint64_t drains_ = 0;
  int steps_at_once_ = 0;
  TrueNs last_step_at_ = -1;

  bool app_ready_ = true;
  uint64_t app_flaps_ = 0;
  bool push_up_ = true;
  bool terminating_ = false;

  bool asleep_ = false;
  bool suspended_ = false;
  TrueNs asleep_since_ = 0;
  base::MonoTime asleep_from_;
  uint64_t sleeps_ = 0;
  bool tick_waits_ = false;
  std::vector<std::function<void()>> inbox_;  // what arrived while asleep, in order
  std::vector<uint64_t> overdue_;             // calls whose time-out came while asleep
};

}  // namespace leasehold::simulation

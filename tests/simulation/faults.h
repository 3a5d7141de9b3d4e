// Faults: what goes wrong in a run, and when: Poisson processes with the scenario's rates until
// faults_end, after which everything is healed and at least one node can hold. It also plays the
// people and platforms who ask for step-downs and end processes.
#pragma once

#include <functional>
#include <vector>

#include "base/random.h"
#include "lease/events.h"
#include "simulation/clock.h"

namespace leasehold::simulation {

class World;
class Node;

class Faults {
 public:
  explicit Faults(World& world);
  void Schedule();
  void EndAll();  // at faults_end

 private:
  void Every(double per_ttl, std::function<void()> fault);
  void ScheduleCalm();
  void Freeze();
  void Suspend();
  void Crash();
  void Flap();
  void AskStepDown();
  lease::Precondition DrawPrecondition(const Node& node);
  void Outage();
  void CutOff();
  void Refuse();
  void LoseWrites();
  void CalmStrike();

  Node& AnyNode();
  Node* Holder();
  // Somewhere between much shorter and somewhat longer than the TTL, never past faults_end.
  TrueNs SpellEnd(double low, double high);

  World& world_;
  base::Random random_;
  std::vector<lease::Precondition> asked_;  // for retries
};

}  // namespace leasehold::simulation

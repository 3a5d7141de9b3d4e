// CaseWorld: a fixture for worlds built by hand. Nothing is drawn: the nodes are alike, each way to
// the store takes the same time, and faults come when the case says so. All checkers of the
// simulator judge the run too; a violation of any fails the case, with the end of its trace.
//
// A case: build (Nodes, scenario()), script (At), Run(until), assert on journal().
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "simulation/cases/journal.h"
#include "simulation/network.h"
#include "simulation/node.h"
#include "simulation/world.h"

namespace leasehold::simulation {

class CaseWorld : public ::testing::Test {
 protected:
  static constexpr TrueNs kLeg = 2 * kMillisecond;  // one way to the store
  // Timers of a machine are late by as much at most (node.cc), and messages take their way.
  static constexpr TrueNs kSlack = 50 * kMillisecond;

  // `count` nodes with this TTL: grace 0.5 TTL, hold-off 0.5 TTL + 0.3 s, requests forwarded, true
  // clocks; node i starts at i * 100 ms, so that node 0 acquires first.
  void Nodes(size_t count, base::Duration ttl);
  void ForAll(const std::function<void(NodePlan&)>& change);
  Scenario& scenario() { return scenario_; }
  void Clients(double requests_per_second);

  void At(TrueNs when, std::function<void()> script) { script_.emplace_back(when, script); }
  void ForgetScript() { script_.clear(); }  // before another run of the same case
  // Faults may come until `until`; then the world settles and ends.
  void Run(TrueNs until);

  // ---- for scripts and after the run ----
  World& world() { return *world_; }
  Node& node(int index) { return *world_->nodes()[static_cast<size_t>(index)]; }
  Network& network() { return world_->network(); }
  // Asks whoever may act now to step down. Nobody: the case fails.
  void StepDownHolder(bool take_back = true);
  // Writes a record past every sidecar, as a person or another program would.
  void Overwrite(const std::function<void(lease::Record&)>& change);
  int HolderNow();  // node; -1: nobody
  const Journal& journal() const { return *journal_; }
  TrueNs ttl() const { return scenario_.ttl; }
  lease::Timing timing() const { return lease::Derive(scenario_.nodes[0].options); }
  static TrueNs Ms(int64_t ms) { return ms * kMillisecond; }

 private:
  Scenario scenario_;
  std::vector<std::pair<TrueNs, std::function<void()>>> script_;
  std::unique_ptr<World> world_;
  Journal* journal_ = nullptr;  // the world's
};

}  // namespace leasehold::simulation

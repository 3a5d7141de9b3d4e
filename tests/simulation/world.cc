#include "simulation/world.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "simulation/checkers.h"
#include "simulation/faults.h"
#include "simulation/network.h"
#include "simulation/node.h"
#include "simulation/traffic.h"

namespace leasehold::simulation {

World::World(const Scenario& scenario, const RunOptions& options)
    : scenario_(scenario),
      options_(options),
      register_(scenario.store, FirstRecord(scenario.store, scenario.ttl_max / kMillisecond)),
      network_(std::make_unique<Network>(*this)),
      traffic_(std::make_unique<Traffic>(*this)),
      faults_(std::make_unique<Faults>(*this)) {
  MakeCheckers();
  for (size_t i = 0; i < scenario.nodes.size(); ++i) {
    nodes_.push_back(std::make_unique<Node>(*this, static_cast<int>(i)));
  }
}

World::~World() = default;

void World::MakeCheckers() {
  checkers_.push_back(MakeRequestChecker(*this, scenario_));
  checkers_.push_back(MakeFenceChecker(*this));
  if (options_.only_what_fencing_promises) {
    checkers_.push_back(MakeOverlapChecker(overlaps_));
    return;
  }
  checkers_.push_back(MakeOverlapChecker(*this));
  checkers_.push_back(MakeTokenChecker(*this));
  checkers_.push_back(MakeExpiryChecker(*this));
  checkers_.push_back(MakeTakeoverChecker(*this));
  checkers_.push_back(MakeReleaseChecker(*this));
  checkers_.push_back(MakeLossChecker(*this));
  checkers_.push_back(MakeLostTimeChecker(*this));
  checkers_.push_back(MakeValveChecker(*this));
  checkers_.push_back(MakeCallChecker(*this));
  checkers_.push_back(MakeStepDownChecker(*this));
  checkers_.push_back(MakeStopChecker(*this));
  checkers_.push_back(MakeDrainChecker(*this));
  checkers_.push_back(MakeGiveBackChecker(*this));
  checkers_.push_back(MakeRenewalChecker(*this));
  checkers_.push_back(MakeFollowChecker(*this));
  checkers_.push_back(MakeBudgetChecker(*this));
  checkers_.push_back(MakeRegressionChecker(*this));
  checkers_.push_back(MakeStartChecker(*this));
  checkers_.push_back(MakeGateChecker(*this));
  checkers_.push_back(MakeLivenessChecker(*this, scenario_));
  const bool calm = scenario_.kind != Kind::kStorm && scenario_.kind != Kind::kScripted;
  if (calm) checkers_.push_back(MakeCalmChecker(*this, scenario_));
  if (options_.check_replay) checkers_.push_back(MakeReplayChecker(*this));
}

void World::At(TrueNs when, std::function<void()> run) {
  CHECK(when >= now_, "the simulator schedules only into the future");
  if (when > scenario_.end) return;
  queue_.push_back({when, ++order_, std::move(run)});
  std::push_heap(queue_.begin(), queue_.end(), std::greater<>());
}

Process& World::Birth(int node, const NodePlan& plan) {
  auto process = std::make_unique<Process>();
  process->serial = static_cast<int>(processes_.size());
  process->node = node;
  process->plan = &plan;
  process->identity = {process->plan->node_id, "p" + std::to_string(process->serial)};
  processes_.push_back(std::move(process));
  return *processes_.back();
}

const Process* World::FindProcess(const std::string& process_id) const {
  for (const auto& process : processes_) {
    if (process->identity.process_id == process_id) return process.get();
  }
  return nullptr;
}

void World::Trace(const std::string& who, const std::string& what) {
  std::string line = Seconds(now_);
  line.insert(0, line.size() < 12 ? 12 - line.size() : 0, ' ');
  trace_.push_back(line + "  " + who + "  " + what);
  if (options_.trace_lines != 0 && trace_.size() > options_.trace_lines) trace_.pop_front();
}

void World::Violate(const std::string& rule, const std::string& detail) {
  if (violation_) return;
  violation_ = Violation{rule, detail, now_};
  if (tracing()) Trace("checker", "VIOLATION: " + detail);
}

void World::EndFaults() {
  if (tracing()) Trace("world", "faults are over");
  faults_->EndAll();
  Tell(&Checker::FaultsEnded, now_);
}

Outcome World::Run() {
  faults_->Schedule();
  traffic_->Schedule();
  At(scenario_.faults_end, [this] { EndFaults(); });
  while (!queue_.empty() && !violation_) {
    std::pop_heap(queue_.begin(), queue_.end(), std::greater<>());
    Pending next = std::move(queue_.back());
    queue_.pop_back();
    now_ = next.at;
    next.run();
  }
  if (!violation_) {
    now_ = scenario_.end;
    Tell(&Checker::Finished, now_);
  }
  Outcome outcome;
  outcome.violation = violation_;
  outcome.trace.assign(trace_.begin(), trace_.end());
  outcome.simulated = now_;
  outcome.steps = steps_;
  outcome.overlaps = overlaps_.count;
  return outcome;
}

}  // namespace leasehold::simulation

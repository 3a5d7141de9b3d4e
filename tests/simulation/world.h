// World: true time, the queue of what happens next, and all that lives in a run: the register, the
// way to it, the nodes, the faults and the checkers. One thread, one seed; ordered by (true time,
// order of scheduling), so that a run is the same every time.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "base/random.h"
#include "simulation/facts.h"
#include "simulation/register.h"
#include "simulation/scenario.h"

namespace leasehold::simulation {

class Network;
class Node;
class Faults;
class Traffic;

struct Violation {
  std::string rule;
  std::string detail;
  TrueNs at = 0;
};

struct Outcome {
  std::optional<Violation> violation;
  std::vector<std::string> trace;  // empty unless asked for
  TrueNs simulated = 0;
  uint64_t steps = 0;
  uint64_t overlaps = 0;  // with only_what_fencing_promises: violations of the overlap checker
};

struct RunOptions {
  bool trace = false;
  size_t trace_lines = 0;  // keep the last so many; 0: all
  // For worlds beyond the bounds: count overlaps, and demand only what holds in any world (fenced
  // resources, no request done twice or lost).
  bool only_what_fencing_promises = false;
  bool check_replay = false;  // record every engine's events and replay them into a fresh one
};

class World final : public Judge {
 public:
  World(const Scenario& scenario, const RunOptions& options);
  ~World() override;

  Outcome Run();

  // ---- for what lives in it ----
  TrueNs now() const { return now_; }
  void At(TrueNs when, std::function<void()> run);  // `when` not before now()
  void After(TrueNs delay, std::function<void()> run) { At(now_ + delay, std::move(run)); }
  bool faults_over() const { return now_ >= scenario_.faults_end; }
  const Scenario& scenario() const { return scenario_; }
  Register& store() { return register_; }
  Network& network() { return *network_; }
  Traffic& traffic() { return *traffic_; }
  std::vector<std::unique_ptr<Node>>& nodes() { return nodes_; }
  bool tracing() const { return options_.trace; }
  void Trace(const std::string& who, const std::string& what);

  // One more, of a case's own; before Run().
  void Add(std::unique_ptr<Checker> checker) { checkers_.push_back(std::move(checker)); }
  // A new life; the world keeps the Process for the checkers and the trace.
  Process& Birth(int node, const NodePlan& plan);
  const Process* FindProcess(const std::string& process_id) const;
  void Violate(const std::string& rule, const std::string& detail) override;
  void CountStep() { ++steps_; }
  bool check_replay() const { return options_.check_replay; }
  template <typename... Args>
  void Tell(void (Checker::*fact)(Args...), std::type_identity_t<Args>... args) {
    for (const auto& checker : checkers_) (checker.get()->*fact)(args...);
  }

 private:
  struct Pending {
    TrueNs at;
    uint64_t order;
    std::function<void()> run;
    bool operator>(const Pending& o) const { return at != o.at ? at > o.at : order > o.order; }
  };

  void EndFaults();
  void MakeCheckers();

  const Scenario& scenario_;
  const RunOptions options_;
  TrueNs now_ = 0;
  uint64_t order_ = 0;
  uint64_t steps_ = 0;
  std::vector<Pending> queue_;  // a heap
  Register register_;
  std::vector<std::unique_ptr<Checker>> checkers_;
  std::vector<std::unique_ptr<Process>> processes_;
  std::unique_ptr<Network> network_;
  std::unique_ptr<Traffic> traffic_;
  std::vector<std::unique_ptr<Node>> nodes_;
  std::unique_ptr<Faults> faults_;
  std::deque<std::string> trace_;
  std::optional<Violation> violation_;
  struct Counter final : public Judge {
    void Violate(const std::string&, const std::string&) override { ++count; }
    uint64_t count = 0;
  } overlaps_;
};

}  // namespace leasehold::simulation

// Scenario: everything about a run that is drawn before it starts: the nodes and their options and
// clocks, how the store and the way to it behave, which faults come how often, and for how long.
// A pure function of the seed. Not here: the individual faults (faults.h), which are drawn as the
// run goes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "gate/options.h"
#include "lease/options.h"
#include "lease/record.h"
#include "simulation/clock.h"

namespace leasehold::simulation {

// What a run is about. Most are storms; the calm ones have a single fault in an otherwise perfect
// world, so that tight bounds can be demanded (check_calm.cc).
enum class Kind {
  kStorm,         // any mix of faults
  kCalmCrash,     // the holder is killed once
  kCalmOutage,    // the store is away once, until 0.7 TTL after the last renewal at most
  kCalmStepDown,  // the holder is asked to step down once
  kScripted,      // a case (cases/): built by hand, and so are its faults; never drawn
};
const char* KindName(Kind kind);

struct NodePlan {
  lease::Options options;
  std::string node_id;
  int64_t clock_offset_ns = 0;
  int64_t clock_rate_ppb = 0;
  TrueNs starts_at = 0;
  bool keeps_memory = false;  // node.state_dir: Memory survives, and death of the former process
                              // of this node is proven
  bool push = false;          // the store pushes hints to this node
  TrueNs unready_after = 0;   // app.unready_after
  std::vector<gate::Options> gates;  // the first is inbound, others outbound
};

// The way to the store and the store itself.
struct StorePlan {
  TrueNs typical = 0;              // scale of the exponential latency of each leg
  bool steady = false;             // each leg takes `typical`, neither more nor less
  double tail = 0;                 // share of legs that take up to tail_max instead
  TrueNs tail_max = 0;             // late enough to outlive the attempt, sometimes the TTL
  double lost_request = 0;         // nothing arrives; no answer
  double lost_reply = 0;           // applied; no answer
  double reset = 0;                // ambiguous at once; the request may arrive later
  double doubled = 0;              // share of answers that are told twice, or after their time-out
  double replicas_missing = 0;     // wait_replicas: applied, answered ambiguous
  double conflict_bare = 0;        // share of conflicts answered without the record
  bool proves_death = false;       // file store: reads say when the record's process is dead
  bool numbered_versions = false;  // the store adds a number of its own to each version
  bool tells_time = false;         // its answers carry its own clock
  enum class Start { kAbsent, kReleased, kHeldByDead, kUnusable, kNearlyExhausted };
  Start start = Start::kAbsent;
};

// Faults of a kind come as a Poisson process; the numbers are how many to expect per TTL.
struct FaultPlan {
  double freeze = 0;   // SIGSTOP, SIGCONT
  double suspend = 0;  // the machine stops and its boot clock does not count it
  double crash = 0;
  double app_flap = 0;
  double step_down = 0;  // with a right, wrong or stale precondition
  double shutdown = 0;
  double outage = 0;       // the store is away for everybody
  double cut_off = 0;      // for one node
  double refusal = 0;      // the store refuses everybody
  double lost_writes = 0;  // the store restarts from an older state
  double push_flap = 0;
  double spurious_hint = 0;
  double start_failed = 0;
  double stray_drained = 0;  // a listener says drained for another term
  // Not per TTL but of each: the connection between two gates breaks instead of carrying a message;
  // the process is stopped, or dies, when a write is about to leave it.
  double peer_break = 0;
  double cut_short = 0;
  double rate_change = 0;  // a clock's rate is steered within the drift bound
  double wall_step = 0;    // a wall clock is set, forward or back
  bool lossy() const { return lost_writes > 0; }
};

struct Scenario {
  uint64_t seed = 0;
  Kind kind = Kind::kStorm;
  std::vector<NodePlan> nodes;
  // The same nodes with another configuration (TTL and all), which a restart may bring; or empty.
  std::vector<NodePlan> changed;
  double requests_per_ttl = 0;  // of all clients together
  StorePlan store;
  FaultPlan faults;
  // Who listens at the signal socket during a drain.
  enum class Listeners { kDrawn, kNone, kNeverDone };
  Listeners listeners = Listeners::kDrawn;
  TrueNs ttl = 0;           // of the first node; others are near it
  TrueNs ttl_max = 0;       // of any node
  TrueNs faults_end = 0;    // no fault begins or goes on after this
  TrueNs settle_bound = 0;  // after faults_end: somebody holds by then (check_liveness.cc)
  TrueNs end = 0;

  // Can some machine's clocks disagree, so that it must look at them now and then?
  bool clocks_jump() const {
    return faults.suspend > 0 || faults.wall_step > 0 || kind == Kind::kScripted;
  }
  std::string Describe() const;  // a few lines for a trace's head
};

Scenario DrawScenario(uint64_t seed);
// `settle_bound` and `end` of a run whose nodes and `faults_end` are known.
void SetEnd(Scenario& scenario);
// The same run with clocks whose rates differ from true time by up to `percent`: more than the
// program was told to expect (max_clock_drift), so that promises may break.
Scenario BeyondDrift(Scenario scenario, double percent);

inline constexpr char kLeaseName[] = "orders";

}  // namespace leasehold::simulation

#include "simulation/scenario.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "base/random.h"

namespace leasehold::simulation {
namespace {

using base::Duration;
using base::Random;

constexpr int64_t kDriftPpb = 1'000'000;  // 0.1 %, the default of max_clock_drift

bool Chance(Random& random, double p) { return random.Unit() < p; }

double Uniform(Random& random, double low, double high) {
  return low + (high - low) * random.Unit();
}

double LogUniform(Random& random, double low, double high) {
  return low * std::pow(high / low, random.Unit());
}

Duration OfTtl(Duration ttl, double share) {
  return Duration::Millis(std::max<int64_t>(10, ttl.Scaled(share).millis()));
}

Duration DrawTtl(Random& random) {
  // The default is the commonest; the rest spreads over what people configure (0.5 s to 30 s).
  if (Chance(random, 0.25)) return Duration::Seconds(10);
  return Duration::Millis(static_cast<int64_t>(LogUniform(random, 500, 30000)));
}

// Options that differ from the defaults in a few places, kept only if they are valid.
lease::Options DrawOptions(Random& random, Duration ttl) {
  lease::Options plain;
  plain.name = kLeaseName;
  plain.ttl = ttl;
  plain.step_down_grace = OfTtl(ttl, Uniform(random, 0.05, 2.0));
  plain.step_down_hold_off = OfTtl(ttl, Uniform(random, 0.3, 1.0)) + Duration::Millis(300);
  if (Chance(random, 0.1)) plain.on_token_regression = lease::OnTokenRegression::kRefuse;
  if (Chance(random, 0.05)) plain.fail_if_held = true;
  if (Chance(random, 0.1)) plain.step_down_grace = Duration::Zero();
  if (Chance(random, 0.1)) plain.step_down_hold_off.reset();
  lease::Options o = plain;
  if (Chance(random, 0.3)) o.max_renew_fails = 1 + static_cast<int>(random.Below(6));
  if (Chance(random, 0.2)) o.safety_margin = OfTtl(ttl, Uniform(random, 0.01, 0.125));
  if (Chance(random, 0.2)) o.renew_call_timeout = OfTtl(ttl, Uniform(random, 0.02, 0.2));
  if (Chance(random, 0.2)) o.poll_interval = OfTtl(ttl, Uniform(random, 0.03, 0.5));
  if (Chance(random, 0.2)) o.renew_interval = OfTtl(ttl, Uniform(random, 0.05, 0.25));
  return lease::Validate(o).empty() ? o : plain;
}

int64_t DrawRate(Random& random) {  // the extremes are where rules break
  switch (random.Below(4)) {
    case 0: return kDriftPpb;
    case 1: return -kDriftPpb;
    default: return static_cast<int64_t>(random.Below(2 * kDriftPpb + 1)) - kDriftPpb;
  }
}

NodePlan DrawNode(Random& random, Duration ttl, size_t index, bool state_dirs) {
  NodePlan node;
  const bool same_ttl = Chance(random, 0.7);
  const Duration own =
      same_ttl ? ttl
               : Duration::Millis(std::max<int64_t>(
                     lease::kTtlMillisMin, ttl.Scaled(LogUniform(random, 0.4, 2.5)).millis()));
  node.options = DrawOptions(random, own);
  node.node_id = std::string("n") + std::to_string(index);
  node.clock_offset_ns =
      kSecond * (1 + static_cast<int64_t>(random.Below(1'000'000)));  // up since 0..11 days
  node.clock_rate_ppb = DrawRate(random);
  node.starts_at = static_cast<TrueNs>(Uniform(random, 0, Chance(random, 0.7) ? 0.1 : 4.0) *
                                       static_cast<double>(ttl.nanos()));
  node.keeps_memory = state_dirs && Chance(random, 0.8);
  node.push = Chance(random, 0.5);
  node.unready_after = own.Scaled(Uniform(random, 0.1, 1.0)).nanos();
  return node;
}

// The gates of one node, as a valid configuration has them. `policy`: all nodes' web gates have the
// same, as one chart would write it.
void DrawGates(Random& random, gate::StandbyPolicy policy, bool calm, size_t index,
               NodePlan& node) {
  const lease::Timing timing = lease::Derive(node.options);
  gate::Options web;
  web.name = "web";
  web.lease = kLeaseName;
  web.listen = {base::Address::Kind::kTcp, "127.0.0.1", 8080, ""};
  web.upstream = {base::Address::Kind::kTcp, "127.0.0.1", 8000, ""};
  web.standby = policy;
  if (Chance(random, 0.15)) web.on_loss = gate::OnLoss::kFinish;
  if (!calm && Chance(random, 0.1)) web.max_held = 1 + static_cast<uint32_t>(random.Below(4));
  web.hold_timeout = timing.grace + timing.hold_off + timing.poll_interval +
                     timing.ttl.Scaled(Uniform(random, 0.05, 1.0)) + Duration::Millis(50);
  if (web.forwards()) {
    const std::string host = "10.0.0." + std::to_string(index);
    web.peer_listen = {base::Address::Kind::kTcp, host, 8081, ""};
  }
  node.gates = {web};
  if (!Chance(random, 0.25)) return;
  gate::Options out = web;
  out.name = "out";
  out.outbound = true;
  out.standby = Chance(random, 0.5) ? gate::StandbyPolicy::kReject : gate::StandbyPolicy::kHold;
  out.peer_listen = {};
  node.gates.push_back(out);
}

gate::StandbyPolicy DrawPolicy(Random& random) {
  const double policy = random.Unit();
  if (policy < 0.25) return gate::StandbyPolicy::kReject;
  return policy < 0.45 ? gate::StandbyPolicy::kHold : gate::StandbyPolicy::kForward;
}

void DrawNodes(Random& random, Scenario& s) {
  static constexpr size_t kCounts[] = {1, 2, 2, 2, 2, 3, 3, 3, 4, 5};
  const size_t count =
      s.kind == Kind::kStorm ? kCounts[random.Below(std::size(kCounts))] : 1 + random.Below(3);
  const Duration ttl = DrawTtl(random);
  const bool state_dirs = Chance(random, 0.3);
  for (size_t i = 0; i < count; ++i) {
    s.nodes.push_back(DrawNode(random, ttl, i, state_dirs));
  }
  if (count > 1 && Chance(random, 0.1)) s.nodes[1].node_id = s.nodes[0].node_id;
  if (Chance(random, 0.15)) {  // somebody edits the configuration; restarts bring it
    s.changed = s.nodes;
    for (NodePlan& node : s.changed) {
      const double factor = LogUniform(random, 0.4, 2.5);
      node.options = DrawOptions(random, Duration::Millis(std::max<int64_t>(
                                             lease::kTtlMillisMin, ttl.Scaled(factor).millis())));
    }
  }
  s.ttl = ttl.nanos();
}

template <typename Visit>
void ForAllPlans(Scenario& s, Visit visit) {
  for (size_t i = 0; i < s.nodes.size(); ++i) visit(s.nodes[i], i);
  for (size_t i = 0; i < s.changed.size(); ++i) visit(s.changed[i], i);
}

void DrawStore(Random& random, Scenario& s) {
  StorePlan& p = s.store;
  const double ttl = static_cast<double>(s.ttl);
  p.typical = static_cast<TrueNs>(std::min(ttl * LogUniform(random, 0.0002, 0.01), 5e7));
  p.tail_max = static_cast<TrueNs>(ttl * LogUniform(random, 0.05, 2.5));
  if (Chance(random, 0.6)) p.tail = LogUniform(random, 0.002, 0.2);
  if (Chance(random, 0.4)) p.lost_request = LogUniform(random, 0.003, 0.3);
  if (Chance(random, 0.5)) p.lost_reply = LogUniform(random, 0.003, 0.3);
  if (Chance(random, 0.3)) p.reset = LogUniform(random, 0.003, 0.3);
  if (Chance(random, 0.1)) {  // wait_replicas
    p.replicas_missing = LogUniform(random, 0.01, 0.5);
    ForAllPlans(s, [](NodePlan& node, size_t) { node.options.reads_confirm = false; });
  }
  p.conflict_bare = Chance(random, 0.5) ? 0 : Uniform(random, 0.0, 1.0);
  p.proves_death = Chance(random, 0.25);
  p.numbered_versions = Chance(random, 0.3);
  p.tells_time = Chance(random, 0.5);
  const double start = random.Unit();
  p.start = start < 0.70   ? StorePlan::Start::kAbsent
            : start < 0.83 ? StorePlan::Start::kReleased
            : start < 0.98 ? StorePlan::Start::kHeldByDead
            : start < 0.99 ? StorePlan::Start::kUnusable
                           : StorePlan::Start::kNearlyExhausted;
}

// From a stream of its own, so that the rest of the world is what it is without them.
void DrawRareFaults(Scenario& s) {
  Random random(s.seed ^ 0x72617265);
  if (Chance(random, 0.3)) s.faults.peer_break = LogUniform(random, 0.005, 0.2);
  if (Chance(random, 0.2)) s.store.doubled = LogUniform(random, 0.005, 0.3);
  if (Chance(random, 0.3)) s.faults.cut_short = LogUniform(random, 0.002, 0.05);
}

void DrawFaults(Random& random, Scenario& s) {
  FaultPlan& f = s.faults;
  const auto maybe = [&](double share, double low, double high) {
    return Chance(random, share) ? LogUniform(random, low, high) : 0.0;
  };
  const double nodes = static_cast<double>(s.nodes.size());
  f.freeze = nodes * maybe(0.35, 0.02, 0.4);
  f.suspend = nodes * maybe(0.15, 0.02, 0.2);
  f.crash = nodes * maybe(0.4, 0.02, 0.25);
  f.app_flap = nodes * maybe(0.3, 0.02, 0.4);
  f.step_down = maybe(0.45, 0.05, 1.0);
  f.shutdown = nodes * maybe(0.25, 0.02, 0.15);
  f.outage = maybe(0.35, 0.03, 0.3);
  f.cut_off = nodes * maybe(0.3, 0.03, 0.3);
  f.refusal = maybe(0.15, 0.03, 0.3);
  f.lost_writes = maybe(0.12, 0.03, 0.3);
  f.push_flap = maybe(0.3, 0.05, 0.5);
  f.spurious_hint = maybe(0.2, 0.1, 2.0);
  f.start_failed = maybe(0.08, 0.05, 0.3);
  f.stray_drained = maybe(0.2, 0.05, 0.5);
  f.rate_change = maybe(0.1, 0.05, 0.5);
  f.wall_step = nodes * maybe(0.1, 0.05, 0.5);
}

// A world with one fault in it: a quick store, no losses, one TTL for all.
void Calm(Random& random, Scenario& s) {
  s.faults = {};
  s.changed.clear();
  s.store = {};
  s.store.typical =
      static_cast<TrueNs>(static_cast<double>(s.ttl) * LogUniform(random, 0.0001, 0.002));
  s.store.numbered_versions = Chance(random, 0.3);
  for (NodePlan& node : s.nodes) {
    node.options.ttl = Duration::Nanos(s.ttl);
    node.options = DrawOptions(random, node.options.ttl);
    node.options.fail_if_held = false;
    // Short rounds give up early by their owner's choice; the promise is of the default ones.
    node.options.max_renew_fails = 3;
    node.options.renew_interval.reset();
    node.options.renew_call_timeout.reset();
    node.starts_at = static_cast<TrueNs>(random.Below(static_cast<uint64_t>(s.ttl) / 2));
  }
}

TrueNs Longest(const Scenario& s, base::Duration (*pick)(const lease::Timing&)) {
  Duration longest;
  for (const NodePlan& node : s.nodes) longest = Max(longest, pick(lease::Derive(node.options)));
  for (const NodePlan& node : s.changed) longest = Max(longest, pick(lease::Derive(node.options)));
  return longest.nanos();
}

Kind DrawKind(Random& random) {
  const double kind = random.Unit();
  if (kind < 0.88) return Kind::kStorm;
  if (kind < 0.92) return Kind::kCalmCrash;
  return kind < 0.96 ? Kind::kCalmOutage : Kind::kCalmStepDown;
}

}  // namespace

void SetEnd(Scenario& s) {
  using lease::Timing;
  const TrueNs poll = Longest(s, [](const Timing& t) { return t.poll_interval; });
  const TrueNs call = Longest(s, [](const Timing& t) { return t.call_timeout; });
  const TrueNs hold_off = Longest(s, [](const Timing& t) { return t.hold_off; });
  const TrueNs grace = Longest(s, [](const Timing& t) { return t.grace; });
  // What may lie between the last fault and a holder: a late write of a dead process lands (not
  // later than faults_end, see network.cc), a cold or gone-back window of the longest TTL, a
  // release that is tried for one TTL, a hold-off where nobody else can take it, and the calls and
  // polls between them, of which the first may have been put off by failures to a quarter of a TTL
  // and its jitter. The old record of FirstRecord has the longest TTL.
  s.settle_bound = 2 * s.ttl_max + s.ttl_max / 100 + hold_off + 3 * poll + 6 * call;
  s.settle_bound += s.ttl_max * 9 / 32;
  // StartFailed is tried again after 1 to 30 s (DESIGN 2.6).
  if (s.faults.start_failed > 0) s.settle_bound += 30 * kSecond;
  s.end = s.faults_end + s.settle_bound + grace + s.ttl_max;
  // Long enough now and then for the last request to be held, and twice at a silent peer
  // (check_requests.cc).
  if (s.seed % 8 == 0) {
    TrueNs hold = 0;
    for (const NodePlan& node : s.nodes) hold = std::max(hold, node.gates[0].hold_timeout.nanos());
    for (const NodePlan& n : s.changed) hold = std::max(hold, n.gates[0].hold_timeout.nanos());
    s.end = std::max(s.end, s.faults_end + hold + 8 * kSecond + 4 * s.ttl_max);
  }
}

const char* KindName(Kind kind) {
  switch (kind) {
    case Kind::kStorm: return "storm";
    case Kind::kCalmCrash: return "calm, one crash";
    case Kind::kCalmOutage: return "calm, one short outage";
    case Kind::kCalmStepDown: return "calm, one step-down";
    case Kind::kScripted: return "a case";
  }
  return "?";
}

Scenario DrawScenario(uint64_t seed) {
  Random random(seed);
  Scenario s;
  s.seed = seed;
  s.kind = DrawKind(random);
  DrawNodes(random, s);
  DrawStore(random, s);
  DrawFaults(random, s);
  DrawRareFaults(s);
  if (s.kind != Kind::kStorm) Calm(random, s);
  const gate::StandbyPolicy policy =
      s.kind == Kind::kCalmStepDown ? gate::StandbyPolicy::kForward : DrawPolicy(random);
  ForAllPlans(s, [&](NodePlan& node, size_t i) {
    DrawGates(random, policy, s.kind != Kind::kStorm, i, node);
    s.ttl_max = std::max(s.ttl_max, node.options.ttl.nanos());
  });
  if (s.kind == Kind::kCalmStepDown) {  // a hold_timeout that covers the others' drains as well
    Duration longest;
    for (const NodePlan& node : s.nodes) longest = Max(longest, node.gates[0].hold_timeout);
    for (NodePlan& node : s.nodes) node.gates[0].hold_timeout = longest;
  }
  s.requests_per_ttl =
      s.kind == Kind::kCalmStepDown ? 40 : 2.0 * static_cast<double>(s.nodes.size());
  const double ttls = s.kind == Kind::kStorm ? Uniform(random, 4, 16) : 6;
  s.faults_end = static_cast<TrueNs>(static_cast<double>(s.ttl_max) * ttls);
  SetEnd(s);
  return s;
}

Scenario BeyondDrift(Scenario s, double percent) {
  Random random(s.seed ^ 0x6472696674);
  const double most = percent * 1e7;
  for (NodePlan& node : s.nodes) {
    node.clock_rate_ppb = static_cast<int64_t>(Uniform(random, -most, most));
  }
  s.faults.rate_change = 0;
  return s;
}

}  // namespace leasehold::simulation

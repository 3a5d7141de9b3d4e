#include "simulation/faults.h"

#include <algorithm>
#include <cmath>
#include <memory>

#include "simulation/network.h"
#include "simulation/node.h"
#include "simulation/world.h"

namespace leasehold::simulation {
namespace {

constexpr uint64_t kStream = 0x6661756c;

}  // namespace

Faults::Faults(World& world) : world_(world), random_(world.scenario().seed ^ (kStream << 16)) {}

void Faults::Every(double per_ttl, std::function<void()> fault) {
  if (per_ttl <= 0) return;
  const double mean = static_cast<double>(world_.scenario().ttl) / per_ttl;
  const TrueNs wait = static_cast<TrueNs>(-std::log(1 - random_.Unit()) * mean);
  if (world_.now() + wait >= world_.scenario().faults_end) return;
  world_.After(1 + wait, [this, per_ttl, fault = std::move(fault)] {
    if (world_.faults_over()) return;
    fault();
    Every(per_ttl, fault);
  });
}

void Faults::Schedule() {
  const FaultPlan& plan = world_.scenario().faults;
  Every(plan.freeze, [this] { Freeze(); });
  Every(plan.suspend, [this] { Suspend(); });
  Every(plan.crash, [this] { Crash(); });
  Every(plan.app_flap, [this] { Flap(); });
  Every(plan.step_down, [this] { AskStepDown(); });
  Every(plan.shutdown, [this] { AnyNode().Terminate(); });
  Every(plan.outage, [this] { Outage(); });
  Every(plan.cut_off, [this] { CutOff(); });
  Every(plan.refusal, [this] { Refuse(); });
  Every(plan.lost_writes, [this] { LoseWrites(); });
  Every(plan.push_flap, [this] {
    Node& node = AnyNode();
    node.SetPush(!node.push_up());
  });
  Every(plan.spurious_hint, [this] { AnyNode().Hint(random_.Below(2) == 0); });
  Every(plan.start_failed, [this] {
    Node* holder = Holder();
    if (holder == nullptr) return;
    holder->Offer(lease::StartFailed{holder->engine()->permit().token(), "port in use"});
  });
  Every(plan.stray_drained, [this] {
    Node& node = AnyNode();
    if (!node.running()) return;
    // Of an earlier term, or of one that is not yet: a drained for the present term while it is
    // draining is the gate's to say.
    const uint64_t token = node.engine()->permit().token();
    node.Offer(
        lease::Drained{random_.Below(2) == 0 ? token + 1 : token - std::min<uint64_t>(token, 1)});
  });
  Every(plan.rate_change, [this] {
    AnyNode().SteerClock(static_cast<int64_t>(random_.Below(2'000'001)) - 1'000'000);
  });
  Every(plan.wall_step, [this] {
    // Seconds to hours, either way.
    const auto by = static_cast<int64_t>(1000 * std::pow(7200.0, random_.Unit()));
    AnyNode().StepWallClock(random_.Below(2) == 0 ? by : -by);
  });
  ScheduleCalm();
}

Node& Faults::AnyNode() { return *world_.nodes()[random_.Below(world_.nodes().size())]; }

Node* Faults::Holder() {
  for (const auto& node : world_.nodes()) {
    if (node->MayAct()) return node.get();
  }
  return nullptr;
}

TrueNs Faults::SpellEnd(double low, double high) {
  const double ttls = low * std::pow(high / low, random_.Unit());
  const auto length = static_cast<TrueNs>(ttls * static_cast<double>(world_.scenario().ttl));
  return std::min(world_.now() + length, world_.scenario().faults_end);
}

void Faults::Freeze() {
  Node* holder = Holder();
  Node& node = holder != nullptr && random_.Below(2) == 0 ? *holder : AnyNode();
  node.Freeze(SpellEnd(0.01, 3.0));
}

void Faults::Suspend() {
  Node* holder = Holder();
  Node& node = holder != nullptr && random_.Below(2) == 0 ? *holder : AnyNode();
  node.Suspend(SpellEnd(0.05, 3.0));
}

void Faults::Crash() {
  Node* holder = Holder();
  Node& node = holder != nullptr && random_.Below(2) == 0 ? *holder : AnyNode();
  if (!node.running()) return;
  node.Crash();
  if (random_.Below(6) == 0) return;  // until the faults end
  const TrueNs back = random_.Below(2) == 0 ? world_.now() + kMillisecond : SpellEnd(0.02, 2.0);
  world_.At(back, [&node] {
    if (!node.running()) node.Start();
  });
}

void Faults::Flap() {
  Node& node = AnyNode();
  node.SetAppReady(!node.app_ready());
}

lease::Precondition Faults::DrawPrecondition(const Node& node) {
  const uint64_t token = node.engine()->permit().token();
  lease::Precondition right{node.plan().node_id, token};
  switch (random_.Below(10)) {
    case 0: return {node.plan().node_id, token + 1};
    case 1: return {node.plan().node_id, token - std::min<uint64_t>(token, 1)};
    case 2: return {"somebody-else", token};
    case 3: return {node.plan().node_id, 0};
    case 4: return {"", token};
    case 5: return asked_.empty() ? right : asked_[random_.Below(asked_.size())];
    default: return right;
  }
}

void Faults::AskStepDown() {
  Node* holder = Holder();
  Node& node = holder != nullptr && random_.Below(3) != 0 ? *holder : AnyNode();
  if (!node.running()) return;
  const lease::Precondition expected = DrawPrecondition(node);
  asked_.push_back(expected);
  const bool take_back = random_.Below(4) != 0;
  node.AskStepDown(expected, take_back);
  if (!take_back && random_.Below(2) == 0) {  // a pod that is going away
    world_.At(SpellEnd(0.1, 1.0), [&node] { node.Terminate(); });
  }
  if (random_.Below(3) != 0) return;
  // The asker saw no answer and asks again, there or elsewhere, soon or late.
  world_.At(SpellEnd(0.001, 2.0), [this, &node, expected] {
    (random_.Below(2) == 0 ? node : AnyNode()).AskStepDown(expected, true);
  });
}

void Faults::Outage() {
  world_.network().StoreAway(SpellEnd(0.02, 2.5), random_.Below(2) == 0
                                                      ? Network::Away::kUnreachable
                                                      : Network::Away::kFrozen);
  if (world_.tracing()) world_.Trace("store", "is away");
}

void Faults::CutOff() {
  const auto node = static_cast<int>(random_.Below(world_.nodes().size()));
  world_.network().CutOff(node, SpellEnd(0.02, 2.5));
  if (world_.tracing()) world_.Trace("store", "is out of reach of n" + std::to_string(node));
}

void Faults::Refuse() {
  world_.network().StoreRefuses(SpellEnd(0.02, 2.5));
  if (world_.tracing()) world_.Trace("store", "refuses");
}

void Faults::LoseWrites() {
  const uint64_t depth = random_.Below(8);
  const size_t all = world_.store().writes();
  const size_t count = depth == 0 ? all : depth < 5 ? random_.Below(3) + 1 : random_.Below(all + 1);
  world_.network().LoseWrites(count);
  if (random_.Below(2) == 0) {
    world_.network().StoreAway(SpellEnd(0.01, 0.5), Network::Away::kUnreachable);
  }
}

// ---- the calm kinds ----

void Faults::ScheduleCalm() {
  const Scenario& s = world_.scenario();
  if (s.kind == Kind::kStorm || s.kind == Kind::kScripted) return;
  // After 2 to 3 TTLs everybody has looked around and somebody has renewed a few times.
  const auto at = static_cast<TrueNs>((2.0 + random_.Unit()) * static_cast<double>(s.ttl));
  world_.At(at, [this] { CalmStrike(); });
}

void Faults::CalmStrike() {
  Node* holder = Holder();
  if (holder == nullptr) return;  // check_calm.cc complains
  const double ttl = static_cast<double>(world_.scenario().ttl);
  switch (world_.scenario().kind) {
    case Kind::kStorm:
    case Kind::kScripted: return;
    case Kind::kCalmCrash: return holder->Crash();
    case Kind::kCalmOutage: {
      // Up to 0.7 TTL after the last confirmed sending: "about three quarters" (DESIGN 2.3) less
      // the calls that must find the store back.
      const Process& p = *holder->process();
      const TrueNs sent =
          p.clock->TrueAt(holder->engine()->permit().expiry() - (p.timing.ttl - p.timing.margin));
      const auto most = static_cast<double>(sent - world_.now()) + 0.7 * ttl;
      const auto length = static_cast<TrueNs>(most * std::sqrt(random_.Unit()));
      const bool frozen = random_.Below(2) == 0;
      if (world_.tracing()) world_.Trace("store", "is away for " + Seconds(length) + " s");
      return world_.network().StoreAway(
          world_.now() + length, frozen ? Network::Away::kFrozen : Network::Away::kUnreachable);
    }
    case Kind::kCalmStepDown:
      return holder->AskStepDown({holder->plan().node_id, holder->engine()->permit().token()},
                                 true);
  }
}

// ---- the end ----

void Faults::EndAll() {
  world_.network().EndSpells();
  if (world_.scenario().kind != Kind::kStorm && world_.scenario().kind != Kind::kCalmCrash) return;
  bool able = false;
  for (const auto& node : world_.nodes()) {
    node->Wake();
    if (!node->push_up()) node->SetPush(true);
    if (!node->app_ready() && random_.Below(4) != 0) node->SetAppReady(true);
    if (world_.scenario().kind == Kind::kStorm && random_.Below(8) == 0) node->Crash();
    if (!node->running() && random_.Below(4) != 0) node->Start();
    able = able || (node->running() && node->app_ready() && !node->terminating());
  }
  if (able) return;
  Node& node = AnyNode();
  node.SetAppReady(true);
  if (!node.running()) node.Start();
}

}  // namespace leasehold::simulation

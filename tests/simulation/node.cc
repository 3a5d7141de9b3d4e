#include "simulation/node.h"

#include <algorithm>
#include <utility>

#include "lease/trace.h"
#include "simulation/network.h"
#include "simulation/node_life.h"
#include "simulation/world.h"

namespace leasehold::simulation {
namespace {

constexpr uint64_t kStream = 0x6e6f6465;
// So many steps at one true instant are a loop that does not end: an engine that wants a Tick at a
// moment already past, over and over.
constexpr int kStepsAtOnceMax = 300;
// How often a sidecar compares its clocks (app/sidecar.cc).
constexpr base::Duration kClockWatchInterval = base::Duration::Millis(500);
constexpr int64_t kWallEpochMs = 1'790'000'000'000;

}  // namespace

Node::Node(World& world, int index)
    : world_(world),
      index_(index),
      plan_(&world.scenario().nodes[static_cast<size_t>(index)]),
      random_(world.scenario().seed ^ (kStream << 24) ^ static_cast<uint64_t>(index)),
      clock_(plan_->clock_offset_ns, plan_->clock_rate_ppb) {
  world_.At(plan_->starts_at, [this] {
    if (!running()) Start();
  });
}

Node::~Node() {
  const OnMachine here(*this);
  life_.reset();
}

TrueNs Node::True() const { return world_.now(); }

base::WallTime Node::WallNow() const {
  return {kWallEpochMs + True() / kMillisecond + wall_offset_ms_};
}

std::string Node::Who() const {
  return process_ == nullptr ? "n" + std::to_string(index_) : Name(*process_);
}

const lease::Engine* Node::engine() const { return running() ? &life_->driver->engine() : nullptr; }
std::vector<SimGate*>& Node::gates() { return life_->gates; }

SimGate* Node::GateAt(const std::string& address) {
  SimGate* gate = life_->gates.empty() ? nullptr : life_->gates.front();
  return gate != nullptr && gate->advertised() == address ? gate : nullptr;
}

bool Node::MayAct() const { return running() && engine()->permit().MayAct(BootNow()); }

// ---- time and messages ----

TrueNs Node::Lateness() {  // of a timer on a machine that is awake
  if (random_.Below(50) == 0) return 1 + static_cast<TrueNs>(random_.Below(30 * kMillisecond));
  return 1 + static_cast<TrueNs>(random_.Below(kMillisecond));
}

void Node::Later(TrueNs at, std::function<void()> what) {
  world_.At(at, [this, alive = Alive(), what = std::move(what)] {
    if (alive.expired()) return;
    const OnMachine here(*this);
    what();
  });
}

void Node::CallAt(base::MonoTime at, std::function<void()> task) {
  Later(std::max(True(), clock_.TrueAt(at)) + Lateness(), [this, task = std::move(task)] {
    if (asleep_) {
      overdue_.push_back(task);
    } else {
      task();
    }
  });
}

void Node::PostTurn(std::function<void()> task) {
  Later(True(), [this, task = std::move(task)] {
    if (asleep_) {
      inbox_.push_back({task, {}, false});
    } else {
      task();
    }
  });
}

void Node::Arrives(std::function<void()> task, std::function<void()> lost) {
  if (!running()) {
    if (lost) lost();
    return;
  }
  if (asleep_) {
    inbox_.push_back({std::move(task), std::move(lost), false});
    return;
  }
  const OnMachine here(*this);
  task();
}

void Node::ArrivesFromStore(std::function<void()> task) {
  if (!running() || !asleep_) return Arrives(std::move(task));
  inbox_.push_back({std::move(task), {}, true});
}

void Node::Offer(lease::Event event) {
  if (!running()) return;
  Arrives([this, event = std::move(event)] { life_->driver->Feed(event); });
}

// ---- life ----

void Node::Start() {
  const Scenario& s = world_.scenario();
  const auto node = static_cast<size_t>(index_);
  if (process_ != nullptr && !s.changed.empty() && random_.Below(3) == 0) {
    plan_ = random_.Below(2) == 0 ? &s.nodes[node] : &s.changed[node];
  }
  process_ = &world_.Birth(index_, *plan_);
  alive_ = std::make_shared<bool>(true);
  const OnMachine here(*this);
  process_->clock = &clock_;
  process_->born = BootNow();
  process_->memory = memory_;
  process_->engine_seed = random_.Next();
  terminating_ = false;
  life_ = std::make_unique<Life>(world_, *this, *process_);
  life_->driver = std::make_unique<app::LeaseDriver>(MakeHost(), plan_->options, process_->identity,
                                                     process_->engine_seed, memory_);
  MakeGates();
  process_->timing = engine()->timing();
  world_.Tell(&Checker::Born, *process_);
  if (world_.tracing()) world_.Trace(Who(), "starts");
  const bool ready = app_ready_;
  Later(True() + static_cast<TrueNs>(random_.Below(20 * kMillisecond)), [this, ready] {
    if (app_ready_ == ready) Offer(lease::AppState{ready});
  });
  if (plan_->push && push_up_) {
    Later(True() + static_cast<TrueNs>(random_.Below(50 * kMillisecond)),
          [this] { SetPush(push_up_); });
  }
  if (s.clocks_jump()) WatchClock();
  life_->driver->Start();
}

app::LeaseDriver::Host Node::MakeHost() {
  app::LeaseDriver::Host host{
      life_->loop, *life_->log, life_->metrics, life_->events, life_->store, {}, {}, {}, {}, {}};
  host.listeners_drained = [this](const std::string&, uint64_t token) {
    return life_->listener_waits_for != token;
  };
  host.see_clocks = [this](std::optional<int64_t> store) { SeeClocks(store); };
  host.proven_dead = [this](const std::string& id) { return ProvenDead(id); };
  host.remember = [this](const std::string&, uint64_t token, base::Duration ttl) {
    Remember(token, ttl);
  };
  host.on_stopped = [this](bool, const std::string&) { Stopped(); };
  host.on_valve = [this](const lease::ValveEffect& effect) { DrawListener(effect); };
  host.on_step = [this](const lease::Event& event, const lease::Effects& effects) {
    OnStep(event, effects);
  };
  return host;
}

gate::Host Node::MakeGateHost() {
  app::LeaseDriver& driver = *life_->driver;
  return {life_->loop,
          *life_->log,
          life_->metrics,
          driver.permit(),
          plan_->options.name,
          process_->identity.node_id,
          process_->identity.process_id,
          plan_->options.drain_tunnels,
          [&driver] { driver.LookSoon(); },
          [&driver] { driver.LookSoon(); },
          driver.sequence(),
          [&driver] { return driver.state_name(); },
          [&driver] { driver.DoubtPeer(); },
          {}};
}

void Node::MakeGates() {
  for (const gate::Options& options : plan_->gates) {
    auto gate = std::make_unique<SimGate>(world_, *this, *process_, life_->gates.size(), options,
                                          MakeGateHost());
    life_->gates.push_back(gate.get());
    life_->driver->AddGate(std::move(gate));
  }
  if (!life_->driver->StartGates()) {
    world_.Violate("gates start", Who() + ": a gate did not start");
  }
  process_->peers.clear();
  for (const SimGate* gate : life_->gates) {
    if (std::string at = gate->advertised(); !at.empty())
      process_->peers[gate->options().name] = at;
  }
}

void Node::Crash() {
  if (!running()) return;
  if (world_.tracing()) world_.Trace(Who(), "crashes");
  End();
}

void Node::End() {
  process_->alive = false;
  world_.Tell(&Checker::Died, *process_, True());
  {
    const OnMachine here(*this);
    for (SimGate* gate : life_->gates) gate->Dies();
    alive_.reset();
    life_.reset();
  }
  if (asleep_) {
    asleep_ = false;
    if (std::exchange(suspended_, false)) clock_.Resume(True());
  }
  overdue_.clear();
  rest_.clear();
  for (const Waiting& waiting : std::exchange(inbox_, {})) {
    if (waiting.lost) waiting.lost();
  }
}

// The driver's last word, posted; then whatever runs pods starts the next one, at once or later.
void Node::Stopped() {
  if (life_->open_asks != 0) {
    world_.Violate("every step-down that was asked for is answered",
                   Who() + " stops with " + std::to_string(life_->open_asks) + " unanswered");
  }
  if (world_.tracing()) world_.Trace(Who(), "stops");
  const double ttl = static_cast<double>(plan_->options.ttl.nanos());
  // Not from inside the driver's own turn, which goes on after this.
  world_.At(True(), [this, alive = Alive()] {
    if (!alive.expired()) End();
  });
  world_.After(kMillisecond + static_cast<TrueNs>(random_.Unit() * 2 * ttl), [this] {
    if (!running()) Start();
  });
}

// ---- what the sidecar does around a driver ----

void Node::OnStep(const lease::Event& event, const lease::Effects& effects) {
  Life& life = *life_;
  life.steps_at_once = life.last_step_at == True() ? life.steps_at_once + 1 : 0;
  life.last_step_at = True();
  if (life.steps_at_once > kStepsAtOnceMax) {
    world_.Violate("an engine at rest wants its next Tick later than now",
                   Who() + " was stepped " + std::to_string(life.steps_at_once) +
                       " times at one instant, last with \"" + lease::EventText(event) + "\"");
  }
  const base::MonoTime now = BootNow();
  const PermitShot before = std::exchange(life.shot, Shot(engine()->permit()));
  world_.CountStep();
  if (world_.tracing()) {
    world_.Trace(Who(), lease::EventText(event));
    for (const lease::Effect& effect : effects) {
      world_.Trace(Who(), "    " + lease::EffectText(effect));
    }
    if (life.shot != before) world_.Trace(Who(), "    permit " + PermitText(life.shot, clock_));
  }
  const bool answers = AnswersLatestCall(event);
  const bool in_time = now < life.latest_deadline;
  if (answers) life.latest_op = 0;  // told again it answers nothing
  world_.Tell(&Checker::Stepped, {*process_, True(), now, event, effects, before, life.shot,
                                  engine()->NextDeadline(), answers, answers && in_time});
  for (const lease::Effect& effect : effects) {
    const auto* read = std::get_if<lease::ReadEffect>(&effect);
    const auto* cas = std::get_if<lease::CasEffect>(&effect);
    if (read != nullptr) {
      life.latest_op = read->op;
      life.latest_deadline = now + read->timeout;
    } else if (cas != nullptr) {
      life.latest_op = cas->op;
      life.latest_deadline = now + cas->timeout;
    }
  }
  life.store.Expect(effects);
}

bool Node::AnswersLatestCall(const lease::Event& event) const {
  const auto* read = std::get_if<lease::ReadAnswer>(&event);
  const auto* cas = std::get_if<lease::CasAnswer>(&event);
  if (read == nullptr && cas == nullptr) return false;
  return (read != nullptr ? read->op : cas->op) == life_->latest_op;
}

void Node::WatchClock() {
  life_->clock_watch = std::make_unique<loop::Timer>(life_->loop, [this] {
    life_->clock_watch->StartAfter(kClockWatchInterval);
    SeeClocks(std::nullopt);
  });
  life_->clock_watch->StartAfter(kClockWatchInterval);
  SeeClocks(std::nullopt);
}

void Node::SeeClocks(std::optional<int64_t> store_unix_ms) {
  app::LostTimeDetector& detector = life_->lost_time;
  const bool wall = detector.SeeWall(BootNow(), WallNow());
  const bool store = store_unix_ms && detector.SeeStore(BootNow(), *store_unix_ms);
  if (wall || store) life_->driver->Feed(lease::LostTime{});
}

// A worker writes it down; what a crash overtakes is lost.
void Node::Remember(uint64_t token, base::Duration ttl) {
  if (!plan_->keeps_memory || ttl <= base::Duration::Zero()) return;  // as app/state_dir.cc does
  Later(True() + static_cast<TrueNs>(random_.Below(10 * kMillisecond)), [this, token, ttl] {
    memory_.highest_token = std::max(memory_.highest_token, token);
    memory_.last_ttl = ttl;
  });
}

bool Node::ProvenDead(const std::string& process_id) const {
  const Process* named = world_.FindProcess(process_id);
  return named != nullptr && !named->alive && named->node == index_ && plan_->keeps_memory;
}

// A listener at the signal socket is done at once, somewhere in the grace, just too late, or never;
// or there is none.
void Node::DrawListener(const lease::ValveEffect& effect) {
  Life& life = *life_;
  const uint64_t drain = ++life.drains;
  life.listener_waits_for = 0;
  const Scenario::Listeners listeners = world_.scenario().listeners;
  if (effect.valve != lease::Valve::kDraining || listeners == Scenario::Listeners::kNone) return;
  if (listeners == Scenario::Listeners::kDrawn && random_.Below(3) == 0) return;
  life.listener_waits_for = effect.token;
  if (listeners == Scenario::Listeners::kNeverDone) return;
  const double how = random_.Unit();
  if (how < 0.2) return;
  const double grace = static_cast<double>((effect.drain_end - BootNow()).nanos());
  const double most = how < 0.5 ? 0.0 : std::max(0.0, 1.2 * grace);
  Later(True() + 1 + static_cast<TrueNs>(random_.Unit() * most), [this, drain] {
    Arrives([this, drain] {
      if (drain != life_->drains) return;
      life_->listener_waits_for = 0;
      life_->driver->LookSoon();
    });
  });
}

}  // namespace leasehold::simulation

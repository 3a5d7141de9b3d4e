#include "simulation/node.h"

#include <algorithm>
#include <utility>

#include "lease/trace.h"
#include "simulation/network.h"
#include "simulation/world.h"

namespace leasehold::simulation {
namespace {

constexpr uint64_t kStream = 0x6e6f6465;
// So many steps at one true instant are a loop that does not end: an engine that wants a Tick at a
// moment already past, over and over.
constexpr int kStepsAtOnceMax = 300;

}  // namespace

Node::Node(World& world, int index)
    : world_(world),
      index_(index),
      plan_(world.scenario().nodes[static_cast<size_t>(index)]),
      random_(world.scenario().seed ^ (kStream << 24) ^ static_cast<uint64_t>(index)),
      clock_(plan_.clock_offset_ns, plan_.clock_rate_ppb) {
  world_.At(plan_.starts_at, [this] {
    if (!running()) Start();
  });
}

TrueNs Node::True() const { return world_.now(); }

std::string Node::Who() const {
  return process_ == nullptr ? "n" + std::to_string(index_) : Name(*process_);
}

TrueNs Node::Lateness() {  // of a timer on a machine that is awake
  if (random_.Below(50) == 0) return 1 + static_cast<TrueNs>(random_.Below(30 * kMillisecond));
  return 1 + static_cast<TrueNs>(random_.Below(kMillisecond));
}

void Node::Later(TrueNs at, std::function<void()> what) {
  const Process* meant_for = process_;
  world_.At(at, [this, meant_for, what = std::move(what)] {
    if (process_ == meant_for && running()) what();
  });
}

// ---- life ----

void Node::Start() {
  process_ = &world_.Birth(index_);
  process_->clock = &clock_;
  process_->born = Now();
  process_->memory = memory_;
  process_->engine_seed = random_.Next();
  terminating_ = false;
  engine_ = std::make_unique<lease::Engine>(plan_.options, process_->identity,
                                            process_->engine_seed, process_->born, memory_);
  engine_->SetPeers(process_->peers);
  process_->timing = engine_->timing();
  world_.Tell(&Checker::Born, *process_);
  if (world_.tracing()) world_.Trace(Who(), "starts");
  const bool ready = app_ready_;
  Later(True() + static_cast<TrueNs>(random_.Below(20 * kMillisecond)), [this, ready] {
    if (app_ready_ == ready) Offer(lease::AppState{ready});
  });
  if (plan_.push && push_up_) {
    Later(True() + static_cast<TrueNs>(random_.Below(50 * kMillisecond)),
          [this] { Offer(lease::PushState{push_up_}); });
  }
  ScheduleTick();
  ScheduleAct();
}

void Node::Crash() {
  if (!running()) return;
  if (world_.tracing()) world_.Trace(Who(), "crashes");
  End();
}

void Node::End() {
  if (plan_.keeps_memory) {
    const lease::View view = engine_->view();
    memory_.highest_token = std::max(memory_.highest_token, view.token);
    if (view.seen) memory_.last_ttl = view.seen->ttl();
  }
  process_->alive = false;
  world_.Tell(&Checker::Died, *process_, True());
  engine_.reset();
  calls_.clear();
  latest_call_ = {};
  inbox_.clear();
  overdue_.clear();
  tick_at_ = 0;
  tick_waits_ = false;
  if (asleep_) {
    asleep_ = false;
    if (std::exchange(suspended_, false)) clock_.Resume(True());
  }
}

bool Node::MayAct() const { return running() && engine_->permit().MayAct(Now()); }

// ---- the engine ----

void Node::Offer(lease::Event event) {
  if (!running()) return;
  if (asleep_) {
    inbox_.push_back([this, event = std::move(event)] { Step(event); });
    return;
  }
  Step(event);
}

void Node::Step(const lease::Event& event) {
  if (!running()) return;
  steps_at_once_ = last_step_at_ == True() ? steps_at_once_ + 1 : 0;
  last_step_at_ = True();
  if (steps_at_once_ > kStepsAtOnceMax) {
    world_.Violate("an engine at rest wants its next Tick later than now",
                   Who() + " was stepped " + std::to_string(steps_at_once_) +
                       " times at one instant, last with \"" + lease::EventText(event) + "\"");
    return;
  }
  const base::MonoTime now = Now();
  const PermitShot before = Shot(engine_->permit());
  const bool answers = AnswersLatestCall(event);
  lease::Effects effects;
  engine_->Step(now, event, effects);
  world_.CountStep();
  if (world_.tracing()) {
    world_.Trace(Who(), lease::EventText(event));
    for (const lease::Effect& effect : effects) {
      world_.Trace(Who(), "    " + lease::EffectText(effect));
    }
    const PermitShot after = Shot(engine_->permit());
    if (after != before) world_.Trace(Who(), "    permit " + PermitText(after, clock_));
  }
  world_.Tell(&Checker::Stepped,
              {*process_, True(), now, event, effects, before, Shot(engine_->permit()),
               engine_->NextDeadline(), answers, answers && now < latest_call_.deadline});
  for (const lease::Effect& effect : effects) {
    if (!running()) return;
    CarryOut(effect);
  }
  if (running()) ScheduleTick();
}

bool Node::AnswersLatestCall(const lease::Event& event) const {
  const auto* read = std::get_if<lease::ReadAnswer>(&event);
  const auto* cas = std::get_if<lease::CasAnswer>(&event);
  if (read == nullptr && cas == nullptr) return false;
  const uint64_t op = read != nullptr ? read->op : cas->op;
  return op == latest_call_.op;
}

void Node::CarryOut(const lease::Effect& effect) {
  std::visit([this](const auto& e) { CarryOut(e); }, effect);
}

void Node::CarryOut(const lease::ReadEffect& effect) {
  BeginCall(effect.op, true, effect.timeout);
  const Process* caller = process_;
  world_.network().Read(*process_, effect.op, [this, caller](const lease::ReadAnswer& answer) {
    if (process_ == caller) Answer(answer.op, answer);
  });
}

void Node::CarryOut(const lease::CasEffect& effect) {
  BeginCall(effect.op, false, effect.timeout);
  const Process* caller = process_;
  world_.network().CompareAndSet(*process_, effect, [this, caller](const lease::CasAnswer& answer) {
    if (process_ == caller) Answer(answer.op, answer);
  });
}

void Node::CarryOut(const lease::ValveEffect& effect) {
  ++drains_;
  if (effect.valve == lease::Valve::kDraining) DrainStarted(effect.token, effect.drain_end - Now());
}

void Node::CarryOut(const lease::NoticeEffect&) {}
void Node::CarryOut(const lease::StepDownDone&) {}

void Node::CarryOut(const lease::StoppedEffect&) {
  if (world_.tracing()) world_.Trace(Who(), "stops");
  End();
  // Whatever runs pods starts the next one, at once or much later.
  const double ttl = static_cast<double>(plan_.options.ttl.nanos());
  world_.After(kMillisecond + static_cast<TrueNs>(random_.Unit() * 2 * ttl), [this] {
    if (!running()) Start();
  });
}

// ---- store calls ----

void Node::BeginCall(uint64_t op, bool read, base::Duration timeout) {
  latest_call_ = {op, read, Now() + timeout};
  calls_.push_back(latest_call_);
  ScheduleTimeout(latest_call_);
}

void Node::ScheduleTimeout(const Call& call) {
  const uint64_t op = call.op;
  Later(std::max(True(), clock_.TrueAt(call.deadline)) + Lateness(), [this, op] { TimedOut(op); });
}

void Node::TimedOut(uint64_t op) {
  const auto call =
      std::find_if(calls_.begin(), calls_.end(), [op](const Call& c) { return c.op == op; });
  if (call == calls_.end()) return;
  if (asleep_) {
    overdue_.push_back(op);
    return;
  }
  if (Now() < call->deadline) {  // the clock stood still meanwhile
    ScheduleTimeout(*call);
    return;
  }
  if (call->read) {
    lease::ReadAnswer none;
    none.op = op;
    none.error = "no answer from the store in time";
    Answer(op, none);
  } else {
    lease::CasAnswer none;
    none.op = op;
    none.error = "no answer from the store in time";
    Answer(op, none);
  }
}

bool Node::EndCall(uint64_t op) {
  const auto call =
      std::find_if(calls_.begin(), calls_.end(), [op](const Call& c) { return c.op == op; });
  if (call == calls_.end()) return false;
  calls_.erase(call);
  return true;
}

void Node::Answer(uint64_t op, const lease::Event& answer) {
  if (!running()) return;
  if (asleep_) {
    if (suspended_ && random_.Below(2) == 0) return;  // the peer gave up on a machine that is away
    inbox_.push_back([this, op, answer] { Answer(op, answer); });
    return;
  }
  if (EndCall(op)) Step(answer);
}

// ---- ticks ----

void Node::ScheduleTick() {
  const base::MonoTime deadline = engine_->NextDeadline();
  if (deadline.is_never()) return;
  const TrueNs at = std::max(True(), clock_.TrueAt(deadline)) + Lateness();
  if (tick_at_ != 0 && tick_at_ <= at && tick_at_ > True()) return;  // that one comes first
  tick_at_ = at;
  Later(at, [this, at] { TickDue(at); });
}

void Node::TickDue(TrueNs scheduled_for) {
  if (tick_at_ != scheduled_for) return;
  tick_at_ = 0;
  if (asleep_) {
    tick_waits_ = true;
    return;
  }
  if (Now() >= engine_->NextDeadline()) {
    Step(lease::Tick{});
  } else {
    ScheduleTick();
  }
}

}  // namespace leasehold::simulation

// The parts of a Node that faults touch: sleeping and waking, the application, the gate.
#include <algorithm>
#include <cmath>
#include <utility>

#include "simulation/node.h"
#include "simulation/world.h"

namespace leasehold::simulation {

// ---- sleep ----

void Node::Sleep(TrueNs until) {
  asleep_ = true;
  asleep_since_ = True();
  asleep_from_ = Now();
  const uint64_t sleep = ++sleeps_;
  Later(until, [this, sleep] {
    if (asleep_ && sleeps_ == sleep) Wake();
  });
}

void Node::Freeze(TrueNs until) {
  if (!running() || asleep_) return;
  if (world_.tracing()) world_.Trace(Who(), "is frozen");
  Sleep(until);
}

void Node::Suspend(TrueNs until) {
  if (!running() || asleep_) return;
  if (world_.tracing()) world_.Trace(Who(), "is suspended; its boot clock stands still");
  world_.Tell(&Checker::ClockStopped, *process_, True());
  Sleep(until);
  suspended_ = true;
  clock_.Stop(True());
}

void Node::Wake() {
  if (!asleep_) return;
  if (world_.tracing()) {
    world_.Trace(Who(), "wakes after " + Seconds(True() - asleep_since_) + " s");
  }
  asleep_ = false;
  const bool lost_time = std::exchange(suspended_, false);
  if (lost_time) clock_.Resume(True());
  process_->stood = process_->stood + (Now() - asleep_from_);
  std::vector<std::function<void()>> inbox = std::exchange(inbox_, {});
  std::vector<uint64_t> overdue = std::exchange(overdue_, {});
  // A suspended machine's driver sees by the wall clock or the store's that time is missing: at
  // once, or when it next looks.
  const bool noticed_first = random_.Below(3) == 0;
  if (lost_time && noticed_first) Offer(lease::LostTime{});
  if (lost_time && !noticed_first) {
    Later(True() + static_cast<TrueNs>(random_.Below(2 * kSecond)),
          [this] { Offer(lease::LostTime{}); });
  }
  const auto timers = [&] {
    if (running() && std::exchange(tick_waits_, false) && Now() >= engine_->NextDeadline()) {
      Step(lease::Tick{});
    }
    for (const uint64_t op : overdue) TimedOut(op);
  };
  const auto sockets = [&] {
    for (const auto& arrived : inbox) arrived();
  };
  if (random_.Below(2) == 0) {
    timers();
    sockets();
  } else {
    sockets();
    timers();
  }
  if (running()) ScheduleTick();
}

// ---- the application and push ----

void Node::SetAppReady(bool ready) {
  if (app_ready_ == ready) return;
  app_ready_ = ready;
  const uint64_t flap = ++app_flaps_;
  Offer(lease::AppState{ready});
  if (!ready) AppUnreadySince(flap);
}

void Node::AppUnreadySince(uint64_t flap) {
  world_.After(plan_.unready_after, [this, flap] {
    if (flap == app_flaps_ && !app_ready_) Offer(lease::AppUnreadyTooLong{});
  });
}

void Node::SetPush(bool up) {
  push_up_ = up;
  if (plan_.push) Offer(lease::PushState{up});
}

// ---- people ----

void Node::AskStepDown(const lease::Precondition& expected, bool take_back) {
  lease::StepDownRequest request;
  request.request = world_.NextRequest();
  request.expected = expected;
  request.take_back = take_back;
  Offer(request);
}

void Node::Terminate() {
  if (!running() || terminating_) return;
  terminating_ = true;
  // Half of them have gates that must send away what they held: they watch on for a while.
  const bool watch_on = random_.Unit() < 0.5;
  Offer(lease::Shutdown{watch_on});
  if (!watch_on) return;
  const auto longest = static_cast<uint64_t>((plan_.options.ttl * 3).nanos());
  Later(True() + 1 + static_cast<TrueNs>(random_.Below(longest)),
        [this] { Offer(lease::Shutdown{}); });
}

// ---- the gate ----

// Acts a few times per TTL, whenever the permit allows it by a fresh reading of the clock.
void Node::ScheduleAct() {
  const double mean = static_cast<double>(plan_.options.ttl.nanos()) / 3;
  const auto wait = static_cast<TrueNs>(-std::log(1 - random_.Unit()) * mean);
  Later(True() + 1 + wait, [this] {
    if (!asleep_ && MayAct()) {
      world_.Tell(&Checker::Acted, {*process_, True(), engine_->permit().token()});
    }
    ScheduleAct();
  });
}

// Work in flight ends at once, somewhere in the grace, just too late, or never.
void Node::DrainStarted(uint64_t token, base::Duration grace) {
  const double how = random_.Unit();
  if (how < 0.2) return;
  const double most = how < 0.5 ? 0.0 : 1.2 * static_cast<double>(grace.nanos());
  const uint64_t drain = drains_;
  Later(True() + 1 + static_cast<TrueNs>(random_.Unit() * most), [this, drain, token] {
    if (drain == drains_) Offer(lease::Drained{token});
  });
}

}  // namespace leasehold::simulation

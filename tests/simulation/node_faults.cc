// The parts of a Node that faults touch: sleeping and waking, the application, people.
#include <algorithm>
#include <cmath>
#include <utility>

#include "simulation/node.h"
#include "simulation/node_life.h"
#include "simulation/world.h"

namespace leasehold::simulation {

// ---- sleep ----

void Node::Sleep(TrueNs until) {
  asleep_ = true;
  asleep_since_ = True();
  asleep_from_ = BootNow();
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

void Node::FreezeBetween() {
  const double ttl = static_cast<double>(plan_->options.ttl.nanos());
  Freeze(std::min(True() + 1 + static_cast<TrueNs>(random_.Unit() * 3 * ttl),
                  world_.scenario().faults_end));
}

void Node::StopHere(std::function<void()> rest) {
  FreezeBetween();
  if (asleep_) {
    rest_.push_back(std::move(rest));
  } else {
    rest();
  }
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
  process_->stood = process_->stood + (BootNow() - asleep_from_);
  std::vector<Waiting> inbox = std::exchange(inbox_, {});
  std::vector<std::function<void()>> overdue = std::exchange(overdue_, {});
  const std::weak_ptr<bool> alive = Alive();
  const OnMachine here(*this);
  for (auto& rest : std::exchange(rest_, {})) rest();
  // Each may freeze the process again, in the middle of what waits.
  const auto timers = [&] {
    for (auto& timer : overdue) {
      if (alive.expired()) return;
      if (asleep_) {
        overdue_.push_back(std::move(timer));
      } else {
        timer();
      }
    }
  };
  const auto sockets = [&] {
    for (auto& arrived : inbox) {
      const bool dropped = arrived.from_store && lost_time && random_.Below(2) == 0;
      if (alive.expired() || dropped) {
        if (arrived.lost) arrived.lost();
      } else if (asleep_) {
        inbox_.push_back(std::move(arrived));
      } else {
        arrived.task();
      }
    }
  };
  if (random_.Below(2) == 0) {
    timers();
    sockets();
  } else {
    sockets();
    timers();
  }
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
  world_.After(plan_->unready_after, [this, flap] {
    if (flap == app_flaps_ && !app_ready_) Offer(lease::AppUnreadyTooLong{});
  });
}

void Node::SetPush(bool up) {
  using Word = store::WatchEvent::Kind;
  push_up_ = up;
  if (!plan_->push || !running()) return;
  Arrives([this, up] { life_->store.Push(up ? Word::kPushUp : Word::kPushDown); });
}

void Node::Hint(bool urgent) {
  using Word = store::WatchEvent::Kind;
  if (!running()) return;
  Arrives([this, urgent] { life_->store.Push(urgent ? Word::kChangedHands : Word::kBeat); });
}

// ---- people ----

void Node::AskStepDown(const lease::Precondition& expected, bool take_back) {
  if (!running()) return;
  Arrives([this, expected, take_back] {
    if (life_->driver->stopped()) return;  // its API is closing
    ++life_->open_asks;
    auto answered = std::make_shared<bool>(false);
    life_->driver->StepDown({plan_->options.name, expected, take_back},
                            [this, answered](const lease::StepDownDone&) {
                              if (std::exchange(*answered, true)) {
                                world_.Violate("every step-down that was asked for is answered",
                                               Who() + " answered one twice");
                              }
                              --life_->open_asks;
                            });
  });
}

void Node::Terminate() {
  if (!running() || terminating_) return;
  terminating_ = true;
  Arrives([this] { life_->driver->Leave(); });
}

}  // namespace leasehold::simulation

// Store calls within the budget that README.md states ("What a store is asked"): a holder that is
// let alone writes once per renew_interval and reads nothing; a standby that is let alone reads
// once per poll_interval, and four times a second while it sees the holder drain; whatever the
// store does, attempts back off, so that no TTL sees more than a few per round. A window of one TTL
// slides over every process.
#include <algorithm>
#include <deque>
#include <string>

#include "simulation/checkers.h"
#include "simulation/latest_call.h"
#include "simulation/per_process.h"

namespace leasehold::simulation {
namespace {

// DESIGN 2.3: jittered exponential back-off. README.md: 10 ms at least, doubling up to an eighth of
// a round, after which eight more fit into it.
constexpr base::Duration kFirstWait = base::Duration::Millis(10);
constexpr int kFullWaits = 8;
constexpr int kCallsPerAttempt = 2;  // the write, and the read after it
constexpr base::Duration kDrainPoll = base::Duration::Millis(250);  // README.md
constexpr int kSpare = 12;  // an acquisition, a release and their reads; ends of the window

struct Life {
  LatestCall call;
  std::deque<base::MonoTime> calls;  // begun within the last TTL
  std::deque<base::MonoTime> hints;
  base::MonoTime stirred_at;     // something out of the ordinary happened last
  bool sees_drain = false;       // what it read last
  base::MonoTime drain_seen_at;  // when it last went by that
};

class BudgetChecker final : public Checker {
 public:
  using Checker::Checker;

  void Stepped(const StepFact& f) override {
    Life& life = lives_[f.process];
    const base::MonoTime from = f.now - f.process.timing.ttl;
    if (Stirs(f, life)) life.stirred_at = f.now;
    NoteDrain(f, life);
    const auto* hint = std::get_if<lease::Hint>(&f.event);
    if (hint != nullptr || std::holds_alternative<lease::PushState>(f.event)) {
      life.hints.push_back(f.now);
    }
    for (const lease::Effect& effect : f.effects) {
      const auto* write = std::get_if<lease::CasEffect>(&effect);
      if (write == nullptr && !std::holds_alternative<lease::ReadEffect>(effect)) continue;
      life.calls.push_back(f.now);
      if (write != nullptr && write->purpose != lease::CasEffect::Purpose::kRenew) {
        life.stirred_at = f.now;
      }
    }
    while (!life.calls.empty() && life.calls.front() < from) life.calls.pop_front();
    while (!life.hints.empty() && life.hints.front() < from) life.hints.pop_front();
    life.call.Note(f);
    Check(f, life, from);
  }

 private:
  static bool Stirs(const StepFact& f, const Life& life) {
    if (life.call.RanOut(f.now) || f.before.valve != f.after.valve) return true;
    if (const auto* read = std::get_if<lease::ReadAnswer>(&f.event)) {
      return read->outcome == lease::ReadAnswer::Outcome::kAmbiguous ||
             read->outcome == lease::ReadAnswer::Outcome::kRefused;
    }
    if (const auto* cas = std::get_if<lease::CasAnswer>(&f.event)) {
      return cas->outcome != lease::CasAnswer::Outcome::kApplied;
    }
    return !std::holds_alternative<lease::Tick>(f.event);
  }

  static void NoteDrain(const StepFact& f, Life& life) {
    const auto* read = std::get_if<lease::ReadAnswer>(&f.event);
    const auto* cas = std::get_if<lease::CasAnswer>(&f.event);
    const auto shows = [&life](const std::optional<lease::Record>& record) {
      if (record) life.sees_drain = record->state == lease::RecordState::kDraining;
    };
    if (read != nullptr) shows(read->record);
    if (cas != nullptr) shows(cas->record);
    if (life.sees_drain) life.drain_seen_at = f.now;
  }

  // As often as a standby may ask in the last TTL.
  static base::Duration Poll(const lease::Timing& timing, const Life& life, base::MonoTime from) {
    const bool drain = life.drain_seen_at > base::MonoTime() && life.drain_seen_at >= from;
    return drain ? base::Min(timing.poll_interval, kDrainPoll) : timing.poll_interval;
  }

  static int64_t Times(base::Duration whole, base::Duration part) {
    return whole.nanos() / std::max<int64_t>(1, part.nanos());
  }

  static int64_t Most(const lease::Timing& timing, base::Duration poll) {
    int64_t per_round = 1 + kFullWaits;
    for (base::Duration wait = kFirstWait; wait < timing.budget / kFullWaits; wait = wait * 2) {
      ++per_round;
    }
    // Rounds of one TTL: max_renew_fails of them are three quarters of it.
    const int64_t rounds = timing.max_renew_fails * 4 / 3 + 2;
    return kCallsPerAttempt * rounds * per_round + Times(timing.ttl, poll) + kSpare;
  }

  void Check(const StepFact& f, const Life& life, base::MonoTime from) {
    const auto calls = static_cast<int64_t>(life.calls.size());
    const auto hints = static_cast<int64_t>(life.hints.size());
    const lease::Timing& timing = f.process.timing;
    const bool holds = f.after.valve != lease::Valve::kClosed;
    const base::Duration poll = Poll(timing, life, from);
    int64_t most = Most(timing, poll) + hints * kCallsPerAttempt;
    if (life.stirred_at <= from) {
      most = 2 + Times(timing.ttl, holds ? timing.renew_interval : poll);
    }
    if (calls <= most) return;
    judge_.Violate("the number of store calls keeps to the budget that the README states",
                   Name(f.process) + " made " + std::to_string(calls) + " calls within one TTL, " +
                       (holds ? "holding" : "not holding") + "; the budget is " +
                       std::to_string(most));
  }

  PerProcess<Life> lives_;
};

}  // namespace

std::unique_ptr<Checker> MakeBudgetChecker(Judge& judge) {
  return std::make_unique<BudgetChecker>(judge);
}

}  // namespace leasehold::simulation

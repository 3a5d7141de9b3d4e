// The calm runs: one fault in an otherwise perfect world, so that DESIGN's numbers can be demanded
// and not only its order of events.
// - A holder is killed: a warm standby holds about one TTL after the last renewal (2.2).
// - The store is away until 0.7 TTL after the last renewal: nobody notices (2.3: "about three
// quarters").
// - The holder is asked to step down: the lease moves within one poll, or comes back after the
//   hold-off where nobody else could take it (2.5).
#include <algorithm>
#include <optional>
#include <string>

#include "simulation/checkers.h"
#include "simulation/per_process.h"

namespace leasehold::simulation {
namespace {

struct Life {
  const Process* process = nullptr;
  PermitShot permit;
  bool ready = false;
  bool looked = false;  // it has seen the register
};

class CalmChecker final : public Checker {
 public:
  CalmChecker(Judge& judge, const Scenario& scenario) : Checker(judge), scenario_(scenario) {
    // Six legs of eight times the typical latency (the longest that Network draws), and six ticks
    // that are late by the most that Node draws.
    slack_ = 6 * 8 * scenario.store.typical + 6 * 31 * kMillisecond;
  }

  void Born(const Process& process) override { lives_[process].process = &process; }

  void Applied(const WriteFact& f) override {
    // A dead holder's last renewal may still arrive.
    if (due_ && !f.writer.alive) *due_ += f.at - last_write_at_;
    last_write_at_ = f.at;
  }

  void Died(const Process& process, TrueNs at) override {
    Life& life = lives_[process];
    const bool held = life.permit.MayAct(process.clock->At(at));
    life.permit.valve = lease::Valve::kClosed;
    if (scenario_.kind != Kind::kCalmCrash || !held) return;
    TrueNs poll = 0;
    if (!FastestStandby(process, poll))
      return;  // nobody is warm: check_liveness.cc waits for a cold one
    const TrueNs window = scenario_.ttl + scenario_.ttl / 400;  // drift of the window and the clock
    Demand(last_write_at_ + window + poll + slack_,
           "one TTL after the last renewal of a dead holder");
  }

  void Stepped(const StepFact& f) override {
    Life& life = lives_[f.process];
    if (const auto* app = std::get_if<lease::AppState>(&f.event)) life.ready = app->ready;
    if (SightOf(f.event)) life.looked = true;
    const bool opens = !f.before.MayAct(f.now) && f.after.MayAct(f.now);
    const bool closes = f.before.MayAct(f.now) && !f.after.MayAct(f.now);
    life.permit = f.after;
    if (opens) Opened(f);
    if (scenario_.kind == Kind::kCalmOutage && opened_ && f.after.valve != f.before.valve &&
        !opens) {
      judge_.Violate(
          "a store outage shorter than about three quarters of the TTL is invisible",
          Name(f.process) +
              "'s valve changed in an outage that ends within 0.7 TTL of the last renewal");
    }
    if (closes && scenario_.kind == Kind::kCalmStepDown) Moves(f);
  }

  void Finished(TrueNs at) override {
    if (!opened_) {
      judge_.Violate("a free lease is taken at once", "nobody ever held in a calm world");
    }
    if (due_ && at > *due_) Late(at);
  }

 private:
  void Demand(TrueNs by, const std::string& what) {
    due_ = by;
    what_ = what;
  }

  void Opened(const StepFact& f) {
    if (opened_ && scenario_.kind == Kind::kCalmOutage) {
      judge_.Violate(
          "a store outage shorter than about three quarters of the TTL is invisible",
          Name(f.process) +
              " opened a new term after one that ends within 0.7 TTL of the last renewal");
    }
    opened_ = true;
    if (due_ && f.at > *due_) Late(f.at);
    due_.reset();
  }

  void Late(TrueNs at) {
    judge_.Violate("a lease that is free is taken in time",
                   "the next holder was due " + what_ + ", at " + Seconds(*due_) + ", and came " +
                       Seconds(at - *due_) + " s after that");
  }

  void Moves(const StepFact& f) {
    const TrueNs hold_off = f.process.timing.hold_off.nanos();
    TrueNs poll = 0;
    const bool others = FastestStandby(f.process, poll);
    const TrueNs wait = others ? std::min(poll, hold_off) : hold_off;
    Demand(f.at + wait + wait / 100 + slack_, "one poll after a release, or after the hold-off");
  }

  // The least that a warm, ready standby may wait before it looks again.
  bool FastestStandby(const Process& former, TrueNs& poll) {
    bool any = false;
    for (const Life& life : lives_) {
      if (life.process == nullptr || life.process == &former || !life.process->alive ||
          !life.ready || !life.looked) {
        continue;
      }
      const TrueNs own = life.process->timing.poll_interval.nanos() * 5 / 4;
      poll = any ? std::min(poll, own) : own;
      any = true;
    }
    return any;
  }

  const Scenario& scenario_;
  TrueNs slack_ = 0;
  TrueNs last_write_at_ = 0;
  bool opened_ = false;
  std::optional<TrueNs> due_;
  std::string what_;
  PerProcess<Life> lives_;
};

}  // namespace

std::unique_ptr<Checker> MakeCalmChecker(Judge& judge, const Scenario& scenario) {
  return std::make_unique<CalmChecker>(judge, scenario);
}

}  // namespace leasehold::simulation

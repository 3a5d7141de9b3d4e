// The valve: what the gates are told is what the permit says; a wake-up is booked for the permit's
// expiry and the drain's end, and at them the gate is shut (DESIGN 2.2, 2.4, 2.5). After the last
// word nothing more is said.
#include <string>

#include "simulation/checkers.h"
#include "simulation/per_process.h"

namespace leasehold::simulation {
namespace {

struct Told {
  lease::Valve valve = lease::Valve::kClosed;
  base::MonoTime drain_end;
  bool stopped = false;
};

class ValveChecker final : public Checker {
 public:
  using Checker::Checker;

  void Stepped(const StepFact& f) override {
    Told& told = told_[f.process];
    const Told before = told;
    for (const lease::Effect& effect : f.effects) NoteEffect(f, told, effect);
    if (told.valve != f.after.valve) {
      Broken(f, "the gates are told every change of the valve", "changed its valve in silence");
    }
    if (f.before.valve != lease::Valve::kClosed && !f.before.MayAct(f.now) &&
        f.after.valve != lease::Valve::kClosed && f.after.token == f.before.token) {
      Broken(f, "a gate shuts at expiry", "woke after its permit's expiry and did not shut");
    }
    if (f.after.valve == lease::Valve::kClosed) return;
    if (f.deadline > f.after.expiry) {
      Broken(f, "a gate shuts at expiry even when the store never answers",
             "wants no Tick at its permit's expiry");
    }
    if (f.after.valve != lease::Valve::kDraining) return;
    if (f.deadline > told.drain_end) {
      Broken(f, "when grace is over what is left is shut", "wants no Tick at its drain's end");
    }
    const bool was_draining = before.valve == lease::Valve::kDraining;
    if (was_draining && before.drain_end <= f.now && told.drain_end <= f.now) {
      Broken(f, "when grace is over what is left is shut", "still drains after its drain's end");
    }
  }

 private:
  void NoteEffect(const StepFact& f, Told& told, const lease::Effect& effect) {
    if (told.stopped) Broken(f, "a stopped engine has nothing to say", "has effects after its end");
    if (std::holds_alternative<lease::StoppedEffect>(effect)) {
      told.stopped = true;
      if (f.after.valve != lease::Valve::kClosed) {
        Broken(f, "a stopped engine has no permit", "stops with its valve not closed");
      }
    }
    if (const auto* valve = std::get_if<lease::ValveEffect>(&effect)) {
      told.valve = valve->valve;
      told.drain_end = valve->drain_end;
    }
    const auto* notice = std::get_if<lease::NoticeEffect>(&effect);
    if (notice != nullptr && notice->notice == lease::Notice::kDraining &&
        f.now + notice->grace > base::Max(f.before.expiry, f.after.expiry)) {
      Broken(f, "the grace told to listeners is never more than the time to expiry",
             "promises a grace of " + Seconds(notice->grace) + " s with " +
                 Seconds(f.before.expiry - f.now) + " s to expiry");
    }
  }

  void Broken(const StepFact& f, const std::string& rule, const std::string& what) {
    judge_.Violate(rule, Name(f.process) + " " + what);
  }

  PerProcess<Told> told_;
};

}  // namespace

std::unique_ptr<Checker> MakeValveChecker(Judge& judge) {
  return std::make_unique<ValveChecker>(judge);
}

}  // namespace leasehold::simulation

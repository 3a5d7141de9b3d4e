// Start-up and loss, as they are told: with fail_if_held a record that changes within one window
// has a live holder, and the start fails; a record that does not change is a dead holder's, and it
// never fails for that (DESIGN 2.6). And a loss is told with the reason that the process was shown
// (2.2, 2.3): what operators act on.
#include <optional>
#include <string>

#include "simulation/checkers.h"
#include "simulation/latest_call.h"
#include "simulation/per_process.h"

namespace leasehold::simulation {
namespace {

using lease::Reason;

struct Life {
  bool looks = true;  // fail_if_held still decides
  // An answer came when its time was up: whether it was looked at is not known.
  bool unsure = false;
  std::optional<lease::Version> held;
  base::MonoTime window_end;
  bool leaving = false;
};

class StartChecker final : public Checker {
 public:
  using Checker::Checker;

  void Stepped(const StepFact& f) override {
    Life& life = lives_[f.process];
    if (std::holds_alternative<lease::Shutdown>(f.event)) life.leaving = true;
    const auto* stopped = FirstEffect<lease::StoppedEffect>(f);
    const bool fails = stopped != nullptr && !stopped->ok;
    const bool live = NoteSight(f, life);
    if (live && !fails && !life.leaving) {
      Broken(f, "with fail_if_held a record that changes within one window fails the start",
             "goes on although another renews the lease");
    }
    if (fails && !live && !life.unsure) {
      Broken(f, "a dead holder's record is taken over, fail_if_held or not",
             "fails to start, and was not shown a record that changes");
    }
    CheckReason(f);
  }

 private:
  // True if this step shows that the holder is alive, and it matters.
  static bool NoteSight(const StepFact& f, Life& life) {
    if (!f.process.plan->options.fail_if_held || !life.looks) return false;
    if (FirstEffect<lease::CasEffect>(f) != nullptr) {  // it competes: that is decided
      life.looks = false;
      return false;
    }
    const auto sight = SightOf(f.event);
    if (!sight || !f.answers_latest) return false;
    life.unsure = life.unsure || !f.answer_counts;
    if (life.unsure) return false;
    const bool other = sight->record != nullptr && sight->record->held() &&
                       sight->record->process_id != f.process.identity.process_id;
    if (!other) {
      life.looks = false;
      return false;
    }
    if (!life.held) {
      life.held = sight->version;
      life.window_end = f.now + f.process.timing.Window(sight->record->ttl());
      return false;
    }
    if (*life.held == sight->version) {
      life.looks = f.now < life.window_end;
      return false;
    }
    return true;
  }

  void CheckReason(const StepFact& f) {
    const auto* valve = FirstEffect<lease::ValveEffect>(f);
    if (valve == nullptr || valve->valve != lease::Valve::kClosed || !valve->lost) return;
    const bool over = f.before.valve != lease::Valve::kClosed && !f.before.MayAct(f.now);
    const bool told_over =
        valve->reason == Reason::kExpired || valve->reason == Reason::kHostFrozen;
    const auto sight = SightOf(f.event);
    if (over != told_over) return Lied(f, *valve, over ? "its permit was over" : "its permit ran");
    if (over || !sight || !f.answer_counts) return;
    const bool superseded =
        sight->record != nullptr && (sight->record->process_id != f.process.identity.process_id ||
                                     sight->record->token > f.before.token);
    if (sight->absent != (valve->reason == Reason::kAbsent)) {
      Lied(f, *valve, sight->absent ? "it was shown no record" : "it was shown a record");
    } else if (superseded && valve->reason != Reason::kSuperseded) {
      Lied(f, *valve, "it was shown another's record");
    }
  }

  void Lied(const StepFact& f, const lease::ValveEffect& valve, const std::string& what) {
    Broken(f, "a loss is told with its reason",
           "says \"" + std::string(lease::ReasonName(valve.reason)) + "\", but " + what);
  }

  void Broken(const StepFact& f, const std::string& rule, const std::string& what) {
    judge_.Violate(rule, Name(f.process) + " " + what);
  }

  PerProcess<Life> lives_;
};

}  // namespace

std::unique_ptr<Checker> MakeStartChecker(Judge& judge) {
  return std::make_unique<StartChecker>(judge);
}

}  // namespace leasehold::simulation

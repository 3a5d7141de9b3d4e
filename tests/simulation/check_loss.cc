// Definitive loss (DESIGN 2.3): an answer to the call under way that shows another holder, a higher
// token, no record, or our own record older than the last write we saw confirmed, ends the permit
// in the same step. And a wobble alone ends nothing: a permit does not close as lost on an answer
// that says nothing.
#include <algorithm>
#include <optional>
#include <string>

#include "simulation/checkers.h"
#include "simulation/per_process.h"

namespace leasehold::simulation {
namespace {

struct Term {
  std::optional<uint64_t> op;  // the call under way
  base::MonoTime give_up_at;   // its answer counts until then
  bool is_write = false;
  uint64_t writing_token = 0;
  uint64_t writing_beat = 0;
  uint64_t confirmed_token = 0;
  uint64_t confirmed_beat = 0;
};

class LossChecker final : public Checker {
 public:
  using Checker::Checker;

  void Stepped(const StepFact& f) override {
    Term& term = terms_[f.process];
    if (const auto sight = SightOf(f.event)) CheckSight(f, term, *sight);
    CheckWobble(f, term);
    NoteConfirmation(f, term);
    for (const lease::Effect& effect : f.effects) NoteCall(f, term, effect);
  }

 private:
  void CheckSight(const StepFact& f, const Term& term, const Sight& sight) {
    if (!f.answer_counts || !f.before.MayAct(f.now)) return;
    std::string shown;
    if (sight.absent) {
      shown = "no record";
    } else if (sight.record->process_id != f.process.identity.process_id) {
      shown = "another holder";
    } else if (sight.record->token > f.before.token) {
      shown = "a higher token";
    } else if (sight.record->token < f.before.token || (f.before.token == term.confirmed_token &&
                                                        sight.record->beat < term.confirmed_beat)) {
      shown = "its own record, older than its last confirmed write";
    }
    if (shown.empty()) return;
    if (f.after.MayAct(f.now) && f.after.token == f.before.token) {
      judge_.Violate("a definitive loss shuts the gates at once",
                     Name(f.process) + " was shown " + shown + " and keeps its permit for token " +
                         std::to_string(f.after.token));
    }
  }

  // No answer, or a refusal, is no loss; it may only start a drain, or end one at its time.
  void CheckWobble(const StepFact& f, const Term& term) {
    const auto* read = std::get_if<lease::ReadAnswer>(&f.event);
    const auto* cas = std::get_if<lease::CasAnswer>(&f.event);
    const bool says_nothing =
        (read != nullptr && (read->outcome == lease::ReadAnswer::Outcome::kAmbiguous ||
                             read->outcome == lease::ReadAnswer::Outcome::kRefused)) ||
        (cas != nullptr && (cas->outcome == lease::CasAnswer::Outcome::kAmbiguous ||
                            cas->outcome == lease::CasAnswer::Outcome::kRefused));
    if (!says_nothing || !f.before.MayAct(f.now) || !term.op) return;
    for (const lease::Effect& effect : f.effects) {
      const auto* valve = std::get_if<lease::ValveEffect>(&effect);
      if (valve != nullptr && valve->valve == lease::Valve::kClosed && valve->lost) {
        judge_.Violate("a store that does not answer loses nobody the lease before expiry",
                       Name(f.process) + " gave up token " + std::to_string(f.before.token) +
                           " as lost on an answer that says nothing");
      }
    }
  }

  void NoteConfirmation(const StepFact& f, Term& term) {
    const auto* cas = std::get_if<lease::CasAnswer>(&f.event);
    const auto* read = std::get_if<lease::ReadAnswer>(&f.event);
    const uint64_t op = cas != nullptr ? cas->op : read != nullptr ? read->op : 0;
    if (term.op != op || op == 0) return;
    if (cas != nullptr && cas->outcome == lease::CasAnswer::Outcome::kApplied && term.is_write &&
        f.now < term.give_up_at) {
      term.confirmed_token = term.writing_token;
      term.confirmed_beat = term.writing_beat;
    }
    term.op.reset();
  }

  static void NoteCall(const StepFact& f, Term& term, const lease::Effect& effect) {
    if (const auto* read = std::get_if<lease::ReadEffect>(&effect)) {
      term.op = read->op;
      term.is_write = false;
      term.give_up_at = f.now + read->timeout;
    } else if (const auto* cas = std::get_if<lease::CasEffect>(&effect)) {
      term.op = cas->op;
      term.is_write = true;
      term.give_up_at = f.now + cas->timeout;
      term.writing_token = cas->record.token;
      term.writing_beat = cas->record.beat;
    }
  }

  PerProcess<Term> terms_;
};

}  // namespace

std::unique_ptr<Checker> MakeLossChecker(Judge& judge) {
  return std::make_unique<LossChecker>(judge);
}

}  // namespace leasehold::simulation

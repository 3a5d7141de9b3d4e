// What must follow at once (DESIGN 2.2, 2.3): a read after an ambiguous write, and after a conflict
// that came without a record, shut first if none of our own attempts can be its cause; a renewal
// after lost time; and whatever SIGTERM finds under way in an acquisition is resolved first (2.4).
#include <algorithm>
#include <string>
#include <vector>

#include "simulation/checkers.h"
#include "simulation/latest_call.h"
#include "simulation/per_process.h"

namespace leasehold::simulation {
namespace {

using Purpose = lease::CasEffect::Purpose;
using Outcome = lease::CasAnswer::Outcome;

struct Life {
  LatestCall call;
  std::vector<uint64_t> unresolved;  // beats whose fate the process does not know
  bool unsure = false;  // an answer came when its call's time was up: the engine may have read it
};

class FollowChecker final : public Checker {
 public:
  using Checker::Checker;

  void Stepped(const StepFact& f) override {
    Life& life = lives_[f.process];
    const auto* cas = std::get_if<lease::CasAnswer>(&f.event);
    const bool answered = cas != nullptr && f.answers_latest && life.call.open && life.call.write;
    if (answered && f.answer_counts) CheckAnswer(f, life, *cas);
    const bool ran_out = !f.answers_latest && life.call.write && life.call.RanOut(f.now);
    if (ran_out) CheckAmbiguous(f, life, "went without an answer");
    if (std::holds_alternative<lease::LostTime>(f.event)) CheckLostTime(f, life);
    CheckStop(f, life);
    NoteFate(f, life, answered ? cas : nullptr);
    life.call.Note(f);
    for (const lease::Effect& effect : f.effects) {
      const auto* write = std::get_if<lease::CasEffect>(&effect);
      if (write == nullptr) continue;
      if (write->purpose == Purpose::kAcquire) life.unresolved.clear();
      life.unresolved.push_back(write->record.beat);
    }
  }

 private:
  static bool Reads(const StepFact& f) { return FirstEffect<lease::ReadEffect>(f) != nullptr; }
  static bool Stops(const StepFact& f) { return FirstEffect<lease::StoppedEffect>(f) != nullptr; }

  void CheckAnswer(const StepFact& f, const Life& life, const lease::CasAnswer& cas) {
    if (cas.outcome == Outcome::kAmbiguous) CheckAmbiguous(f, life, "was answered ambiguous");
    const bool blind = cas.outcome == Outcome::kConflict && !cas.record && !cas.absent;
    if (!blind || life.call.write != Purpose::kRenew || !f.before.MayAct(f.now)) return;
    if (!Reads(f) && !Stops(f)) {
      Broken(f, "a conflict without a record is read at once", "does not read");
    }
    const bool others = std::any_of(life.unresolved.begin(), life.unresolved.end(),
                                    [&](uint64_t beat) { return beat != life.call.beat; });
    if (others || life.unsure) return;
    if (f.after.MayAct(f.now) && f.after.token == f.before.token) {
      Broken(f, "a conflict that none of our own attempts can explain shuts first",
             "keeps its permit for token " + std::to_string(f.before.token));
    }
  }

  // A term that is over has no write to read after.
  void CheckAmbiguous(const StepFact& f, const Life& life, const std::string& how) {
    const bool renews = life.call.write == Purpose::kRenew;
    if (renews && (!f.before.MayAct(f.now) || !f.after.MayAct(f.now))) return;
    if (Reads(f) || Stops(f)) return;
    if (life.call.write == Purpose::kRelease) return;  // given up after one TTL: check_give_back.cc
    Broken(f, "after an ambiguous write a read follows at once",
           "reads nothing after beat " + std::to_string(life.call.beat) + " " + how);
  }

  // With a call under way, after it; if that fails, after its back-off.
  void CheckLostTime(const StepFact& f, const Life& life) {
    if (life.call.open || !f.before.MayAct(f.now) || !f.after.MayAct(f.now)) return;
    if (FirstEffect<lease::CasEffect>(f) != nullptr || Reads(f)) return;
    Broken(f, "after lost time a renewal is sent at once", "sends none");
  }

  void CheckStop(const StepFact& f, const Life& life) {
    const auto* stopped = FirstEffect<lease::StoppedEffect>(f);
    if (stopped == nullptr || !life.call.open || life.call.write != Purpose::kAcquire) return;
    if (f.answers_latest || life.call.RanOut(f.now)) return;
    Broken(f, "SIGTERM in acquiring resolves the attempt first",
           "stops while its acquisition of token " + std::to_string(life.call.token) +
               " is under way");
  }

  static void NoteFate(const StepFact& f, Life& life, const lease::CasAnswer* cas) {
    const auto sight = SightOf(f.event);
    const bool own = sight && sight->record != nullptr &&
                     sight->record->process_id == f.process.identity.process_id;
    if (cas != nullptr && !f.answer_counts) life.unsure = true;
    if (cas != nullptr && cas->outcome == Outcome::kApplied) {
      life.unresolved.clear();
      life.unsure = !f.answer_counts;
    } else if (cas != nullptr && cas->outcome != Outcome::kAmbiguous) {
      std::erase(life.unresolved, life.call.beat);
    }
    // A read that shows one of them settles the older ones, if it may: then none is known to be
    // open, but which the engine takes for settled is its own matter.
    if (own) life.unsure = true;
  }

  void Broken(const StepFact& f, const std::string& rule, const std::string& what) {
    judge_.Violate(rule, Name(f.process) + " " + what);
  }

  PerProcess<Life> lives_;
};

}  // namespace

std::unique_ptr<Checker> MakeFollowChecker(Judge& judge) {
  return std::make_unique<FollowChecker>(judge);
}

}  // namespace leasehold::simulation

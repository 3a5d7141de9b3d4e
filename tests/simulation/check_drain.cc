// Stepping down in its order (DESIGN 2.5): a planned drain ends in a release and never in an open
// gate; the release waits until the gates have said drained for this very term, or grace is over; a
// drain for failed renewals releases nothing while a renewal could still end it (2.3); a request
// for the term that is draining joins; an application that was unready for too long, or a start
// that failed, ends the term.
#include <string>

#include "simulation/checkers.h"
#include "simulation/latest_call.h"
#include "simulation/per_process.h"

namespace leasehold::simulation {
namespace {

struct Life {
  ToldValve told;
  bool planned = false;       // the drain of the present term is one that was asked for
  bool drained = false;       // said for the present term, since its drain began
  bool start_failed = false;  // for the present term
  bool opened = false;        // the present term was open
  uint64_t token = 0;         // of the present term
  bool unready = false;       // for too long, and not ready since
};

bool IsPlanned(lease::Reason reason) {
  return reason != lease::Reason::kRenewalsFailed && reason != lease::Reason::kNone;
}

class DrainChecker final : public Checker {
 public:
  using Checker::Checker;

  void Stepped(const StepFact& f) override {
    Life& life = lives_[f.process];
    NoteEvent(f, life);
    for (const lease::Effect& effect : f.effects) NoteEffect(f, life, effect);
    if (life.unready && f.after.MayAdmit(f.now)) {
      Broken(f, "an application that stays unready steps down",
             "admits although its application was unready for too long");
    }
    CheckJoin(f);
    CheckStartFailed(f);
  }

 private:
  static void NoteEvent(const StepFact& f, Life& life) {
    if (const auto* app = std::get_if<lease::AppState>(&f.event)) {
      if (app->ready) life.unready = false;
    }
    if (std::holds_alternative<lease::AppUnreadyTooLong>(f.event)) life.unready = true;
    const auto* drained = std::get_if<lease::Drained>(&f.event);
    if (drained != nullptr && drained->token == f.before.token &&
        f.before.valve == lease::Valve::kDraining) {
      life.drained = true;
    }
    const auto* failed = std::get_if<lease::StartFailed>(&f.event);
    if (failed != nullptr && failed->token == f.before.token) life.start_failed = true;
  }

  void NoteEffect(const StepFact& f, Life& life, const lease::Effect& effect) {
    if (const auto* valve = std::get_if<lease::ValveEffect>(&effect)) NoteValve(f, life, *valve);
    const auto* cas = std::get_if<lease::CasEffect>(&effect);
    if (cas == nullptr || cas->purpose != lease::CasEffect::Purpose::kRelease) return;
    if (cas->record.token != life.token || !life.opened || life.start_failed) return;
    if (!life.planned) {
      Broken(f, "a drain for failed renewals releases nothing while a renewal could end it",
             "releases token " + std::to_string(life.token) + ", which nobody asked for");
    } else if (!life.drained && f.now < life.told.drain_end) {
      Broken(f, "a release waits until every gate has drained or grace is over",
             "releases token " + std::to_string(life.token) + " " +
                 Seconds(life.told.drain_end - f.now) + " s before grace is over, undrained");
    }
  }

  void NoteValve(const StepFact& f, Life& life, const lease::ValveEffect& valve) {
    const bool admits = valve.valve == lease::Valve::kOpen;
    if (admits && life.token == valve.token && life.planned) {
      Broken(f, "a drain that was asked for ends in a release",
             "opens again under token " + std::to_string(valve.token) + " after its drain began");
    }
    if (admits && life.token != valve.token) {
      const bool unready = life.unready;
      life = {};
      life.unready = unready;
      life.token = valve.token;
      life.opened = true;
    }
    if (admits) life.drained = false;  // a drain that ended is forgotten
    if (valve.valve == lease::Valve::kDraining) {
      life.planned = life.planned || IsPlanned(valve.reason);
      life.told.drain_end = valve.drain_end;
    }
  }

  // The precondition fits, whatever became of the term since: the answer waits for its outcome.
  void CheckJoin(const StepFact& f) {
    const auto* request = std::get_if<lease::StepDownRequest>(&f.event);
    if (request == nullptr || !f.before.MayAct(f.now) ||
        request->expected.node_id != f.process.identity.node_id ||
        request->expected.token != f.before.token) {
      return;
    }
    for (const lease::Effect& effect : f.effects) {
      const auto* done = std::get_if<lease::StepDownDone>(&effect);
      if (done == nullptr || done->request != request->request) continue;
      if (done->outcome != lease::StepDownDone::Outcome::kFailedPrecondition) continue;
      Broken(f, "a second request for the same term joins the first",
             "answers failed_precondition to a request that expects its very token");
    }
  }

  void CheckStartFailed(const StepFact& f) {
    const auto* failed = std::get_if<lease::StartFailed>(&f.event);
    if (failed == nullptr || failed->token != f.before.token || !f.before.MayAct(f.now)) return;
    if (f.after.MayAct(f.now)) {
      Broken(f, "a takeover that fails after the lease is held releases it",
             "keeps its permit although its start failed");
    }
  }

  void Broken(const StepFact& f, const std::string& rule, const std::string& what) {
    judge_.Violate(rule, Name(f.process) + " " + what);
  }

  PerProcess<Life> lives_;
};

}  // namespace

std::unique_ptr<Checker> MakeDrainChecker(Judge& judge) {
  return std::make_unique<DrainChecker>(judge);
}

}  // namespace leasehold::simulation

// Liveness: once the faults are over, and as long as some process with a ready application may
// compete, nobody waits for a holder longer than Scenario::settle_bound.
//
// Not demanded where the engine must stand still: a record nobody may overwrite, tokens used up, a
// store that went back under on_token_regression = "refuse", a process that was asked to step down
// for good (take_back = false).
#include <algorithm>
#include <string>

#include "simulation/checkers.h"
#include "simulation/per_process.h"

namespace leasehold::simulation {
namespace {

struct Life {
  const Process* process = nullptr;
  PermitShot permit;
  bool ready = false;
  bool leaving = false;
  bool sits_out = false;  // stepped down with take_back = false: somebody else must come
};

class LivenessChecker final : public Checker {
 public:
  LivenessChecker(Judge& judge, const Scenario& scenario) : Checker(judge), scenario_(scenario) {
    demanded_ = scenario.store.start != StorePlan::Start::kUnusable &&
                scenario.store.start != StorePlan::Start::kNearlyExhausted;
  }

  void Born(const Process& process) override { lives_[process].process = &process; }

  void Died(const Process& process, TrueNs at) override {
    Life& life = lives_[process];
    Cover(life, at);
    life.permit.valve = lease::Valve::kClosed;
    life.leaving = true;
    NoteCandidates(at);
  }

  void LostWrites(const LossFact&) override { lossy_ = true; }

  void FaultsEnded(TrueNs at) override {
    quiet_ = true;
    NoteCandidates(at);
  }

  void Stepped(const StepFact& f) override {
    Life& life = lives_[f.process];
    Cover(life, f.at);
    const bool opens = !f.before.MayAct(f.now) && f.after.MayAct(f.now);
    if (opens) {
      CheckGap(f.at);
      life.sits_out = false;
    }
    life.permit = f.after;
    const auto* request = std::get_if<lease::StepDownRequest>(&f.event);
    // One with another precondition changes nothing.
    if (request != nullptr && !request->take_back && f.before.token != 0 &&
        request->expected.node_id == f.process.identity.node_id &&
        request->expected.token == f.before.token) {
      life.sits_out = true;
    }
    const auto* app = std::get_if<lease::AppState>(&f.event);
    if (app != nullptr) life.ready = app->ready;
    if (std::holds_alternative<lease::Shutdown>(f.event)) life.leaving = true;
    if (app != nullptr || opens || life.leaving || life.sits_out) NoteCandidates(f.at);
  }

  void Finished(TrueNs at) override {
    for (Life& life : lives_) {
      if (life.process != nullptr) Cover(life, at);
    }
    CheckGap(at);
  }

 private:
  // Somebody could act until `at` or until that permit's expiry.
  void Cover(const Life& life, TrueNs at) {
    if (life.permit.valve == lease::Valve::kClosed) return;
    covered_until_ =
        std::max(covered_until_, std::min(at, life.process->clock->TrueAt(life.permit.expiry)));
  }

  bool MayCompete(const Life& life) const {
    if (life.process == nullptr || !life.process->alive || !life.ready || life.leaving ||
        life.sits_out)
      return false;
    return !lossy_ ||
           life.process->plan->options.on_token_regression == lease::OnTokenRegression::kContinue;
  }

  void NoteCandidates(TrueNs at) {
    if (!quiet_) return;
    const bool any =
        std::any_of(lives_.begin(), lives_.end(), [this](const Life& l) { return MayCompete(l); });
    if (any && candidates_since_ < 0) candidates_since_ = at;
    if (!any) candidates_since_ = -1;
  }

  void CheckGap(TrueNs at) {
    if (!quiet_ || !demanded_ || candidates_since_ < 0) return;
    const TrueNs waited = at - std::max(covered_until_, candidates_since_);
    if (waited <= scenario_.settle_bound) return;
    judge_.Violate("when faults are over and an application is ready, somebody holds again in time",
                   "nobody held for " + Seconds(waited) + " s; the bound is " +
                       Seconds(scenario_.settle_bound));
  }

  const Scenario& scenario_;
  bool demanded_ = true;
  bool quiet_ = false;
  bool lossy_ = false;
  TrueNs covered_until_ = 0;
  TrueNs candidates_since_ = -1;
  PerProcess<Life> lives_;
};

}  // namespace

std::unique_ptr<Checker> MakeLivenessChecker(Judge& judge, const Scenario& scenario) {
  return std::make_unique<LivenessChecker>(judge, scenario);
}

}  // namespace leasehold::simulation

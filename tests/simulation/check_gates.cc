// Gates (DESIGN 2.5, 4): nothing is admitted but under an open permit by a fresh look at the clock;
// who waits comes before who arrives; an answer passes only under the permit (on_loss = "cut"); a
// drain is over only when nothing inbound is in flight; and when a release leaves the process
// nothing of its term is. What a loss left to finish (on_loss = "finish") is no term's any more: a
// fence keeps it apart from all that comes after, this process's next term included.
#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "simulation/checkers.h"
#include "simulation/per_process.h"

namespace leasehold::simulation {
namespace {

struct Life {
  PermitShot permit;
  // By gate: request -> the token that it was admitted under.
  std::vector<std::map<uint64_t, uint64_t>> in_flight;
};

class GateChecker final : public Checker {
 public:
  using Checker::Checker;

  void Born(const Process& process) override {
    lives_[process].in_flight.resize(process.plan->gates.size());
  }

  void Acted(const ActFact& f) override {
    Life& life = lives_[f.process];
    life.in_flight[f.gate][f.request.id] = f.token;
    const base::MonoTime now = f.process.clock->At(f.at);
    const bool outbound = f.process.plan->gates[f.gate].outbound;
    const bool drains = life.permit.valve == lease::Valve::kDraining && life.permit.MayAct(now);
    if (!life.permit.MayAdmit(now) && !(outbound && drains)) {
      Broken(f.process,
             "nothing is admitted but under an open permit, by a fresh look at the clock",
             "admitted a request under " + PermitText(life.permit, *f.process.clock));
    }
    if (f.token != life.permit.token) {
      Broken(f.process, "what is admitted bears the token of the term",
             "admitted under token " + std::to_string(f.token) + " in term " +
                 std::to_string(life.permit.token));
    }
    if (!f.held && f.waiting > 0) {
      Broken(f.process, "nobody new overtakes who is held",
             "admitted a new request while " + std::to_string(f.waiting) + " wait");
    }
  }

  void WorkEnded(const FinishFact& f) override {
    lives_[f.process].in_flight[f.gate].erase(f.request.id);
  }

  void Passed(const PassFact& f) override {
    const Life& life = lives_[f.process];
    if (f.process.plan->gates[f.gate].on_loss == gate::OnLoss::kFinish) return;
    if (life.permit.MayAct(f.process.clock->At(f.at))) return;
    Broken(f.process, "what is in flight passes under the permit only",
           "passed an answer under " + PermitText(life.permit, *f.process.clock));
  }

  void Stepped(const StepFact& f) override {
    Life& life = lives_[f.process];
    life.permit = f.after;
    const auto* drained = std::get_if<lease::Drained>(&f.event);
    if (drained == nullptr || f.before.valve != lease::Valve::kDraining ||
        drained->token != f.before.token) {
      return;
    }
    for (size_t i = 0; i < life.in_flight.size(); ++i) {
      if (f.process.plan->gates[i].outbound || life.in_flight[i].empty()) continue;
      Broken(f.process, "a drain waits for what is in flight",
             "says drained with " + std::to_string(life.in_flight[i].size()) + " in flight");
    }
  }

  void Sending(const SendFact& f) override {
    if (f.effect.purpose != lease::CasEffect::Purpose::kRelease) return;
    const uint64_t token = f.effect.record.token;
    for (const auto& gate : lives_[f.process].in_flight) {
      const auto count = std::count_if(gate.begin(), gate.end(),
                                       [&](const auto& work) { return work.second == token; });
      if (count == 0) continue;
      Broken(f.process, "every gate is empty or cut before the release is sent",
             "releases with " + std::to_string(count) + " in flight");
    }
  }

 private:
  void Broken(const Process& process, const std::string& rule, const std::string& what) {
    judge_.Violate(rule, Name(process) + " " + what);
  }

  PerProcess<Life> lives_;
};

}  // namespace

std::unique_ptr<Checker> MakeGateChecker(Judge& judge) {
  return std::make_unique<GateChecker>(judge);
}

}  // namespace leasehold::simulation

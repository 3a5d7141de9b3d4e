// Determinism (LAYOUT, "the pure engine"): same start, same events, same times, same effects. Every
// engine of the run is played again into a fresh one, and every member of every effect compared.
#include <deque>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "lease/trace.h"
#include "simulation/checkers.h"
#include "simulation/per_process.h"

namespace leasehold::simulation {
namespace {

bool Same(const lease::ReadEffect& a, const lease::ReadEffect& b) {
  return std::tie(a.op, a.timeout) == std::tie(b.op, b.timeout);
}
bool Same(const lease::CasEffect& a, const lease::CasEffect& b) {
  return std::tie(a.op, a.purpose, a.expected, a.record, a.timeout) ==
         std::tie(b.op, b.purpose, b.expected, b.record, b.timeout);
}
bool Same(const lease::ValveEffect& a, const lease::ValveEffect& b) {
  return std::tie(a.valve, a.reason, a.lost, a.drain_end, a.token) ==
         std::tie(b.valve, b.reason, b.lost, b.drain_end, b.token);
}
bool Same(const lease::NoticeEffect& a, const lease::NoticeEffect& b) {
  return std::tie(a.notice, a.reason, a.token, a.holder_node_id, a.holder_process_id, a.grace,
                  a.detail) == std::tie(b.notice, b.reason, b.token, b.holder_node_id,
                                        b.holder_process_id, b.grace, b.detail);
}
bool Same(const lease::StepDownDone& a, const lease::StepDownDone& b) {
  return std::tie(a.request, a.outcome, a.expected.node_id, a.expected.token, a.released_token,
                  a.hold_off, a.token, a.node_id, a.process_id, a.detail) ==
         std::tie(b.request, b.outcome, b.expected.node_id, b.expected.token, b.released_token,
                  b.hold_off, b.token, b.node_id, b.process_id, b.detail);
}
bool Same(const lease::StoppedEffect& a, const lease::StoppedEffect& b) {
  return std::tie(a.ok, a.why) == std::tie(b.ok, b.why);
}
bool Same(const lease::Effect& a, const lease::Effect& b) {
  return a.index() == b.index() &&
         std::visit(
             [&b](const auto& left) {
               return Same(left, std::get<std::decay_t<decltype(left)>>(b));
             },
             a);
}

struct Recorded {
  base::MonoTime now;
  lease::Event event;
  lease::Effects effects;
  base::MonoTime deadline;
};

class ReplayChecker final : public Checker {
 public:
  using Checker::Checker;

  void Born(const Process& process) override { lives_[process].process = &process; }

  void Stepped(const StepFact& f) override {
    lives_[f.process].steps.push_back({f.now, f.event, f.effects, f.deadline});
  }

  void Finished(TrueNs) override {
    for (const Life& life : lives_) {
      if (life.process != nullptr) Replay(life);
    }
  }

 private:
  struct Life {
    const Process* process = nullptr;
    std::deque<Recorded> steps;
  };

  void Replay(const Life& life) {
    const Process& p = *life.process;
    lease::Engine engine(p.plan->options, p.identity, p.engine_seed, p.born, p.memory);
    engine.SetPeers(p.peers);
    for (const Recorded& step : life.steps) {
      lease::Effects effects;
      engine.Step(step.now, step.event, effects);
      bool same = effects.size() == step.effects.size() && engine.NextDeadline() == step.deadline;
      for (size_t i = 0; same && i < effects.size(); ++i) {
        same = Same(effects[i], step.effects[i]);
      }
      if (same) continue;
      judge_.Violate("same start, same events, same times: same effects",
                     Name(p) + " replayed differs at \"" + lease::EventText(step.event) + "\"");
      return;
    }
  }

  PerProcess<Life> lives_;
};

}  // namespace

std::unique_ptr<Checker> MakeReplayChecker(Judge& judge) {
  return std::make_unique<ReplayChecker>(judge);
}

}  // namespace leasehold::simulation

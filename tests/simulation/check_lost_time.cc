// Lost time (DESIGN 2.2): from the event on, nothing is admitted until a write sent after it is
// confirmed, nothing in flight is cut, and the permit is not extended by what was sent before.
#include <optional>
#include <string>
#include <vector>

#include "simulation/checkers.h"
#include "simulation/per_process.h"

namespace leasehold::simulation {
namespace {

struct Life {
  std::vector<OwnWrite> writes;
  std::optional<base::MonoTime> lost_at;
  base::MonoTime drain_end = base::MonoTime::Never();  // of the drain under way
};

class LostTimeChecker final : public Checker {
 public:
  using Checker::Checker;

  void Applied(const WriteFact& f) override { lives_[f.writer].writes.push_back(ToOwnWrite(f)); }

  void Stepped(const StepFact& f) override {
    Life& life = lives_[f.process];
    if (std::holds_alternative<lease::LostTime>(f.event)) {
      life.lost_at = f.now;
      // (A drain whose end passed meanwhile ends by itself.)
      if (f.before.MayAct(f.now) && !f.after.MayAct(f.now) && f.now < life.drain_end) {
        judge_.Violate("lost time holds admissions; nothing is cut",
                       Name(f.process) + " cut its permit for token " +
                           std::to_string(f.before.token) + " on lost time");
      }
    }
    for (const lease::Effect& effect : f.effects) {
      const auto* valve = std::get_if<lease::ValveEffect>(&effect);
      if (valve == nullptr) continue;
      life.drain_end =
          valve->valve == lease::Valve::kDraining ? valve->drain_end : base::MonoTime::Never();
    }
    if (!life.lost_at) return;
    const bool extended = f.after.MayAct(f.now) &&
                          (f.after.token != f.before.token || f.after.expiry > f.before.expiry);
    if (!extended && !f.after.MayAdmit(f.now)) return;
    for (const OwnWrite& write : life.writes) {
      if (write.token == f.after.token && write.sent >= *life.lost_at) {
        life.lost_at.reset();
        return;
      }
    }
    judge_.Violate("answers to requests sent before lost time confer no permit",
                   Name(f.process) + (extended ? " extends" : " admits under") +
                       " its permit for token " + std::to_string(f.after.token) +
                       "; no write sent since the lost time was taken");
  }

 private:
  PerProcess<Life> lives_;
};

}  // namespace

std::unique_ptr<Checker> MakeLostTimeChecker(Judge& judge) {
  return std::make_unique<LostTimeChecker>(judge);
}

}  // namespace leasehold::simulation

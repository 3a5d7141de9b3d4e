// The permit's end: never beyond the first sending of a write that the register really took, + TTL
// - margin, on the process's own clock (DESIGN 2.2); a term that is over is never revived; and an
// acquisition confirmed late opens only on a renewal.
#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "simulation/checkers.h"
#include "simulation/per_process.h"

namespace leasehold::simulation {
namespace {

class ExpiryChecker final : public Checker {
 public:
  using Checker::Checker;

  void Applied(const WriteFact& f) override { lives_[f.writer].writes.push_back(ToOwnWrite(f)); }

  void Stepped(const StepFact& f) override {
    Life& life = lives_[f.process];
    const auto* cas = std::get_if<lease::CasAnswer>(&f.event);
    if (cas != nullptr && cas->outcome == lease::CasAnswer::Outcome::kApplied) {
      life.answered.insert(life.beat_of_op[cas->op]);
    }
    for (const lease::Effect& effect : f.effects) {
      const auto* write = std::get_if<lease::CasEffect>(&effect);
      if (write != nullptr) life.beat_of_op = {{write->op, write->record.beat}};
    }
    if (f.before.valve != lease::Valve::kClosed && !f.before.MayAct(f.now)) {
      life.over = std::max(life.over, f.before.token);
    }
    if (f.after.MayAct(f.now) && f.after != f.before) {
      CheckConfirmed(f, life);
      if (f.after.token <= life.over) {
        judge_.Violate("a term that is over is never revived, even if its late yes arrives",
                       Name(f.process) + " may act again under token " +
                           std::to_string(f.after.token) + ", a term that was over");
      }
    }
    if (f.before.valve != lease::Valve::kClosed &&
        (f.after.valve == lease::Valve::kClosed || f.after.token != f.before.token)) {
      life.over = std::max(life.over, f.before.token);
    }
  }

 private:
  struct Life {
    std::vector<OwnWrite> writes;
    std::map<uint64_t, uint64_t> beat_of_op;  // of the latest write
    std::set<uint64_t> answered;              // beats whose own answer said applied
    uint64_t over = 0;                        // highest token of a term of its own that has ended
  };

  void CheckConfirmed(const StepFact& f, const Life& life) {
    const base::Duration span = f.process.timing.ttl - f.process.timing.margin;
    const OwnWrite* best = nullptr;
    const OwnWrite* acquisition = nullptr;
    for (const OwnWrite& write : life.writes) {
      if (write.token != f.after.token) continue;
      if (write.purpose == lease::CasEffect::Purpose::kRelease) continue;
      // With wait_replicas only the write's own answer confirms it.
      const bool confirmed =
          f.process.plan->options.reads_confirm || life.answered.contains(write.beat);
      if (!confirmed) continue;
      if (best == nullptr || write.sent > best->sent) best = &write;
      if (write.purpose == lease::CasEffect::Purpose::kAcquire) acquisition = &write;
    }
    if (best == nullptr || acquisition == nullptr) {
      judge_.Violate("a permit comes only from a write that the store took",
                     Name(f.process) + " may act under token " + std::to_string(f.after.token) +
                         ", of which no acquisition of its own was ever confirmed");
      return;
    }
    if (f.after.expiry > best->sent + span) {
      judge_.Violate("the permit ends at the first sending of the confirmed write + TTL - margin",
                     Name(f.process) + "'s permit runs " + Seconds(f.after.expiry - best->sent) +
                         " s from the sending of its latest applied write; TTL - margin is " +
                         Seconds(span));
    }
    CheckLateAcquisition(f, *acquisition, span);
  }

  void CheckLateAcquisition(const StepFact& f, const OwnWrite& acquisition, base::Duration span) {
    if (f.before.valve != lease::Valve::kClosed && f.before.token == f.after.token) return;
    if (f.now - acquisition.sent <= f.process.timing.renew_interval) return;
    if (f.after.expiry > acquisition.sent + span) return;  // a later write confirmed it
    judge_.Violate(
        "an acquisition confirmed more than one renew_interval after it was sent renews first and "
        "opens on success",
        Name(f.process) + " opened on an acquisition sent " + Seconds(f.now - acquisition.sent) +
            " s ago; renew_interval is " + Seconds(f.process.timing.renew_interval));
  }

  PerProcess<Life> lives_;
};

}  // namespace

std::unique_ptr<Checker> MakeExpiryChecker(Judge& judge) {
  return std::make_unique<ExpiryChecker>(judge);
}

}  // namespace leasehold::simulation

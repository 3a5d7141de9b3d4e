// At most one permit at any true instant. A permit runs in true time from the step that opened it
// to the step that closed it or the instant its process's own clock shows the expiry, whichever
// comes first; so two overlap exactly if, at some step after which one may act, another may.
//
// What DESIGN does not promise is left out:
// - a permit confirmed before its machine's clock stood still uncounted (2.2, lost time);
// - a store that lost acknowledged writes (2.2, gone back): an instance that had seen what was lost
//   waits it out, one that had not cannot know.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "simulation/checkers.h"
#include "simulation/per_process.h"

namespace leasehold::simulation {
namespace {

struct Claim {
  const Process* process = nullptr;
  PermitShot permit;
  TrueNs clock_stopped_at = -1;
  std::vector<OwnWrite> writes;
  // Highest beat seen of (process id, token) of others.
  std::vector<std::pair<std::pair<std::string, uint64_t>, uint64_t>> seen;

  // The earliest write that can have confirmed the permit as it stands.
  const OwnWrite* Confirming() const {
    const base::Duration life = process->timing.ttl - process->timing.margin;
    for (const OwnWrite& write : writes) {
      if (write.token == permit.token && write.sent + life >= permit.expiry) return &write;
    }
    return nullptr;
  }
  const OwnWrite* Acquisition() const {
    for (const OwnWrite& write : writes) {
      if (write.token == permit.token) return &write;
    }
    return nullptr;
  }
  bool Tainted() const {
    const OwnWrite* confirming = Confirming();
    return confirming == nullptr || confirming->sent_at < clock_stopped_at;
  }
};

class OverlapChecker final : public Checker {
 public:
  using Checker::Checker;

  void Born(const Process& process) override { claims_[process].process = &process; }

  void Applied(const WriteFact& f) override {
    claims_[f.writer].writes.push_back(ToOwnWrite(f));
    if (f.effect.purpose == lease::CasEffect::Purpose::kAcquire) acquired_at_.push_back(f.at);
  }

  void LostWrites(const LossFact& f) override { losses_.push_back(f); }

  void ClockStopped(const Process& process, TrueNs at) override {
    claims_[process].clock_stopped_at = at;
  }

  void Died(const Process& process, TrueNs) override {
    claims_[process].permit.valve = lease::Valve::kClosed;
  }

  void Stepped(const StepFact& f) override {
    Claim& mine = claims_[f.process];
    if (const auto sight = SightOf(f.event); sight && f.answer_counts) NoteSeen(mine, *sight);
    mine.permit = f.after;
    if (!f.after.MayAct(f.now) || mine.Tainted()) return;
    for (Claim& other : claims_) {
      if (&other == &mine || other.permit.valve == lease::Valve::kClosed) continue;
      if (!other.permit.MayAct(other.process->clock->At(f.at)) || other.Tainted()) continue;
      if (Excused(mine, other)) continue;
      judge_.Violate("two instances never hold a permit for the same lease at the same true time",
                     Name(*mine.process) + " has a permit (" +
                         PermitText(mine.permit, *mine.process->clock) + ") while " +
                         Name(*other.process) + " has one (" +
                         PermitText(other.permit, *other.process->clock) + ")");
    }
  }

 private:
  void NoteSeen(Claim& claim, const Sight& sight) {
    if (sight.record == nullptr) return;
    const std::pair key{sight.record->process_id, sight.record->token};
    for (auto& [term, beat] : claim.seen) {
      if (term == key) {
        beat = std::max(beat, sight.record->beat);
        return;
      }
    }
    claim.seen.emplace_back(key, sight.record->beat);
  }

  // True if writes were lost in between and the later acquirer could not know.
  bool Excused(const Claim& a, const Claim& b) const {
    if (losses_.empty()) return false;
    const bool a_first = a.Acquisition()->applied_at < b.Acquisition()->applied_at;
    const Claim& older = a_first ? a : b;
    const Claim& newer = a_first ? b : a;
    const TrueNs confirmed = older.Confirming()->applied_at;
    const TrueNs acquired = newer.Acquisition()->applied_at;
    const LossFact* between = nullptr;
    int losses = 0;
    for (const LossFact& loss : losses_) {
      if (loss.at < std::min(confirmed, acquired) || loss.at > std::max(confirmed, acquired)) {
        continue;
      }
      between = &loss;
      ++losses;
    }
    if (losses == 0) return false;
    if (losses > 1 || acquired < confirmed) return true;
    for (const TrueNs at : acquired_at_) {
      if (at > between->at && at < acquired) return true;  // somebody who could not know came first
    }
    return !SawLost(newer, older, *between);
  }

  // Had `newer` seen a write of `older`'s term that the store lost?
  static bool SawLost(const Claim& newer, const Claim& older, const LossFact& loss) {
    const std::pair term{older.process->identity.process_id, older.permit.token};
    for (const auto& [seen_term, beat] : newer.seen) {
      if (seen_term != term) continue;
      for (const OwnWrite& write : older.writes) {
        if (write.token == term.second && write.beat == beat) {
          return write.applied_at > loss.restored_from;
        }
      }
    }
    // node.state_dir: it only has to know that there was a higher token.
    return newer.process->memory.highest_token >= older.permit.token &&
           (!loss.restored || loss.restored->token < older.permit.token);
  }

  PerProcess<Claim> claims_;
  std::vector<LossFact> losses_;
  std::vector<TrueNs> acquired_at_;
};

}  // namespace

std::unique_ptr<Checker> MakeOverlapChecker(Judge& judge) {
  return std::make_unique<OverlapChecker>(judge);
}

}  // namespace leasehold::simulation

// Fencing tokens: +1 or more with every acquisition, never reused, never lower. In the register as
// a whole while the store loses nothing; for each instance as far as it remembers, always. And what
// a fence beside the resource would see: acts under ever higher tokens.
#include <algorithm>
#include <string>

#include "simulation/checkers.h"
#include "simulation/per_process.h"

namespace leasehold::simulation {
namespace {

constexpr char kRule[] =
    "fencing tokens rise by every acquisition and are never reused (max of the record's and the "
    "highest seen, + 1)";

class TokenChecker final : public Checker {
 public:
  using Checker::Checker;

  void Born(const Process& process) override {
    highest_seen_[process] = process.memory.highest_token;
  }

  void Applied(const WriteFact& f) override {
    const lease::Record& record = f.effect.record;
    const uint64_t replaced = f.replaced ? f.replaced->token : 0;
    const bool acquires = f.effect.purpose == lease::CasEffect::Purpose::kAcquire;
    if (acquires ? record.token <= replaced : record.token != replaced) {
      Broken(f.writer, "wrote token " + std::to_string(record.token) + " over token " +
                           std::to_string(replaced));
    }
    if (!acquires && f.replaced && f.replaced->process_id != record.process_id) {
      Broken(f.writer, "renewed or released the term of " + f.replaced->process_id);
    }
    if (acquires && !lossy_ && record.token <= highest_acquired_) {
      Broken(f.writer, "acquired with token " + std::to_string(record.token) + " after " +
                           std::to_string(highest_acquired_));
    }
    highest_acquired_ = std::max({highest_acquired_, record.token, replaced});
  }

  void LostWrites(const LossFact&) override { lossy_ = true; }
  void ClockStopped(const Process&, TrueNs) override { fence_sees_order_ = false; }

  void Acted(const ActFact& f) override {
    if (lossy_ || !fence_sees_order_) return;
    if (f.token < highest_acted_) {
      Broken(f.process, "acted under token " + std::to_string(f.token) + " after token " +
                            std::to_string(highest_acted_) + " had acted");
    }
    highest_acted_ = std::max(highest_acted_, f.token);
  }

  void Stepped(const StepFact& f) override {
    uint64_t& seen = highest_seen_[f.process];
    if (const auto sight = SightOf(f.event); sight && f.answer_counts && sight->record != nullptr &&
                                             lease::ValidateRecord(*sight->record).ok()) {
      seen = std::max(seen, sight->record->token);
    }
    for (const lease::Effect& effect : f.effects) {
      if (const auto* cas = std::get_if<lease::CasEffect>(&effect)) CheckWrite(f, *cas, seen);
      const auto* notice = std::get_if<lease::NoticeEffect>(&effect);
      if (notice != nullptr && notice->notice == lease::Notice::kAcquired) {
        CheckAnnounced(f.process, notice->token);
      }
    }
    seen = std::max(seen, f.after.token);
  }

 private:
  void CheckWrite(const StepFact& f, const lease::CasEffect& cas, uint64_t seen) {
    if (cas.purpose != lease::CasEffect::Purpose::kAcquire) return;
    if (cas.record.token <= seen) {
      Broken(f.process, "tries to acquire with token " + std::to_string(cas.record.token) +
                            " although it has seen token " + std::to_string(seen));
    }
  }

  void CheckAnnounced(const Process& process, uint64_t token) {
    // A machine that stood still uncounted may tell late of what it acquired before (2.2, lost
    // time).
    if (!lossy_ && fence_sees_order_ && token <= highest_announced_) {
      Broken(process, "says it acquired token " + std::to_string(token) + " after token " +
                          std::to_string(highest_announced_) + " was");
    }
    highest_announced_ = std::max(highest_announced_, token);
  }

  void Broken(const Process& process, const std::string& what) {
    judge_.Violate(kRule, Name(process) + " " + what);
  }

  bool lossy_ = false;
  bool fence_sees_order_ = true;
  uint64_t highest_acquired_ = 0;
  uint64_t highest_announced_ = 0;
  uint64_t highest_acted_ = 0;
  PerProcess<uint64_t> highest_seen_;
};

}  // namespace

std::unique_ptr<Checker> MakeTokenChecker(Judge& judge) {
  return std::make_unique<TokenChecker>(judge);
}

}  // namespace leasehold::simulation

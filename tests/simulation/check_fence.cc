// A resource that compares fencing tokens (DESIGN 1, 9): it never applies a lower token after a
// higher one, nor one token for two processes, however late a request comes, whatever the clocks
// did; and it turns away nobody who comes under the highest token that was handed out.
#include <algorithm>
#include <string>

#include "simulation/checkers.h"
#include "simulation/facts.h"

namespace leasehold::simulation {
namespace {

class FenceChecker final : public Checker {
 public:
  using Checker::Checker;

  void Applied(const WriteFact& f) override {
    if (f.effect.purpose == lease::CasEffect::Purpose::kAcquire) {
      handed_out_ = std::max(handed_out_, f.effect.record.token);
    }
  }

  void LostWrites(const LossFact&) override { lossy_ = true; }

  void Executed(const ExecutionFact& f) override {
    if (!f.applied) {
      if (lossy_ || f.token < handed_out_) return;
      judge_.Violate("a fence lets the highest token pass",
                     Name(f.process) + " was turned away with token " + std::to_string(f.token) +
                         ", the highest that was handed out");
      return;
    }
    if (f.token < applied_ || (f.token == applied_ && f.process.identity.process_id != process_)) {
      judge_.Violate("a fenced resource never applies a lower token after a higher one",
                     Name(f.process) + " was let in with token " + std::to_string(f.token) +
                         " after " + process_ + " with " + std::to_string(applied_));
    }
    applied_ = f.token;
    process_ = f.process.identity.process_id;
  }

 private:
  bool lossy_ = false;
  uint64_t handed_out_ = 0;
  uint64_t applied_ = 0;
  std::string process_;
};

}  // namespace

std::unique_ptr<Checker> MakeFenceChecker(Judge& judge) {
  return std::make_unique<FenceChecker>(judge);
}

}  // namespace leasehold::simulation

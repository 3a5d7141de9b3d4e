// The release: the permit is over, and the gates were told, before its first byte goes out; after
// it nothing is written under the term but the release itself again (DESIGN 2.2, 2.5).
#include <algorithm>
#include <string>

#include "simulation/checkers.h"
#include "simulation/per_process.h"

namespace leasehold::simulation {
namespace {

class ReleaseChecker final : public Checker {
 public:
  using Checker::Checker;

  void Stepped(const StepFact& f) override {
    uint64_t& released = released_[f.process];
    bool shut = f.before.valve == lease::Valve::kClosed;
    for (const lease::Effect& effect : f.effects) {
      if (const auto* valve = std::get_if<lease::ValveEffect>(&effect)) {
        shut = valve->valve == lease::Valve::kClosed;
      }
      const auto* cas = std::get_if<lease::CasEffect>(&effect);
      if (cas == nullptr) continue;
      if (cas->purpose == lease::CasEffect::Purpose::kRelease) {
        CheckRelease(f, *cas, shut);
        released = std::max(released, cas->record.token);
      } else if (cas->record.token <= released) {
        judge_.Violate("a release that is sent is irrevocable",
                       Name(f.process) + " writes under token " +
                           std::to_string(cas->record.token) + " after the release of token " +
                           std::to_string(released));
      }
    }
  }

 private:
  void CheckRelease(const StepFact& f, const lease::CasEffect& cas, bool shut) {
    if (f.after.MayAct(f.now) || !shut) {
      judge_.Violate("the permit ends before the first byte of a release is sent",
                     Name(f.process) + " sends the release of token " +
                         std::to_string(cas.record.token) +
                         (shut ? " while its permit runs" : " before its gates were shut"));
    }
    if (cas.record.state != lease::RecordState::kReleased) {
      judge_.Violate("a release writes the state released",
                     Name(f.process) + " releases with a record that is still held");
    }
  }

  PerProcess<uint64_t> released_;
};

}  // namespace

std::unique_ptr<Checker> MakeReleaseChecker(Judge& judge) {
  return std::make_unique<ReleaseChecker>(judge);
}

}  // namespace leasehold::simulation

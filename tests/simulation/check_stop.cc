// SIGTERM (DESIGN 2.4, 2.5): step down, release, stop. Within: the grace; the renewal that may be
// under way; a release that is tried for one TTL; in acquiring, the attempt that must be resolved
// first. On the process's own clock, less what it spent frozen.
#include <optional>
#include <string>

#include "simulation/checkers.h"
#include "simulation/per_process.h"

namespace leasehold::simulation {
namespace {

struct Life {
  const Process* process = nullptr;
  std::optional<base::MonoTime> told_at;
  base::Duration stood;  // frozen before that
};

class StopChecker final : public Checker {
 public:
  using Checker::Checker;

  void Stepped(const StepFact& f) override {
    Life& life = lives_[f.process];
    life.process = &f.process;
    // One that is to watch on is told to stop by a second one.
    const auto* shutdown = std::get_if<lease::Shutdown>(&f.event);
    if (shutdown != nullptr && !shutdown->watch_on && !life.told_at) {
      life.told_at = f.now;
      life.stood = f.process.stood;
    }
    if (life.told_at) Check(life, f.now);
  }

  void Finished(TrueNs at) override {
    for (const Life& life : lives_) {
      if (life.told_at && life.process->alive) Check(life, life.process->clock->At(at));
    }
  }

 private:
  void Check(const Life& life, base::MonoTime now) {
    const lease::Timing& timing = life.process->timing;
    const base::Duration bound =
        timing.grace + timing.ttl * 2 + timing.call_timeout * 4 + base::Duration::Millis(500);
    const base::Duration took = now - *life.told_at - (life.process->stood - life.stood);
    if (took <= bound) return;
    judge_.Violate("after SIGTERM a process steps down, releases and stops",
                   Name(*life.process) + " has not stopped " + Seconds(took) +
                       " s after SIGTERM; the bound is " + Seconds(bound));
  }

  PerProcess<Life> lives_;
};

}  // namespace

std::unique_ptr<Checker> MakeStopChecker(Judge& judge) {
  return std::make_unique<StopChecker>(judge);
}

}  // namespace leasehold::simulation

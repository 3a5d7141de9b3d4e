// What a store must not be taken at its word for (DESIGN 2.1): a token lower than one that was seen
// is told before it is acted on, and stops a process with on_token_regression = "refuse"; the
// largest token is told as used up; a record of a higher format or with an absurd TTL is never
// replaced, by this file's own reading of the limits.
#include <algorithm>
#include <deque>
#include <limits>
#include <string>

#include "simulation/checkers.h"
#include "simulation/latest_call.h"
#include "simulation/per_process.h"

namespace leasehold::simulation {
namespace {

constexpr uint32_t kFormatMax = 1;             // DESIGN 2.1, this program's
constexpr int64_t kTtlMin = 500;               // DESIGN 2.3: 500 ms at least
constexpr int64_t kTtlMax = 24 * 3600 * 1000;  // src/lease/record.h: a day
constexpr size_t kKept = 8;

struct Shown {
  lease::Version version;
  uint64_t token = 0;
  bool usable = true;
};

struct Life {
  LatestCall call;
  std::deque<Shown> shown;  // newest last
  uint64_t highest = 0;
  bool told = false;            // token_regression, since the last record that was not lower
  bool told_exhausted = false;  // ever
  int looks_exhausted = 0;      // answers since the largest token was seen
};

class RegressionChecker final : public Checker {
 public:
  using Checker::Checker;

  void Born(const Process& process) override {
    lives_[process].highest = process.memory.highest_token;
  }

  void Stepped(const StepFact& f) override {
    Life& life = lives_[f.process];
    // An answer that came when its call's time was up may be dropped, also in the step that wakes
    // after expiry and takes the lease again.
    const auto sight = SightOf(f.event);
    if (sight && f.answers_latest) See(life, *sight, f.answer_counts);
    const auto* answer = std::get_if<lease::CasAnswer>(&f.event);
    if (answer != nullptr && answer->outcome == lease::CasAnswer::Outcome::kApplied &&
        f.answer_counts && life.call.write) {
      life.highest = std::max(life.highest, life.call.token);
    }
    for (const lease::Effect& effect : f.effects) {
      const auto* notice = std::get_if<lease::NoticeEffect>(&effect);
      if (notice != nullptr && notice->notice == lease::Notice::kTokenRegression) life.told = true;
      if (notice != nullptr && notice->notice == lease::Notice::kTokenExhausted) {
        life.told_exhausted = true;
      }
      const auto* cas = std::get_if<lease::CasEffect>(&effect);
      if (cas == nullptr) continue;
      if (cas->purpose == lease::CasEffect::Purpose::kAcquire) CheckTaking(f, life, *cas);
    }
    CheckExhausted(f, life);
    life.call.Note(f);
  }

 private:
  static bool Usable(const lease::Record& record) {
    return record.format >= 1 && record.format <= kFormatMax && record.ttl_ms >= kTtlMin &&
           record.ttl_ms <= kTtlMax;
  }

  static void See(Life& life, const Sight& sight, bool counts) {
    if (sight.record == nullptr) return;
    if (life.shown.empty() || life.shown.back().version != sight.version) {
      life.shown.push_back({sight.version, sight.record->token, Usable(*sight.record)});
      if (life.shown.size() > kKept) life.shown.pop_front();
    }
    if (!counts || !Usable(*sight.record)) return;
    if (sight.record->token >= life.highest) life.told = false;
    life.highest = std::max(life.highest, sight.record->token);
  }

  void CheckTaking(const StepFact& f, const Life& life, const lease::CasEffect& cas) {
    if (!cas.expected) return;
    const auto base = std::find_if(life.shown.rbegin(), life.shown.rend(), [&](const Shown& shown) {
      return shown.version == *cas.expected;
    });
    if (base == life.shown.rend()) return;  // a write of its own: check_takeover.cc
    if (!base->usable) {
      Broken(f, "a record that this program cannot judge is left as it is",
             "acquires over " + *cas.expected);
    }
    if (base->token >= life.highest) return;
    if (f.process.plan->options.on_token_regression == lease::OnTokenRegression::kRefuse) {
      Broken(f, "on_token_regression = \"refuse\" makes a lower token a stop",
             "acquires over token " + std::to_string(base->token) + " after token " +
                 std::to_string(life.highest));
    } else if (!life.told) {
      Broken(f, "a store that shows a lower token raises token_regression",
             "acquires over token " + std::to_string(base->token) + " after token " +
                 std::to_string(life.highest) + ", and told nobody");
    }
  }

  void CheckExhausted(const StepFact& f, Life& life) {
    const bool over = life.highest == std::numeric_limits<uint64_t>::max();
    const auto* read = std::get_if<lease::ReadAnswer>(&f.event);
    const bool looked = read != nullptr && f.answer_counts && !f.before.MayAct(f.now) &&
                        (read->outcome == lease::ReadAnswer::Outcome::kRecord ||
                         read->outcome == lease::ReadAnswer::Outcome::kAbsent);
    if (!over || !looked || life.told_exhausted) return;
    // The first may belong to the release or the loss that ended the last term there can be.
    if (++life.looks_exhausted > 3) {
      Broken(f, "at the largest token acquisitions stop with token_exhausted",
             "has looked " + std::to_string(life.looks_exhausted) + " times and told nobody");
    }
  }

  void Broken(const StepFact& f, const std::string& rule, const std::string& what) {
    judge_.Violate(rule, Name(f.process) + " " + what);
  }

  PerProcess<Life> lives_;
};

}  // namespace

std::unique_ptr<Checker> MakeRegressionChecker(Judge& judge) {
  return std::make_unique<RegressionChecker>(judge);
}

}  // namespace leasehold::simulation

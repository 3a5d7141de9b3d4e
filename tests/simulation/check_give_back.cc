// After a release (DESIGN 2.5, 2.6): it is told only when it is known to have taken, when the lease
// is another's, or after one TTL of trying; the hold-off is kept unless another process took the
// lease meanwhile; take_back = false is kept until another process has had it; a takeover that
// failed is tried again after a second at the earliest.
#include <optional>
#include <string>

#include "simulation/checkers.h"
#include "simulation/latest_call.h"
#include "simulation/per_process.h"

namespace leasehold::simulation {
namespace {

constexpr base::Duration kStartAgainMin = base::Duration::Seconds(1);  // DESIGN 2.6: 1 to 30 s

struct Life {
  LatestCall call;
  std::optional<base::MonoTime> shut_at;  // the valve closed for a release; it is being tried
  uint64_t shut_token = 0;
  std::optional<base::MonoTime> compete_from;  // end of the hold-off
  bool gives_away = false;                     // take_back = false; nobody else was seen since
};

class GiveBackChecker final : public Checker {
 public:
  using Checker::Checker;

  void Stepped(const StepFact& f) override {
    Life& life = lives_[f.process];
    NoteOthers(f, life);
    NoteRequest(f, life);
    for (const lease::Effect& effect : f.effects) {
      if (const auto* valve = std::get_if<lease::ValveEffect>(&effect)) {
        life.shut_at.reset();
        if (valve->valve == lease::Valve::kClosed && !valve->lost) life.shut_at = f.now;
        life.shut_token = valve->token;
      }
      const auto* notice = std::get_if<lease::NoticeEffect>(&effect);
      if (notice != nullptr && notice->notice == lease::Notice::kReleased) {
        CheckReleased(f, life, *notice);
      }
      const auto* cas = std::get_if<lease::CasEffect>(&effect);
      if (cas != nullptr && cas->purpose == lease::CasEffect::Purpose::kAcquire) {
        CheckTaking(f, life);
      }
    }
    life.call.Note(f);
  }

 private:
  static void NoteOthers(const StepFact& f, Life& life) {
    const auto sight = SightOf(f.event);
    if (!f.answers_latest || !sight || sight->record == nullptr) return;
    if (sight->record->process_id == f.process.identity.process_id) return;
    life.gives_away = false;
    if (sight->record->held()) life.compete_from.reset();
  }

  static void NoteRequest(const StepFact& f, Life& life) {
    const auto* request = std::get_if<lease::StepDownRequest>(&f.event);
    if (request == nullptr || request->take_back || !f.before.MayAct(f.now)) return;
    if (request->expected.node_id == f.process.identity.node_id &&
        request->expected.token == f.before.token) {
      life.gives_away = true;
    }
  }

  void CheckReleased(const StepFact& f, Life& life, const lease::NoticeEffect& notice) {
    const auto sight = SightOf(f.event);
    const bool shown = f.answers_latest && sight && !StillOurs(f, *sight, notice.token);
    if (!TookJustNow(f, life) && !shown && life.shut_at && life.shut_token == notice.token &&
        f.now < *life.shut_at + f.process.timing.ttl) {
      Broken(f, "a release is retried until released, or another holder, or one TTL",
             "says it released token " + std::to_string(notice.token) + " and cannot know");
    }
    const bool seen_other = sight && sight->record != nullptr && sight->record->held() &&
                            sight->record->process_id != f.process.identity.process_id;
    if (seen_other) return;
    const bool start_failed = notice.reason == lease::Reason::kStartFailed;
    life.compete_from = f.now + (start_failed ? kStartAgainMin : f.process.timing.hold_off);
  }

  static bool TookJustNow(const StepFact& f, const Life& life) {
    const auto* cas = std::get_if<lease::CasAnswer>(&f.event);
    return cas != nullptr && cas->outcome == lease::CasAnswer::Outcome::kApplied &&
           cas->op == life.call.op && life.call.write == lease::CasEffect::Purpose::kRelease;
  }

  static bool StillOurs(const StepFact& f, const Sight& sight, uint64_t token) {
    return sight.record != nullptr && sight.record->held() && sight.record->token == token &&
           sight.record->process_id == f.process.identity.process_id;
  }

  void CheckTaking(const StepFact& f, const Life& life) {
    if (life.compete_from && f.now < *life.compete_from) {
      Broken(f, "the lease is taken back after the hold-off, and not before",
             "acquires " + Seconds(*life.compete_from - f.now) + " s before its hold-off is over");
    }
    if (life.gives_away) {
      Broken(f, "after a step-down with take_back = false it is another's turn",
             "acquires although it was asked not to, and nobody else has held since");
    }
  }

  void Broken(const StepFact& f, const std::string& rule, const std::string& what) {
    judge_.Violate(rule, Name(f.process) + " " + what);
  }

  PerProcess<Life> lives_;
};

}  // namespace

std::unique_ptr<Checker> MakeGiveBackChecker(Judge& judge) {
  return std::make_unique<GiveBackChecker>(judge);
}

}  // namespace leasehold::simulation

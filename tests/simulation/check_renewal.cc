// Renewal seen from outside (DESIGN 2.3): what confirms extends, by an answer or by a read that
// shows one of our own attempts; attempts go on, the last with all the time there is; a drain for
// failed renewals comes after max_renew_fails rounds (3/4 TTL) or at the forced drain, not sooner
// and not later, and ends when a renewal succeeds; a read that names this process and token
// surrenders nothing; reads that fail after the last round do.
#include <algorithm>
#include <map>
#include <string>

#include "simulation/checkers.h"
#include "simulation/latest_call.h"
#include "simulation/per_process.h"

namespace leasehold::simulation {
namespace {

constexpr base::Duration kRounding = base::Duration::Micros(1);  // rounds are whole nanoseconds

struct Life {
  LatestCall call;
  ToldValve told;
  uint64_t token = 0;
  std::map<uint64_t, base::MonoTime> sent;  // beat -> sending, of the present term
  base::MonoTime lost_at;       // last time that was lost: earlier sendings confer nothing
  base::MonoTime seen_ours_at;  // a read last named this process and token
  int late_reads_failed = 0;    // in a row, sent after the last round
};

class RenewalChecker final : public Checker {
 public:
  using Checker::Checker;

  void Stepped(const StepFact& f) override {
    Life& life = lives_[f.process];
    if (std::holds_alternative<lease::LostTime>(f.event)) life.lost_at = f.now;
    if (f.before.MayAct(f.now) && life.token == f.before.token) {
      CheckExtends(f, life);
      CheckHeals(f, life);
      CheckWobble(f, life);
      CheckFailsClosed(f, life);
    }
    CheckTooSoon(f, life);
    CheckLastAttempt(f);
    CheckForcedDrain(f);
    life.told.Note(f);
    NoteWrites(f, life);
    life.call.Note(f);
    CheckGoesOn(f, life);
  }

 private:
  static base::Duration Span(const Process& p) { return p.timing.ttl - p.timing.margin; }
  // max(TTL - margin - grace, 7/8 TTL), read from DESIGN and not from the engine's own timing.
  static base::Duration ForcedAfter(const Process& p) {
    return base::Max(Span(p) - p.plan->options.step_down_grace, p.timing.ttl * 7 / 8);
  }
  static base::MonoTime ConfirmedAt(const Process& p, const PermitShot& permit) {
    return permit.expiry - Span(p);
  }

  // The sending that this event confirms; Never() if none.
  static base::MonoTime Confirms(const StepFact& f, const Life& life) {
    const auto* cas = std::get_if<lease::CasAnswer>(&f.event);
    const auto sight = SightOf(f.event);
    uint64_t beat = 0;
    if (cas != nullptr && cas->outcome == lease::CasAnswer::Outcome::kApplied) {
      if (life.call.write == lease::CasEffect::Purpose::kRenew) beat = life.call.beat;
    } else if (sight && sight->record != nullptr && f.process.plan->options.reads_confirm &&
               sight->record->process_id == f.process.identity.process_id &&
               sight->record->token == f.before.token) {
      beat = sight->record->beat;
    }
    const auto sent = life.sent.find(beat);
    if (!f.answer_counts || sent == life.sent.end() || sent->second < life.lost_at) {
      return base::MonoTime::Never();
    }
    return sent->second;
  }

  void CheckExtends(const StepFact& f, const Life& life) {
    const base::MonoTime sent = Confirms(f, life);
    if (sent.is_never() || f.now >= sent + Span(f.process) || !f.after.MayAct(f.now)) return;
    if (f.after.expiry < sent + Span(f.process)) {
      Broken(f, "a record that bears one of our attempts counts as success from its sending",
             "was shown that its write took, and its permit ends " +
                 Seconds(sent + Span(f.process) - f.after.expiry) + " s too early");
    }
  }

  void CheckHeals(const StepFact& f, const Life& life) {
    const base::MonoTime sent = Confirms(f, life);
    if (sent.is_never() || life.told.valve != lease::Valve::kDraining ||
        life.told.reason != lease::Reason::kRenewalsFailed ||
        sent + Span(f.process) <= f.before.expiry || f.now >= sent + ForcedAfter(f.process)) {
      return;
    }
    if (!f.after.MayAdmit(f.now)) {
      Broken(f, "a drain for failed renewals ends when a renewal succeeds",
             "goes on draining although a renewal succeeded");
    }
  }

  void CheckWobble(const StepFact& f, Life& life) {
    const auto sight = SightOf(f.event);
    if (!sight || !f.answers_latest || sight->record == nullptr) return;
    if (sight->record->process_id != f.process.identity.process_id ||
        sight->record->token != f.before.token) {
      return;
    }
    life.seen_ours_at = f.now;
    if (f.before.valve == lease::Valve::kOpen && f.after.valve == lease::Valve::kDraining &&
        f.now < ConfirmedAt(f.process, f.after) + ForcedAfter(f.process)) {
      Broken(f, "a wobble surrenders nothing",
             "drains on a read that names it and its token " + std::to_string(f.before.token));
    }
  }

  // Not asked of one that a read named since its last confirmation: it keeps trying.
  void CheckFailsClosed(const StepFact& f, Life& life) {
    const base::MonoTime confirmed = ConfirmedAt(f.process, f.before);
    const auto* read = std::get_if<lease::ReadAnswer>(&f.event);
    const bool answered = read != nullptr && read->op == life.call.op;
    const bool says_nothing =
        answered && (read->outcome == lease::ReadAnswer::Outcome::kAmbiguous ||
                     read->outcome == lease::ReadAnswer::Outcome::kRefused);
    if (life.call.write || !life.call.open || life.seen_ours_at >= confirmed ||
        life.call.sent < confirmed + f.process.timing.ttl * 3 / 4 ||
        f.after.expiry != f.before.expiry) {
      life.late_reads_failed = 0;
      return;
    }
    if (says_nothing || (!answered && life.call.RanOut(f.now))) ++life.late_reads_failed;
    if (life.late_reads_failed >= 2 && f.after.MayAdmit(f.now)) {
      Broken(f, "when the read after the last failed round fails too, the drain begins",
             "still admits after " + std::to_string(life.late_reads_failed) +
                 " reads that failed after its last round");
    }
  }

  void CheckTooSoon(const StepFact& f, const Life& life) {
    for (const lease::Effect& effect : f.effects) {
      const auto* valve = std::get_if<lease::ValveEffect>(&effect);
      if (valve == nullptr || valve->valve != lease::Valve::kDraining ||
          valve->reason != lease::Reason::kRenewalsFailed ||
          life.told.valve == lease::Valve::kDraining) {
        continue;
      }
      const base::MonoTime from =
          ConfirmedAt(f.process, f.after) + f.process.timing.ttl * 3 / 4 - kRounding;
      if (f.now >= from) continue;
      Broken(f,
             "a drain for failed renewals waits for max_renew_fails rounds, three quarters of TTL",
             "drains " + Seconds(from - f.now) + " s before its last round is over");
    }
  }

  void CheckForcedDrain(const StepFact& f) {
    if (f.after.valve != lease::Valve::kOpen && f.after.valve != lease::Valve::kHolding) return;
    const base::MonoTime forced = ConfirmedAt(f.process, f.after) + ForcedAfter(f.process);
    if (f.now >= forced) {
      Broken(
          f,
          "the drain is forced at the last confirmed sending + max(TTL - margin - grace, 7/8 TTL)",
          "does not drain " + Seconds(f.now - forced) + " s after its forced drain was due");
    } else if (f.deadline > forced) {
      Broken(
          f,
          "the drain is forced at the last confirmed sending + max(TTL - margin - grace, 7/8 TTL)",
          "wants no Tick when its forced drain is due");
    }
  }

  // Between calls: an attempt is booked, at most a wait of a round that failed away.
  void CheckGoesOn(const StepFact& f, const Life& life) {
    if (!f.after.MayAct(f.now) || life.call.open) return;
    const base::MonoTime last = base::Max(life.call.sent, f.now);
    const lease::Timing& timing = f.process.timing;
    const base::Duration longest = timing.renew_interval * 9 / 8 + timing.budget;
    if (f.deadline <= last + longest) return;
    Broken(f, "a holder goes on renewing, also while work in flight finishes",
           "holds and wants nothing for " + Seconds(f.deadline - f.now) + " s");
  }

  // What is sent so late that no second attempt fits gets the time that is left.
  void CheckLastAttempt(const StepFact& f) {
    const auto* write = FirstEffect<lease::CasEffect>(f);
    if (write == nullptr || write->purpose != lease::CasEffect::Purpose::kRenew ||
        f.after.valve != lease::Valve::kOpen) {
      return;
    }
    const base::Duration left = ConfirmedAt(f.process, f.after) + ForcedAfter(f.process) - f.now;
    if (left < f.process.timing.call_timeout * 2 && write->timeout + kRounding < left) {
      Broken(f, "the last attempt before the forced drain may use all the time that is left",
             "gives its last attempt " + Seconds(write->timeout) + " s of " + Seconds(left));
    }
  }

  static void NoteWrites(const StepFact& f, Life& life) {
    if (f.after.valve != lease::Valve::kClosed && f.after.token != life.token) {
      life.token = f.after.token;
      life.sent.clear();
      life.late_reads_failed = 0;
    }
    for (const lease::Effect& effect : f.effects) {
      const auto* cas = std::get_if<lease::CasEffect>(&effect);
      if (cas == nullptr || cas->purpose != lease::CasEffect::Purpose::kRenew) continue;
      if (cas->record.token == life.token) life.sent[cas->record.beat] = f.now;
      if (life.sent.size() > kSentMax) life.sent.erase(life.sent.begin());
    }
  }

  void Broken(const StepFact& f, const std::string& rule, const std::string& what) {
    judge_.Violate(rule, Name(f.process) + " " + what);
  }

  static constexpr size_t kSentMax =
      32;  // half of what an engine must keep: older ones may extend nothing
  PerProcess<Life> lives_;
};

}  // namespace

std::unique_ptr<Checker> MakeRenewalChecker(Judge& judge) {
  return std::make_unique<RenewalChecker>(judge);
}

}  // namespace leasehold::simulation

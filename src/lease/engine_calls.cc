// The one store call under way: sending it, recognising its answer, and what every answer tells
// whatever it was for.

#include <utility>

#include "lease/engine_core.h"

namespace leasehold::lease {
namespace {

using base::Duration;

// Two unanswered calls in a row make a store degraded; one may be a lost packet.
constexpr int kFailuresToDegrade = 2;

}  // namespace

void Engine::Core::SendRead(Purpose purpose, Duration timeout) {
  op_ = Op{++last_op_, purpose, now_, now_ + timeout, 0, {}};
  last_read_sent_at_ = now_;
  poll_again_ = false;
  // In place: GCC 12 at -O3 takes a variant that is moved for one that is not initialised.
  effects_->emplace_back(ReadEffect{last_op_, timeout});
}

void Engine::Core::SendWrite(Purpose purpose, const std::optional<Version>& expected, Record record,
                             Duration timeout) {
  record.beat = ++last_beat_;  // with every attempt, whatever it is, and never twice
  op_ = Op{++last_op_, purpose, now_, now_ + timeout, record.beat, record};
  const auto kind = purpose == Purpose::kAcquire   ? CasEffect::Purpose::kAcquire
                    : purpose == Purpose::kRelease ? CasEffect::Purpose::kRelease
                                                   : CasEffect::Purpose::kRenew;
  if (term_) term_->Sent(record.beat, record.state, now_);
  effects_->push_back(CasEffect{last_op_, kind, expected, std::move(record), timeout});
}

void Engine::Core::Handle(const ReadAnswer& read) {
  if (!op_ || op_->id != read.op) return;  // abandoned
  Answer answer;
  answer.error = read.error;
  answer.record = read.record;
  answer.version = read.version;
  answer.holder_dead = read.holder_dead;
  switch (read.outcome) {
    case ReadAnswer::Outcome::kAbsent: answer.kind = Answer::Kind::kAbsent; break;
    case ReadAnswer::Outcome::kRecord: answer.kind = Answer::Kind::kRecord; break;
    case ReadAnswer::Outcome::kAmbiguous: answer.kind = Answer::Kind::kAmbiguous; break;
    case ReadAnswer::Outcome::kRefused: answer.kind = Answer::Kind::kRefused; break;
  }
  OnAnswer(*std::exchange(op_, std::nullopt), answer);
}

void Engine::Core::Handle(const CasAnswer& cas) {
  if (!op_ || op_->id != cas.op) return;  // abandoned
  Answer answer;
  answer.error = cas.error;
  answer.version = cas.version;
  switch (cas.outcome) {
    case CasAnswer::Outcome::kApplied: answer.kind = Answer::Kind::kApplied; break;
    case CasAnswer::Outcome::kConflict:
      answer.conflict = true;
      answer.record = cas.record;
      answer.kind = cas.record   ? Answer::Kind::kRecord
                    : cas.absent ? Answer::Kind::kAbsent
                                 : Answer::Kind::kConflictBlind;
      break;
    case CasAnswer::Outcome::kAmbiguous: answer.kind = Answer::Kind::kAmbiguous; break;
    case CasAnswer::Outcome::kRefused: answer.kind = Answer::Kind::kRefused; break;
  }
  OnAnswer(*std::exchange(op_, std::nullopt), answer);
}

void Engine::Core::OnAnswer(const Op& op, const Answer& answer) {
  NoteStore(answer);
  if (term_ && (answer.conflict || answer.kind == Answer::Kind::kRefused ||
                answer.kind == Answer::Kind::kConflictBlind)) {
    term_->DidNotHappen(op.beat);
  }
  switch (op.purpose) {
    case Purpose::kObserve: return OnObserved(op, answer);
    case Purpose::kAcquire: return OnAcquireAnswer(op, answer);
    case Purpose::kConfirmAcquire: return OnAcquireRead(op, answer);
    case Purpose::kRenew: return OnRenewAnswer(op, answer);
    case Purpose::kResolve:
    case Purpose::kAuthoritative: return OnTermRead(op, answer);
    case Purpose::kRelease:
    case Purpose::kResolveRelease: return OnReleaseAnswer(op, answer);
    case Purpose::kAbandoned: return Observe(answer);  // judges no term, but shows who has it now
  }
}

void Engine::Core::NoteStore(const Answer& answer) {
  store_ok_ = !answer.failed();
  if (answer.failed()) {
    last_error_ = answer.error;
    ++store_failures_;
    const bool for_good = answer.kind == Answer::Kind::kRefused;
    if (!store_degraded_ && (for_good || store_failures_ >= kFailuresToDegrade)) {
      store_degraded_ = true;
      Tell(Notice::kStoreDegraded, Reason::kNone, answer.error);
    }
    return;
  }
  store_failures_ = 0;
  store_seen_at_ = now_;
  last_error_.clear();
  if (std::exchange(store_degraded_, false)) Tell(Notice::kStoreRecovered, Reason::kNone);
}

// Every record the store shows, whatever for, passes through here.
void Engine::Core::Observe(const Answer& answer) {
  if (answer.kind != Answer::Kind::kRecord && answer.kind != Answer::Kind::kAbsent) return;
  const Observer::Change change =
      observer_.See(now_, answer.record, answer.version, answer.holder_dead);
  if (!change.changed) return;
  // Told when it begins, not again with every beat of the process that goes on with it.
  if (change.unusable && !change.hands) return;
  if (change.unusable) return TellOf(Notice::kRecordUnusable, *answer.record, observer_.unusable());
  if (change.token_lower && change.hands) {
    TellOf(Notice::kTokenRegression, *answer.record,
           "the store shows token " + std::to_string(answer.record->token) + ", but " +
               std::to_string(observer_.highest_token()) + " was seen before: it lost writes");
  }
  if (change.token_twice && change.hands) {
    TellOf(Notice::kTokenRegression, *answer.record,
           "token " + std::to_string(answer.record->token) +
               " was handed out twice: it was seen under another process before, so the store lost "
               "writes; compare process ids too");
  }
  if (change.duplicate_node_id) {
    TellOf(Notice::kDuplicateId, *answer.record, "another process renews under this node id");
  }
  if (change.hands && answer.record) TellOf(Notice::kObserved, *answer.record, "");
  // Held, or held and given back between two looks.
  if (observer_.of_other()) sit_out_ = false;
}

}  // namespace leasehold::lease

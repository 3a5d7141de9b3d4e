// The lease protocol, in the order things happen to a process: it observes, acquires, renews, and
// loses; stepping down and releasing are in engine_release.cc. Every rule is one of DESIGN
// section 2.

#include "lease/engine.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "lease/engine_core.h"

namespace leasehold::lease {
namespace {

using base::Duration;
using base::MonoTime;

// First retry after a failed attempt, doubled each time up to a quarter of a round: small against
// the shortest call time-out that options allow, large against a loopback answer.
constexpr Duration kBackoffMin = Duration::Millis(20);

// While the holder is draining its release is near: polled as often as the shortest default
// poll_interval has it (DESIGN 2.6). Its grace bounds how long.
constexpr Duration kPollDraining = Duration::Millis(250);
}  // namespace

Engine::Core::Core(const Options& options, Identity identity, uint64_t seed, MonoTime now,
                   const Memory& memory)
    : options_(options),
      identity_(std::move(identity)),
      timing_(Derive(options)),
      random_(seed),
      observer_(identity_, timing_, memory),
      next_poll_at_(now),
      start_backoff_(kStartBackoffMin) {}

// ---- one step ----

void Engine::Core::Step(MonoTime now, const Event& event, Effects& effects) {
  now_ = now;
  effects_ = &effects;
  ExpireIfOver();  // first: whatever the event says, a permit that is over is over
  if (state_ == State::kStopped) return;  // nothing follows the last effect
  std::visit([this](const auto& e) { Handle(e); }, event);
  RunTimers();
  effects_ = nullptr;
}

// A term that is over is never revived, even if its late yes arrives.
void Engine::Core::ExpireIfOver() {
  if (permit_.valve_ == Valve::kClosed || now_ < permit_.expiry_) return;
  const bool frozen = now_ - permit_.expiry_ >= timing_.frozen_after;
  Lose(frozen ? Reason::kHostFrozen : Reason::kExpired,
       frozen ? "this process or host stood still past the expiry of its permit"
              : "no renewal was confirmed before the permit ended");
}

void Engine::Core::RunTimers() {
  // Each pass does one due thing, which may make another due; a handful settles (bounded against a
  // bug).
  for (int pass = 0; pass < 16 && NextDeadline() <= now_; ++pass) RunTimersOnce();
}

void Engine::Core::RunTimersOnce() {
  if (op_ && now_ >= op_->give_up_at) {
    const Op op = *std::exchange(op_, std::nullopt);
    Answer timed_out;
    timed_out.error =
        "no answer within " + std::to_string((op.give_up_at - op.sent_at).millis()) + " ms";
    return OnAnswer(op, timed_out);
  }
  switch (state_) {
    case State::kStandby:
      if (shutting_down_ && !watch_on_) return Stop(true, "stopped without the lease");
      if (!op_ && now_ >= CompeteAt()) return Acquire();
      if (!op_ && now_ >= next_poll_at_) return SendRead(Purpose::kObserve, timing_.budget);
      return;
    case State::kAcquiring:
      if (term_ && now_ >= term_->confirmed_sent_at() + timing_.ttl - timing_.margin)
        return BackToStandby();
      if (op_ || now_ < next_attempt_at_) return;
      return term_ ? Renew() : SendRead(Purpose::kConfirmAcquire, timing_.budget);
    case State::kActive:
      if (now_ >= ForcedDrainAt()) return BeginDrain(Reason::kRenewalsFailed);
      if (!op_ && now_ >= round_fails_at_) return RoundFailed();
      if (!op_ && now_ >= next_attempt_at_) return Renew();
      return;
    case State::kDraining:
      if (drain_reason_ != Reason::kRenewalsFailed && now_ >= drain_end_) return BeginRelease();
      if (!op_ && now_ >= next_attempt_at_) return Renew();
      return;
    case State::kReleasing:
      if (!op_ && now_ >= release_retry_at_) return SendRelease();
      return;
    case State::kHoldOff:
      if (now_ >= hold_off_until_) return EndHoldOff();
      if (!op_ && now_ >= next_poll_at_) return SendRead(Purpose::kObserve, timing_.budget);
      return;
    case State::kStopped: return;
  }
}

MonoTime Engine::Core::NextDeadline() const {
  MonoTime next = op_ ? op_->give_up_at : MonoTime::Never();
  const auto idle = [&](MonoTime at) { return op_ ? MonoTime::Never() : at; };
  if (permit_.valve_ != Valve::kClosed) next = Min(next, permit_.expiry_);
  switch (state_) {
    case State::kStandby:
      if (shutting_down_ && !watch_on_) return now_;  // stops in this very step
      return Min(next, idle(Min(CompeteAt(), next_poll_at_)));
    case State::kAcquiring:
      if (term_) next = Min(next, term_->confirmed_sent_at() + timing_.ttl - timing_.margin);
      return Min(next, idle(next_attempt_at_));
    case State::kActive:
      return Min(next, Min(ForcedDrainAt(), idle(Min(round_fails_at_, next_attempt_at_))));
    case State::kDraining:
      if (drain_reason_ != Reason::kRenewalsFailed) next = Min(next, drain_end_);
      return Min(next, idle(next_attempt_at_));
    case State::kReleasing: return Min(next, idle(release_retry_at_));
    case State::kHoldOff: return Min(next, Min(hold_off_until_, idle(next_poll_at_)));
    case State::kStopped: return MonoTime::Never();
  }
  return next;
}

// ---- standby ----

void Engine::Core::OnObserved(const Op& op, const Answer& answer) {
  Observe(answer);
  if (!answer.failed()) FailIfHeld();
  if (state_ == State::kStopped) return;
  // An urgent hint that came after the read was sent may tell of something the read did not see.
  next_poll_at_ = op.sent_at;
  SchedulePoll();
  if (std::exchange(poll_again_, false)) next_poll_at_ = now_;
  if (!observer_.NextToken() && !std::exchange(exhausted_told_, true)) {
    Record last;  // not the record seen: it may be absent, or bear a lower token
    last.token = observer_.highest_token();
    last.state = RecordState::kReleased;
    TellOf(Notice::kTokenExhausted, last, "the lease can be acquired no more; give it a new name");
  }
  if (state_ == State::kHoldOff) OnHoldOffRecord();
  if (taking_back_) SettleTakeBack();
}

// fail_if_held: a record that changes within one window of the first look has a live holder. A
// lease that is free, or that nobody renewed for a window, ends the look: what others do with it
// later is no reason to stop.
void Engine::Core::FailIfHeld() {
  if (!options_.fail_if_held || !starting_up_ || shutting_down_) return;
  if (!observer_.held_by_other()) {
    starting_up_ = false;
    return;
  }
  if (!std::exchange(held_at_start_, true)) {
    held_version_ = *observer_.expected();
    look_ends_at_ = now_ + timing_.Window(observer_.record()->ttl());
    return;
  }
  if (held_version_ == *observer_.expected()) {
    starting_up_ = now_ < look_ends_at_;
  } else {
    Stop(false, "lease \"" + options_.name + "\" is held by node \"" + observer_.record()->node_id +
                    "\" (process " + observer_.record()->process_id +
                    "), which renews it, and fail_if_held is set; stop that process or unset it");
  }
}

std::string Engine::Core::WhyNotCompeting() const {
  if (shutting_down_) return kTakesNothingBack;
  if (!observer_.seen_any()) return "the store has not answered yet";
  if (!observer_.unusable().empty()) return observer_.unusable();
  if (!app_ready_) return "the application is not ready";
  if (sit_out_) return "stepped down with take_back=false; competes after another process has held";
  if (!observer_.NextToken()) return "token_exhausted: the largest fencing token is used";
  if (observer_.token_lower() && options_.on_token_regression == OnTokenRegression::kRefuse) {
    return "token_regression: the store shows a lower token than was seen before";
  }
  return "";
}

MonoTime Engine::Core::CompeteAt() const {
  if (state_ != State::kStandby || !WhyNotCompeting().empty()) return MonoTime::Never();
  return Max(observer_.MayTakeAt(), not_before_);
}

// Without push: every poll_interval, more often while the holder says that it drains. With push a
// hint brings news of each renewal and release, so that reading is only the fallback: slower than
// any renewal comes (a quarter of the record's TTL, the default length of a round). From the second
// failed call in a row on, each wait is twice the last one, up to a quarter of our own TTL: a store
// that throttles us, or has no room yet, is not helped by being asked.
void Engine::Core::SchedulePoll() {
  Duration interval = timing_.poll_interval;
  const std::optional<Record>& seen = observer_.record();
  if (push_working_ && seen && seen->held()) {
    interval = Max(interval, seen->ttl() / 4);
  } else if (seen && seen->state == RecordState::kDraining) {
    interval = Min(interval, kPollDraining);
  }
  const Duration most = Max(interval, timing_.ttl / 4);
  for (int n = 1; n < store_failures_ && interval < most; ++n) interval = interval * 2;
  interval = Min(interval, most);
  next_poll_at_ = next_poll_at_ + interval + Jitter(interval / 8);
}

void Engine::Core::Handle(const Hint& hint) {
  if (state_ != State::kStandby && state_ != State::kHoldOff) return;
  if (hint.urgent) {
    if (op_) poll_again_ = true;
    next_poll_at_ = now_;
  } else {
    next_poll_at_ = Min(next_poll_at_, Max(now_, last_read_sent_at_ + timing_.poll_interval));
  }
}

void Engine::Core::Handle(const PushState& push) {
  push_working_ = push.working;
  // What happened while hints did not work is not known: read.
  if (state_ == State::kStandby || state_ == State::kHoldOff) next_poll_at_ = now_;
}

void Engine::Core::Handle(const AppState& app) {
  app_ready_ = app.ready;
  if (app.ready) unready_too_long_ = false;
}

// ---- acquiring ----

void Engine::Core::Acquire() {
  const std::optional<uint64_t> token = observer_.NextToken();
  starting_up_ = false;
  state_ = State::kAcquiring;
  unchanged_since_ = observer_.changed_at();
  Record record = OwnRecord(RecordState::kHeld, *token);
  if (observer_.record()) record.unknown = observer_.record()->unknown;
  SendWrite(Purpose::kAcquire, observer_.expected(), std::move(record), timing_.budget);
}

void Engine::Core::OnAcquireAnswer(const Op& op, const Answer& answer) {
  switch (answer.kind) {
    case Answer::Kind::kApplied: return StartTerm(op, answer.version);
    case Answer::Kind::kRecord:
    case Answer::Kind::kAbsent: Observe(answer); return BackToStandby();
    case Answer::Kind::kConflictBlind:  // who has it is not known: nothing is tried before a look
    case Answer::Kind::kAmbiguous:
      acquire_op_ = op;
      backoff_ = kBackoffMin;
      return SendRead(Purpose::kConfirmAcquire, timing_.budget);
    case Answer::Kind::kRefused: return BackToStandby();
  }
}

// The read after an acquisition that was ambiguous, or whose conflict came without a record: one
// that bears its beat says that it took (a doubled request takes once and conflicts once).
void Engine::Core::OnAcquireRead(const Op&, const Answer& answer) {
  const bool ours = answer.record && answer.record->process_id == identity_.process_id &&
                    answer.record->token == acquire_op_.record.token &&
                    answer.record->beat == acquire_op_.beat;
  if (ours && options_.reads_confirm) return StartTerm(acquire_op_, answer.version);
  Observe(answer);
  // SIGTERM waits until the attempt is resolved, but no longer than it could matter.
  if (shutting_down_ && answer.failed() && now_ < acquire_op_.sent_at + timing_.ttl) {
    next_attempt_at_ = now_ + NextBackoff();
    return;
  }
  BackToStandby();
}

void Engine::Core::StartTerm(const Op& op, const Version& version) {
  observer_.SeeOwnWrite(now_, op.record, version);
  term_.emplace(op.record, version, op.sent_at);
  permit_.token_ = op.record.token;
  failed_rounds_ = 0;
  at_risk_ = awaiting_confirmation_ = drained_ = false;
  ScheduleRenewal(op.sent_at);
  if (shutting_down_) return ReleaseUnopened(Reason::kShutdown, kTakesNothingBack);
  const bool in_time = now_ < op.sent_at + timing_.ttl - timing_.margin;
  if (!in_time) return BackToStandby();  // opens nothing; our own record may be taken again at once
  if (now_ - op.sent_at > timing_.renew_interval || op.sent_at < confers_nothing_before_) {
    next_attempt_at_ = now_;  // late: renew first, open when that is confirmed
    return;
  }
  Open();
}

void Engine::Core::BackToStandby() {
  term_.reset();
  if (op_) op_->purpose = Purpose::kAbandoned;
  state_ = State::kStandby;
  next_poll_at_ = now_;
  SchedulePoll();
  // A store that fails at once must not be asked again at once.
  if (!store_ok_) not_before_ = Max(not_before_, next_poll_at_);
  if (taking_back_) SettleTakeBack();
}

void Engine::Core::Open() {
  CHECK(!shutting_down_, "after SIGTERM nothing is opened");
  if (unready_too_long_) {
    return ReleaseUnopened(Reason::kAppUnready, "the application has been unready for too long");
  }
  state_ = State::kActive;
  permit_.expiry_ = term_->confirmed_sent_at() + timing_.ttl - timing_.margin;
  take_back_ = true;
  Tell(Notice::kAcquired, Reason::kNone);
  SetValve(Valve::kOpen, Reason::kNone, false);
  if (std::exchange(taking_back_, false)) AnswerStepDowns(StepDownDone::Outcome::kTakenBack, "");
}

// ---- holding ----

void Engine::Core::Renew() {
  // A planned drain is written into the record, so that standbys hold rather than forward; still
  // held.
  const bool draining = state_ == State::kDraining && drain_reason_ != Reason::kRenewalsFailed;
  Record record = OwnRecord(draining ? RecordState::kDraining : RecordState::kHeld, term_->token());
  record.unknown = term_->record().unknown;
  SendWrite(Purpose::kRenew, term_->version(), std::move(record), RenewTimeout());
}

// A read of a term that is over would only be in the next one's way.
Duration Engine::Core::TermReadTimeout() const {
  const MonoTime expiry = term_->confirmed_sent_at() + timing_.ttl - timing_.margin;
  return Min(timing_.call_timeout, Max(expiry - now_, Duration::Millis(1)));
}

// The last attempt before the forced drain, or before expiry once that has begun, may use all the
// time left.
Duration Engine::Core::RenewTimeout() const {
  const MonoTime expiry = term_->confirmed_sent_at() + timing_.ttl - timing_.margin;
  const Duration left = (state_ == State::kActive ? ForcedDrainAt() : expiry) - now_;
  const bool another_fits = left >= timing_.call_timeout * 2;
  return another_fits ? timing_.call_timeout : Max(left, Duration::Millis(1));
}

// By the sending that confers the permit: one confirmed after lost time (DESIGN 2.2) confers none,
// and puts off no drain either.
MonoTime Engine::Core::ForcedDrainAt() const {
  return permit_.expiry_ - (timing_.ttl - timing_.margin) + timing_.forced_drain_after;
}

void Engine::Core::OnRenewAnswer(const Op& op, const Answer& answer) {
  switch (answer.kind) {
    case Answer::Kind::kApplied: {
      const MonoTime sent_at = term_->Applied(op.beat, answer.version);
      observer_.SeeOwnWrite(now_, op.record, answer.version);
      return Confirmed(sent_at);
    }
    case Answer::Kind::kRecord:
    case Answer::Kind::kAbsent: return JudgeAnswer(answer);
    case Answer::Kind::kConflictBlind:
      if (state_ == State::kReleasing) return;  // the release will find out
      // Somebody changed the record. Only an own write whose outcome is unknown can make that
      // harmless.
      if (!term_->unresolved()) {
        Lose(Reason::kSuperseded, "the record changed under the holder");
        return SendRead(Purpose::kObserve, timing_.budget);  // what it is now is not known
      }
      return SendRead(Purpose::kResolve, TermReadTimeout());
    case Answer::Kind::kAmbiguous:
      attempt_error_ = answer.error;
      if (state_ == State::kReleasing) return;
      return SendRead(Purpose::kResolve, TermReadTimeout());
    case Answer::Kind::kRefused: return AttemptFailed(answer.error);
  }
}

void Engine::Core::OnTermRead(const Op& op, const Answer& answer) {
  if (!answer.failed()) return JudgeAnswer(answer);
  if (op.purpose == Purpose::kAuthoritative && state_ == State::kActive) {
    return BeginDrain(Reason::kRenewalsFailed);  // fail closed; renewing goes on
  }
  AttemptFailed(answer.error);
}

void Engine::Core::JudgeAnswer(const Answer& answer) {
  if (state_ == State::kReleasing) return JudgeRelease(answer);
  const Term::Verdict verdict = term_->Judge(answer.record, answer.version, options_.reads_confirm);
  switch (verdict.kind) {
    case Term::Verdict::Kind::kConfirmed:
      observer_.SeeOwnWrite(now_, *answer.record, answer.version);
      return Confirmed(verdict.sent_at);
    case Term::Verdict::Kind::kOurs:
      observer_.SeeOwnWrite(now_, *answer.record, answer.version);
      // The authoritative read names us: a wobble surrenders nothing, and extends nothing either.
      return AttemptFailed("");
    case Term::Verdict::Kind::kLost: {
      Observe(answer);
      const bool own_to_retake =
          verdict.reason == Reason::kAbsent || verdict.reason == Reason::kStoreRegressed;
      if (own_to_retake && holding()) observer_.AllowImmediateReacquisition();
      return Lose(verdict.reason, answer.record
                                      ? "the record names process " + answer.record->process_id +
                                            ", token " + std::to_string(answer.record->token)
                                      : "the store has no record of the lease");
    }
  }
}

// A write sent at `sent_at` is confirmed: the permit runs from that sending, never from the answer.
void Engine::Core::Confirmed(MonoTime sent_at) {
  ScheduleRenewal(sent_at);
  failed_rounds_ = 0;
  if (state_ == State::kReleasing) return;
  start_backoff_ = kStartBackoffMin;
  const MonoTime expiry = sent_at + timing_.ttl - timing_.margin;
  if (sent_at < confers_nothing_before_ || now_ >= expiry) {
    next_attempt_at_ = now_;
    return;
  }
  if (state_ == State::kAcquiring) return Open();
  permit_.expiry_ = Max(permit_.expiry_, expiry);
  const bool failing = state_ == State::kDraining && drain_reason_ == Reason::kRenewalsFailed;
  if (failing && now_ >= ForcedDrainAt()) {
    // News of a sending so old that a drain would begin at once: it extends, but heals nothing.
    drain_end_ = permit_.expiry_;
    return SetValve(Valve::kDraining, Reason::kRenewalsFailed, false);
  }
  if (std::exchange(at_risk_, false)) Tell(Notice::kRestored, Reason::kNone);
  if (failing) {
    state_ = State::kActive;
    drain_reason_ = Reason::kNone;
    drained_ = false;
  }
  const bool resumed = std::exchange(awaiting_confirmation_, false);
  if (failing || (resumed && state_ == State::kActive))
    SetValve(Valve::kOpen, Reason::kNone, false);
}

void Engine::Core::ScheduleRenewal(MonoTime sent_at) {
  round_end_ = sent_at + timing_.budget;
  round_fails_at_ = MonoTime::Never();
  next_attempt_at_ = sent_at + timing_.renew_interval + Jitter(timing_.renew_interval / 8);
  backoff_ = kBackoffMin;
  attempt_error_.clear();
}

Duration Engine::Core::NextBackoff() {
  const Duration wait = backoff_ / 2 + Jitter(backoff_ / 2);
  backoff_ = Min(backoff_ * 2, Max(timing_.budget / 4, kBackoffMin));
  return wait;
}

void Engine::Core::AttemptFailed(const std::string& why) {
  if (state_ == State::kReleasing) return;
  if (!why.empty()) attempt_error_ = why;
  next_attempt_at_ = now_ + NextBackoff();
  // While another attempt fits into the round, and once rounds no longer matter, go on.
  if (failed_rounds_ >= timing_.max_renew_fails || state_ != State::kActive) return;
  if (next_attempt_at_ + timing_.call_timeout <= round_end_) return;
  next_attempt_at_ = MonoTime::Never();
  round_fails_at_ = Max(now_, round_end_);  // not sooner: the store may be back by the next round
}

void Engine::Core::RoundFailed() {
  ++failed_rounds_;
  round_fails_at_ = MonoTime::Never();
  const bool at_once = next_attempt_at_ <= now_;  // lost time came in between
  next_attempt_at_ =
      Max(now_, round_end_) + timing_.renew_interval + Jitter(timing_.renew_interval / 8);
  if (at_once) next_attempt_at_ = now_;
  round_end_ = Max(now_, round_end_) + timing_.budget;
  backoff_ = kBackoffMin;
  if (!std::exchange(at_risk_, true))
    Tell(Notice::kAtRisk, Reason::kRenewalsFailed, attempt_error_);
  if (failed_rounds_ < timing_.max_renew_fails) return;
  next_attempt_at_ = now_ + NextBackoff();
  SendRead(Purpose::kAuthoritative, TermReadTimeout());
}

void Engine::Core::Lose(Reason reason, const std::string& detail) {
  CHECK(state_ != State::kReleasing, "a release under way is judged, not lost");
  const bool was_open = permit_.valve_ != Valve::kClosed;
  const bool gone_for_good = state_ == State::kDraining && !take_back_;
  at_risk_ = awaiting_confirmation_ = false;
  failed_rounds_ = 0;
  last_reason_ = reason;
  lost_token_ = term_->token();
  term_.reset();
  if (op_) op_->purpose = Purpose::kAbandoned;
  state_ = State::kStandby;
  next_poll_at_ = now_;
  // It was asked not to take the lease back; that it ran out before the release changes nothing.
  if (gone_for_good) sit_out_ = !observer_.of_other();
  if (was_open) {
    SetValve(Valve::kClosed, reason, true);
    Tell(Notice::kLost, reason, detail);
  }
  taking_back_ = false;
  AnswerByHolder("the lease was lost during the step-down: " + std::string(ReasonName(reason)));
}

// ---- lost time, failed start ----

void Engine::Core::Handle(const LostTime&) {
  confers_nothing_before_ = now_;
  if (!holding()) return;
  awaiting_confirmation_ = true;
  next_attempt_at_ = now_;  // after the answer of the one under way, which confers nothing any more
  if (state_ != State::kActive) return;
  SetValve(Valve::kHolding, Reason::kHostFrozen, false);
  if (!std::exchange(at_risk_, true)) {
    Tell(Notice::kAtRisk, Reason::kHostFrozen, "admissions are held until a renewal is confirmed");
  }
}

void Engine::Core::Handle(const StartFailed& failed) {
  if (!holding() || failed.token != term_->token()) return;
  start_error_ = failed.why;
  drain_reason_ = Reason::kStartFailed;
  BeginRelease();
}

}  // namespace leasehold::lease

// Stepping down (DESIGN 2.5): drain, then release, then the hold-off, and what the askers are
// answered. The permit ends before the first byte of a release is sent, whatever the answer; a
// release that was sent is irrevocable.

#include <utility>

#include "base/check.h"
#include "lease/engine_core.h"

namespace leasehold::lease {
namespace {

using base::Duration;

// A drain that ends sooner than this needs no "draining" in the record: the release follows at
// once.
constexpr Duration kDrainingWriteDelay = Duration::Millis(20);
// Askers waiting for one step-down; each is a client's open request.
constexpr size_t kStepDownsMax = 64;

}  // namespace

// ---- being asked ----

void Engine::Core::Handle(const StepDownRequest& request) {
  const bool mine = request.expected.node_id == identity_.node_id;
  // A second request for a term that was stepped down gets its recorded result.
  if (mine && recorded_ && recorded_->expected.token == request.expected.token) {
    StepDownDone again = *recorded_;
    again.request = request.request;
    effects_->push_back(std::move(again));
    return;
  }
  const bool stepping =
      holding() || state_ == State::kReleasing || state_ == State::kHoldOff || taking_back_;
  const uint64_t token =
      holding() || state_ == State::kReleasing ? permit_.token_ : released_token_;
  if (!mine || !stepping || request.expected.token != token ||
      step_downs_.size() >= kStepDownsMax) {
    return RefuseStepDown(request);
  }
  step_downs_.push_back(request);
  if (!request.take_back) take_back_ = false;
  if (holding()) BeginDrain(request.reason);
}

void Engine::Core::RefuseStepDown(const StepDownRequest& request) {
  StepDownDone done;
  done.request = request.request;
  done.expected = request.expected;
  const bool lost = request.expected.node_id == identity_.node_id && lost_token_ != 0 &&
                    request.expected.token == lost_token_;
  done.outcome =
      lost ? StepDownDone::Outcome::kNotHolder : StepDownDone::Outcome::kFailedPrecondition;
  if (holding()) {
    done.node_id = identity_.node_id;
    done.process_id = identity_.process_id;
    done.token = permit_.token_;
  } else if (observer_.record() && observer_.record()->held()) {
    done.node_id = observer_.record()->node_id;
    done.process_id = observer_.record()->process_id;
    done.token = observer_.record()->token;
  }
  const std::string asked =
      "node \"" + request.expected.node_id + "\", token " + std::to_string(request.expected.token);
  const std::string here =
      "this process is node \"" + identity_.node_id + "\" and " +
      (holding() ? "holds token " + std::to_string(permit_.token_) : "does not hold the lease");
  done.detail = step_downs_.size() >= kStepDownsMax
                    ? "too many requests wait for this step-down (limit " +
                          std::to_string(kStepDownsMax) + ")"
                    : "expected " + asked + ", but " + here + "; nothing was changed";
  effects_->push_back(std::move(done));
}

// It is told once per spell, so that one which comes during an acquisition is kept for its end.
void Engine::Core::Handle(const AppUnreadyTooLong&) {
  unready_too_long_ = true;
  if (holding()) BeginDrain(Reason::kAppUnready);
}

void Engine::Core::Handle(const Shutdown& shutdown) {
  shutting_down_ = true;
  watch_on_ = shutdown.watch_on;
  switch (state_) {
    case State::kStandby:
    case State::kHoldOff:
      if (!watch_on_) Stop(true, "");
      return;
    case State::kActive:
    case State::kDraining: return BeginDrain(Reason::kShutdown);
    case State::kAcquiring:  // resolved first: an acquisition that took is released, never opened
      if (term_) return ReleaseUnopened(Reason::kShutdown, kTakesNothingBack);
      return;
    case State::kReleasing:
    case State::kStopped: return;
  }
}

// ---- draining ----

void Engine::Core::BeginDrain(Reason reason) {
  const bool planned = reason != Reason::kRenewalsFailed;
  // A planned drain joins one that is under way; one for failed renewals becomes planned: it
  // releases, and heals no more.
  if (state_ == State::kDraining && (!planned || drain_reason_ != Reason::kRenewalsFailed)) return;
  const bool was_drained = state_ == State::kDraining && drained_;
  state_ = State::kDraining;
  drain_reason_ = reason;
  last_reason_ = reason;
  drained_ = false;
  drain_end_ = planned ? now_ + timing_.grace : permit_.expiry_;
  if (planned) next_attempt_at_ = Min(next_attempt_at_, now_ + kDrainingWriteDelay);
  // The round that failed waits for its end, but rounds are over: renewing goes on.
  if (next_attempt_at_.is_never()) next_attempt_at_ = now_;
  Tell(Notice::kDraining, reason, planned ? "" : attempt_error_);
  SetValve(Valve::kDraining, reason, false);
  if (was_drained) BeginRelease();
}

void Engine::Core::Handle(const Drained& drained) {
  if (state_ != State::kDraining || drained.token != permit_.token_) return;
  drained_ = true;
  // A drain for failed renewals does not release early: until expiry a renewal may still succeed
  // and end it.
  if (drain_reason_ != Reason::kRenewalsFailed) BeginRelease();
}

// ---- releasing ----

void Engine::Core::BeginRelease() {
  CHECK(term_.has_value(), "only a term can be released");
  state_ = State::kReleasing;
  last_reason_ = drain_reason_;
  at_risk_ = awaiting_confirmation_ = false;
  release_retry_at_ = now_;
  release_give_up_at_ = now_ + timing_.ttl;
  backoff_ = timing_.call_timeout / 8;
  if (permit_.valve_ != Valve::kClosed) SetValve(Valve::kClosed, drain_reason_, false);
  if (!op_) SendRelease();  // else after the answer of the renewal under way
}

// What makes holding pointless came while the lease was being acquired. Who waits for a take-back
// is answered now: its term is another.
void Engine::Core::ReleaseUnopened(Reason reason, const std::string& why) {
  taking_back_ = false;
  AnswerByHolder(why);
  drain_reason_ = reason;
  BeginRelease();
}

void Engine::Core::SendRelease() {
  if (now_ >= release_give_up_at_) {
    return Released("not confirmed within one TTL (" + attempt_error_ + "); it runs out by itself");
  }
  Record record = OwnRecord(RecordState::kReleased, term_->token());
  record.unknown = term_->record().unknown;
  SendWrite(Purpose::kRelease, term_->version(), std::move(record), timing_.call_timeout);
}

void Engine::Core::OnReleaseAnswer(const Op& op, const Answer& answer) {
  switch (answer.kind) {
    case Answer::Kind::kApplied:
      observer_.SeeOwnWrite(now_, op.record, answer.version);
      return Released("");
    case Answer::Kind::kRecord:
    case Answer::Kind::kAbsent: return JudgeRelease(answer);
    case Answer::Kind::kConflictBlind:
      return SendRead(Purpose::kResolveRelease, timing_.call_timeout);
    case Answer::Kind::kAmbiguous:
      if (op.purpose == Purpose::kRelease) {
        return SendRead(Purpose::kResolveRelease, timing_.call_timeout);
      }
      return RetryRelease(answer.error);
    case Answer::Kind::kRefused: return RetryRelease(answer.error);
  }
}

void Engine::Core::JudgeRelease(const Answer& answer) {
  const bool own_term = answer.record && answer.record->process_id == identity_.process_id &&
                        answer.record->token == term_->token();
  if (!own_term) {
    Observe(answer);
    return Released(answer.record ? "the record names process " + answer.record->process_id +
                                        ", token " + std::to_string(answer.record->token)
                                  : "the store has no record of it");
  }
  if (!answer.record->held() && options_.reads_confirm) {
    observer_.SeeOwnWrite(now_, *answer.record, answer.version);
    return Released("");
  }
  // Our own record of this term: release again on that version. It is also what the store shows
  // now, should the release be given up.
  Observe(answer);
  term_->Adopt(answer.version);
  RetryRelease("the release has not been applied");
}

void Engine::Core::RetryRelease(const std::string& why) {
  attempt_error_ = why;
  release_retry_at_ = now_ + NextBackoff();
}

void Engine::Core::Released(const std::string& detail) {
  released_token_ = term_->token();
  term_.reset();
  const bool start_failed = drain_reason_ == Reason::kStartFailed;
  Tell(Notice::kReleased, drain_reason_, start_failed ? start_error_ : detail);
  state_ = State::kHoldOff;
  Duration hold_off = timing_.hold_off;
  if (start_failed) {
    hold_off = start_backoff_ + Jitter(start_backoff_ / 8);
    start_backoff_ = Min(start_backoff_ * 2, kStartBackoffMax);
  }
  hold_off_until_ = now_ + hold_off;
  next_poll_at_ = now_;
  SchedulePoll();
  if (shutting_down_ && !watch_on_) return Stop(true, "released");
  OnHoldOffRecord();
}

// ---- the hold-off, and the outcome ----

void Engine::Core::OnHoldOffRecord() {
  if (!observer_.held_by_other()) return;
  state_ = State::kStandby;
  AnswerByHolder("");
}

void Engine::Core::EndHoldOff() {
  state_ = State::kStandby;
  if (shutting_down_) return AnswerByHolder(kTakesNothingBack);
  if (!take_back_) {
    sit_out_ = !observer_.of_other();  // else another process has had it, and given it back already
    return AnswerByHolder(
        "nobody holds the lease at the end of the hold-off, and take_back=false was asked for");
  }
  taking_back_ = true;
  SettleTakeBack();
}

// Does the take-back still make sense? If not, its askers are told why and the process is a plain
// standby.
void Engine::Core::SettleTakeBack() {
  if (CompeteAt() <= now_) return;  // the next timer pass acquires
  taking_back_ = false;
  std::string why = WhyNotCompeting();
  if (why.empty()) why = store_ok_ ? "the lease may not be taken back yet" : last_error_;
  AnswerByHolder("nobody took the lease within the hold-off, and it was not taken back: " + why);
}

void Engine::Core::AnswerByHolder(const std::string& detail) {
  const bool other = observer_.held_by_other();
  AnswerStepDowns(other ? StepDownDone::Outcome::kTakenOver : StepDownDone::Outcome::kUnknown,
                  other ? "" : detail);
}

void Engine::Core::AnswerStepDowns(StepDownDone::Outcome outcome, const std::string& detail) {
  if (released_token_ == 0 && step_downs_.empty()) return;
  StepDownDone done;
  done.outcome = outcome;
  done.released_token =
      std::exchange(released_token_, 0);  // 0: the term was lost before it could be released
  done.expected = {identity_.node_id, done.released_token != 0 ? done.released_token : lost_token_};
  done.hold_off = timing_.hold_off;
  done.detail = detail;
  if (outcome == StepDownDone::Outcome::kTakenBack) {
    done.node_id = identity_.node_id;
    done.process_id = identity_.process_id;
    done.token = permit_.token_;
  } else if (observer_.held_by_other()) {
    done.node_id = observer_.record()->node_id;
    done.process_id = observer_.record()->process_id;
    done.token = observer_.record()->token;
  }
  for (const StepDownRequest& request : step_downs_) {
    done.request = request.request;
    done.expected = request.expected;
    effects_->push_back(done);
  }
  step_downs_.clear();
  recorded_ = std::move(done);
}

void Engine::Core::Stop(bool ok, const std::string& why) {
  CHECK(permit_.valve_ == Valve::kClosed, "a process stops only after its permit is over");
  if (!step_downs_.empty()) {
    AnswerStepDowns(StepDownDone::Outcome::kUnknown,
                    "this process is shutting down and does not watch who takes the lease");
  }
  state_ = State::kStopped;
  op_.reset();
  effects_->push_back(StoppedEffect{ok, why});
}

}  // namespace leasehold::lease

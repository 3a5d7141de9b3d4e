"""Mutants of renewal, loss, stepping down and the standby's rules (DESIGN 2.3 to 2.6)."""

from mutations import rules as r
from mutations.mutant import Edit, Mutant

CALLS = "src/lease/engine_calls.cc"
ENGINE = "src/lease/engine.cc"
OBSERVER = "src/lease/observer.cc"
RELEASE = "src/lease/engine_release.cc"
TERM = "src/lease/term.cc"
TIMING = "src/lease/timing.cc"
VIEW = "src/lease/engine_view.cc"

RENEWAL = [
    Mutant(
        "a second attempt starts while one is under way",
        "one attempt is under way at a time",
        (Edit(ENGINE, "      if (!op_ && now_ >= next_attempt_at_) return Renew();\n      return;\n    case State::kDraining:",
              "      if (now_ >= next_attempt_at_) return Renew();\n      return;\n    case State::kDraining:"),
         Edit(ENGINE, "Min(ForcedDrainAt(), idle(Min(round_fails_at_, next_attempt_at_)))",
              "Min(ForcedDrainAt(), Min(idle(round_fails_at_), next_attempt_at_))"),
         Edit(ENGINE, "  SendWrite(Purpose::kRenew, term_->version()",
              "  next_attempt_at_ = now_ + timing_.call_timeout / 2;\n  SendWrite(Purpose::kRenew, term_->version()")),
        (r.ONE_CALL,)),
    Mutant(
        "renewals stop after the first failure",
        "inside a round a failed attempt is retried; three rounds may fail",
        (Edit(ENGINE, "  next_attempt_at_ = now_ + NextBackoff();\n  // While another",
              "  next_attempt_at_ = MonoTime::Never();\n  return;\n  // While another"),),
        (r.GOES_ON, r.OUTAGE_INVISIBLE)),
    Mutant(
        "the last attempt before the forced drain gets one time-out only",
        "the last attempt before the forced drain may use all the time that is left",
        (Edit(ENGINE, "return another_fits ? timing_.call_timeout : Max(left, Duration::Millis(1));",
              "return Max(Min(left, timing_.call_timeout), Duration::Millis(1));"),),
        (r.LAST_ATTEMPT, r.OUTAGE_INVISIBLE)),
    Mutant(
        "with wait_replicas a read confirms a renewal",
        "with wait_replicas a read confirms nothing",
        (Edit(TERM, "if (known && reads_confirm)", "if (known)"),),
        (r.PERMIT_END,)),
    Mutant(
        "with wait_replicas a read confirms an acquisition",
        "with wait_replicas a read confirms nothing",
        (Edit(ENGINE, "if (ours && options_.reads_confirm)", "if (ours)"),),
        (r.FROM_A_WRITE,)),
    Mutant(
        "an answer to an abandoned request is judged",
        "answers of abandoned requests are dropped",
        (Edit(CALLS, "if (!op_ || op_->id != read.op) return;  // abandoned", "if (!op_) return;"),
         Edit(CALLS, "if (!op_ || op_->id != cas.op) return;  // abandoned", "if (!op_) return;")),
        (r.ONE_CALL, r.ATTEMPT_COUNTS, r.LOSS_AT_ONCE, r.PERMIT_END, r.FROM_A_WRITE, r.SEEN_VERSION)),
    Mutant(
        "another holder is overlooked",
        "definitive loss: another holder",
        (Edit(TERM, "if (record->process_id != record_.process_id || record->token > record_.token)",
              "if (record->token > record_.token && record->process_id == record_.process_id)"),),
        (r.LOSS_AT_ONCE, r.TOKENS_RISE, r.WINDOW)),
    Mutant(
        "a vanished record is healed in the same term",
        "definitive loss: no record; gates shut at once, no healing",
        (Edit(TERM, "if (!record) return {Kind::kLost, {}, Reason::kAbsent};",
              "if (!record) return {Kind::kOurs, {}, Reason::kNone};"),
         Edit(ENGINE, "case Term::Verdict::Kind::kOurs:\n      observer_.SeeOwnWrite(",
              "case Term::Verdict::Kind::kOurs:\n      if (answer.record) observer_.SeeOwnWrite(")),
        (r.LOSS_AT_ONCE,)),
    Mutant(
        "a store that lost our write is healed in the same term",
        "definitive loss: our own record older than our last confirmed write; no healing",
        (Edit(TERM, "if (record->token < record_.token || record->beat < record_.beat) {\n"
                    "    return {Kind::kLost, {}, Reason::kStoreRegressed};",
              "if (record->token < record_.token || record->beat < record_.beat) {\n"
              "    version_ = version;\n    return {Kind::kOurs, {}, Reason::kNone};"),),
        (r.LOSS_AT_ONCE, r.TOKENS_RISE)),
    Mutant(
        "a refusal loses the lease",
        "refusals count as failed renewals",
        (Edit(ENGINE, "case Answer::Kind::kRefused: return AttemptFailed(answer.error);\n  }\n}\n\nvoid Engine::Core::OnTermRead",
              "case Answer::Kind::kRefused: return Lose(Reason::kExpired, answer.error);\n  }\n}\n\nvoid Engine::Core::OnTermRead"),),
        (r.NO_ANSWER_NO_LOSS,)),
    Mutant(
        "a read that says nothing loses the lease",
        "a store that does not answer starts a drain, and loses nobody the lease",
        (Edit(ENGINE, "    return BeginDrain(Reason::kRenewalsFailed);  // fail closed; renewing goes on\n",
              "    return Lose(Reason::kRenewalsFailed, answer.error);\n"),),
        (r.NO_ANSWER_NO_LOSS,)),
    Mutant(
        "a wobble extends the permit",
        "the authoritative read that names us extends nothing",
        (Edit(ENGINE, '      return AttemptFailed("");\n', "      return Confirmed(now_);\n"),),
        (r.PERMIT_END,)),
    Mutant(
        "the grace told is the configured one",
        "the grace told to listeners is never more than the time to expiry",
        (Edit(VIEW, "effect.grace = Min(drain_end_ - now_, permit_.expiry_ - now_);", "effect.grace = timing_.grace;"),),
        (r.GRACE_TOLD,)),
    Mutant(
        "a round is twice as long",
        "budget per round = ttl x 3 / (max_renew_fails x 4)",
        (Edit(TIMING, "return o.ttl * 3 / (int64_t{o.max_renew_fails} * 4);",
              "return o.ttl * 3 / (int64_t{o.max_renew_fails} * 2);"),),
        (r.OUTAGE_INVISIBLE,)),
    Mutant(
        "no read follows an ambiguous renewal",
        "after an ambiguous write a read follows at once",
        (Edit(ENGINE, "      if (state_ == State::kReleasing) return;\n      return SendRead(Purpose::kResolve, TermReadTimeout());\n"
                      "    case Answer::Kind::kRefused:",
              "      return AttemptFailed(answer.error);\n    case Answer::Kind::kRefused:"),),
        (r.AMBIGUOUS_READ,)),
    Mutant(
        "no read follows an ambiguous acquisition",
        "after an ambiguous write a read follows at once",
        (Edit(ENGINE, "      return SendRead(Purpose::kConfirmAcquire, timing_.budget);\n    case Answer::Kind::kRefused:",
              "      return BackToStandby();\n    case Answer::Kind::kRefused:"),),
        (r.AMBIGUOUS_READ,)),
    Mutant(
        "a read confirms nothing, wait_replicas or not",
        "a record bearing an unresolved attempt counts as success",
        (Edit(TERM, "if (known && reads_confirm)", "if (known && reads_confirm && false)"),),
        (r.ATTEMPT_COUNTS,)),
    Mutant(
        "a conflict without a record keeps the gates open",
        "shut first if none of our own attempts is unresolved",
        (Edit(ENGINE, "      if (!term_->unresolved()) {\n", "      if (false) {\n"),),
        (r.BLIND_SHUTS,)),
    Mutant(
        "a conflict without a record is not read",
        "a conflict without a record is read at once",
        (Edit(ENGINE, "        return SendRead(Purpose::kObserve, timing_.budget);  // what it is now is not known\n",
              "        return;\n"),),
        (r.BLIND_READ,)),
    Mutant(
        "a wobble surrenders",
        "the authoritative read names our process id and token: keep serving and keep trying",
        (Edit(ENGINE, '      return AttemptFailed("");\n', "      return BeginDrain(Reason::kRenewalsFailed);\n"),),
        (r.WOBBLE, r.NOT_TOO_SOON)),
    Mutant(
        "when the last read fails too, serving goes on",
        "it fails too: step down, fail closed",
        (Edit(ENGINE, "    return BeginDrain(Reason::kRenewalsFailed);  // fail closed; renewing goes on\n",
              "    return AttemptFailed(answer.error);\n"),),
        (r.FAILS_CLOSED,)),
    Mutant(
        "one failed round is enough",
        "after max_renew_fails failed rounds",
        (Edit(ENGINE, "  if (failed_rounds_ < timing_.max_renew_fails) return;\n", ""),),
        (r.NOT_TOO_SOON, r.OUTAGE_INVISIBLE)),
    Mutant(
        "the drain is forced when the permit is over",
        "forced drain at last confirmed sending + max(TTL - margin - grace, 7/8 TTL)",
        (Edit(TIMING, "Max(o.ttl - t.margin - o.step_down_grace, o.ttl * 7 / 8)", "o.ttl - t.margin"),),
        (r.FORCED_DRAIN, r.LAST_ATTEMPT)),
    Mutant(
        "a confirmation that confers no permit puts off the forced drain",
        "forced drain before the permit is over, so that listeners are told",
        (Edit(ENGINE, "return permit_.expiry_ - (timing_.ttl - timing_.margin) + timing_.forced_drain_after;",
              "return term_->confirmed_sent_at() + timing_.forced_drain_after;"),),
        (r.FORCED_DRAIN,)),
    Mutant(
        "a drain for failed renewals does not end",
        "a drain for failed renewals ends when a renewal succeeds before the release is sent",
        (Edit(ENGINE, "const bool failing = state_ == State::kDraining && drain_reason_ == Reason::kRenewalsFailed;",
              "const bool failing = false;"),),
        (r.HEALS, r.GRACE_OVER)),
    Mutant(
        "a drain that was asked for ends when a renewal succeeds",
        "only a drain for failed renewals ends when a renewal succeeds",
        (Edit(ENGINE, "const bool failing = state_ == State::kDraining && drain_reason_ == Reason::kRenewalsFailed;",
              "const bool failing = state_ == State::kDraining;"),),
        (r.DRAIN_FINAL,)),
    Mutant(
        "no renewal is sent after lost time",
        "after lost time a renewal is sent at once",
        (Edit(ENGINE, "  next_attempt_at_ = now_;  // after the answer of the one under way, which confers nothing any more\n", ""),),
        (r.LOST_TIME_RENEWS,)),
]

STEPPING_DOWN = [
    Mutant(
        "a step-down needs no precondition",
        "every step-down carries a precondition: expected node id and expected token",
        (Edit(RELEASE, "if (!mine || !stepping || request.expected.token != token ||", "if (!stepping ||"),),
        (r.STALE_NOTHING, r.STALE_ANSWERED)),
    Mutant(
        "a step-down compares the node id only",
        "every step-down carries a precondition: expected node id and expected token",
        (Edit(RELEASE, "if (!mine || !stepping || request.expected.token != token ||", "if (!mine || !stepping ||"),),
        (r.STALE_NOTHING, r.STALE_ANSWERED)),
    Mutant(
        "a step-down compares the token only",
        "every step-down carries a precondition: expected node id and expected token",
        (Edit(RELEASE, "if (!mine || !stepping || request.expected.token != token ||",
              "if (!stepping || request.expected.token != token ||"),),
        (r.STALE_NOTHING, r.STALE_ANSWERED)),
    Mutant(
        "a request is answered twice",
        "a second request joins the first, and later gets its recorded result",
        (Edit(RELEASE, "  step_downs_.clear();\n", ""),),
        (r.ANSWERED_ONCE,)),
    Mutant(
        "a request is never answered",
        "the answer: an outcome, whatever it is",
        (Edit(RELEASE, "  for (const StepDownRequest& request : step_downs_) {\n",
              "  for (const StepDownRequest& request : std::vector<StepDownRequest>{}) {\n"),),
        (r.ANSWERED_ONCE,)),
    Mutant(
        "every outcome is told as a take-over",
        "the answer: taken_over_by_another_process, taken_back_by_this_process or unknown",
        (Edit(RELEASE, "  done.outcome = outcome;\n", "  done.outcome = StepDownDone::Outcome::kTakenOver;\n"),),
        (r.ANSWER_TRUE,)),
    Mutant(
        "renewing stops when a drain begins",
        "keep renewing while work in flight finishes",
        (Edit(ENGINE, "now_ >= drain_end_) return BeginRelease();\n      if (!op_ && now_ >= next_attempt_at_) return Renew();\n",
              "now_ >= drain_end_) return BeginRelease();\n"),
         Edit(ENGINE, "next = Min(next, drain_end_);\n      return Min(next, idle(next_attempt_at_));",
              "next = Min(next, drain_end_);\n      return next;")),
        (r.GOES_ON,)),
    Mutant(
        "grace has no end",
        "when grace is over, shut what is left, then release",
        (Edit(ENGINE, "      if (drain_reason_ != Reason::kRenewalsFailed && now_ >= drain_end_) return BeginRelease();\n", ""),
         Edit(ENGINE, "      if (drain_reason_ != Reason::kRenewalsFailed) next = Min(next, drain_end_);\n", "")),
        (r.GRACE_OVER,)),
    Mutant(
        "a release writes that it is held",
        "then release: the record says released",
        (Edit(RELEASE, "OwnRecord(RecordState::kReleased, term_->token())", "OwnRecord(RecordState::kHeld, term_->token())"),),
        (r.STATE_RELEASED,)),
    Mutant(
        "a release that did not take is followed by a renewal",
        "a release that is sent is irrevocable",
        (Edit(RELEASE, '  RetryRelease("the release has not been applied");\n', "  Renew();\n"),),
        (r.IRREVOCABLE,)),
    Mutant(
        "the release does not wait for the renewal under way",
        "one store call is under way at a time",
        (Edit(RELEASE, "  if (!op_) SendRelease();", "  SendRelease();"),),
        (r.ONE_CALL,)),
    Mutant(
        "a release is repeated over another's record",
        "its conflict showing our own record of this term: release again on that version; another holder: no more",
        (Edit(RELEASE, "  const bool own_term = answer.record && answer.record->process_id == identity_.process_id &&\n"
                       "                        answer.record->token == term_->token();",
              "  const bool own_term = answer.record.has_value();"),),
        (r.TOKENS_RISE,)),
    Mutant(
        "after SIGTERM the lease is taken back",
        "after SIGTERM nothing is taken back",
        (Edit(ENGINE, "  if (shutting_down_) return kTakesNothingBack;\n", ""),
         Edit(RELEASE, "  if (shutting_down_) return AnswerByHolder(kTakesNothingBack);\n", "")),
        (r.NOTHING_TAKEN_BACK,)),
    Mutant(
        "SIGTERM while holding is not heard",
        "SIGTERM = step down, release, exit 0",
        (Edit(RELEASE, "    case State::kDraining: return BeginDrain(Reason::kShutdown);", "    case State::kDraining: return;"),),
        (r.STOPS,)),
    Mutant(
        "a second request for the same term is turned away",
        "a second request for the same term joins the first",
        (Edit(RELEASE, "      holding() || state_ == State::kReleasing || state_ == State::kHoldOff || taking_back_;",
              "      state_ == State::kActive;"),),
        (r.JOINS,)),
    Mutant(
        "the release does not wait for the drain",
        "when every gate is empty and every listener has said drained, or grace is over, then release",
        (Edit(RELEASE, "  if (was_drained) BeginRelease();", "  if (planned) BeginRelease();"),),
        (r.DRAIN_FIRST,)),
    Mutant(
        "drained for another term counts",
        "drained is said for a lease and a token",
        (Edit(RELEASE, "if (state_ != State::kDraining || drained.token != permit_.token_) return;",
              "if (state_ != State::kDraining) return;"),),
        (r.DRAIN_FIRST,)),
    Mutant(
        "a drain for failed renewals releases as soon as it is drained",
        "a drain for failed renewals ends when a renewal succeeds before the release is sent",
        (Edit(RELEASE, "  if (drain_reason_ != Reason::kRenewalsFailed) BeginRelease();\n", "  BeginRelease();\n"),),
        (r.DRAIN_HEALS_FIRST,)),
    Mutant(
        "a release whose fate is unclear is taken for done",
        "ambiguous: read, and retry until released, or another holder, or one TTL",
        (Edit(RELEASE, "      return RetryRelease(answer.error);\n    case Answer::Kind::kRefused: return RetryRelease(answer.error);",
              "      return Released(answer.error);\n    case Answer::Kind::kRefused: return RetryRelease(answer.error);"),),
        (r.RELEASE_RETRIED,)),
    Mutant(
        "a refused release is taken for done",
        "retry until released, or another holder, or one TTL",
        (Edit(RELEASE, "    case Answer::Kind::kRefused: return RetryRelease(answer.error);",
              "    case Answer::Kind::kRefused: return Released(answer.error);"),),
        (r.RELEASE_RETRIED,)),
    Mutant(
        "the hold-off is skipped",
        "hold-off: if nobody took the lease by then it is taken back",
        (Edit(RELEASE, "  hold_off_until_ = now_ + hold_off;\n", "  hold_off_until_ = now_;\n"),),
        (r.HOLD_OFF,)),
    Mutant(
        "take_back = false is ignored",
        "taken back, unless the request said take_back = false",
        (Edit(RELEASE, "  if (!take_back_) {\n", "  if (false) {\n"),),
        (r.ANOTHERS_TURN,)),
    Mutant(
        "a start that failed is not heard",
        "a takeover that fails after the lease is held releases it",
        (Edit(ENGINE, "if (!holding() || failed.token != term_->token()) return;", "return;"),),
        (r.START_FAILED,)),
    Mutant(
        "a start that failed is tried again at once",
        "a takeover that fails after the lease is held is tried again after 1 to 30 s",
        (Edit(RELEASE, "    hold_off = start_backoff_ + Jitter(start_backoff_ / 8);\n", "    hold_off = Duration::Zero();\n"),),
        (r.HOLD_OFF,)),
    Mutant(
        "an application that stays unready keeps the lease",
        "an active one that stays unready for app.unready_after steps down",
        (Edit(RELEASE, "  if (holding()) BeginDrain(Reason::kAppUnready);\n", ""),),
        (r.UNREADY_STEPS_DOWN,)),
    Mutant(
        "an acquisition opens though the application was unready for too long meanwhile",
        "only with a ready application",
        (Edit(ENGINE, "  if (unready_too_long_) {\n", "  if (false) {\n"),),
        (r.UNREADY_STEPS_DOWN,)),
    Mutant(
        "SIGTERM leaves an acquisition under way to itself",
        "SIGTERM in acquiring resolves the attempt first",
        (Edit(RELEASE, "      if (term_) return ReleaseUnopened(Reason::kShutdown, kTakesNothingBack);\n      return;\n",
              '      if (term_) return ReleaseUnopened(Reason::kShutdown, kTakesNothingBack);\n      return Stop(true, "");\n'),),
        (r.RESOLVED_FIRST,)),
    Mutant(
        "an acquisition that is confirmed after SIGTERM opens",
        "after SIGTERM nothing is taken back",
        (Edit(ENGINE, "  if (shutting_down_) return ReleaseUnopened(Reason::kShutdown, kTakesNothingBack);\n", ""),
         Edit(ENGINE, '  CHECK(!shutting_down_, "after SIGTERM nothing is opened");\n', "")),
        (r.STOPS, r.NOTHING_TAKEN_BACK)),
]

STANDBY = [
    Mutant(
        "an application that is not ready competes",
        "an application that is not ready does not compete",
        (Edit(ENGINE, '  if (!app_ready_) return "the application is not ready";\n', ""),),
        (r.READY,)),
    Mutant(
        "fail_if_held is ignored",
        "fail_if_held = true: start-up fails if the record changes within one window",
        (Edit(ENGINE, "  if (!options_.fail_if_held || !starting_up_ || shutting_down_) return;\n", "  return;\n"),),
        (r.START_HELD,)),
    Mutant(
        "fail_if_held fails for a dead holder's record too",
        "a dead holder's record is taken over",
        (Edit(ENGINE, "  if (held_version_ == *observer_.expected()) {\n", "  if (false) {\n"),),
        (r.START_DEAD,)),
    Mutant(
        "a vanished record is told as superseded",
        "reasons are a closed list: absent, superseded, expired, ...",
        (Edit(TERM, "if (!record) return {Kind::kLost, {}, Reason::kAbsent};",
              "if (!record) return {Kind::kLost, {}, Reason::kSuperseded};"),),
        (r.LOSS_REASON,)),
    Mutant(
        "a failed attempt is repeated without a back-off",
        "inside a round a failed attempt is retried with jittered exponential back-off",
        (Edit(ENGINE, "  const Duration wait = backoff_ / 2 + Jitter(backoff_ / 2);\n",
              "  const Duration wait = Duration::Millis(1);\n"),),
        (r.BUDGET,)),
    Mutant(
        "a holder renews four times as often",
        "renew_interval = (budget - min(renew_call_timeout, 5 s)) x 8/9",
        (Edit(ENGINE, "  next_attempt_at_ = sent_at + timing_.renew_interval + Jitter(timing_.renew_interval / 8);\n",
              "  next_attempt_at_ = sent_at + timing_.renew_interval / 4;\n"),),
        (r.BUDGET,)),
    Mutant(
        "a standby polls eight times as often",
        "a standby polls once per poll_interval",
        (Edit(ENGINE, "  Duration interval = timing_.poll_interval;\n", "  Duration interval = timing_.poll_interval / 8;\n"),),
        (r.BUDGET,)),
    Mutant(
        "a failed acquisition is repeated at once",
        "a store that fails at once is not asked again at once",
        (Edit(ENGINE, "  if (!store_ok_) not_before_ = Max(not_before_, next_poll_at_);\n", ""),),
        (r.BUDGET, r.AT_REST)),
    Mutant(
        "a lower token stops nobody",
        'on_token_regression = "refuse" makes a lower token a stop',
        (Edit(ENGINE, "if (observer_.token_lower() && options_.on_token_regression == OnTokenRegression::kRefuse) {",
              "if (false) {"),),
        (r.REFUSE_STOPS,)),
    Mutant(
        "a lower token is not told",
        "a store that shows a lower one raises token_regression (event, metric)",
        (Edit(CALLS, "  if (change.token_lower && change.hands) {\n", "  if (false) {\n"),),
        (r.REGRESSION_TOLD,)),
    Mutant(
        "the largest token is not told",
        "at the largest one acquisitions stop with token_exhausted",
        (Edit(ENGINE, "if (!observer_.NextToken() && !std::exchange(exhausted_told_, true)) {", "if (false) {"),),
        (r.EXHAUSTED_TOLD,)),
    Mutant(
        "a record of the next format is taken for one of ours",
        "a higher format is refused with a sentence and never overwritten",
        (Edit("src/lease/record.cc", "record.format > kRecordFormat)", "record.format > kRecordFormat + 1)"),),
        (r.UNJUDGED_LEFT,)),
    Mutant(
        "chance comes from an address",
        "same start, same events, same times: same effects, byte for byte",
        (Edit(ENGINE, "      random_(seed),", "      random_(seed ^ reinterpret_cast<uintptr_t>(this)),"),),
        (r.REPLAY,)),
]

MUTANTS = RENEWAL + STEPPING_DOWN + STANDBY

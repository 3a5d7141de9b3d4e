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
        (r.OUTAGE_INVISIBLE,)),
    Mutant(
        "the last attempt before the forced drain gets one time-out only",
        "the last attempt before the forced drain may use all the time that is left",
        (Edit(ENGINE, "return another_fits ? timing_.call_timeout : Max(left, Duration::Millis(1));",
              "return Max(Min(left, timing_.call_timeout), Duration::Millis(1));"),),
        (r.OUTAGE_INVISIBLE,)),
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
        (r.ONE_CALL, r.LOSS_AT_ONCE, r.PERMIT_END, r.FROM_A_WRITE, r.SEEN_VERSION)),
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
        (r.TAKEN_IN_TIME,)),
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
]

STANDBY = [
    Mutant(
        "an application that is not ready competes",
        "an application that is not ready does not compete",
        (Edit(ENGINE, '  if (!app_ready_) return "the application is not ready";\n', ""),),
        (r.READY,)),
    Mutant(
        "chance comes from an address",
        "same start, same events, same times: same effects, byte for byte",
        (Edit(ENGINE, "      random_(seed),", "      random_(seed ^ reinterpret_cast<uintptr_t>(this)),"),),
        (r.REPLAY,)),
]

MUTANTS = RENEWAL + STEPPING_DOWN + STANDBY

"""Mutants of the register, the record, the token, the permit and the observation window (DESIGN 2.1, 2.2)."""

from mutations import rules as r
from mutations.mutant import Edit, Mutant

CALLS = "src/lease/engine_calls.cc"
ENGINE = "src/lease/engine.cc"
OBSERVER = "src/lease/observer.cc"
RECORD = "src/lease/record.cc"
RELEASE = "src/lease/engine_release.cc"
TERM = "src/lease/term.cc"
TIMING = "src/lease/timing.cc"
VIEW = "src/lease/engine_view.cc"

REGISTER = [
    Mutant(
        "a retry reuses the beat",
        "the beat rises by one with every attempt of a process, retries included",
        (Edit(CALLS, "record.beat = ++last_beat_;",
              "record.beat = term_ && term_->unresolved() ? last_beat_ : ++last_beat_;"),),
        (r.BEATS_RISE,)),
    Mutant(
        "the beat restarts with each acquisition",
        "the beat never restarts within a process",
        (Edit(CALLS, "record.beat = ++last_beat_;",
              "if (purpose == Purpose::kAcquire) last_beat_ = 0;\n  record.beat = ++last_beat_;"),),
        (r.BEATS_RISE,)),
    Mutant(
        "a bare counter is the version",
        "a version is, or contains, the writer's process id, token and beat",
        (Edit(RECORD, "Version version = record.process_id;", "Version version;"),
         Edit(RECORD, 'version.append("/").append(std::to_string(record.token));', "")),
        (r.TOKENS_RISE, r.ONE_PERMIT, r.LOSS_AT_ONCE, r.REGRESSION_TOLD)),
    Mutant(
        "the store counts versions again after it lost writes",
        "a version never repeats, even if a store loses writes and counts again from an older state",
        (Edit("tests/simulation/register.cc", "lease::Version version = lease::MakeVersion(record);",
              "lease::Version version = std::to_string(history_.size());"),),
        (r.TOKENS_RISE, r.ONE_PERMIT, r.LOSS_AT_ONCE, r.UNKNOWN_KEPT)),
    Mutant(
        "the token is dropped at release",
        "a release keeps the record and its token",
        (Edit(RELEASE, "OwnRecord(RecordState::kReleased, term_->token())", "OwnRecord(RecordState::kReleased, 0)"),),
        (r.TOKENS_RISE,)),
    Mutant(
        "the token comes from the record only",
        "an acquisition takes max(record's, highest seen) + 1",
        (Edit(OBSERVER, "record_ && record_->token > highest_token_ ? record_->token : highest_token_;",
              "record_ ? record_->token : 0;"),),
        (r.TOKENS_RISE,)),
    Mutant(
        "the token comes from one's own terms only",
        "an acquisition takes max(record's, highest seen) + 1",
        (Edit(OBSERVER, "  if (record && !change.unusable) Remember(*record, change.gone_back);\n",
              "  if (record) last_ttl_ = record->ttl();\n"),
         Edit(OBSERVER, "record_ && record_->token > highest_token_ ? record_->token : highest_token_;",
              "highest_token_;")),
        (r.TOKENS_RISE,)),
    Mutant(
        "taking one's own lease again keeps the token",
        "this process may re-acquire at once, with a new token",
        (Edit(OBSERVER, "  return highest + 1;\n",
              "  if (record_ && record_->process_id == self_.process_id) return highest;\n  return highest + 1;\n"),),
        (r.TOKENS_RISE,)),
    Mutant(
        "what state_dir knew of tokens is forgotten",
        "an instance remembers the highest token it ever saw, in node.state_dir too",
        (Edit(OBSERVER, "highest_token_(memory.highest_token),", "highest_token_(0),"),),
        (r.TOKENS_RISE,)),
    Mutant(
        "the largest token wraps",
        "tokens never wrap: at the largest one acquisitions stop with token_exhausted",
        (Edit(OBSERVER, "if (highest == std::numeric_limits<uint64_t>::max()) return std::nullopt;\n", ""),),
        (r.TOKENS_RISE, r.EXHAUSTED_TOLD)),
    Mutant(
        "members that a later program wrote are dropped at renewal",
        "unknown fields are kept",
        (Edit(ENGINE, "  record.unknown = term_->record().unknown;\n  SendWrite(Purpose::kRenew",
              "  SendWrite(Purpose::kRenew"),),
        (r.UNKNOWN_KEPT,)),
    Mutant(
        "a record of a higher format is overwritten",
        "a higher format or a ttl_ms out of range is refused with a sentence and never overwritten",
        (Edit(ENGINE, "  if (!observer_.unusable().empty()) return observer_.unusable();\n", ""),
         Edit(OBSERVER, "if (!seen_any_ || !unusable_.empty())", "if (!seen_any_)")),
        (r.UNUSABLE_LEFT,)),
    Mutant(
        "the record bears another TTL than its holder keeps",
        "a standby waits one TTL of the record: the record must say the holder's",
        (Edit(VIEW, "record.ttl_ms = timing_.ttl.millis();", "record.ttl_ms = kTtlMillisMin;"),),
        (r.OWN_RECORD,)),
    Mutant(
        "the node id is the identity",
        "the holder's process id, random per process, is the identity",
        (Edit(TERM, "if (record->process_id != record_.process_id || record->token > record_.token)",
              "if (record->node_id != record_.node_id || record->token > record_.token)"),
         Edit(OBSERVER, "const bool of_other = held_by_other() && !holder_dead_;",
              "const bool of_other =\n      record_ && record_->held() && record_->node_id != self_.node_id && !holder_dead_;")),
        (r.WINDOW, r.LOSS_AT_ONCE, r.TOKENS_RISE)),
    Mutant(
        "any record of this process confirms an acquisition",
        "every attempt is recognisable, by process id, token and beat",
        (Edit(ENGINE, "                    answer.record->token == acquire_op_.record.token &&\n"
                      "                    answer.record->beat == acquire_op_.beat;", "                    true;"),),
        (r.FROM_A_WRITE, r.TOKENS_RISE, r.PERMIT_END)),
]

PERMIT = [
    Mutant(
        "the permit counts from the reply to a renewal",
        "the permit ends at the first transmission of the confirmed write + TTL - safety margin",
        (Edit(ENGINE, "const MonoTime expiry = sent_at + timing_.ttl - timing_.margin;\n  if (sent_at <",
              "const MonoTime expiry = now_ + timing_.ttl - timing_.margin;\n  if (sent_at <"),),
        (r.PERMIT_END,)),
    Mutant(
        "the permit counts from the reply to an acquisition",
        "the permit ends at the first transmission of the confirmed write + TTL - safety margin",
        (Edit(ENGINE, "term_.emplace(op.record, version, op.sent_at);", "term_.emplace(op.record, version, now_);"),),
        (r.PERMIT_END,)),
    Mutant(
        "an older attempt that took counts from the latest sending",
        "a record bearing an unresolved attempt counts as success from that attempt's own sending",
        (Edit(TERM, "confirmed_sent_at_ = attempt.sent_at;", "confirmed_sent_at_ = unresolved_.back().sent_at;"),),
        (r.PERMIT_END,)),
    Mutant(
        "the permit has no safety margin",
        "the permit ends a safety margin before sending + TTL",
        (Edit(ENGINE, "permit_.expiry_ = term_->confirmed_sent_at() + timing_.ttl - timing_.margin;",
              "permit_.expiry_ = term_->confirmed_sent_at() + timing_.ttl;"),),
        (r.PERMIT_END,)),
    Mutant(
        "no margin for drift, neither in the permit nor in the window",
        "clock rates may differ from true time by max_clock_drift each: margin at least 2 x drift x TTL, window x "
        "(1 + drift)",
        (Edit(TIMING, "t.margin = Margin(o);", "t.margin = Duration::Zero();"),
         Edit(TIMING, "t.drift = o.max_clock_drift;", "t.drift = 0;")),
        (r.ONE_PERMIT,)),
    Mutant(
        "the permit is kept until the release is answered",
        "the permit ends before the first byte of a release is sent, whatever the answer",
        (Edit(RELEASE, "  if (permit_.valve_ != Valve::kClosed) SetValve(Valve::kClosed, drain_reason_, false);\n  if",
              "  if"),
         Edit(RELEASE, "  released_token_ = term_->token();\n",
              "  released_token_ = term_->token();\n"
              "  if (permit_.valve_ != Valve::kClosed) SetValve(Valve::kClosed, drain_reason_, false);\n")),
        (r.PERMIT_BEFORE_RELEASE,)),
    Mutant(
        "the gates are told after the release is sent",
        "the permit ends before the first byte of a release is sent, whatever the answer",
        (Edit(RELEASE, "  if (permit_.valve_ != Valve::kClosed) SetValve(Valve::kClosed, drain_reason_, false);\n"
                       "  if (!op_) SendRelease();",
              "  if (!op_) SendRelease();\n"
              "  if (permit_.valve_ != Valve::kClosed) SetValve(Valve::kClosed, drain_reason_, false);"),),
        (r.PERMIT_BEFORE_RELEASE,)),
    Mutant(
        "a term is revived by a late yes",
        "a term that is over is never revived, even if its late yes arrives",
        (Edit(ENGINE, "  ExpireIfOver();  // first:", "  const auto* yes = std::get_if<CasAnswer>(&event);\n"
              "  if (!yes || yes->outcome != CasAnswer::Outcome::kApplied) ExpireIfOver();  //"),
         Edit(ENGINE, "  RunTimers();\n  effects_ = nullptr;", "  ExpireIfOver();\n  RunTimers();\n  effects_ = nullptr;")),
        (r.OVER_IS_OVER,)),
    Mutant(
        "no wake-up is booked for the permit's end",
        "a gate shuts at expiry even when the store never answers",
        (Edit(ENGINE, "  if (permit_.valve_ != Valve::kClosed) next = Min(next, permit_.expiry_);\n", ""),),
        (r.SHUTS,)),
    Mutant(
        "a valve changes in silence",
        "exactly one variable says whether we may act, and the gates are told",
        (Edit(ENGINE, "    SetValve(Valve::kClosed, reason, true);\n", "    permit_.valve_ = Valve::kClosed;\n"),),
        (r.GATES_TOLD,)),
    Mutant(
        "an acquisition confirmed late opens at once",
        "an acquisition confirmed more than one renew_interval after it was sent renews first and opens on success",
        (Edit(ENGINE, "if (now_ - op.sent_at > timing_.renew_interval || op.sent_at < confers_nothing_before_)",
              "if (op.sent_at < confers_nothing_before_)"),),
        (r.LATE_RENEWS,)),
    Mutant(
        "the machine's lost time is ignored",
        "answers to requests sent before lost time confer no permit; admissions are held until a renewal is confirmed",
        (Edit(ENGINE, "  confers_nothing_before_ = now_;\n  if (!holding()) return;\n", "  return;\n"),),
        (r.LOST_TIME,)),
    Mutant(
        "after lost time an old answer extends the permit",
        "answers to requests sent before lost time confer no permit",
        (Edit(ENGINE, "if (sent_at < confers_nothing_before_ || now_ >= expiry)", "if (now_ >= expiry)"),),
        (r.LOST_TIME,)),
    Mutant(
        "after lost time admissions go on",
        "until a renewal is confirmed admissions are held",
        (Edit(ENGINE, "  SetValve(Valve::kHolding, Reason::kHostFrozen, false);\n", ""),),
        (r.LOST_TIME,)),
    Mutant(
        "lost time cuts what is in flight",
        "admissions are held, not refused; nothing is cut",
        (Edit(ENGINE, "  SetValve(Valve::kHolding, Reason::kHostFrozen, false);\n",
              "  return Lose(Reason::kHostFrozen, \"\");\n"),),
        (r.NOTHING_CUT,)),
]

WINDOW = [
    Mutant(
        "the window leaves out the drift",
        "one TTL of the record x (1 + drift)",
        (Edit(OBSERVER, "changed_at_ + timing_.Window(record_->ttl())", "changed_at_ + record_->ttl()"),),
        (r.WINDOW,)),
    Mutant(
        "the window is of one's own TTL",
        "one TTL of the record, not of the standby's own configuration",
        (Edit(OBSERVER, "changed_at_ + timing_.Window(record_->ttl())", "changed_at_ + timing_.Window(timing_.ttl)"),),
        (r.WINDOW,)),
    Mutant(
        "the window counts from the first sight of a holder",
        "when the version has not changed in its sight for one TTL",
        (Edit(OBSERVER, "  changed_at_ = now;\n  return change;", "  if (change.hands) changed_at_ = now;\n  return change;"),),
        (r.WINDOW,)),
    Mutant(
        "the window counts from when the read was sent",
        "counted from the moment it processed the answer in which it last saw a change",
        (Edit(CALLS, "observer_.See(now_, answer.record,", "observer_.See(last_read_sent_at_, answer.record,"),),
        (r.WINDOW, r.GONE_BACK)),
    Mutant(
        "the window restarts with every look",
        "a warm standby takes over about one TTL after the last renewal",
        (Edit(OBSERVER, "  if (same) return change;\n", "  if (same) changed_at_ = now;\n  if (same) return change;\n"),),
        (r.TAKEN_IN_TIME, r.HOLDS_AGAIN)),
    Mutant(
        "a dead holder is waited for two windows",
        "a warm standby takes over about one TTL after the last renewal",
        (Edit(OBSERVER, "changed_at_ + timing_.Window(record_->ttl())", "changed_at_ + timing_.Window(record_->ttl()) * 2"),),
        (r.TAKEN_IN_TIME, r.HOLDS_AGAIN)),
    Mutant(
        "a released lease is waited for like a held one",
        "released: take at once",
        (Edit(OBSERVER, "const bool of_other = held_by_other() && !holder_dead_;",
              "const bool of_other = this->of_other() && !holder_dead_;"),),
        (r.TAKEN_IN_TIME, r.HOLDS_AGAIN)),
    Mutant(
        "draining is taken for free",
        "draining counts as held",
        (Edit(OBSERVER, "const bool of_other = held_by_other() && !holder_dead_;",
              "const bool of_other = held_by_other() && record_->state == RecordState::kHeld && !holder_dead_;"),),
        (r.WINDOW,)),
    Mutant(
        "a record that vanished is taken for a first start",
        "no record where this instance or its state_dir ever knew one: wait one window first",
        (Edit(OBSERVER, "if (!record) return ever_known_;", "if (!record) return false;"),),
        (r.GONE_BACK, r.ONE_PERMIT)),
    Mutant(
        "a lower token is taken at once",
        "gone back, a lower token: wait one window first",
        (Edit(OBSERVER, "if (record->token < highest_token_ || HandedOutTwice(*record)) return true;",
              "if (HandedOutTwice(*record)) return true;"),),
        (r.GONE_BACK, r.ONE_PERMIT)),
    Mutant(
        "a lower beat of the same process is taken at once",
        "gone back, a lower beat of the same process: wait one window first",
        (Edit(OBSERVER, "return record->process_id == last_process_ && record->beat < last_process_beat_;", "return false;"),),
        (r.GONE_BACK, r.ONE_PERMIT)),
    Mutant(
        "a store that went back is waited out by one's own TTL",
        "wait one window of max(last seen TTL, own TTL)",
        (Edit(OBSERVER, "now + timing_.Window(Max(last_ttl_, timing_.ttl))", "now + timing_.Window(timing_.ttl)"),),
        (r.GONE_BACK, r.ONE_PERMIT)),
    Mutant(
        "a proven death counts for more than a store that went back",
        "gone back: wait one window first, because a holder whose write was lost may still have a permit",
        (Edit(OBSERVER, "  return Max(window_end, wait_until_);\n",
              "  return holder_dead_ ? window_end : Max(window_end, wait_until_);\n"),),
        (r.GONE_BACK, r.ONE_PERMIT)),
    Mutant(
        "proof of a death outlives the version it was of",
        "a proven dead holder's lease may be taken on that record's version",
        (Edit(OBSERVER, "holder_dead_ = holder_dead;  //", "holder_dead_ = holder_dead_ || holder_dead;  //"),),
        (r.WINDOW,)),
    Mutant(
        "a hint is trusted",
        "a hint causes a read; it is never trusted",
        (Edit(ENGINE, "    if (op_) poll_again_ = true;\n",
              "    observer_.AllowImmediateReacquisition();\n    if (op_) poll_again_ = true;\n"),),
        (r.WINDOW, r.GONE_BACK)),
    Mutant(
        "a standby polls an eighth as often",
        "poll_interval: a planned step-down with a standby completes within one poll",
        (Edit(ENGINE, "  Duration interval = timing_.poll_interval;\n", "  Duration interval = timing_.poll_interval * 8;\n"),),
        (r.TAKEN_IN_TIME, r.HOLDS_AGAIN)),
]

MUTANTS = REGISTER + PERMIT + WINDOW

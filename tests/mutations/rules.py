"""The checkers' rules that the tables name, by their beginnings, as the checkers word them."""

# check_calls.cc
BEATS_RISE = "the beat rises by one with every attempt of a process"
OWN_CALL_NUMBER = "every store call has a number of its own"
ONE_CALL = "one store call is under way at a time"
OWN_RECORD = "a record says who wrote it, for which lease, with which TTL and peers"
SEEN_VERSION = "a write replaces a version that was seen"
TIME_TO_ANSWER = "every store call has time to be answered"
UNKNOWN_KEPT = "members of a record that this program does not know are kept"
# check_calm.cc
FREE_AT_ONCE = "a free lease is taken at once"
OUTAGE_INVISIBLE = "a store outage shorter than about three quarters of the TTL is invisible"
TAKEN_IN_TIME = "a lease that is free is taken in time"
# check_expiry.cc
FROM_A_WRITE = "a permit comes only from a write that the store took"
LATE_RENEWS = "an acquisition confirmed more than one renew_interval after it was sent renews first"
OVER_IS_OVER = "a term that is over is never revived"
PERMIT_END = "the permit ends at the first sending of the confirmed write + TTL - margin"
# check_liveness.cc
HOLDS_AGAIN = "when faults are over and an application is ready, somebody holds again in time"
# check_loss.cc
LOSS_AT_ONCE = "a definitive loss shuts the gates at once"
NO_ANSWER_NO_LOSS = "a store that does not answer loses nobody the lease before expiry"
# check_lost_time.cc
LOST_TIME = "answers to requests sent before lost time confer no permit"
NOTHING_CUT = "lost time holds admissions; nothing is cut"
# check_overlap.cc
ONE_PERMIT = "two instances never hold a permit for the same lease at the same true time"
# check_release.cc
IRREVOCABLE = "a release that is sent is irrevocable"
PERMIT_BEFORE_RELEASE = "the permit ends before the first byte of a release is sent"
STATE_RELEASED = "a release writes the state released"
# check_replay.cc
REPLAY = "same start, same events, same times: same effects"
# check_step_down.cc
ANSWER_SENT = "the answer repeats the expected node id and token as sent"
ANSWER_TRUE = "the answer says who holds now"
ANSWERED_ONCE = "every step-down request is answered exactly once"
BEGINS_AT_ONCE = "a step-down that is asked for begins at once"
STALE_ANSWERED = "a stale precondition is answered failed_precondition at once"
STALE_NOTHING = "a stale precondition changes nothing"
# check_stop.cc
STOPS = "after SIGTERM a process steps down, releases and stops"
# check_takeover.cc
GONE_BACK = "a store that has gone back is waited out for one window of the longest TTL known"
NO_PERMIT_YET = "a process acquires only when it has no permit"
NOTHING_TAKEN_BACK = "after SIGTERM nothing is taken back"
READY = "an application that is not ready does not compete"
UNUSABLE_LEFT = "a record of a higher format or with a bad ttl_ms is never overwritten"
WINDOW = "a standby takes over when the version has not changed in its sight for one TTL"
# check_tokens.cc
TOKENS_RISE = "fencing tokens rise by every acquisition and are never reused"
# check_valve.cc
GATES_TOLD = "the gates are told every change of the valve"
GRACE_OVER = "when grace is over what is left is shut"
GRACE_TOLD = "the grace told to listeners is never more than the time to expiry"
LAST_WORD = "a stopped engine has nothing to say"
SHUTS = "a gate shuts at expiry"
# node.cc
AT_REST = "an engine at rest wants its next Tick later than now"
# check_drain.cc
DRAIN_FINAL = "a drain that was asked for ends in a release"
DRAIN_FIRST = "a release waits until every gate has drained or grace is over"
DRAIN_HEALS_FIRST = "a drain for failed renewals releases nothing while a renewal could end it"
JOINS = "a second request for the same term joins the first"
START_FAILED = "a takeover that fails after the lease is held releases it"
UNREADY_STEPS_DOWN = "an application that stays unready steps down"
# check_follow.cc
AMBIGUOUS_READ = "after an ambiguous write a read follows at once"
BLIND_READ = "a conflict without a record is read at once"
BLIND_SHUTS = "a conflict that none of our own attempts can explain shuts first"
LOST_TIME_RENEWS = "after lost time a renewal is sent at once"
RESOLVED_FIRST = "SIGTERM in acquiring resolves the attempt first"
# check_give_back.cc
ANOTHERS_TURN = "after a step-down with take_back = false it is another's turn"
HOLD_OFF = "the lease is taken back after the hold-off, and not before"
RELEASE_RETRIED = "a release is retried until released, or another holder, or one TTL"
# check_renewal.cc
ATTEMPT_COUNTS = "a record that bears one of our attempts counts as success from its sending"
FAILS_CLOSED = "when the read after the last failed round fails too, the drain begins"
FORCED_DRAIN = "the drain is forced at the last confirmed sending + max(TTL - margin - grace, 7/8 TTL)"
GOES_ON = "a holder goes on renewing, also while work in flight finishes"
HEALS = "a drain for failed renewals ends when a renewal succeeds"
LAST_ATTEMPT = "the last attempt before the forced drain may use all the time that is left"
NOT_TOO_SOON = "a drain for failed renewals waits for max_renew_fails rounds, three quarters of TTL"
WOBBLE = "a wobble surrenders nothing"
# check_budget.cc
BUDGET = "the number of store calls keeps to the budget that the README states"
# check_regression.cc
EXHAUSTED_TOLD = "at the largest token acquisitions stop with token_exhausted"
REFUSE_STOPS = 'on_token_regression = "refuse" makes a lower token a stop'
REGRESSION_TOLD = "a store that shows a lower token raises token_regression"
UNJUDGED_LEFT = "a record that this program cannot judge is left as it is"
# check_start.cc
LOSS_REASON = "a loss is told with its reason"
START_DEAD = "a dead holder's record is taken over, fail_if_held or not"
START_HELD = "with fail_if_held a record that changes within one window fails the start"
# check_fence.cc
FENCE_LETS_PASS = "a fence lets the highest token pass"
# check_gates.cc
ADMITTED_OPEN = "nothing is admitted but under an open permit, by a fresh look at the clock"
CUT_BEFORE_RELEASE = "every gate is empty or cut before the release is sent"
DRAIN_WAITS = "a drain waits for what is in flight"
OVERTAKES = "nobody new overtakes who is held"
PASSES = "what is in flight passes under the permit only"
TOKEN_OF_TERM = "what is admitted bears the token of the term"
# check_requests.cc
ACKNOWLEDGED = "what is acknowledged was done"
ANSWERED = "every request is answered once"
LOSES_NOTHING = "planned moves lose nothing"
ONCE = "a request that is not idempotent is never executed twice"
REFUSED_NOT_DONE = "what is refused is not done"
# CHECKs of the source itself
TICKETS = "CHECK failed: in_flight_ == 0"

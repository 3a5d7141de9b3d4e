// The checkers: each an independent reading of a part of DESIGN 2, in its own file. They take
// nothing from the engine but its events, effects and permit, and know from the register what
// really happened.
#pragma once

#include <memory>
#include <vector>

#include "simulation/facts.h"
#include "simulation/scenario.h"

namespace leasehold::simulation {

// At most one permit at any true instant, as far as DESIGN 2.2 promises it (check_overlap.cc).
std::unique_ptr<Checker> MakeOverlapChecker(Judge& judge);
// Fencing tokens only rise (check_tokens.cc).
std::unique_ptr<Checker> MakeTokenChecker(Judge& judge);
// A permit ends in time, and a term that is over stays over (check_expiry.cc).
std::unique_ptr<Checker> MakeExpiryChecker(Judge& judge);
// Nothing is taken before its time (check_takeover.cc).
std::unique_ptr<Checker> MakeTakeoverChecker(Judge& judge);
// No permit when a release goes out; nothing written under the term after it (check_release.cc).
std::unique_ptr<Checker> MakeReleaseChecker(Judge& judge);
// A definitive loss shuts the gates at once (check_loss.cc).
std::unique_ptr<Checker> MakeLossChecker(Judge& judge);
// After lost time nothing is admitted before a renewal is confirmed (check_lost_time.cc).
std::unique_ptr<Checker> MakeLostTimeChecker(Judge& judge);
// The valve tells the permit's truth and a wake-up is booked for every end (check_valve.cc).
std::unique_ptr<Checker> MakeValveChecker(Judge& judge);
// One store call at a time, rising beats, records of our own making (check_calls.cc).
std::unique_ptr<Checker> MakeCallChecker(Judge& judge);
// Stale preconditions change nothing; every request is answered once (check_step_down.cc).
std::unique_ptr<Checker> MakeStepDownChecker(Judge& judge);
// After SIGTERM: stopped within a bound, and nothing taken back (check_stop.cc).
std::unique_ptr<Checker> MakeStopChecker(Judge& judge);
// Planned drains, their order and their end (check_drain.cc).
std::unique_ptr<Checker> MakeDrainChecker(Judge& judge);
// What is told and done after a release: hold-off, take_back (check_give_back.cc).
std::unique_ptr<Checker> MakeGiveBackChecker(Judge& judge);
// Renewal: what extends, what drains and when, what heals (check_renewal.cc).
std::unique_ptr<Checker> MakeRenewalChecker(Judge& judge);
// What must follow at once: reads after unclear writes, renewals after lost time (check_follow.cc).
std::unique_ptr<Checker> MakeFollowChecker(Judge& judge);
// The number of store calls (check_budget.cc).
std::unique_ptr<Checker> MakeBudgetChecker(Judge& judge);
// Lower tokens, used-up tokens and records of others' making (check_regression.cc).
std::unique_ptr<Checker> MakeRegressionChecker(Judge& judge);
// fail_if_held, and the reasons of losses (check_start.cc).
std::unique_ptr<Checker> MakeStartChecker(Judge& judge);
// When faults are over somebody holds within a bound (check_liveness.cc).
std::unique_ptr<Checker> MakeLivenessChecker(Judge& judge, const Scenario& scenario);
// Tight bounds of the calm runs (check_calm.cc).
std::unique_ptr<Checker> MakeCalmChecker(Judge& judge, const Scenario& scenario);
// Once at most, done if acknowledged, not done if refused, answered in time (check_requests.cc).
std::unique_ptr<Checker> MakeRequestChecker(Judge& judge, const Scenario& scenario);
// Admission, overtaking, drains, and what is in flight at a release (check_gates.cc).
std::unique_ptr<Checker> MakeGateChecker(Judge& judge);
// What a resource behind a fence sees (check_fence.cc).
std::unique_ptr<Checker> MakeFenceChecker(Judge& judge);
// The same events give the same effects (check_replay.cc). Costs memory and time: for samples.
std::unique_ptr<Checker> MakeReplayChecker(Judge& judge);

}  // namespace leasehold::simulation

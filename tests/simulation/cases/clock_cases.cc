// Clocks, crashes and stopped processes (cases 3, 6, 12).
#include "simulation/cases/case_world.h"

namespace leasehold::simulation {
namespace {

using base::Duration;
using lease::Notice;
using lease::Reason;
using lease::Valve;
using Said = AnswerFact::Kind;

class ClockCase : public CaseWorld {};

TEST_F(ClockCase, AWallClockThatIsSetByAnHourMovesNobodyAndRefusesNothing) {
  for (const int64_t hours : {+1, -1}) {
    scenario() = {};
    Nodes(2, Duration::Seconds(3));
    At(Ms(5000), [this, hours] { node(0).StepWallClock(hours * 3'600'000); });
    At(Ms(6000), [this, hours] { node(1).StepWallClock(hours * 3'600'000); });
    Run(Ms(12000));
    EXPECT_EQ(journal().All(Notice::kAcquired).size(), 1U);
    EXPECT_FALSE(journal().First(Notice::kLost));
    EXPECT_EQ(journal().Answers(Said::kRefused, Ms(1000), scenario().end), 0U);
    EXPECT_EQ(journal().Answers(Said::kShut, Ms(1000), scenario().end), 0U);
    ForgetScript();
  }
}

TEST_F(ClockCase, AWarmStandbyHoldsOneTtlAndOnePollAfterTheCrashedHoldersLastRenewal) {
  Nodes(2, Duration::Seconds(3));
  At(Ms(7000), [this] { node(0).Crash(); });
  Run(Ms(7001));
  const auto taken = journal().First(Notice::kAcquired, Ms(7000));
  ASSERT_TRUE(taken);
  EXPECT_EQ(taken->node, 1);
  const TrueNs renewed = journal().LastSent(0, Ms(7000));
  EXPECT_LE(taken->at, renewed + ttl() + timing().poll_interval.nanos() + Ms(300));
  EXPECT_GE(taken->at, renewed + ttl());
}

TEST_F(ClockCase, AColdStandbyHoldsOneTtlAndOnePollAfterItsOwnStart) {
  Nodes(2, Duration::Seconds(3));
  scenario().nodes[1].starts_at = Ms(7000);
  At(Ms(6900), [this] { node(0).Crash(); });
  Run(Ms(7001));
  const auto taken = journal().First(Notice::kAcquired, Ms(7000));
  ASSERT_TRUE(taken);
  EXPECT_EQ(taken->node, 1);
  EXPECT_LE(taken->at, Ms(7000) + ttl() + timing().poll_interval.nanos() + kSlack);
}

// Whether timers or sockets come first when the process wakes is drawn: both, over some seeds.
TEST_F(ClockCase, AProcessStoppedForLongerThanItsPermitServesNothingOfWhatWaitsInItsSockets) {
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    scenario() = {};
    Nodes(2, Duration::Seconds(3));
    scenario().seed = seed;
    Clients(200);
    ForAll([](NodePlan& node) { node.gates[0].standby = gate::StandbyPolicy::kReject; });
    ForAll([](NodePlan& node) { node.gates[0].peer_listen = {}; });
    At(Ms(6000), [this] { node(0).Freeze(Ms(10000)); });
    Run(Ms(10001));
    const auto lost = journal().First(Notice::kLost, Ms(6000));
    ASSERT_TRUE(lost);
    EXPECT_EQ(lost->node, 0);
    EXPECT_EQ(lost->reason, Reason::kHostFrozen);
    EXPECT_GE(lost->at, Ms(10000));
    // What it had passed to its application before may still be executed there.
    ASSERT_TRUE(journal().LastExecuted(0));
    EXPECT_LT(*journal().LastExecuted(0), Ms(6000) + kSlack);
    EXPECT_TRUE(journal().TokensOnlyRise());
    ForgetScript();
  }
}

TEST_F(ClockCase, ASuspendedMachineHoldsWhatComesUntilItsRenewalIsConfirmed) {
  Nodes(2, Duration::Seconds(3));
  Clients(200);
  At(Ms(6000), [this] { node(0).Suspend(Ms(8500)); });  // its boot clock stands still
  Run(Ms(9000));
  EXPECT_TRUE(journal().FirstTurn(Valve::kHolding, Ms(8500)));
  EXPECT_TRUE(journal().TokensOnlyRise());
}

}  // namespace
}  // namespace leasehold::simulation

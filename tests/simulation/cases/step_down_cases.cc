// Step-downs, listeners that never answer, applications that die (cases 11, 14, 16). Hooks and the
// processes they run are unit/app's and integration's business.
#include "simulation/cases/case_world.h"

namespace leasehold::simulation {
namespace {

using base::Duration;
using lease::Notice;
using lease::Reason;
using lease::Valve;
using Said = AnswerFact::Kind;

class StepDownCase : public CaseWorld {};

TEST_F(StepDownCase, AListenerThatNeverAnswersDelaysAStepDownByTheGraceAndNoMore) {
  Nodes(2, Duration::Seconds(3));
  scenario().listeners = Scenario::Listeners::kNeverDone;
  At(Ms(5000), [this] { StepDownHolder(); });
  Run(Ms(9000));
  const auto closed = journal().FirstTurn(Valve::kClosed, Ms(5000));
  ASSERT_TRUE(closed);
  EXPECT_GE(closed->at, Ms(5000) + timing().grace.nanos());
  EXPECT_LE(closed->at, Ms(5000) + timing().grace.nanos() + kSlack);
  const auto taken = journal().First(Notice::kAcquired, Ms(5000));
  ASSERT_TRUE(taken);
  EXPECT_EQ(taken->node, 1);
}

TEST_F(StepDownCase, AListenerThatNeverAnswersDelaysNoLoss) {
  Nodes(2, Duration::Seconds(3));
  scenario().listeners = Scenario::Listeners::kNeverDone;
  ForAll([](NodePlan& node) { node.options.step_down_grace = Duration::Seconds(20); });
  ForAll([](NodePlan& node) { node.gates[0].hold_timeout = Duration::Seconds(25); });
  At(Ms(6000), [this] { network().CutOff(0, Ms(14000)); });
  Run(Ms(14000));
  const auto closed = journal().FirstTurn(Valve::kClosed, Ms(6000));
  ASSERT_TRUE(closed);
  const TrueNs end = journal().LastSent(0, Ms(6000)) + (timing().ttl - timing().margin).nanos();
  EXPECT_LE(closed->at, end + kSlack);
  EXPECT_TRUE(journal().TokensOnlyRise());
}

TEST_F(StepDownCase, AStepDownWithNothingInFlightMovesTheLeaseAtOnceAndLosesNoRequest) {
  Nodes(2, Duration::Seconds(3));
  Clients(200);
  At(Ms(5000), [this] { StepDownHolder(); });
  Run(Ms(9000));
  const auto taken = journal().First(Notice::kAcquired, Ms(5000));
  ASSERT_TRUE(taken);
  EXPECT_EQ(taken->node, 1);
  EXPECT_LE(taken->at, Ms(5000) + timing().poll_interval.nanos() + kSlack);
  EXPECT_EQ(journal().Answers(Said::kRefused, Ms(1000), scenario().end), 0U);
  EXPECT_EQ(journal().Answers(Said::kShut, Ms(1000), scenario().end), 0U);
  ASSERT_EQ(journal().step_downs().size(), 1U);
  EXPECT_EQ(journal().step_downs()[0].token, 2U);
}

TEST_F(StepDownCase, ADeadApplicationCostsUnreadyAfterAndHalfASecond) {
  Nodes(2, Duration::Seconds(3));
  Clients(200);
  At(Ms(5000), [this] { node(0).SetAppReady(false); });
  Run(Ms(20000));
  const auto draining = journal().First(Notice::kDraining, Ms(5000));
  ASSERT_TRUE(draining);
  EXPECT_EQ(draining->reason, Reason::kAppUnready);
  const auto taken = journal().First(Notice::kAcquired, Ms(5000));
  ASSERT_TRUE(taken);
  EXPECT_EQ(taken->node, 1);
  EXPECT_LE(taken->at, Ms(5000) + scenario().nodes[0].unready_after +
                           timing().poll_interval.nanos() + Ms(500));
  EXPECT_EQ(journal().All(Notice::kAcquired).size(), 2U) << "it never goes back to the dead one";
}

TEST_F(StepDownCase, AnInstanceWhoseApplicationNeverCameUpDoesNotCompete) {
  Nodes(2, Duration::Seconds(3));
  At(0, [this] { node(1).SetAppReady(false); });
  At(Ms(5000), [this] { node(0).Crash(); });
  At(Ms(15000), [this] { node(0).Start(); });
  Run(Ms(15001));
  for (const Told& acquired : journal().All(Notice::kAcquired)) EXPECT_EQ(acquired.node, 0);
  EXPECT_EQ(journal().All(Notice::kAcquired).size(), 2U);
}

TEST_F(StepDownCase, AnApplicationThatIsBrokenEverywhereIsSteppedDownForOnceEachAndNoMore) {
  Nodes(2, Duration::Seconds(3));
  At(Ms(5000), [this] {
    node(0).SetAppReady(false);
    node(1).SetAppReady(false);
  });
  At(Ms(40000), [this] { node(1).SetAppReady(true); });
  Run(Ms(40001));
  size_t drains = 0;
  for (const Told& drain : journal().All(Notice::kDraining)) {
    if (drain.at < Ms(40000)) ++drains;
  }
  EXPECT_EQ(drains, 1U) << "nobody was ready, so nobody had anything to gain";
  const auto again = journal().First(Notice::kAcquired, Ms(40000));
  ASSERT_TRUE(again);
  EXPECT_EQ(again->node, 1);
}

TEST_F(StepDownCase, TwoHundredStepDownsWithSlowRepliesLeaveNoRenewalOfATermThatIsReleased) {
  Nodes(2, Duration::Seconds(2));
  scenario().store.tail = 1;  // every leg takes up to 0.15 s: 0 to 300 ms a call
  scenario().store.tail_max = Ms(150);
  constexpr int kMoves = 200;
  for (int i = 0; i < kMoves; ++i) At(Ms(5000) + i * Ms(5000), [this] { StepDownHolder(); });
  Run(Ms(5000) * (kMoves + 1));
  EXPECT_EQ(journal().writes_after_release(), 0U);
  EXPECT_GE(journal().All(Notice::kAcquired).size(), kMoves + 1U);
  EXPECT_LE(journal().LongestGap(Ms(3000), scenario().faults_end), ttl());
  EXPECT_TRUE(journal().TokensOnlyRise());
}

}  // namespace
}  // namespace leasehold::simulation

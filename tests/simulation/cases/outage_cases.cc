// Outages: a holder that cannot reach the store, or is refused by it (cases 1, 5, 7, 9, 10, 15).
#include "simulation/cases/case_world.h"

namespace leasehold::simulation {
namespace {

using base::Duration;
using lease::Notice;
using lease::Reason;
using lease::Valve;
using Said = AnswerFact::Kind;

class OutageCase : public CaseWorld {
 protected:
  // The permit's end for what `node` wrote before `before`.
  TrueNs PermitEnd(int node, TrueNs before) {
    return journal().LastSent(node, before) + (timing().ttl - timing().margin).nanos();
  }
};

TEST_F(OutageCase, ACutOffHolderAnswersNobodyAfterItsPermitAndTheNextOneTakesOver) {
  Nodes(2, Duration::Seconds(3));
  Clients(200);
  At(Ms(6000), [this] { network().CutOff(0, Ms(16000)); });
  Run(Ms(16000));
  const auto last = journal().LastPassed(0);
  const auto first = journal().FirstExecuted(1);
  ASSERT_TRUE(last && first);
  EXPECT_GT(*last, Ms(6000)) << "an outage is no reason to stop at once";
  EXPECT_LE(*last, PermitEnd(0, Ms(6000)));
  EXPECT_LT(*last, *first) << "the merged log of all clients overlaps";
  EXPECT_LE(*journal().LastExecuted(0), *first);
  EXPECT_TRUE(journal().TokensOnlyRise());
  EXPECT_LE(*first,
            journal().LastSent(0, Ms(6000)) + ttl() + timing().poll_interval.nanos() + Ms(300));
}

TEST_F(OutageCase, AFrozenStoreEndsAPermitWithoutAnAnswerAndServesSomebodyWhenItWakes) {
  Nodes(2, Duration::Seconds(3));
  Clients(200);
  At(Ms(6000), [this] { network().StoreAway(Ms(12000), Network::Away::kFrozen); });
  Run(Ms(12000));
  const auto closed = journal().FirstTurn(Valve::kClosed, Ms(6000));
  ASSERT_TRUE(closed);
  EXPECT_LE(closed->at, PermitEnd(0, Ms(6000)) + kSlack);
  EXPECT_EQ(journal().Answers(Said::kDone, PermitEnd(0, Ms(6000)) + kSlack, Ms(12000)), 0U);
  const auto again = journal().First(Notice::kAcquired, Ms(12000));
  ASSERT_TRUE(again);
  EXPECT_LE(again->at, Ms(12000) + ttl() + timing().poll_interval.nanos() + Ms(300));
  EXPECT_GE(again->token, 2U);
  EXPECT_TRUE(journal().TokensOnlyRise());
}

TEST_F(OutageCase, ListenersHearOfARiskAndOfTheDrainBeforeThePermitEnds) {
  Nodes(1, Duration::Seconds(3));
  At(Ms(500), [this] { network().StoreAway(Ms(8000), Network::Away::kFrozen); });
  Run(Ms(8000));
  const TrueNs end = PermitEnd(0, Ms(500));
  const auto at_risk = journal().First(Notice::kAtRisk);
  const auto draining = journal().First(Notice::kDraining);
  const auto over = journal().FirstTurn(Valve::kClosed);
  ASSERT_TRUE(at_risk && draining && over);
  EXPECT_LT(at_risk->at, draining->at);
  EXPECT_EQ(draining->reason, Reason::kRenewalsFailed);
  EXPECT_LT(draining->at, end);
  EXPECT_LE(over->at, end + kSlack);
}

TEST_F(OutageCase, AHolderThatIsRefusedIsShutAtItsPermitsEndAndComesBackWithoutARestart) {
  Nodes(1, Duration::Seconds(3));
  At(Ms(4000), [this] { network().StoreRefuses(Ms(10000)); });
  Run(Ms(10000));
  const auto closed = journal().FirstTurn(Valve::kClosed, Ms(4000));
  ASSERT_TRUE(closed);
  EXPECT_LE(closed->at, PermitEnd(0, Ms(4000)) + kSlack);
  EXPECT_TRUE(journal().First(Notice::kStoreDegraded, Ms(4000)));
  const auto again = journal().First(Notice::kAcquired, Ms(10000));
  ASSERT_TRUE(again);
  EXPECT_LE(again->at, Ms(10000) + ttl());
  EXPECT_EQ(again->process, 0) << "the process is the same";
  EXPECT_EQ(again->token, 2U);
}

TEST_F(OutageCase, TwoUnclearAnswersMoveNobody) {
  Nodes(2, Duration::Seconds(3));
  At(Ms(4000), [this] { network().AnswerUnclear(0, 2); });
  Run(Ms(9000));
  EXPECT_EQ(journal().All(Notice::kAcquired).size(), 1U);
  EXPECT_FALSE(journal().First(Notice::kDraining));
  EXPECT_EQ(journal().Answers(Said::kRefused, Ms(1000), scenario().end), 0U);
  EXPECT_EQ(journal().Answers(Said::kShut, Ms(1000), scenario().end), 0U);
}

TEST_F(OutageCase, AStoreOutageOfFourSecondsIsInvisibleWithATtlOfTen) {
  for (const auto how : {Network::Away::kFrozen, Network::Away::kUnreachable}) {
    scenario() = {};
    Nodes(2, Duration::Seconds(10));
    Clients(50);
    At(Ms(20000), [this, how] { network().StoreAway(Ms(24000), how); });
    Run(Ms(30000));
    EXPECT_EQ(journal().All(Notice::kAcquired).size(), 1U);
    EXPECT_GT(journal().Answers(Said::kDone, Ms(20000), Ms(24000)), 150U);
    EXPECT_EQ(journal().Answers(Said::kRefused, Ms(1000), scenario().end), 0U);
    EXPECT_EQ(journal().Answers(Said::kShut, Ms(1000), scenario().end), 0U);
    ForgetScript();
  }
}

TEST_F(OutageCase, AfterEachOfTwentyOutagesTheSameProcessesHaveAHolderWithinOneTtl) {
  Nodes(2, Duration::Seconds(3));
  constexpr int kOutages = 20;
  std::vector<TrueNs> backs;
  for (int i = 0; i < kOutages; ++i) {
    const TrueNs begins = Ms(6000) + i * Ms(12000);
    backs.push_back(begins + Ms(3500));
    At(begins, [this, i, back = backs.back()] {
      network().StoreAway(back, i % 2 == 0 ? Network::Away::kFrozen : Network::Away::kUnreachable);
    });
  }
  Run(backs.back());
  for (const TrueNs back : backs) {
    const auto again = journal().First(Notice::kAcquired, back);
    ASSERT_TRUE(again) << "nobody competes after the outage that ended at " << Seconds(back);
    EXPECT_LE(again->at, back + ttl() + timing().poll_interval.nanos() + kSlack);
  }
  for (const Told& told : journal().told()) EXPECT_LT(told.process, 2) << "a process was restarted";
}

}  // namespace
}  // namespace leasehold::simulation

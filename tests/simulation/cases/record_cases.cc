// The record: overwritten, lost, gone back; replies that are lost (cases 2, 4, 8, 13). Eviction
// policies and full stores are the adapters' business (unit/store, store_contract).
#include "simulation/cases/case_world.h"

namespace leasehold::simulation {
namespace {

using base::Duration;
using lease::Notice;
using lease::Reason;
using lease::Valve;
using Said = AnswerFact::Kind;

class RecordCase : public CaseWorld {
 protected:
  // Somebody else holds from now on.
  void Usurp() {
    Overwrite([](lease::Record& record) {
      record.node_id = "somebody-else";
      record.process_id = "usurper";
      record.token += 1;
      record.beat += 1;
      record.peers.clear();
    });
  }
};

TEST_F(RecordCase, AnotherHolderInTheRecordShutsTheGateWithinOneRenewInterval) {
  Nodes(1, Duration::Seconds(3));
  At(Ms(5000), [this] { Usurp(); });
  Run(Ms(6500));
  const auto lost = journal().First(Notice::kLost);
  const auto closed = journal().FirstTurn(Valve::kClosed);
  ASSERT_TRUE(lost && closed);
  EXPECT_EQ(lost->reason, Reason::kSuperseded);
  EXPECT_EQ(closed->at, lost->at);
  EXPECT_LE(lost->at, Ms(5000) + timing().renew_interval.Scaled(1.125).nanos() + kSlack);
  const auto again = journal().First(Notice::kAcquired, lost->at);
  ASSERT_TRUE(again);
  EXPECT_EQ(again->token, 3U);
  EXPECT_GE(again->at, Ms(5000) + ttl()) << "taken before the other's TTL was over";
  EXPECT_EQ(journal().Answers(Said::kDone, lost->at + kSlack, again->at), 0U);
}

TEST_F(RecordCase, ARenewalWhoseReplyIsLostCostsNothing) {
  Nodes(2, Duration::Seconds(3));
  At(Ms(4000), [this] { network().LoseReplies(0, 1); });
  Run(Ms(9000));
  ASSERT_EQ(journal().All(Notice::kAcquired).size(), 1U);
  EXPECT_FALSE(journal().First(Notice::kDraining));
  EXPECT_FALSE(journal().First(Notice::kLost));
  EXPECT_EQ(journal().Answers(Said::kShut, Ms(1000), scenario().end), 0U);
}

TEST_F(RecordCase, AnAcquisitionWhoseReplyIsLostIsHeldUnderTheSameToken) {
  Nodes(1, Duration::Seconds(3));
  At(0, [this] { network().LoseReplies(0, 1); });
  Run(Ms(9000));
  ASSERT_EQ(journal().All(Notice::kAcquired).size(), 1U);
  EXPECT_EQ(journal().All(Notice::kAcquired)[0].token, 1U);
}

TEST_F(RecordCase, ALostReplyAndAnotherHolderInTheRecordShutTheGateAtTheRead) {
  Nodes(1, Duration::Seconds(3));
  TrueNs usurped = 0;
  At(Ms(4000), [this] { network().LoseReplies(0, 1); });
  // The renewal whose reply is lost comes within one interval; then the record changes.
  for (int i = 0; i < 200; ++i) {
    At(Ms(4000) + i * Ms(5), [this, &usurped] {
      if (usurped != 0 || world().store().current()->at < Ms(4000)) return;
      usurped = world().now();
      Usurp();
    });
  }
  Run(Ms(6000));
  const auto lost = journal().First(Notice::kLost);
  ASSERT_TRUE(lost && usurped != 0);
  EXPECT_EQ(lost->reason, Reason::kSuperseded);
  EXPECT_LE(lost->at, usurped + timing().call_timeout.nanos() + 2 * kLeg + kSlack);
}

TEST_F(RecordCase, ARecordThatVanishesUnderAHolderIsALossAndNeverTheSameTermAgain) {
  Nodes(2, Duration::Seconds(3));
  At(Ms(5000), [this] { network().LoseWrites(world().store().writes()); });
  Run(Ms(7000));
  const auto lost = journal().First(Notice::kLost);
  ASSERT_TRUE(lost);
  EXPECT_EQ(lost->reason, Reason::kAbsent);
  const auto again = journal().First(Notice::kAcquired, lost->at);
  ASSERT_TRUE(again);
  EXPECT_EQ(again->token, 2U);
  EXPECT_TRUE(journal().TokensOnlyRise());
}

TEST_F(RecordCase, ATokenLowerThanOneSeenIsToldAndNeverHandedOutAgain) {
  Nodes(2, Duration::Seconds(3));
  size_t writes_of_the_first_term = 0;
  At(Ms(3000), [this, &writes_of_the_first_term] {
    writes_of_the_first_term = world().store().writes();
    StepDownHolder();
  });
  At(Ms(9000), [this, &writes_of_the_first_term] {
    network().LoseWrites(world().store().writes() - writes_of_the_first_term);
  });
  Run(Ms(10000));
  EXPECT_TRUE(journal().First(Notice::kTokenRegression, Ms(9000)));
  const auto again = journal().First(Notice::kAcquired, Ms(9000));
  ASSERT_TRUE(again);
  EXPECT_EQ(again->token, 3U) << "1 is what the store shows, 2 was the term that it forgot";
  EXPECT_TRUE(journal().TokensOnlyRise());
}

TEST_F(RecordCase, AHundredAcquisitionsAndReleasesRaiseTheTokenByOneEach) {
  Nodes(2, Duration::Seconds(1));
  constexpr int kMoves = 100;
  for (int i = 0; i < kMoves; ++i) At(Ms(2000) + i * Ms(2000), [this] { StepDownHolder(); });
  Run(Ms(2000) * (kMoves + 1));
  const std::vector<Told> acquired = journal().All(Notice::kAcquired);
  ASSERT_EQ(acquired.size(), kMoves + 1U);
  for (size_t i = 0; i < acquired.size(); ++i) EXPECT_EQ(acquired[i].token, i + 1);
  EXPECT_TRUE(journal().TokensOnlyRise());
  EXPECT_EQ(journal().Answers(Said::kShut, Ms(1000), scenario().end), 0U);
}

}  // namespace
}  // namespace leasehold::simulation

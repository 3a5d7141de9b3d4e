// GateCore and HoldQueue: admission, holding, in flight, drains; with chosen times and permits.
#include "gate/gate_core.h"

#include <gtest/gtest.h>

#include <memory>
#include <utility>
#include <vector>

#include "lib/permit_for_test.h"

namespace leasehold::gate {
namespace {

using base::Duration;
using base::MonoTime;
using lease::Valve;

MonoTime At(int64_t seconds) { return MonoTime::FromNanos(seconds * 1000000000); }

struct Waiting : HoldEntry {};

class GateCoreTest : public ::testing::Test {
 protected:
  void SetUp() override {
    options_.standby = StandbyPolicy::kReject;
    options_.hold_timeout = Duration::Seconds(10);
    options_.max_held = 2;
    Build();
  }
  void Build() { core_ = std::make_unique<GateCore>(options_); }
  // Engine and gate of one mind, as after the driver carried a ValveEffect out.
  void Both(Valve valve, MonoTime now, MonoTime expiry = At(100), MonoTime drain_end = At(90)) {
    permit_.Set(valve, expiry);
    core_->SetValve(valve, now, drain_end, Duration::Seconds(2));
  }
  Decision Admit(MonoTime now) {
    Ticket& ticket = tickets_.emplace_back();
    Decision decision = core_->Admit(now, permit_.permit, ticket);
    if (decision.verdict != Verdict::kAdmit) {
      tickets_.pop_back();
    }
    return decision;
  }
  void TearDown() override { tickets_.clear(); }

  Options options_;
  lease::PermitForTest permit_;
  std::unique_ptr<GateCore> core_;
  std::vector<Ticket> tickets_;  // destroyed before core_
};

TEST_F(GateCoreTest, ANewGateRefusesBecauseItIsClosed) {
  Decision decision = Admit(At(1));
  EXPECT_EQ(decision.verdict, Verdict::kRefuse);
  EXPECT_EQ(decision.refusal, Refusal::kClosed);
  EXPECT_EQ(core_->refusals(Refusal::kClosed), 1u);
}

TEST_F(GateCoreTest, AnOpenGateWithARunningPermitAdmitsAndCountsInFlight) {
  Both(Valve::kOpen, At(1));
  EXPECT_EQ(Admit(At(2)).verdict, Verdict::kAdmit);
  EXPECT_EQ(Admit(At(3)).verdict, Verdict::kAdmit);
  EXPECT_EQ(core_->in_flight(), 2u);
  tickets_.pop_back();
  EXPECT_EQ(core_->in_flight(), 1u);
}

TEST_F(GateCoreTest, FinishingATicketTwiceCountsOnce) {
  Both(Valve::kOpen, At(1));
  Admit(At(2));
  Admit(At(2));
  tickets_[0].Finish();
  tickets_[0].Finish();
  EXPECT_EQ(core_->in_flight(), 1u);
}

TEST_F(GateCoreTest, AMovedTicketCountsOnce) {
  Both(Valve::kOpen, At(1));
  Ticket first;
  core_->Admit(At(2), permit_.permit, first);
  Ticket second(std::move(first));
  EXPECT_EQ(core_->in_flight(), 1u);
  Ticket third;
  core_->Admit(At(2), permit_.permit, third);
  third = std::move(second);
  EXPECT_EQ(core_->in_flight(), 1u);
  third.Finish();
  EXPECT_EQ(core_->in_flight(), 0u);
}

TEST_F(GateCoreTest, AnOpenGateRefusesFromTheInstantOfExpiryAndSaysSoOnce) {
  Both(Valve::kOpen, At(1), At(10));
  EXPECT_EQ(Admit(At(10) - Duration::Nanos(1)).verdict, Verdict::kAdmit);
  EXPECT_FALSE(core_->TakeSawExpired());
  Decision decision = Admit(At(10));
  EXPECT_EQ(decision.verdict, Verdict::kRefuse);
  EXPECT_EQ(decision.refusal, Refusal::kExpired);
  EXPECT_TRUE(core_->TakeSawExpired());
  Admit(At(11));
  EXPECT_FALSE(core_->TakeSawExpired()) << "one report per valve change";
}

TEST_F(GateCoreTest, AChunkAfterExpiryDoesNotPassAndSaysSo) {
  Both(Valve::kOpen, At(1), At(10));
  EXPECT_TRUE(core_->MayPass(At(9), permit_.permit));
  EXPECT_FALSE(core_->MayPass(At(10), permit_.permit));
  EXPECT_TRUE(core_->TakeSawExpired());
}

TEST_F(GateCoreTest, ARenewedPermitCanExpireAndBeReportedAgainAfterTheNextValveChange) {
  Both(Valve::kOpen, At(1), At(10));
  Admit(At(10));
  EXPECT_TRUE(core_->TakeSawExpired());
  Both(Valve::kClosed, At(11));
  Both(Valve::kOpen, At(12), At(20));
  EXPECT_FALSE(core_->TakeSawExpired());
  Admit(At(20));
  EXPECT_TRUE(core_->TakeSawExpired());
}

TEST_F(GateCoreTest, OnLossFinishPassesChunksButAdmitsNothing) {
  options_.on_loss = OnLoss::kFinish;
  Build();
  Both(Valve::kOpen, At(1), At(10));
  EXPECT_TRUE(core_->MayPass(At(11), permit_.permit));
  EXPECT_TRUE(core_->TakeSawExpired()) << "the driver must still be told";
  EXPECT_EQ(Admit(At(11)).verdict, Verdict::kRefuse);
}

TEST_F(GateCoreTest, AnOpenGateWhoseEngineHasAlreadyClosedThePermitRefuses) {
  Both(Valve::kOpen, At(1));
  permit_.Close();
  EXPECT_EQ(Admit(At(2)).refusal, Refusal::kExpired);
  EXPECT_FALSE(core_->MayPass(At(2), permit_.permit));
}

TEST_F(GateCoreTest, AClosedGateStaysClosedAlthoughThePermitIsOpen) {
  permit_.Open();
  EXPECT_EQ(Admit(At(2)).verdict, Verdict::kRefuse);
}

TEST_F(GateCoreTest, WhileARenewalIsConfirmedEvenARejectingGateHolds) {
  Both(Valve::kHolding, At(1));
  EXPECT_EQ(Admit(At(2)).verdict, Verdict::kHold);
  EXPECT_TRUE(core_->MayPass(At(2), permit_.permit)) << "what is in flight goes on";
}

TEST_F(GateCoreTest, AHoldingGateWhosePermitIsOverActsByItsStandbyPolicy) {
  Both(Valve::kHolding, At(1), At(10));
  Decision decision = Admit(At(10));
  EXPECT_EQ(decision.verdict, Verdict::kRefuse);
  EXPECT_EQ(decision.refusal, Refusal::kExpired);
}

TEST_F(GateCoreTest, ADrainingGateRefusesOrHoldsByItsStandbyPolicy) {
  Both(Valve::kDraining, At(1));
  EXPECT_EQ(Admit(At(2)).refusal, Refusal::kDraining);
  options_.standby = StandbyPolicy::kHold;
  Build();
  Both(Valve::kDraining, At(1));
  EXPECT_EQ(Admit(At(2)).verdict, Verdict::kHold);
}

TEST_F(GateCoreTest, AnEngineAlreadyDrainingIsObeyedBeforeTheGateIsTold) {
  Both(Valve::kOpen, At(1));
  permit_.Set(Valve::kDraining, At(100));
  EXPECT_EQ(Admit(At(2)).refusal, Refusal::kDraining);
}

TEST_F(GateCoreTest, AnOutboundGateAdmitsWhileDrainingUntilThePermitIsOver) {
  options_.outbound = true;
  Build();
  Both(Valve::kDraining, At(1), At(10));
  EXPECT_EQ(Admit(At(9)).verdict, Verdict::kAdmit);
  EXPECT_EQ(Admit(At(10)).refusal, Refusal::kExpired);
}

TEST_F(GateCoreTest, TheQueueIsServedInOrderWhenTheGateOpens) {
  options_.standby = StandbyPolicy::kHold;
  Build();
  Waiting first, second;
  ASSERT_EQ(Admit(At(1)).verdict, Verdict::kHold);
  ASSERT_TRUE(core_->Hold(first, At(1)));
  ASSERT_TRUE(core_->Hold(second, At(2)));
  Ticket a, b, c;
  EXPECT_EQ(core_->NextToServe(At(3), permit_.permit, a), nullptr) << "closed";
  EXPECT_EQ(core_->in_flight(), 0u) << "held is not in flight";
  Both(Valve::kOpen, At(3));
  EXPECT_EQ(core_->NextToServe(At(3), permit_.permit, a), &first);
  EXPECT_EQ(core_->NextToServe(At(3), permit_.permit, b), &second);
  EXPECT_EQ(core_->NextToServe(At(3), permit_.permit, c), nullptr);
  EXPECT_EQ(core_->in_flight(), 2u);
  EXPECT_EQ(core_->held(), 0u);
}

TEST_F(GateCoreTest, AQueueThatIsFullRefusesAndCounts) {
  Waiting first, second, third;
  ASSERT_TRUE(core_->Hold(first, At(1)));
  ASSERT_TRUE(core_->Hold(second, At(1)));
  EXPECT_FALSE(core_->Hold(third, At(1)));
  EXPECT_FALSE(third.held());
  EXPECT_EQ(core_->refusals(Refusal::kHoldFull), 1u);
}

TEST_F(GateCoreTest, AClientThatLeavesFreesItsPlace) {
  Waiting second, third;
  {
    Waiting first;
    ASSERT_TRUE(core_->Hold(first, At(1)));
    ASSERT_TRUE(core_->Hold(second, At(1)));
  }
  EXPECT_EQ(core_->held(), 1u);
  EXPECT_TRUE(core_->Hold(third, At(1)));
}

TEST_F(GateCoreTest, AHeldEntryIsRefusedAtItsOwnDeadlineAndNotBefore) {
  options_.standby = StandbyPolicy::kHold;
  Build();
  Waiting first, second;
  ASSERT_TRUE(core_->Hold(first, At(1)));
  ASSERT_TRUE(core_->Hold(second, At(5)));
  EXPECT_EQ(core_->next_hold_deadline(), At(11));
  Refusal reason = Refusal::kClosed;
  EXPECT_EQ(core_->NextToRefuse(At(11) - Duration::Nanos(1), &reason), nullptr);
  EXPECT_EQ(core_->NextToRefuse(At(11), &reason), &first);
  EXPECT_EQ(reason, Refusal::kHoldTimeout);
  EXPECT_EQ(core_->NextToRefuse(At(11), &reason), nullptr);
  EXPECT_EQ(core_->next_hold_deadline(), At(15));
  EXPECT_EQ(core_->refusals(Refusal::kHoldTimeout), 1u);
}

TEST_F(GateCoreTest, AnEntryHeldAgainKeepsItsPlaceAndItsDeadline) {
  options_.standby = StandbyPolicy::kHold;
  Build();
  Waiting first, second;
  ASSERT_TRUE(core_->Hold(first, At(1)));
  ASSERT_TRUE(core_->Hold(second, At(2)));
  Both(Valve::kOpen, At(3));
  Ticket ticket;
  ASSERT_EQ(core_->NextToServe(At(3), permit_.permit, ticket), &first);
  ticket.Finish();
  ASSERT_TRUE(core_->HoldAgain(first));
  EXPECT_EQ(first.hold_deadline(), At(11));
  EXPECT_EQ(core_->NextToServe(At(3), permit_.permit, ticket), &first);
}

TEST_F(GateCoreTest, WhatARejectingGateHeldForALateRenewalIsRefusedWhenTheLeaseIsLost) {
  Waiting first;
  Both(Valve::kHolding, At(1));
  ASSERT_TRUE(core_->Hold(first, At(1)));
  Refusal reason = Refusal::kHoldFull;
  EXPECT_EQ(core_->NextToRefuse(At(2), &reason), nullptr);
  Both(Valve::kClosed, At(2));
  EXPECT_EQ(core_->NextToRefuse(At(2), &reason), &first);
  EXPECT_EQ(reason, Refusal::kClosed);
}

TEST_F(GateCoreTest, WhatAHoldingPolicyQueuedSurvivesALoss) {
  options_.standby = StandbyPolicy::kHold;
  Build();
  Waiting first;
  Both(Valve::kHolding, At(1));
  ASSERT_TRUE(core_->Hold(first, At(1)));
  Both(Valve::kClosed, At(2));
  Refusal reason = Refusal::kClosed;
  EXPECT_EQ(core_->NextToRefuse(At(2), &reason), nullptr);
  Both(Valve::kOpen, At(3));
  Ticket ticket;
  EXPECT_EQ(core_->NextToServe(At(3), permit_.permit, ticket), &first);
}

TEST_F(GateCoreTest, ServingStopsWhenThePermitRunsOutBetweenTwoHeldEntries) {
  options_.standby = StandbyPolicy::kHold;
  Build();
  Waiting first, second;
  ASSERT_TRUE(core_->Hold(first, At(1)));
  ASSERT_TRUE(core_->Hold(second, At(1)));
  Both(Valve::kOpen, At(2), At(5));
  Ticket a, b;
  EXPECT_EQ(core_->NextToServe(At(4), permit_.permit, a), &first);
  EXPECT_EQ(core_->NextToServe(At(5), permit_.permit, b), nullptr);
  EXPECT_TRUE(core_->TakeSawExpired());
  EXPECT_TRUE(second.held());
}

TEST_F(GateCoreTest, ADrainThatStartsEmptyReportsItAtOnceAndOnlyOnce) {
  Both(Valve::kOpen, At(1));
  EXPECT_FALSE(core_->TakeBecameEmpty()) << "idle is not empty: only a drain asks";
  Both(Valve::kDraining, At(2));
  EXPECT_TRUE(core_->empty());
  EXPECT_TRUE(core_->TakeBecameEmpty());
  EXPECT_FALSE(core_->TakeBecameEmpty());
  Both(Valve::kDraining, At(3), At(100), At(50));
  EXPECT_FALSE(core_->TakeBecameEmpty()) << "a second request joins the drain under way";
}

TEST_F(GateCoreTest, ADrainIsEmptyWhenTheLastTicketFinishes) {
  Both(Valve::kOpen, At(1));
  Admit(At(1));
  Admit(At(1));
  Both(Valve::kDraining, At(2));
  EXPECT_FALSE(core_->TakeBecameEmpty());
  tickets_.pop_back();
  EXPECT_FALSE(core_->TakeBecameEmpty());
  tickets_.pop_back();
  EXPECT_TRUE(core_->TakeBecameEmpty());
}

TEST_F(GateCoreTest, ADrainThatIsCalledOffAndBegunAgainReportsEmptyAgain) {
  Both(Valve::kDraining, At(1));
  EXPECT_TRUE(core_->TakeBecameEmpty());
  Both(Valve::kOpen, At(2));
  EXPECT_FALSE(core_->empty());
  Both(Valve::kDraining, At(3));
  EXPECT_TRUE(core_->TakeBecameEmpty());
}

TEST_F(GateCoreTest, TunnelsEndAfterTheirTimeButNeverAfterTheDrain) {
  Both(Valve::kDraining, At(10), At(100), At(90));
  EXPECT_EQ(core_->tunnels_end(), At(12));
  EXPECT_EQ(core_->drain_end(), At(90));
  Both(Valve::kDraining, At(11), At(100), At(80));
  EXPECT_EQ(core_->tunnels_end(), At(12)) << "joining a drain gives tunnels no more time";
  Both(Valve::kDraining, At(11), At(100), At(11));
  EXPECT_EQ(core_->tunnels_end(), At(11));
  Both(Valve::kOpen, At(12));
  EXPECT_TRUE(core_->tunnels_end().is_never());
  EXPECT_TRUE(core_->drain_end().is_never());
}

TEST_F(GateCoreTest, AnOutboundGateStopsDelayingTheDrainButStaysOpen) {
  options_.outbound = true;
  Build();
  Both(Valve::kOpen, At(1));
  Admit(At(1));
  Both(Valve::kDraining, At(2));
  EXPECT_FALSE(core_->TakeBecameEmpty());
  core_->StopWaitingForTunnels();
  EXPECT_TRUE(core_->TakeBecameEmpty());
  EXPECT_EQ(core_->in_flight(), 1u);
  EXPECT_EQ(Admit(At(5)).verdict, Verdict::kAdmit);
  Both(Valve::kOpen, At(6));
  Both(Valve::kDraining, At(7));
  EXPECT_FALSE(core_->empty()) << "the next drain waits anew";
}

TEST_F(GateCoreTest, AnOutboundGateThatWasEmptyAndAdmitsInTheDrainReportsEmptyAgain) {
  options_.outbound = true;
  Build();
  Both(Valve::kDraining, At(2));
  EXPECT_TRUE(core_->TakeBecameEmpty());
  Admit(At(3));
  EXPECT_FALSE(core_->empty());
  tickets_.clear();
  EXPECT_TRUE(core_->TakeBecameEmpty());
}

TEST_F(GateCoreTest, EveryRefusalHasItsName) {
  EXPECT_EQ(RefusalName(Refusal::kClosed), "closed");
  EXPECT_EQ(RefusalName(Refusal::kMaxConnections), "max_connections");
  for (size_t i = 0; i < kRefusalCount; ++i) {
    EXPECT_NE(RefusalName(static_cast<Refusal>(i)), "unknown");
  }
}

TEST(HoldQueueTest, AnEntryFromTheMiddleLeavesTheOthersInOrder) {
  HoldQueue queue(10);
  Waiting a, b, c;
  ASSERT_TRUE(queue.Push(a, At(1)));
  ASSERT_TRUE(queue.Push(b, At(1)));
  ASSERT_TRUE(queue.Push(c, At(1)));
  b.LeaveQueue();
  b.LeaveQueue();
  EXPECT_EQ(queue.size(), 2u);
  EXPECT_EQ(queue.Pop(), &a);
  EXPECT_EQ(queue.Pop(), &c);
  EXPECT_EQ(queue.Pop(), nullptr);
  EXPECT_TRUE(queue.next_deadline().is_never());
}

TEST(HoldQueueTest, AnEarlierDeadlineGoesToItsPlace) {
  HoldQueue queue(10);
  Waiting a, b, c;
  ASSERT_TRUE(queue.Push(a, At(2)));
  ASSERT_TRUE(queue.Push(b, At(4)));
  ASSERT_TRUE(queue.Push(c, At(3)));
  EXPECT_EQ(queue.Pop(), &a);
  EXPECT_EQ(queue.Pop(), &c);
  EXPECT_EQ(queue.Pop(), &b);
}

TEST(HoldQueueTest, AQueueThatGoesLetsItsEntriesGo) {
  Waiting a;
  {
    HoldQueue queue(1);
    ASSERT_TRUE(queue.Push(a, At(1)));
  }
  EXPECT_FALSE(a.held());
}

}  // namespace
}  // namespace leasehold::gate

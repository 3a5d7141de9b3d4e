// The tcp gate and the lease: drains, losses, expiry.
#include <gtest/gtest.h>

#include "unit/gate/tcp_gate_fixture.h"

namespace leasehold::gate {
namespace {

using base::Duration;
using loop::Loop;

class TcpGateLeaseTest : public TcpGateFixture {};

TEST_F(TcpGateLeaseTest, ADrainStopsListeningAtOnceAndClosesTunnelsAfterDrainTunnels) {
  Build();
  ASSERT_TRUE(Open().ok());
  Pair pair = Connected();
  const base::Address address = Listening();
  const base::MonoTime start = Loop::Now();
  Drain(Duration::Seconds(20));
  EXPECT_EQ(gate_->status().listen, "");
  EXPECT_EQ(gate_->status().state, "draining");
  RawSocket* late = Client(address);
  EXPECT_TRUE(Eventually([&] { return WasReset(late); }));
  pair.client->Send("+");
  EXPECT_TRUE(Eventually([&] { return Received(pair.upstream, "1+"); })) << "still carried";
  EXPECT_TRUE(Eventually([&] { return WasReset(pair.client) && WasReset(pair.upstream); }));
  EXPECT_GE(Loop::Now() - start, drain_tunnels_);
  EXPECT_TRUE(Eventually([&] { return empty_ == 1; }));
  EXPECT_TRUE(gate_->empty());
}

TEST_F(TcpGateLeaseTest, WhatIsLeftIsResetWhenTheGateGoes) {
  options_.standby = StandbyPolicy::kHold;
  Build();
  ASSERT_TRUE(Open().ok());
  Pair pair = Connected();
  Hold();
  RawSocket* held = Client();
  EXPECT_TRUE(Eventually([&] { return gate_->status().held == 1; }));
  gate_.reset();
  EXPECT_TRUE(Eventually(
      [&] { return WasReset(pair.client) && WasReset(pair.upstream) && WasReset(held); }));
}

TEST_F(TcpGateLeaseTest, ADrainNeverGivesTunnelsMoreThanItsEnd) {
  drain_tunnels_ = Duration::Seconds(60);
  Build();
  ASSERT_TRUE(Open().ok());
  Pair pair = Connected();
  Drain(Duration::Millis(50));
  EXPECT_TRUE(Eventually([&] { return WasReset(pair.client) && WasReset(pair.upstream); }));
}

TEST_F(TcpGateLeaseTest, AnIdleGateIsEmptyAtOnceButSaysSoLater) {
  Build();
  ASSERT_TRUE(Open().ok());
  Drain(Duration::Seconds(20));
  EXPECT_TRUE(gate_->empty());
  EXPECT_EQ(empty_, 0) << "never inside SetValve";
  EXPECT_TRUE(Eventually([&] { return empty_ == 1; }));
  RunFor(Duration::Millis(20));
  EXPECT_EQ(empty_, 1);
}

TEST_F(TcpGateLeaseTest, ADrainIsEmptyWhenTheLastConnectionEndsByItself) {
  drain_tunnels_ = Duration::Seconds(60);
  Build();
  ASSERT_TRUE(Open().ok());
  Pair pair = Connected();
  Drain(Duration::Seconds(60));
  RunFor(Duration::Millis(10));
  EXPECT_EQ(empty_, 0);
  pair.client->Close();
  pair.upstream->Close();
  EXPECT_TRUE(Eventually([&] { return empty_ == 1; }));
}

TEST_F(TcpGateLeaseTest, ADrainThatIsCalledOffListensOnTheSamePortAgain) {
  drain_tunnels_ = Duration::Millis(50);
  Build();
  ASSERT_TRUE(Open().ok());
  const base::Address address = Listening();
  Pair pair = Connected();
  Drain(Duration::Seconds(20));
  ASSERT_TRUE(Open().ok());
  EXPECT_EQ(Listening(), address);
  RunFor(Duration::Millis(80));
  pair.client->Send("+");
  EXPECT_TRUE(Eventually([&] { return Received(pair.upstream, "1+"); }))
      << "the tunnels' time no longer runs";
  EXPECT_EQ(empty_, 0);
}

TEST_F(TcpGateLeaseTest, AnOutboundGateServesInTheDrainUntilItIsClosed) {
  options_.outbound = true;
  drain_tunnels_ = Duration::Millis(30);
  Build();
  ASSERT_TRUE(Open().ok());
  Pair pair = Connected();
  Drain(Duration::Seconds(20));
  EXPECT_FALSE(gate_->empty());
  EXPECT_TRUE(Eventually([&] { return empty_ == 1; })) << "it delays the move by drain_tunnels";
  pair.client->Send("+");
  EXPECT_TRUE(Eventually([&] { return Received(pair.upstream, "1+"); }));
  Pair late = Connected();
  CloseGate(false);
  EXPECT_TRUE(Eventually([&] { return WasReset(pair.client) && WasReset(late.upstream); }));
  EXPECT_EQ(gate_->status().listen, "");
}

TEST_F(TcpGateLeaseTest, AHoldingGateHoldsInTheDrainAndServesWhenTheLeaseComesBack) {
  options_.standby = StandbyPolicy::kHold;
  Build();
  ASSERT_TRUE(Open().ok());
  Drain(Duration::Seconds(20));
  RawSocket* client = Client();
  client->Send("held");
  ASSERT_TRUE(Eventually([&] { return gate_->status().held == 1; }));
  EXPECT_TRUE(gate_->empty()) << "held is not in flight";
  CloseGate(false);
  EXPECT_EQ(gate_->status().held, 1u);
  ASSERT_TRUE(Open().ok());
  RawSocket* upstream = Upstream();
  EXPECT_TRUE(Eventually([&] { return Received(upstream, "held"); }));
}

TEST_F(TcpGateLeaseTest, WhatARefusingGateHeldForARenewalIsResetByTheLoss) {
  Build();
  ASSERT_TRUE(Open().ok());
  Hold();
  RawSocket* client = Client();
  ASSERT_TRUE(Eventually([&] { return gate_->status().held == 1; }));
  CloseGate(true);
  EXPECT_TRUE(Eventually([&] { return WasReset(client); }));
}

TEST_F(TcpGateLeaseTest, ALossCutsBothSidesAtOnce) {
  Build();
  ASSERT_TRUE(Open().ok());
  Pair pair = Connected();
  CloseGate(true);
  EXPECT_EQ(gate_->status().in_flight, 0u);
  EXPECT_TRUE(WasReset(pair.client)) << "without another turn of the loop";
  EXPECT_TRUE(WasReset(pair.upstream));
}

TEST_F(TcpGateLeaseTest, AChunkAfterExpiryIsNotCarriedAlthoughNobodyToldTheGate) {
  Build();
  ASSERT_TRUE(Open().ok());
  Pair pair = Connected();
  permit_.ExpireAt(Loop::Now());  // as if the loop had been asleep past it
  pair.client->Send("too late");
  EXPECT_TRUE(Eventually([&] { return WasReset(pair.client) && WasReset(pair.upstream); }));
  EXPECT_EQ(pair.upstream->received(), "1");
  EXPECT_TRUE(Eventually([&] { return expired_ == 1; }));
  RunFor(Duration::Millis(10));
  EXPECT_EQ(expired_, 1);
}

TEST_F(TcpGateLeaseTest, BytesThatWaitBehindACallbackThatStallsPastExpiryAreNotCarried) {
  Build();
  ASSERT_TRUE(Open().ok());
  Pair one = Connected();
  Pair two = Connected();
  const base::MonoTime expiry = Loop::Now() + Duration::Millis(30);
  permit_.ExpireAt(expiry);
  loop_.Post([&] {
    one.client->Send("late");
    two.upstream->Send("late");
    while (Loop::Now() < expiry) {
    }
  });
  EXPECT_TRUE(Eventually([&] { return WasReset(one.client) && WasReset(two.client); }));
  EXPECT_TRUE(Eventually([&] { return WasReset(one.upstream) && WasReset(two.upstream); }));
  EXPECT_EQ(one.upstream->received(), "1");
  EXPECT_EQ(two.client->received(), "2");
  EXPECT_TRUE(Eventually([&] { return expired_ == 1; }));
}

TEST_F(TcpGateLeaseTest, AConnectionAfterExpiryIsRefusedAlthoughNobodyToldTheGate) {
  Build();
  ASSERT_TRUE(Open().ok());
  permit_.ExpireAt(Loop::Now());
  RawSocket* client = Client();
  EXPECT_TRUE(Eventually([&] { return WasReset(client); }));
  EXPECT_TRUE(Eventually([&] { return expired_ == 1; }));
  EXPECT_EQ(upstream_->Accept(), nullptr);
  EXPECT_TRUE(Scraped("reason=\"expired\"} 1"));
  EXPECT_TRUE(Scraped("leasehold_gate_open{gate=\"broker\",lease=\"orders\"} 0"));
}

TEST_F(TcpGateLeaseTest, BytesThatTheClientSentBeforeAnExpiredPermitReachNobody) {
  Build();
  ASSERT_TRUE(Open().ok());
  RawSocket* client = Client();
  client->Send("question");
  ASSERT_TRUE(Eventually([&] { return gate_->status().in_flight == 1; }));
  permit_.ExpireAt(Loop::Now());  // while the upstream is being reached
  EXPECT_TRUE(Eventually([&] { return WasReset(client); }));
  std::unique_ptr<RawSocket> upstream = upstream_->Accept();
  if (upstream != nullptr) {
    upstream->Poll();
    EXPECT_EQ(upstream->received(), "");
  }
  EXPECT_TRUE(Eventually([&] { return expired_ == 1; }));
}

TEST_F(TcpGateLeaseTest, OnLossFinishLetsConnectionsFinishAndAdmitsNone) {
  options_.on_loss = OnLoss::kFinish;
  Build();
  ASSERT_TRUE(Open().ok());
  Pair pair = Connected();
  const base::Address address = Listening();
  CloseGate(true);
  pair.client->Send("+");
  EXPECT_TRUE(Eventually([&] { return Received(pair.upstream, "1+"); }));
  RawSocket* late = Client(address);
  EXPECT_TRUE(Eventually([&] { return WasReset(late); }));
  EXPECT_EQ(gate_->status().in_flight, 1u);
}

TEST_F(TcpGateLeaseTest, OnLossFinishStillTellsOfAnExpiryNobodySaw) {
  options_.on_loss = OnLoss::kFinish;
  Build();
  ASSERT_TRUE(Open().ok());
  Pair pair = Connected();
  permit_.ExpireAt(Loop::Now());
  pair.client->Send("+");
  EXPECT_TRUE(Eventually([&] { return Received(pair.upstream, "1+"); }));
  EXPECT_TRUE(Eventually([&] { return expired_ == 1; }));
}

TEST_F(TcpGateLeaseTest, ADrainThatEndsCutsEvenWithOnLossFinish) {
  options_.on_loss = OnLoss::kFinish;
  drain_tunnels_ = Duration::Seconds(60);
  Build();
  ASSERT_TRUE(Open().ok());
  Pair pair = Connected();
  Drain(Duration::Seconds(60));
  CloseGate(false);
  EXPECT_TRUE(Eventually([&] { return WasReset(pair.client) && WasReset(pair.upstream); }));
}

TEST_F(TcpGateLeaseTest, AGateThatGoesTakesItsConnectionsAndItsMetricsAlong) {
  Build();
  ASSERT_TRUE(Open().ok());
  Pair pair = Connected();
  Drain(Duration::Seconds(20));
  gate_.reset();
  EXPECT_TRUE(Eventually([&] {
    pair.client->Poll();
    return pair.client->over();
  }));
  EXPECT_FALSE(Scraped("leasehold_gate_in_flight{"));
  EXPECT_EQ(empty_, 0);
}

}  // namespace
}  // namespace leasehold::gate

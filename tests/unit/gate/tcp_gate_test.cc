// The tcp gate carrying bytes: what passes, what is admitted, held and refused.
#include <gtest/gtest.h>

#include <string>

#include "unit/gate/tcp_gate_fixture.h"

namespace leasehold::gate {
namespace {

using base::Duration;

class TcpGateTest : public TcpGateFixture {};

// 4 MiB that repeat with no power of two, so that a lost or doubled buffer shows.
std::string ManyBytes() {
  std::string bytes(4 * 1024 * 1024, '\0');
  for (size_t i = 0; i < bytes.size(); ++i) {
    bytes[i] = static_cast<char>(i % 251);
  }
  return bytes;
}

TEST_F(TcpGateTest, WithRefuseNobodyListensUntilTheGateOpens) {
  Build();
  EXPECT_EQ(gate_->status().listen, "");
  ASSERT_TRUE(Open().ok());
  Connected();
  EXPECT_EQ(gate_->status().connections, 1u);
  EXPECT_EQ(gate_->status().in_flight, 1u);
  EXPECT_EQ(gate_->status().state, "open");
  CloseGate(true);
  EXPECT_EQ(gate_->status().listen, "");
  EXPECT_EQ(gate_->status().state, "closed");
}

TEST_F(TcpGateTest, APortChosenByTheSystemIsKeptForTheNextTerm) {
  Build();
  ASSERT_TRUE(Open().ok());
  const base::Address first = Listening();
  CloseGate(true);
  EXPECT_TRUE(Eventually([&] { return WasReset(Client(first)); })) << "a standby does not listen";
  ASSERT_TRUE(Open().ok());
  EXPECT_EQ(Listening(), first);
}

TEST_F(TcpGateTest, OpeningFailsWithTheAddressWhenThePortIsTaken) {
  RawServer other(testing::TcpAddress("127.0.0.1", 0));
  options_.listen = other.address();
  Build();
  base::Status status = Open();
  ASSERT_FALSE(status.ok());
  EXPECT_NE(status.error().message.find(other.address().ToString()), std::string::npos)
      << status.error().message;
  EXPECT_NE(status.error().message.find("broker"), std::string::npos);
  EXPECT_EQ(gate_->status().state, "closed");
}

TEST_F(TcpGateTest, EveryByteArrivesBothWaysInOrder) {
  Build();
  ASSERT_TRUE(Open().ok());
  Pair pair = Connected();
  const std::string bytes = ManyBytes();
  size_t up = 0, down = 0;
  ASSERT_TRUE(Eventually([&] {
    up += pair.client->Send(std::string_view(bytes).substr(up));
    down += pair.upstream->Send(std::string_view(bytes).substr(down));
    pair.client->Poll();
    pair.upstream->Poll();
    return pair.client->received().size() == bytes.size() + 1 &&
           pair.upstream->received().size() == bytes.size() + 1;
  }));
  EXPECT_TRUE(pair.upstream->received() == "1" + bytes);
  EXPECT_TRUE(pair.client->received() == "2" + bytes);
  EXPECT_TRUE(
      Scraped("leasehold_gate_bytes_total{direction=\"upstream\",gate=\"broker\","
              "lease=\"orders\"} 4194305"))
      << metrics_.Scrape();
}

TEST_F(TcpGateTest, AHalfCloseOfTheClientReachesTheUpstreamWhichMayStillAnswer) {
  Build();
  ASSERT_TRUE(Open().ok());
  Pair pair = Connected();
  pair.client->Send("question");
  pair.client->ShutdownWrite();
  ASSERT_TRUE(Eventually([&] { return WasEnded(pair.upstream); }));
  EXPECT_EQ(pair.upstream->received(), "1question");
  EXPECT_EQ(gate_->status().in_flight, 1u);
  pair.upstream->Send("answer");
  pair.upstream->Close();
  ASSERT_TRUE(Eventually([&] { return WasEnded(pair.client); }));
  EXPECT_EQ(pair.client->received(), "2answer");
  EXPECT_TRUE(Eventually([&] { return gate_->status().connections == 0; }));
}

TEST_F(TcpGateTest, AHalfCloseOfTheUpstreamReachesTheClientWhichMayStillSend) {
  Build();
  ASSERT_TRUE(Open().ok());
  Pair pair = Connected();
  pair.upstream->ShutdownWrite();
  ASSERT_TRUE(Eventually([&] { return WasEnded(pair.client); }));
  pair.client->Send("more");
  EXPECT_TRUE(Eventually([&] { return Received(pair.upstream, "1more"); }));
}

TEST_F(TcpGateTest, AResetOfTheUpstreamResetsTheClient) {
  Build();
  ASSERT_TRUE(Open().ok());
  Pair pair = Connected();
  pair.upstream->CloseWithReset();
  EXPECT_TRUE(Eventually([&] { return WasReset(pair.client); }))
      << "an orderly end would hide missing bytes";
  EXPECT_TRUE(Eventually([&] { return gate_->status().in_flight == 0; }));
}

TEST_F(TcpGateTest, IPv6AndUnixSocketsWorkOnBothSides) {
  testing::TempDir dir;
  const base::Address addresses[] = {testing::TcpAddress("127.0.0.1", 0),
                                     testing::TcpAddress("::1", 0),
                                     testing::UnixAddress(dir.File("listen.sock"))};
  for (const base::Address& listen : addresses) {
    for (base::Address up : addresses) {
      if (up.kind == base::Address::Kind::kUnix) {
        up.path = dir.File("upstream.sock");
      }
      SCOPED_TRACE(listen.ToString() + " to " + up.ToString());
      gate_.reset();
      upstream_ = std::make_unique<RawServer>(up);
      options_.listen = listen;
      Build();
      ASSERT_TRUE(Open().ok());
      Pair pair = Connected();
      EXPECT_EQ(pair.client->received(), "2");
    }
  }
}

TEST_F(TcpGateTest, ClosePolicyAcceptsAndClosesAtOnce) {
  options_.standby = StandbyPolicy::kClose;
  Build();
  RawSocket* client = Client();
  EXPECT_TRUE(Eventually([&] { return WasEnded(client); }));
  EXPECT_EQ(client->received(), "");
  EXPECT_EQ(gate_->status().connections, 0u);
  EXPECT_TRUE(
      Scraped("leasehold_gate_refused_total{gate=\"broker\",lease=\"orders\","
              "reason=\"closed\"} 1"));
}

TEST_F(TcpGateTest, HeldConnectionsAreServedInOrderWhenTheGateOpens) {
  options_.standby = StandbyPolicy::kHold;
  Build();
  RawSocket* first = Client();
  ASSERT_TRUE(Eventually([&] { return gate_->status().held == 1; }));
  RawSocket* second = Client();
  first->Send("first");
  second->Send("second");
  ASSERT_TRUE(Eventually([&] { return gate_->status().held == 2; }));
  EXPECT_EQ(gate_->status().in_flight, 0u);
  EXPECT_EQ(upstream_->Accept(), nullptr) << "a standby must not reach its application";
  ASSERT_TRUE(Open().ok());
  EXPECT_EQ(gate_->status().held, 0u);
  RawSocket* one = Upstream();
  RawSocket* two = Upstream();
  EXPECT_TRUE(Eventually([&] { return Received(one, "first") && Received(two, "second"); }));
}

TEST_F(TcpGateTest, MoreThanMaxHeldAreRefused) {
  options_.standby = StandbyPolicy::kHold;
  options_.max_held = 1;
  Build();
  RawSocket* first = Client();
  ASSERT_TRUE(Eventually([&] { return gate_->status().held == 1; }));
  RawSocket* second = Client();
  EXPECT_TRUE(Eventually([&] { return WasReset(second); }));
  first->Poll();
  EXPECT_FALSE(first->over());
  EXPECT_TRUE(Scraped("reason=\"hold_full\"} 1"));
}

TEST_F(TcpGateTest, AHeldConnectionIsRefusedAfterHoldTimeout) {
  options_.standby = StandbyPolicy::kHold;
  options_.hold_timeout = Duration::Millis(50);
  Build();
  const base::MonoTime start = loop::Loop::Now();
  RawSocket* client = Client();
  EXPECT_TRUE(Eventually([&] { return WasReset(client); }));
  EXPECT_GE(loop::Loop::Now() - start, Duration::Millis(50));
  EXPECT_EQ(gate_->status().held, 0u);
  EXPECT_TRUE(Scraped("reason=\"hold_timeout\"} 1"));
}

TEST_F(TcpGateTest, AHeldClientThatLeavesFreesItsPlace) {
  options_.standby = StandbyPolicy::kHold;
  options_.max_held = 1;
  Build();
  RawSocket* first = Client();
  ASSERT_TRUE(Eventually([&] { return gate_->status().held == 1; }));
  first->Close();
  ASSERT_TRUE(Eventually([&] { return gate_->status().held == 0; }));
  RawSocket* second = Client();
  ASSERT_TRUE(Eventually([&] { return gate_->status().held == 1; }));
  second->Send("bytes first");
  second->CloseWithReset();
  ASSERT_TRUE(Eventually([&] { return gate_->status().held == 0; }));
  EXPECT_EQ(gate_->status().connections, 0u);
}

TEST_F(TcpGateTest, AHeldClientThatHalfClosedAfterItsQuestionIsServed) {
  options_.standby = StandbyPolicy::kHold;
  Build();
  RawSocket* client = Client();
  client->Send("question");
  client->ShutdownWrite();
  ASSERT_TRUE(Eventually([&] { return gate_->status().held == 1; }));
  RunFor(Duration::Millis(20));
  ASSERT_EQ(gate_->status().held, 1u);
  ASSERT_TRUE(Open().ok());
  RawSocket* upstream = Upstream();
  ASSERT_TRUE(Eventually([&] { return WasEnded(upstream); }));
  EXPECT_EQ(upstream->received(), "question");
  upstream->Send("answer");
  EXPECT_TRUE(Eventually([&] { return Received(client, "answer"); }));
}

TEST_F(TcpGateTest, WhileARenewalIsConfirmedNewConnectionsAreHeldAndOthersGoOn) {
  Build();
  ASSERT_TRUE(Open().ok());
  Pair pair = Connected();
  Hold();
  RawSocket* late = Client();
  late->Send("late");
  ASSERT_TRUE(Eventually([&] { return gate_->status().held == 1; }));
  pair.client->Send("+");
  EXPECT_TRUE(Eventually([&] { return Received(pair.upstream, "1+"); }));
  ASSERT_TRUE(Open().ok());
  RawSocket* upstream = Upstream();
  EXPECT_TRUE(Eventually([&] { return Received(upstream, "late"); }));
}

TEST_F(TcpGateTest, MoreThanMaxConnectionsAreClosed) {
  options_.max_connections = 1;
  Build();
  ASSERT_TRUE(Open().ok());
  Connected();
  RawSocket* second = Client();
  EXPECT_TRUE(Eventually([&] {
    second->Poll();
    return second->over();
  }));
  EXPECT_TRUE(Scraped("reason=\"max_connections\"} 1"));
  EXPECT_EQ(gate_->status().connections, 1u);
}

TEST_F(TcpGateTest, AnUpstreamThatRefusesResetsTheClientAndIsCounted) {
  Build();
  upstream_->Close();
  ASSERT_TRUE(Open().ok());
  RawSocket* client = Client();
  EXPECT_TRUE(Eventually([&] { return WasReset(client); }));
  EXPECT_EQ(gate_->status().in_flight, 0u);
  EXPECT_TRUE(
      Scraped("leasehold_gate_upstream_failures_total{gate=\"broker\","
              "lease=\"orders\"} 1"));
}

TEST_F(TcpGateTest, AnUpstreamThatNeverAcceptsIsGivenUpAfterConnectTimeout) {
  // A backlog of one that is full: the kernel then answers no further connect.
  upstream_ = std::make_unique<RawServer>(testing::TcpAddress("127.0.0.1", 0), 0);
  std::vector<std::unique_ptr<RawSocket>> fill;
  for (int i = 0; i < 4; ++i) {
    fill.push_back(RawSocket::Connect(upstream_->address()));
  }
  options_.connect_timeout = Duration::Millis(100);
  Build();
  ASSERT_TRUE(Open().ok());
  const base::MonoTime start = loop::Loop::Now();
  RawSocket* client = Client();
  EXPECT_TRUE(Eventually([&] { return WasReset(client); }));
  EXPECT_GE(loop::Loop::Now() - start, Duration::Millis(100));
}

TEST_F(TcpGateTest, AClientThatLeavesWhileTheUpstreamIsBeingReachedIsNoLongerInFlight) {
  upstream_ = std::make_unique<RawServer>(testing::TcpAddress("127.0.0.1", 0), 0);
  std::vector<std::unique_ptr<RawSocket>> fill;
  for (int i = 0; i < 4; ++i) {
    fill.push_back(RawSocket::Connect(upstream_->address()));
  }
  options_.connect_timeout = Duration::Seconds(60);
  Build();
  ASSERT_TRUE(Open().ok());
  RawSocket* client = Client();
  ASSERT_TRUE(Eventually([&] { return gate_->status().in_flight == 1; }));
  client->Close();
  EXPECT_TRUE(Eventually([&] { return gate_->status().in_flight == 0; }));
}

TEST_F(TcpGateTest, ATunnelWithoutBytesEndsAfterTunnelIdleTimeout) {
  options_.tunnel_idle_timeout = Duration::Millis(60);
  Build();
  ASSERT_TRUE(Open().ok());
  RawSocket* client = Client();
  RawSocket* upstream = Upstream();
  EXPECT_TRUE(Eventually([&] {
    client->Poll();
    upstream->Poll();
    return client->over() && upstream->over();
  }));
  EXPECT_EQ(gate_->status().connections, 0u);
}

}  // namespace
}  // namespace leasehold::gate

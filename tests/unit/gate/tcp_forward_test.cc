// A tcp gate that forwards: what a client of a standby gets, and what becomes of its connection
// when the holder moves, dies, or is not who the record says.
#include <gtest/gtest.h>

#include <string>

#include "unit/gate/tcp_forward_fixture.h"

namespace leasehold::gate {
namespace {

using loop::Loop;

class TcpForwardTest : public TcpForwardFixture {
 protected:
  // Carries `size` bytes both ways at once, and says whether all came, in order.
  bool CarriesBothWays(const Pair& pair, size_t size) {
    std::string bytes(size, '\0');
    for (size_t i = 0; i < size; ++i) bytes[i] = static_cast<char>(i % 251);
    size_t up = 0, down = 0;
    const bool all = Eventually([&] {
      up += pair.client->Send(std::string_view(bytes).substr(up));
      down += pair.upstream->Send(std::string_view(bytes).substr(down));
      pair.client->Poll();
      pair.upstream->Poll();
      return pair.client->received().size() == size + 1 &&
             pair.upstream->received().size() == size + 1;
    });
    return all && pair.upstream->received() == "1" + bytes &&
           pair.client->received() == "2" + bytes;
  }
};

TEST_F(TcpForwardTest, AClientOfAStandbyReachesTheHoldersApplication) {
  Scene();
  Pair pair = Connected(one_, two_);
  EXPECT_EQ(one_.gate->status().forwarding, 1u);
  EXPECT_EQ(one_.gate->status().in_flight, 0u) << "it is the holder's work";
  EXPECT_EQ(two_.gate->status().in_flight, 1u);
  EXPECT_TRUE(Nobody(one_)) << "a standby must not reach its application";
  EXPECT_TRUE(one_.Scraped("leasehold_gate_forwarded_total{gate=\"broker\",lease=\"orders\"} 1"));
  EXPECT_TRUE(one_.Scraped("leasehold_gate_forwarding{gate=\"broker\",lease=\"orders\"} 1"));
  pair.client->Close();
  pair.upstream->Close();
  EXPECT_TRUE(Forwarding(one_, 0));
  EXPECT_TRUE(Eventually([&] { return two_.gate->status().connections == 0; }));
}

TEST_F(TcpForwardTest, EveryByteArrivesBothWaysThroughBothHops) {
  Scene();
  Pair pair = Connected(one_, two_);
  EXPECT_TRUE(CarriesBothWays(pair, 50 * 1000 * 1000));
  EXPECT_TRUE(one_.Scraped("direction=\"upstream\",gate=\"broker\",lease=\"orders\"} 50000001"));
}

TEST_F(TcpForwardTest, AnApplicationThatTakesNothingStopsTheClientAndNotTheMemory) {
  Scene();
  Pair pair = Connected(one_, two_);
  const std::string chunk(1 << 20, 'x');
  uint64_t sent = 0;
  base::MonoTime quiet = Loop::Now();
  // Until nothing more is taken for longer than a dead peer is given: sockets and relays of both
  // hops are full, and nobody is dead.
  EXPECT_TRUE(Eventually([&] {
    const size_t n = pair.client->Send(chunk);
    sent += n;
    if (n > 0) quiet = Loop::Now();
    return Loop::Now() - quiet > Duration::Seconds(5);
  }));
  EXPECT_LT(sent, 64u << 20) << "the kernel's buffers and a pipe a hop";
  EXPECT_TRUE(Eventually([&] {
    pair.upstream->Poll();
    return pair.upstream->received().size() == sent + 1;
  }));
}

TEST_F(TcpForwardTest, AHalfCloseGoesThroughBothHopsInBothDirections) {
  Scene();
  Pair pair = Connected(one_, two_);
  pair.client->Send("question");
  pair.client->ShutdownWrite();
  ASSERT_TRUE(Eventually([&] { return WasEnded(pair.upstream); }));
  EXPECT_EQ(pair.upstream->received(), "1question");
  pair.upstream->Send("answer");
  pair.upstream->ShutdownWrite();
  ASSERT_TRUE(Eventually([&] { return WasEnded(pair.client); }));
  EXPECT_EQ(pair.client->received(), "2answer");
  EXPECT_TRUE(Eventually([&] {
    return one_.gate->status().connections == 0 && two_.gate->status().connections == 0;
  }));
}

TEST_F(TcpForwardTest, AServerThatSpeaksFirstIsHeard) {
  Scene();
  RawSocket* client = Client(one_);
  Upstream(two_)->Send("220 ready");
  EXPECT_TRUE(ComesToReceive(client, "220 ready"));
}

TEST_F(TcpForwardTest, AResetOfEitherEndReachesTheOther) {
  Scene();
  Pair pair = Connected(one_, two_);
  pair.upstream->CloseWithReset();
  EXPECT_TRUE(ComesToBeReset(pair.client));
  Pair other = Connected(one_, two_);
  other.client->CloseWithReset();
  EXPECT_TRUE(ComesToBeReset(other.upstream));
}

TEST_F(TcpForwardTest, TheClientsOwnAddressReachesTheHoldersLog) {
  Scene();
  Connected(one_, two_);
  EXPECT_TRUE(two_.Logged("gate.from_peer"));
  EXPECT_TRUE(two_.Logged("client=127.0.0.1:")) << "the address of the client's own socket";
}

TEST_F(TcpForwardTest, ClientsOverUnixSocketsAndIPv6AreForwardedToo) {
  testing::TempDir dir;
  for (const base::Address& listen :
       {testing::UnixAddress(dir.File("listen.sock")), testing::TcpAddress("::1", 0)}) {
    SCOPED_TRACE(listen.ToString());
    one_.options.listen = listen;
    Scene();
    Connected(one_, two_);
  }
  EXPECT_TRUE(two_.Logged("client=unix"));
  EXPECT_TRUE(two_.Logged("client=[::1]:"));
}

TEST_F(TcpForwardTest, PeerListenersOnUnixSocketsAndIPv6AreReachedToo) {
  testing::TempDir dir;
  for (const base::Address& listen :
       {testing::UnixAddress(dir.File("peers.sock")), testing::TcpAddress("::1", 0)}) {
    SCOPED_TRACE(listen.ToString());
    two_.options.peer_listen = listen;
    Scene();
    Connected(one_, two_);
  }
}

TEST_F(TcpForwardTest, SidecarsWithOneSecretForwardToOneAnother) {
  one_.secret = two_.secret = "between us";
  Scene();
  Connected(one_, two_);
}

TEST_F(TcpForwardTest, AClientWaitsWhileNobodyHoldsAndGoesToWhoeverDoes) {
  Build();
  RawSocket* client = Client(one_);
  client->Send("question");
  ASSERT_TRUE(Held(one_));
  two_.Open();
  one_.See(two_);
  RawSocket* upstream = Upstream(two_);
  EXPECT_TRUE(ComesToReceive(upstream, "question"));
  EXPECT_EQ(one_.gate->status().held, 0u);
}

TEST_F(TcpForwardTest, AHolderThatIsNotOpenYetIsAskedAgainUntilItIs) {
  Build();
  one_.See(two_);  // its record is there before its gate
  std::vector<RawSocket*> clients;
  for (int i = 0; i < 20; ++i) clients.push_back(Client(one_));
  ASSERT_TRUE(Eventually([&] { return one_.doubts > 2; }));
  EXPECT_EQ(two_.gate->status().in_flight, 0u);
  two_.Open();
  ASSERT_TRUE(Forwarding(one_, 20));
  ASSERT_TRUE(Eventually([&] { return two_.gate->status().in_flight == 20; }));
  EXPECT_TRUE(one_.Scraped("leasehold_gate_peer_doubts_total"));
  for (RawSocket* client : clients) {
    client->Poll();
    EXPECT_FALSE(client->over());
  }
}

TEST_F(TcpForwardTest, WhatIsHeldIsForwardedInTheOrderItCame) {
  Build();
  RawSocket* first = Client(one_);
  ASSERT_TRUE(Held(one_));
  first->Send("first");
  RawSocket* second = Client(one_);
  second->Send("second");
  ASSERT_TRUE(Held(one_, 2));
  two_.Open();
  one_.See(two_);
  RawSocket* a = Upstream(two_);
  RawSocket* b = Upstream(two_);
  EXPECT_TRUE(Eventually([&] { return Received(a, "first") && Received(b, "second"); }));
}

TEST_F(TcpForwardTest, MoreThanMaxHeldAreReset) {
  one_.options.max_held = 1;
  Build();
  RawSocket* first = Client(one_);
  ASSERT_TRUE(Held(one_));
  EXPECT_TRUE(ComesToBeReset(Client(one_)));
  first->Poll();
  EXPECT_FALSE(first->over());
}

TEST_F(TcpForwardTest, ADrainingHolderHoldsAndThenForwardsToTheNext) {
  Scene();
  two_.Drain();
  one_.See(two_, 1, true);
  RawSocket* at_standby = Client(one_);
  RawSocket* at_holder = Client(two_);
  at_standby->Send("a");
  at_holder->Send("b");
  ASSERT_TRUE(Held(one_));
  ASSERT_TRUE(Held(two_));
  EXPECT_TRUE(two_.gate->empty()) << "held is not in flight";
  two_.Shut(false);
  one_.SeeNobody();
  RunFor(Duration::Millis(20));
  EXPECT_EQ(two_.gate->status().held, 1u);
  one_.Open(2);
  two_.See(one_, 2);
  RawSocket* first = Upstream(one_);
  RawSocket* second = Upstream(one_);
  EXPECT_TRUE(Eventually([&] {
    first->Poll();
    second->Poll();
    return first->received() + second->received() == "ab" ||
           first->received() + second->received() == "ba";
  }));
  EXPECT_TRUE(Nobody(two_));
}

TEST_F(TcpForwardTest, ADrainThatIsCalledOffServesWhatItHeld) {
  Scene();
  two_.Drain();
  RawSocket* client = Client(two_);
  client->Send("held");
  ASSERT_TRUE(Held(two_));
  two_.Open();
  RawSocket* upstream = Upstream(two_);
  EXPECT_TRUE(ComesToReceive(upstream, "held"));
}

TEST_F(TcpForwardTest, WhatCameThroughASidecarIsATunnelInTheHoldersDrain) {
  Scene();
  Pair pair = Connected(one_, two_);
  const base::MonoTime start = Loop::Now();
  two_.Drain();
  EXPECT_TRUE(ComesToBeReset(pair.client));
  EXPECT_TRUE(ComesToBeReset(pair.upstream));
  EXPECT_GE(Loop::Now() - start, two_.drain_tunnels);
  EXPECT_TRUE(Eventually([&] { return two_.empty == 1; }));
}

TEST_F(TcpForwardTest, ALossOfTheHolderCutsWhatCameThroughASidecar) {
  Scene();
  Pair pair = Connected(one_, two_);
  two_.Shut(true);
  EXPECT_TRUE(WasReset(pair.upstream)) << "without another turn of the loop";
  EXPECT_TRUE(ComesToBeReset(pair.client));
}

TEST_F(TcpForwardTest, AChunkThatCameThroughASidecarIsNotCarriedAfterExpiry) {
  Scene();
  Pair pair = Connected(one_, two_);
  two_.permit.ExpireAt(Loop::Now());
  pair.client->Send("too late");
  EXPECT_TRUE(ComesToBeReset(pair.upstream));
  EXPECT_EQ(pair.upstream->received(), "1");
}

TEST_F(TcpForwardTest, OurOwnValveDoesNotCutWhatTheOldHolderStillCarries) {
  Scene();
  Pair pair = Connected(one_, two_);
  one_.Open(2);
  one_.Drain(Duration::Millis(10));
  RunFor(Duration::Millis(30));
  one_.Shut(true);
  pair.client->Send("+");
  EXPECT_TRUE(ComesToReceive(pair.upstream, "1+"));
  EXPECT_EQ(one_.gate->status().forwarding, 1u);
}

TEST_F(TcpForwardTest, TwoThatEachTakeTheOtherForTheHolderHoldAndNothingGoesRound) {
  Build();
  one_.See(two_);
  two_.See(one_);
  RawSocket* client = Client(one_);
  ASSERT_TRUE(Eventually([&] { return one_.doubts >= 5; }));
  EXPECT_EQ(one_.gate->status().connections, 1u);
  EXPECT_EQ(two_.gate->status().held, 0u) << "never held at the receiver";
  EXPECT_EQ(two_.gate->status().forwarding, 0u) << "never forwarded again";
  client->Poll();
  EXPECT_FALSE(client->over());
}

TEST_F(TcpForwardTest, AStaleProcessIdIsNotServedAndTheClientWaitsForTheNextRecord) {
  Build();
  two_.Open();
  one_.SeeAt(two_.PeerListening(), "process-before");
  Client(one_);
  ASSERT_TRUE(Eventually([&] { return one_.doubts >= 2; }));
  EXPECT_EQ(two_.gate->status().in_flight, 0u);
  one_.See(two_);
  EXPECT_TRUE(Forwarding(one_));
  EXPECT_TRUE(Eventually([&] { return two_.gate->status().in_flight == 1; }));
}

TEST_F(TcpForwardTest, AWrongSecretResetsTheClientAndBothSidesSayWhatToDo) {
  one_.secret = "mine";
  two_.secret = "yours";
  Scene();
  RawSocket* client = Client(one_);
  client->Send("private");
  EXPECT_TRUE(ComesToBeReset(client));
  EXPECT_EQ(two_.gate->status().in_flight, 0u);
  EXPECT_TRUE(one_.Logged("gate.peer_refused"));
  EXPECT_TRUE(one_.Logged("peer_secret_file"));
  EXPECT_TRUE(two_.Logged("gate.peer_refused"));
  EXPECT_TRUE(two_.Logged("peer_secret_file"));
}

TEST_F(TcpForwardTest, AGateOfAnotherNameRefuses) {
  two_.options.name = "other";
  Scene();
  EXPECT_TRUE(ComesToBeReset(Client(one_)));
  EXPECT_TRUE(one_.Logged("advertise"));
  EXPECT_TRUE(two_.Logged("advertise"));
}

TEST_F(TcpForwardTest, ARecordThatNamesTheHoldersClientsAddressIsToldSo) {
  Build();
  two_.Open();
  one_.SeeAt(two_.Listening(), two_.process);
  RawSocket* client = Client(one_);
  client->Send("private");
  EXPECT_TRUE(Eventually([&] { return two_.Logged("took the clients' address"); }));
  EXPECT_TRUE(two_.Logged("advertise"));
  RunFor(Duration::Millis(50));
  while (std::unique_ptr<RawSocket> upstream = two_.upstream->Accept()) {
    upstream->Poll();
    EXPECT_EQ(upstream->received(), "") << "a header of ours is no client's byte";
  }
}

TEST_F(TcpForwardTest, RecordsThatNameClientsAddressesOfTwoStandbysMakeNoRing) {
  Build();
  one_.SeeAt(two_.Listening(), two_.process);
  two_.SeeAt(one_.Listening(), one_.process);
  EXPECT_TRUE(ComesToBeReset(Client(one_))) << "refused, by who was asked";
  EXPECT_TRUE(Eventually([&] {
    return one_.gate->status().connections == 0 && two_.gate->status().connections == 0;
  }));
  EXPECT_TRUE(two_.Logged("took the clients' address"));
}

// It would be handed on again and again, by each before it sees what it is.
TEST_F(TcpForwardTest, WhatWasHandedOnUnseenAndIsASidecarsIsADoubtOfTheRoute) {
  RawServer silent(testing::TcpAddress("127.0.0.1", 0));
  Build();
  one_.SeeAt(silent.address(), "process-9");
  RawSocket* sidecar = Client(one_);
  RawSocket* question = AcceptAt(silent);
  EXPECT_EQ(one_.doubts, 0);
  sidecar->Send(HeaderWith(HelloTo("process-1")));
  EXPECT_TRUE(ComesToBeOver(question));
  EXPECT_TRUE(Eventually([&] { return one_.doubts == 1; }));
  EXPECT_TRUE(ComesToReceive(sidecar, Verdict(2)));
  EXPECT_EQ(one_.gate->status().forwarding, 0u);
}

TEST_F(TcpForwardTest, ARecordThatNamesOurOwnAddressesMakesNoRing) {
  Build();
  one_.SeeAt(one_.Listening(), one_.process);
  EXPECT_TRUE(ComesToBeReset(Client(one_)));
  one_.SeeAt(one_.PeerListening(), "process-9");
  RawSocket* client = Client(one_);
  ASSERT_TRUE(Eventually([&] { return one_.doubts >= 4; }));
  one_.SeeAt(one_.PeerListening(), one_.process);
  ASSERT_TRUE(Eventually([&] { return one_.doubts >= 8; }));
  client->Poll();
  EXPECT_FALSE(client->over()) << "held";
  EXPECT_LE(one_.gate->status().connections, 2u) << "and one question at a time";
}

TEST_F(TcpForwardTest, AnOrdinaryProxyHeaderOfAClientIsTheClientsOwn) {
  Build();
  one_.Open();
  RawSocket* client = Client(one_);
  const std::string header = HeaderWith("");
  client->Send(header + "GET /");
  EXPECT_TRUE(ComesToReceive(Upstream(one_), header + "GET /"));
}

TEST_F(TcpForwardTest, AClientThatLeavesWhileItIsOfferedFreesTheProbe) {
  RawServer silent(testing::TcpAddress("127.0.0.1", 0));
  Build();
  one_.SeeAt(silent.address(), "process-9");
  RawSocket* first = Client(one_);
  ASSERT_TRUE(Forwarding(one_));
  RawSocket* second = Client(one_);
  ASSERT_TRUE(Held(one_));
  RawSocket* question = AcceptAt(silent);
  const base::MonoTime start = Loop::Now();
  first->Close();
  EXPECT_TRUE(ComesToBeOver(question));
  AcceptAt(silent);  // the second is asked for at once, not after the first one's time
  EXPECT_LT(Loop::Now() - start, Duration::Seconds(2));
  EXPECT_EQ(one_.gate->status().connections, 1u);
  second->Poll();
  EXPECT_FALSE(second->over());
}

}  // namespace
}  // namespace leasehold::gate

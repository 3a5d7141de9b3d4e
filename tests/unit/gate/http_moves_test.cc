// Planned moves over http: a request that arrives while the lease goes from one sidecar to another
// is answered once, by whoever has it then; and no belief about who holds makes a loop.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "http_pair_fixture.h"

namespace leasehold::gate {
namespace {

using base::Duration;

class HttpMovesTest : public HttpPairFixture {
 protected:
  // Each request that waits at `app`'s server is answered with `answer`; the requests' heads.
  std::string AnswerOne(RawServer& server, const std::string& answer) {
    RawSocket* app = Accepted(server);
    EXPECT_TRUE(Gets(app, "\r\n\r\n"));
    app->Send(Ok(answer));
    return app->received();
  }
};

TEST_F(HttpMovesTest, ADrainingHolderHoldsAndForwardsToTheNext) {
  Build(a_);
  Build(b_);
  Open(a_);
  RawSocket* flying = Client(a_, Get("", "/flying"));
  RawSocket* app = Accepted(*a_.app);
  EXPECT_TRUE(Gets(app, "\r\n\r\n"));
  Drain(a_);
  RawSocket* get = Client(a_, Get("", "/held"));
  RawSocket* post = Client(a_, Post("Content-Length: 4\r\n", "body"));
  EXPECT_TRUE(Holds(a_, 2));
  EXPECT_EQ(a_.empty, 0);
  app->Send(Ok("flown"));
  EXPECT_TRUE(Gets(flying, "flown"));
  EXPECT_TRUE(Has(flying, "Connection: close\r\n"));
  EXPECT_TRUE(Eventually([&] { return a_.empty == 1; }));
  CloseGate(a_);
  EXPECT_EQ(a_.gate->status().held, 2u);
  Open(b_, 8);
  a_.gate->SetPeer(PeerOf(b_, 8));
  EXPECT_NE(AnswerOne(*b_.app, "one").find("GET /held "), std::string::npos);
  EXPECT_TRUE(Gets(get, "one"));
  EXPECT_FALSE(Has(get, "Connection: close\r\n"));
  EXPECT_TRUE(Eventually([&] {
    sockets_.back()->Poll();
    return Has(sockets_.back().get(), "body") || !IsAlone(*b_.app);
  }));
  EXPECT_TRUE(Gets(sockets_.back().get(), "body"));
  sockets_.back()->Send(Ok("two"));
  EXPECT_TRUE(Gets(post, "two"));
  EXPECT_TRUE(IsAlone(*a_.app));
}

TEST_F(HttpMovesTest, ADrainingHolderServesWhatItHeldAfterATakeBack) {
  Build(a_);
  Open(a_);
  Drain(a_);
  RawSocket* client = Client(a_, Post("Content-Length: 4\r\n", "body"));
  EXPECT_TRUE(Holds(a_, 1));
  CloseGate(a_);
  Open(a_, 9);
  RawSocket* app = Accepted(*a_.app);
  EXPECT_TRUE(Gets(app, "\r\n\r\nbody"));
  EXPECT_TRUE(Has(app, "Lease-Fencing-Token: 9\r\n"));
  app->Send(Ok("taken back"));
  EXPECT_TRUE(Gets(client, "taken back"));
}

TEST_F(HttpMovesTest, ADrainThatIsCalledOffServesWhatItHeld) {
  Build(a_);
  Open(a_);
  Drain(a_);
  RawSocket* client = Client(a_, Get());
  EXPECT_TRUE(Holds(a_, 1));
  Open(a_);
  AnswerOne(*a_.app, "on");
  EXPECT_TRUE(Gets(client, "on"));
}

TEST_F(HttpMovesTest, AMoveThatNobodyTakesEndsInA503) {
  a_.options.hold_timeout = Duration::Millis(200);
  Build(a_);
  Open(a_);
  Drain(a_);
  RawSocket* client = Client(a_, Get());
  EXPECT_TRUE(Holds(a_, 1));
  CloseGate(a_);
  EXPECT_TRUE(Gets(client, "hold_timeout"));
}

TEST_F(HttpMovesTest, WhatWasAdmittedAndNotSentMovesToo) {
  // A full backlog: the connection to the application is not made.
  a_.app = std::make_unique<RawServer>(testing::TcpAddress("127.0.0.1", 0), 0);
  std::vector<std::unique_ptr<RawSocket>> fill;
  for (int i = 0; i < 3; ++i) fill.push_back(RawSocket::Connect(a_.app->address()));
  Build(a_);
  Build(b_);
  Open(a_);
  RawSocket* client = Client(a_, Post("Content-Length: 4\r\n", "body"));
  EXPECT_TRUE(Eventually([&] { return a_.gate->status().in_flight == 1; }));
  Drain(a_);
  CloseGate(a_);
  EXPECT_EQ(a_.gate->status().held, 1u);
  EXPECT_EQ(a_.gate->status().in_flight, 0u);
  Open(b_, 8);
  a_.gate->SetPeer(PeerOf(b_, 8));
  RawSocket* app = Accepted(*b_.app);
  EXPECT_TRUE(Gets(app, "body"));
  app->Send(Ok("moved"));
  EXPECT_TRUE(Gets(client, "moved"));
}

// In the middle of what was read: were it forwarded at once, it would go without its body.
TEST_F(HttpMovesTest, APermitThatEndsWhileTheApplicationIsReachedMovesTheRequestWhole) {
  Build(a_);
  Build(b_);
  Open(a_);
  Open(b_, 8);
  a_.gate->SetPeer(PeerOf(b_, 8));
  RawSocket* client = Client(a_, Post("Content-Length: 4\r\n", "body"));
  EXPECT_TRUE(RunUntil([&] { return a_.gate->status().in_flight == 1; }));
  a_.permit.Close();
  EXPECT_TRUE(Holds(a_, 1));
  EXPECT_EQ(a_.gate->status().in_flight, 0u);
  CloseGate(a_, true);
  RawSocket* app = Accepted(*b_.app);
  EXPECT_TRUE(Gets(app, "\r\n\r\nbody"));
  app->Send(Ok("moved"));
  EXPECT_TRUE(Gets(client, "moved"));
}

TEST_F(HttpMovesTest, TheSenderFindsTheNewHolderOpenALittleLater) {
  Build(a_);
  Build(b_);
  a_.gate->SetPeer(PeerOf(b_));  // the record is there before its gate is open
  RawSocket* client = Client(a_, Post("Content-Length: 4\r\n", "body"));
  EXPECT_TRUE(Eventually([&] { return a_.doubts > 0; }));
  Open(b_);
  const base::MonoTime start = loop::Loop::Now();
  RawSocket* app = Accepted(*b_.app);
  EXPECT_TRUE(Gets(app, "body"));
  EXPECT_LT(loop::Loop::Now() - start, Duration::Millis(1000));
  app->Send(Ok("open"));
  EXPECT_TRUE(Gets(client, "open"));
}

// ---- beliefs ----

TEST_F(HttpMovesTest, TwoThatBelieveTheOtherHoldsMakeNoLoop) {
  a_.options.hold_timeout = b_.options.hold_timeout = Duration::Millis(300);
  Build(a_);
  Build(b_);
  a_.gate->SetPeer(PeerOf(b_));
  b_.gate->SetPeer(PeerOf(a_));
  RawSocket* one = Client(a_, Get());
  RawSocket* two = Client(b_, Post("Content-Length: 1\r\n", "x"));
  EXPECT_TRUE(Gets(one, "hold_timeout"));
  EXPECT_TRUE(Gets(two, "hold_timeout"));
  EXPECT_TRUE(IsAlone(*a_.app));
  EXPECT_TRUE(IsAlone(*b_.app));
}

TEST_F(HttpMovesTest, OnesOwnAddressAsPeerMakesNoLoop) {
  a_.options.hold_timeout = Duration::Millis(300);
  Build(a_);
  Peer self = PeerOf(a_);
  self.process_id = "process-before";
  a_.gate->SetPeer(self);
  RawSocket* client = Client(a_, Get());
  EXPECT_TRUE(Gets(client, "hold_timeout"));
  self.process_id = "process-a";
  self.token = 8;
  a_.gate->SetPeer(self);
  client = Client(a_, Get());
  EXPECT_TRUE(Gets(client, "hold_timeout"));
  EXPECT_TRUE(IsAlone(*a_.app));
}

TEST_F(HttpMovesTest, ARecordThatNamesAPublicListenerIsAClearAnswer) {
  Build(a_);
  Build(b_);
  Open(b_);
  for (Node* node : {&a_, &b_}) {
    Peer forged = PeerOf(b_);
    forged.address = *base::ParseAddress(node->gate->status().listen);
    a_.gate->SetPeer(forged);
    RawSocket* client = Client(a_, Get());
    EXPECT_TRUE(Gets(client, "peer_refused"));
    EXPECT_EQ(client->received().find("HTTP/1.1 502 "), 0u);
  }
  EXPECT_TRUE(IsAlone(*b_.app));
}

TEST_F(HttpMovesTest, DifferentSecretsAreAClearAnswer) {
  a_.secret = "one";
  b_.secret = "two";
  BuildBoth();
  RawSocket* client = Client(a_, Post("Content-Length: 4\r\n", "body"));
  EXPECT_TRUE(Gets(client, "peer_refused"));
  EXPECT_TRUE(IsAlone(*b_.app));
}

TEST_F(HttpMovesTest, TheSameSecretServes) {
  a_.secret = b_.secret = "one";
  BuildBoth();
  Warm();
}

// ---- keep-alive ----

TEST_F(HttpMovesTest, IdleClientsOfAStandbyThatForwardsStayThroughAMove) {
  Build(a_);
  Build(b_);
  Open(a_);
  RawSocket* client = Client(a_, Get());
  AnswerOne(*a_.app, "first");
  EXPECT_TRUE(Gets(client, "first"));
  RunFor(Duration::Millis(1050));  // cold
  Drain(a_);
  CloseGate(a_);
  RunFor(Duration::Millis(50));
  client->Poll();
  EXPECT_FALSE(client->over());
  Open(b_, 8);
  a_.gate->SetPeer(PeerOf(b_, 8));
  client->Send(Get());
  AnswerOne(*b_.app, "second");
  EXPECT_TRUE(Gets(client, "second"));
  EXPECT_FALSE(Has(client, "Connection: close"));
}

// ---- leaving ----

TEST_F(HttpMovesTest, LeavingForwardsWhatIsHeldAndThenIsGone) {
  Build(a_);
  Build(b_);
  RawSocket* client = Client(a_, Get());
  EXPECT_TRUE(Holds(a_, 1));
  a_.gate->Leave(loop::Loop::Now() + Duration::Seconds(10));
  EXPECT_EQ(a_.gate->status().listen, "");
  EXPECT_FALSE(a_.gate->gone());
  Open(b_);
  a_.gate->SetPeer(PeerOf(b_));
  AnswerOne(*b_.app, "moved");
  EXPECT_TRUE(Gets(client, "moved"));
  EXPECT_TRUE(Has(client, "Connection: close\r\n"));
  EXPECT_TRUE(IsOver(client));
  EXPECT_TRUE(client->ended());
  client->Close();
  EXPECT_TRUE(Eventually([&] { return a_.gate->gone(); }));
  EXPECT_TRUE(Eventually([&] { return a_.empty > 0; }));
}

TEST_F(HttpMovesTest, LeavingLetsWhatIsForwardedFinish) {
  BuildBoth();
  RawSocket* client = Client(a_, Get());
  RawSocket* app = Accepted(*b_.app);
  EXPECT_TRUE(Gets(app, "\r\n\r\n"));
  a_.gate->Leave(loop::Loop::Now() + Duration::Seconds(10));
  RunFor(Duration::Millis(50));
  app->Send(Ok("finished"));
  EXPECT_TRUE(Gets(client, "finished"));
  EXPECT_TRUE(Has(client, "Connection: close\r\n"));
  client->Close();
  EXPECT_TRUE(Eventually([&] { return a_.gate->gone(); }));
}

TEST_F(HttpMovesTest, LeavingRefusesWhatNobodyTookInTime) {
  Build(a_);
  RawSocket* client = Client(a_, Get());
  EXPECT_TRUE(Holds(a_, 1));
  a_.gate->Leave(loop::Loop::Now() + Duration::Millis(100));
  EXPECT_TRUE(Gets(client, "leaving"));
  EXPECT_EQ(client->received().find("HTTP/1.1 503 "), 0u);
  client->Close();
  EXPECT_TRUE(Eventually([&] { return a_.gate->gone(); }));
}

TEST_F(HttpMovesTest, LeavingClosesColdClientsAtOnceAndTellsHotOnes) {
  BuildBoth();
  RawSocket* cold = Client(a_);
  RawSocket* hot = Client(a_);
  EXPECT_TRUE(Eventually([&] { return a_.gate->status().connections == 2; }));
  RunFor(Duration::Millis(1050));
  hot->Send(Get());
  AnswerOne(*b_.app, "hot");
  EXPECT_TRUE(Gets(hot, "hot"));
  a_.gate->Leave(loop::Loop::Now() + Duration::Seconds(10));
  EXPECT_TRUE(IsOver(cold));
  hot->Poll();
  EXPECT_FALSE(hot->over());
  hot->Send(Get());
  RawSocket* app = sockets_[2].get();
  EXPECT_TRUE(GetsTimes(app, "\r\n\r\n", 2));
  app->Send(Ok("told"));
  EXPECT_TRUE(Gets(hot, "told"));
  EXPECT_TRUE(Has(hot, "Connection: close\r\n"));
  EXPECT_TRUE(IsOver(hot));
}

TEST_F(HttpMovesTest, AHotClientThatSaysNothingMoreIsClosedAfterAMoment) {
  BuildBoth();
  Warm();
  RawSocket* hot = Client(a_, Get());
  RawSocket* app = sockets_[1].get();
  EXPECT_TRUE(GetsTimes(app, "\r\n\r\n", 2));
  app->Send(Ok("hot"));
  EXPECT_TRUE(Gets(hot, "hot"));
  a_.gate->Leave(loop::Loop::Now() + Duration::Seconds(10));
  EXPECT_TRUE(RunUntil([&] { return hot->Poll(), hot->over(); }, Duration::Seconds(2)));
  hot->Close();
  EXPECT_TRUE(Eventually([&] { return a_.gate->gone(); }));
}

TEST_F(HttpMovesTest, WhoWaitsInTheBacklogIsServedByALeavingGate) {
  BuildBoth();
  RawSocket* client = Client(a_, Get());
  a_.gate->Leave(loop::Loop::Now() + Duration::Seconds(10));  // before the loop saw the connection
  AnswerOne(*b_.app, "let in");
  EXPECT_TRUE(Gets(client, "let in"));
  auto late = RawSocket::Connect(a_.options.listen.port == 0
                                     ? testing::TcpAddress("127.0.0.1", testing::ClosedPort())
                                     : a_.options.listen);
  EXPECT_TRUE(IsOver(late.get()));
}

TEST_F(HttpMovesTest, LeavingCutsForwardedTunnelsAfterDrainTunnels) {
  BuildBoth();
  RawSocket* client = Client(a_, Get("Connection: Upgrade\r\nUpgrade: websocket\r\n"));
  RawSocket* app = Accepted(*b_.app);
  EXPECT_TRUE(Gets(app, "Upgrade: websocket\r\n"));
  app->Send(
      "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n");
  EXPECT_TRUE(Gets(client, "\r\n\r\n"));
  a_.gate->Leave(loop::Loop::Now() + Duration::Seconds(10));
  client->Send("x");
  EXPECT_TRUE(Gets(app, "x"));
  EXPECT_TRUE(IsOver(client));
  EXPECT_TRUE(Eventually([&] { return a_.gate->gone(); }));
}

TEST_F(HttpMovesTest, WhatIsForwardedWhenTheGateGoesIsCutOrRefused) {
  BuildBoth();
  RawSocket* begun = Client(a_, Get("", "/1"));
  RawSocket* app = Accepted(*b_.app);
  EXPECT_TRUE(Gets(app, "\r\n\r\n"));
  app->Send("HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\nhalf");
  EXPECT_TRUE(Gets(begun, "half"));
  RawSocket* waiting = Client(a_, Get("", "/2"));
  app = Accepted(*b_.app);
  EXPECT_TRUE(Gets(app, "GET /2 "));
  a_.gate.reset();
  EXPECT_TRUE(IsOver(begun));
  EXPECT_TRUE(begun->reset());
  EXPECT_TRUE(Gets(waiting, "leaving"));
}

TEST_F(HttpMovesTest, ALeavingHoldersPeersAreSentAway) {
  BuildBoth();
  Warm();  // a_ keeps a connection to b_
  EXPECT_EQ(b_.gate->status().connections, 1u);
  Drain(b_);
  CloseGate(b_);
  b_.gate->Leave(loop::Loop::Now() + Duration::Seconds(10));
  RawSocket* client = Client(a_, Get());
  EXPECT_TRUE(Eventually([&] { return a_.doubts > 0; }));
  EXPECT_EQ(a_.gate->status().held + a_.gate->status().forwarding, 1u);
  a_.gate->SetPeer({});
  EXPECT_TRUE(Eventually([&] { return b_.gate->gone(); }));
  Open(a_, 8);
  AnswerOne(*a_.app, "mine now");
  EXPECT_TRUE(Gets(client, "mine now"));
}

// A gate of another policy is told of the holder's gate too, when that one advertises.
TEST_F(HttpMovesTest, AGateThatOnlyHoldsAsksNobodyAndCostsNoTurnsOfTheLoop) {
  a_.options.standby = StandbyPolicy::kHold;
  Build(a_);
  Build(b_);
  Open(b_);
  a_.gate->SetPeer(PeerOf(b_));
  RawSocket* client = Client(a_, Get());
  EXPECT_TRUE(Holds(a_, 1));
  int turns = 0;
  RunUntil([&] { return ++turns > 100; }, Duration::Millis(200));
  EXPECT_LT(turns, 20);
  a_.gate->SetPeer({});
  Open(a_, 8);
  Accepted(*a_.app)->Send(Ok("held"));
  EXPECT_TRUE(Gets(client, "held"));
}

// Also while it forwards by policy, but has something to do itself.
TEST_F(HttpMovesTest, WhatAHolderHoldsInItsDrainCostsNoTurnsOfTheLoop) {
  Build(a_);
  Build(b_);
  Open(a_);
  Drain(a_);
  a_.gate->SetPeer(PeerOf(b_));
  Client(a_, Get());
  EXPECT_TRUE(Holds(a_, 1));
  int turns = 0;
  RunUntil([&] { return ++turns > 100; }, Duration::Millis(200));
  EXPECT_LT(turns, 20);
}

}  // namespace
}  // namespace leasehold::gate

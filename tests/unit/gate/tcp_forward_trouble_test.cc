// A tcp gate whose holder's gate is silent, dying, an impostor, or gone; and a gate whose own
// process goes.
#include <gtest/gtest.h>

#include <string>

#include "unit/gate/tcp_forward_fixture.h"

namespace leasehold::gate {
namespace {

using loop::Loop;

class TcpForwardTroubleTest : public TcpForwardFixture {
 protected:
  // What stands where the record says that the holder's gate is.
  RawServer impostor_{testing::TcpAddress("127.0.0.1", 0)};

  void SceneWithImpostor() {
    Build();
    one_.SeeAt(impostor_.address(), "process-9");
  }
};

TEST_F(TcpForwardTroubleTest, APeerThatNeverAnswersIsGivenUpIn3SecondsAndTheClientIsWhole) {
  SceneWithImpostor();
  RawSocket* client = Client(one_);
  client->Send("question");
  RawSocket* peer = AcceptAt(impostor_);
  const base::MonoTime start = Loop::Now();
  ASSERT_TRUE(Eventually([&] { return one_.doubts == 1; }));
  EXPECT_LT(Loop::Now() - start, Duration::Millis(3500));
  peer->Poll();
  EXPECT_EQ(peer->received().find("question"), std::string::npos) << "nothing before the verdict";
  EXPECT_TRUE(WasEnded(peer));
  one_.Open(2);
  EXPECT_TRUE(ComesToReceive(Upstream(one_), "question"));
  EXPECT_TRUE(one_.Logged("did not answer within 3 s"));
}

TEST_F(TcpForwardTroubleTest, APeerThatNobodyListensForIsAskedAgainAndTheClientWaits) {
  impostor_.Close();
  SceneWithImpostor();
  RawSocket* client = Client(one_);
  ASSERT_TRUE(Eventually([&] { return one_.doubts >= 3; }));
  two_.Open();
  one_.See(two_);
  client->Send("question");
  EXPECT_TRUE(ComesToReceive(Upstream(two_), "question"));
}

TEST_F(TcpForwardTroubleTest, APeerThatDiesBeforeItsVerdictLeavesTheClientWhole) {
  SceneWithImpostor();
  RawSocket* client = Client(one_);
  client->Send("question");
  AcceptAt(impostor_)->CloseWithReset();
  ASSERT_TRUE(Eventually([&] { return one_.doubts == 1; }));
  RawSocket* half = AcceptAt(impostor_);
  half->Send(Verdict(0).substr(0, 5));
  half->Close();
  ASSERT_TRUE(Eventually([&] { return one_.doubts == 2; }));
  two_.Open();
  one_.See(two_);
  EXPECT_TRUE(ComesToReceive(Upstream(two_), "question"));
}

TEST_F(TcpForwardTroubleTest, APeerThatDiesAfterItsVerdictResetsTheClient) {
  SceneWithImpostor();
  RawSocket* client = Client(one_);
  RawSocket* peer = AcceptAt(impostor_);
  for (const char byte : Verdict(0)) {  // in the smallest pieces
    peer->Send({&byte, 1});
    RunFor(Duration::Millis(2));
  }
  EXPECT_TRUE(Eventually([&] {
    return one_.Scraped("leasehold_gate_forwarded_total{gate=\"broker\"") &&
           one_.Scraped("forwarded_total{gate=\"broker\",lease=\"orders\"} 1");
  }));
  peer->CloseWithReset();
  EXPECT_TRUE(ComesToBeReset(client)) << "its bytes may be lost: it must know";
  EXPECT_TRUE(Forwarding(one_, 0));
}

TEST_F(TcpForwardTroubleTest, AHolderWhoseMachineIsGoneIsNoticedWithin3AndAHalfSeconds) {
  SceneWithImpostor();
  RawSocket* quiet = Client(one_);
  RawSocket* quiet_peer = AcceptAt(impostor_);
  quiet_peer->Send(Verdict(0));
  ASSERT_TRUE(Eventually(
      [&] { return one_.Scraped("forwarded_total{gate=\"broker\",lease=\"orders\"} 1"); }));
  RawSocket* busy = Client(one_);
  RawSocket* busy_peer = AcceptAt(impostor_);
  busy_peer->Send(Verdict(0));
  busy->Send("1");
  ASSERT_TRUE(Eventually([&] {
    busy_peer->Poll();
    return busy_peer->received().ends_with("1");
  }));
  quiet_peer->GoDeaf();
  busy_peer->GoDeaf();
  const base::MonoTime start = Loop::Now();
  busy->Send("2");
  EXPECT_TRUE(Eventually([&] { return WasReset(quiet) && WasReset(busy); }));
  // And what the kernel's timers round to.
  EXPECT_LT(Loop::Now() - start, Duration::Millis(3800));
  EXPECT_TRUE(one_.Logged("gate.peer_died"));
  EXPECT_TRUE(Forwarding(one_, 0));
}

TEST_F(TcpForwardTroubleTest, AStandbyWhoseMachineIsGoneIsNoticedByTheHolder) {
  Build();
  two_.Open();
  RawSocket* sidecar = Connect(two_.PeerListening());
  sidecar->Send(HeaderWith(HelloTo("process-2")));
  ASSERT_TRUE(ComesToReceive(sidecar, Verdict(0)));
  RawSocket* upstream = Upstream(two_);
  sidecar->GoDeaf();
  upstream->Send("answer");
  EXPECT_TRUE(ComesToBeReset(upstream));
  EXPECT_TRUE(Eventually([&] { return two_.gate->status().in_flight == 0; }));
  EXPECT_TRUE(two_.Logged("gate.peer_died"));
}

TEST_F(TcpForwardTroubleTest, AnAnswerThatIsNoVerdictResetsTheClientAndSaysWhy) {
  for (const std::string& answer : {std::string("HTTP/1.1 400 Bad Request\r\n\r\n"), Verdict(7),
                                    std::string("LHPEER\x02\0", 8)}) {
    SceneWithImpostor();
    RawSocket* client = Client(one_);
    client->Send("private");
    RawSocket* peer = AcceptAt(impostor_);
    peer->Send(answer);
    EXPECT_TRUE(ComesToBeReset(client));
    peer->Poll();
    EXPECT_EQ(peer->received().find("private"), std::string::npos);
    EXPECT_TRUE(one_.Logged("no peer listener of a tcp gate"));
  }
}

TEST_F(TcpForwardTroubleTest, BytesRightBehindTheVerdictReachTheClient) {
  SceneWithImpostor();
  RawSocket* client = Client(one_);
  AcceptAt(impostor_)->Send(Verdict(0) + "220 ready");
  EXPECT_TRUE(ComesToReceive(client, "220 ready"));
}

TEST_F(TcpForwardTroubleTest, OneQuestionAtATimeHoweverManyWait) {
  SceneWithImpostor();
  for (int i = 0; i < 50; ++i) Client(one_);
  AcceptAt(impostor_);
  ASSERT_TRUE(Held(one_, 49));
  EXPECT_EQ(one_.gate->status().forwarding, 1u);
  EXPECT_EQ(impostor_.Accept(), nullptr);
}

TEST_F(TcpForwardTroubleTest, OpeningHereTakesBackWhatASilentPeerWasAsked) {
  SceneWithImpostor();
  RawSocket* client = Client(one_);
  client->Send("question");
  RawSocket* peer = AcceptAt(impostor_);
  const base::MonoTime start = Loop::Now();
  one_.Open(2);
  EXPECT_TRUE(ComesToReceive(Upstream(one_), "question"));
  EXPECT_LT(Loop::Now() - start, Duration::Seconds(2)) << "not after the peer's 3 s";
  EXPECT_TRUE(ComesToBeOver(peer));
  EXPECT_EQ(one_.gate->status().in_flight, 1u);
  EXPECT_EQ(one_.gate->status().forwarding, 0u);
}

TEST_F(TcpForwardTroubleTest, ANewHolderIsAskedAtOnceWhileTheOldOneIsSilent) {
  SceneWithImpostor();
  RawSocket* client = Client(one_);
  client->Send("question");
  RawSocket* peer = AcceptAt(impostor_);
  const base::MonoTime start = Loop::Now();
  two_.Open(2);
  one_.See(two_, 2);
  EXPECT_TRUE(ComesToReceive(Upstream(two_), "question"));
  EXPECT_LT(Loop::Now() - start, Duration::Seconds(2)) << "not after the old one's 3 s";
  EXPECT_TRUE(ComesToBeOver(peer));
}

TEST_F(TcpForwardTroubleTest, AnUnreachableUpstreamOfTheHolderResetsTheClient) {
  Build();
  two_.upstream->Close();
  two_.Open();
  one_.See(two_);
  EXPECT_TRUE(ComesToBeReset(Client(one_)));
  EXPECT_TRUE(two_.Logged("client=127.0.0.1:"));
  EXPECT_EQ(two_.gate->status().in_flight, 0u);
}

TEST_F(TcpForwardTroubleTest, AFullHolderIsAskedAgainWhenThereIsRoom) {
  two_.options.max_connections = 1;
  Scene();
  Pair direct = Connected(two_, two_);
  RawSocket* client = Client(one_);
  client->Send("question");
  ASSERT_TRUE(Eventually([&] { return one_.doubts >= 2; }));
  direct.client->Close();
  direct.upstream->Close();
  EXPECT_TRUE(ComesToReceive(Upstream(two_), "question"));
}

TEST_F(TcpForwardTroubleTest, LeavingLetsForwardedConnectionsFinishForDrainTunnelsAndNoLonger) {
  one_.drain_tunnels = Duration::Millis(150);
  Scene();
  Pair quick = Connected(one_, two_);
  Pair slow = Connected(one_, two_);
  const base::MonoTime start = Loop::Now();
  one_.gate->Leave(start + Duration::Seconds(20));
  EXPECT_EQ(one_.gate->status().listen, "");
  EXPECT_FALSE(one_.gate->gone());
  quick.client->Send("+");
  EXPECT_TRUE(ComesToReceive(quick.upstream, "1+")) << "still carried";
  quick.client->Close();
  quick.upstream->Close();
  EXPECT_TRUE(Forwarding(one_, 1));
  EXPECT_EQ(one_.empty, 0);
  EXPECT_TRUE(ComesToBeReset(slow.client));
  EXPECT_TRUE(ComesToBeReset(slow.upstream));
  EXPECT_GE(Loop::Now() - start, one_.drain_tunnels);
  EXPECT_TRUE(Eventually([&] { return one_.empty == 1; }));
  EXPECT_TRUE(one_.gate->gone());
}

TEST_F(TcpForwardTroubleTest, LeavingSendsWhatIsHeldToTheNextHolderAndGivesItItsTime) {
  one_.drain_tunnels = Duration::Millis(200);
  Build();
  RawSocket* client = Client(one_);
  client->Send("question");
  ASSERT_TRUE(Held(one_));
  one_.gate->Leave(Loop::Now() + Duration::Seconds(20));
  RunFor(Duration::Millis(250));
  EXPECT_EQ(one_.gate->status().held, 1u);
  two_.Open();
  one_.See(two_);
  RawSocket* upstream = Upstream(two_);
  ASSERT_TRUE(ComesToReceive(upstream, "question"));
  upstream->Send("answer");
  upstream->Close();
  EXPECT_TRUE(ComesToReceive(client, "answer"));
  client->Close();
  EXPECT_TRUE(Eventually([&] { return one_.empty == 1 && one_.gate->gone(); }));
}

TEST_F(TcpForwardTroubleTest, LeavingResetsWhatNobodyTookByItsEnd) {
  SceneWithImpostor();
  RawSocket* offered = Client(one_);
  AcceptAt(impostor_);
  RawSocket* held = Client(one_);
  ASSERT_TRUE(Held(one_));
  RawSocket* silent = Connect(one_.PeerListening());
  ASSERT_TRUE(Eventually([&] { return one_.gate->status().connections == 3; }));
  const base::MonoTime until = Loop::Now() + Duration::Millis(80);
  one_.gate->Leave(until);
  EXPECT_TRUE(ComesToBeReset(offered));
  EXPECT_TRUE(ComesToBeReset(held));
  EXPECT_TRUE(ComesToBeOver(silent));
  EXPECT_TRUE(Eventually([&] { return one_.gate->gone() && one_.empty == 1; }));
  EXPECT_GE(Loop::Now(), until);
  EXPECT_LT(Loop::Now() - until, Duration::Seconds(2));
  EXPECT_TRUE(one_.Scraped("reason=\"leaving\"} 1"));
}

TEST_F(TcpForwardTroubleTest, AnIdleGateThatLeavesIsGoneAtOnceAndSaysSoLater) {
  Build();
  one_.gate->Leave(Loop::Now() + Duration::Seconds(20));
  EXPECT_TRUE(one_.gate->gone());
  EXPECT_EQ(one_.empty, 0);
  EXPECT_TRUE(Eventually([&] { return one_.empty == 1; }));
}

TEST_F(TcpForwardTroubleTest, AGateThatGoesResetsWhatItForwardsAndWhatItAsks) {
  Scene();
  Pair pair = Connected(one_, two_);
  one_.SeeAt(impostor_.address(), "process-9");
  RawSocket* offered = Client(one_);
  RawSocket* peer = AcceptAt(impostor_);
  one_.gate.reset();
  EXPECT_TRUE(ComesToBeReset(pair.client));
  EXPECT_TRUE(ComesToBeReset(pair.upstream));
  EXPECT_TRUE(ComesToBeReset(offered));
  EXPECT_TRUE(ComesToBeOver(peer));
}

}  // namespace
}  // namespace leasehold::gate

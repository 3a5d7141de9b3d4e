// The sender's side of forwarding against a peer that the test plays: what becomes of a request
// when the peer fails, is silent, or is somebody else.
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "http_forward_fixture.h"

namespace leasehold::gate {
namespace {

using base::Duration;

using HttpForwardTroubleTest = HttpForwardFixture;

// ---- a peer that fails ----

TEST_F(HttpForwardTroubleTest, APeerThatCannotBeReachedIsAskedAgain) {
  Build(a_);
  a_.gate->SetPeer(PeerAt(testing::TcpAddress("127.0.0.1", testing::ClosedPort())));
  RawSocket* client = Client(a_, Post("Content-Length: 4\r\n", "body"));
  EXPECT_TRUE(Eventually([&] { return a_.doubts > 2; }));
  EXPECT_EQ(a_.gate->status().forwarding + a_.gate->status().held, 1u);
  Move();
  AnsweredByNext(client, "body");
}

TEST_F(HttpForwardTroubleTest, AConnectionThatBreaksBeforeTheAdmissionCostsNothing) {
  for (const bool reset : {false, true}) {
    for (const std::string& request : {Get(), Post("Content-Length: 4\r\n", "body"), Post()}) {
      SCOPED_TRACE(request + (reset ? "RST" : "FIN"));
      a_.gate.reset();
      BuildSender();
      RawSocket* client = Client(a_, request);
      RawSocket* peer = Accepted(*peer_);
      EXPECT_TRUE(Gets(peer, "\r\n\r\n"));
      reset ? peer->CloseWithReset() : peer->Close();
      EXPECT_TRUE(Eventually([&] { return a_.doubts > 0; }));
      Move();
      AnsweredByNext(client, request.ends_with("body") ? "body" : "");
      // What the old peer was asked meanwhile it was asked with a head alone.
      while (!IsAlone(*peer_)) EXPECT_FALSE(Has(sockets_.back().get(), "body"));
      a_.doubts = 0;
    }
  }
}

TEST_F(HttpForwardTroubleTest, AnAdmittedGetIsSentAgainWhenItsPeerDies) {
  BuildSender();
  RawSocket* client = Client(a_, Get());
  RawSocket* peer = Accepted(*peer_);
  EXPECT_TRUE(Gets(peer, "\r\n\r\n"));
  peer->Send(kSaid);
  EXPECT_TRUE(Eventually([&] { return a_.gate->status().held == 0; }));
  RunFor(Duration::Millis(10));
  peer->CloseWithReset();
  EXPECT_TRUE(Eventually([&] { return a_.doubts > 0; }));
  Move();
  AnsweredByNext(client);
}

// A request that ends whoever takes it, or a peer that only ever promises, is not asked for ever.
TEST_F(HttpForwardTroubleTest, AnAdmittedGetThatEveryPeerGivesUpIsAnsweredAfterTheThird) {
  BuildSender();
  RawSocket* client = Client(a_, Get());
  for (int i = 0; i < 3; ++i) {
    RawSocket* peer = Accepted(*peer_);
    EXPECT_TRUE(Gets(peer, "\r\n\r\n"));
    peer->Send(kSaid);
    RunFor(Duration::Millis(5));
    peer->CloseWithReset();
  }
  EXPECT_TRUE(Gets(client, "HTTP/1.1 502 "));
  EXPECT_TRUE(Has(client, "peer_failed"));
  EXPECT_TRUE(IsAlone(*peer_));
  EXPECT_EQ(a_.gate->status().held, 0u);
}

TEST_F(HttpForwardTroubleTest, AnAdmittedPostIsNeverSentAgain) {
  for (const bool reset : {false, true}) {
    for (const std::string& request : {Post("Content-Length: 4\r\n", "body"), Post()}) {
      SCOPED_TRACE(request + (reset ? "RST" : "FIN"));
      a_.gate.reset();
      BuildSender();
      RawSocket* client = Client(a_, request);
      RawSocket* peer = Accepted(*peer_);
      EXPECT_TRUE(Gets(peer, "\r\n\r\n"));
      peer->Send(kSaid);
      EXPECT_TRUE(Gets(peer, request.ends_with("body") ? "body" : "0\r\n\r\n"));
      reset ? peer->CloseWithReset() : peer->Close();
      EXPECT_TRUE(Gets(client, "peer_failed"));
      EXPECT_EQ(client->received().find("HTTP/1.1 502 "), 0u);
      EXPECT_TRUE(IsAlone(*peer_));
    }
  }
}

// With Expect the head goes on at the admission, and an application may act on it alone.
TEST_F(HttpForwardTroubleTest, AnAdmittedPostThatExpects100IsNeverSentAgain) {
  for (const bool dies : {true, false}) {
    SCOPED_TRACE(dies ? "dies" : "freezes");
    a_.gate.reset();
    BuildSender();
    RawSocket* client = Client(a_, Post("Content-Length: 4\r\nExpect: 100-continue\r\n"));
    RawSocket* peer = Accepted(*peer_);
    EXPECT_TRUE(Gets(peer, "\r\n\r\n"));
    peer->Send(kSaid);
    RunFor(Duration::Millis(20));
    if (dies) peer->Close();
    EXPECT_TRUE(Gets(client, dies ? "peer_failed" : "peer_timeout"));
    EXPECT_TRUE(IsAlone(*peer_));
  }
}

TEST_F(HttpForwardTroubleTest, APostThatExpects100GoesElsewhereWhenItWasNotAdmitted) {
  BuildSender();
  RawSocket* client = Client(a_, Post("Content-Length: 4\r\nExpect: 100-continue\r\n"));
  RawSocket* peer = Accepted(*peer_);
  EXPECT_TRUE(Gets(peer, "\r\n\r\n"));
  peer->Send(std::string(kSaid) + std::string(kRefused));
  EXPECT_TRUE(Holds(a_, 1));
  Move();
  AnsweredByNext(client);
}

// The client has waited for its 100 since the admission, however late that came.
TEST_F(HttpForwardTroubleTest, ABodyWithoutItsContinueFollowsALateAdmission) {
  BuildSender();
  RawSocket* client = Client(a_, Post("Content-Length: 4\r\nExpect: 100-continue\r\n"));
  RawSocket* peer = Accepted(*peer_);
  EXPECT_TRUE(Gets(peer, "\r\n\r\n"));
  RunFor(Duration::Millis(1500));
  peer->Send(kSaid);
  client->Send("body");
  EXPECT_TRUE(RunUntil(
      [&] {
        peer->Poll();
        return Has(peer, "body");
      },
      Duration::Millis(2500)));
}

TEST_F(HttpForwardTroubleTest, APutWithABodyIsNotRepeatedHalf) {
  BuildSender();
  RawSocket* client = Client(a_, "PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nbody");
  RawSocket* peer = Accepted(*peer_);
  EXPECT_TRUE(Gets(peer, "\r\n\r\n"));
  peer->Send(kSaid);
  EXPECT_TRUE(Gets(peer, "body"));
  peer->Close();
  EXPECT_TRUE(Gets(client, "peer_failed"));
}

TEST_F(HttpForwardTroubleTest, AnAnswerThatBreaksOffIsCutNotEnded) {
  BuildSender();
  RawSocket* client = Client(a_, "GET / HTTP/1.0\r\n\r\n");
  RawSocket* peer = Accepted(*peer_);
  EXPECT_TRUE(Gets(peer, "\r\n\r\n"));
  peer->Send("HTTP/1.1 200 OK\r\nLease-Peer: answer\r\nContent-Length: 10\r\n\r\nhalf");
  EXPECT_TRUE(Gets(client, "half"));
  peer->Close();
  EXPECT_TRUE(IsOver(client));
  EXPECT_TRUE(client->reset());
}

TEST_F(HttpForwardTroubleTest, AKeptConnectionThatHasJustEndedIsNoReasonToDoubt) {
  for (const std::string& request : {Get(), Post("Content-Length: 4\r\n", "body"), Post()}) {
    SCOPED_TRACE(request);
    a_.gate.reset();
    BuildSender();
    RawSocket* kept = Prove();
    RawSocket* client = Client(a_, request);
    EXPECT_TRUE(GetsTimes(kept, "\r\n\r\n", 2));  // it is used
    kept->Close();
    RawSocket* fresh = Accepted(*peer_);
    EXPECT_TRUE(Gets(fresh, "\r\n\r\n"));
    fresh->Send(std::string(request.starts_with("GET") ? "" : kSaid) + PeerOk("fresh"));
    EXPECT_TRUE(Gets(client, "fresh"));
    EXPECT_EQ(a_.doubts, 0);
    sockets_.clear();
  }
}

TEST_F(HttpForwardTroubleTest, APeerThatLosesTheLeaseAfterItsAdmissionSaysThatNothingWasDone) {
  BuildSender();
  RawSocket* client = Client(a_, Post("Content-Length: 4\r\n", "body"));
  RawSocket* peer = Accepted(*peer_);
  EXPECT_TRUE(Gets(peer, "\r\n\r\n"));
  peer->Send(kSaid);
  EXPECT_TRUE(Gets(peer, "body"));
  peer->Send(kRefused);
  EXPECT_TRUE(Gets(client, "peer_not_admitted"));
  EXPECT_EQ(client->received().find("HTTP/1.1 503 "), 0u);
}

TEST_F(HttpForwardTroubleTest, AHostThatDiesInMidAnswerIsNoticedWhileNothingIsSent) {
  BuildSender();
  RawSocket* client = Client(a_, Get());
  RawSocket* peer = Accepted(*peer_);
  EXPECT_TRUE(Gets(peer, "\r\n\r\n"));
  peer->Send("HTTP/1.1 200 OK\r\nLease-Peer: answer\r\nContent-Length: 8\r\n\r\nhalf");
  EXPECT_TRUE(Gets(client, "half"));
  peer->GoDeaf();
  const base::MonoTime start = loop::Loop::Now();
  EXPECT_TRUE(IsOver(client));
  EXPECT_TRUE(client->reset());
  EXPECT_LE(loop::Loop::Now() - start, Duration::Millis(3500));
}

TEST_F(HttpForwardTroubleTest, ATunnelToADeadHostIsCutIdleOrBusy) {
  for (const bool busy : {false, true}) {
    SCOPED_TRACE(busy);
    a_.gate.reset();
    BuildSender();
    RawSocket* client = Client(a_, Get("Connection: Upgrade\r\nUpgrade: websocket\r\n"));
    RawSocket* peer = Accepted(*peer_);
    EXPECT_TRUE(Gets(peer, "\r\n\r\n"));
    peer->Send(
        "HTTP/1.1 101 Switching Protocols\r\nLease-Peer: answer\r\nConnection: Upgrade\r\n"
        "Upgrade: websocket\r\n\r\n");
    EXPECT_TRUE(Gets(client, "\r\n\r\n"));
    peer->GoDeaf();
    if (busy) client->Send("anybody there?");
    const base::MonoTime start = loop::Loop::Now();
    EXPECT_TRUE(IsOver(client));
    EXPECT_LE(loop::Loop::Now() - start, Duration::Millis(4200));
  }
}

// ---- a peer that is silent ----

TEST_F(HttpForwardTroubleTest, APeerThatAcceptsAndNeverAnswersIsGivenUpInTime) {
  BuildSender();
  const base::MonoTime start = loop::Loop::Now();
  RawSocket* get = Client(a_, Get());
  RawSocket* peer = Accepted(*peer_);
  EXPECT_TRUE(Gets(peer, "\r\n\r\n"));
  EXPECT_TRUE(IsOver(peer));
  const Duration took = loop::Loop::Now() - start;
  EXPECT_GE(took, Duration::Seconds(3));
  EXPECT_LE(took, Duration::Millis(3500));
  Move();
  AnsweredByNext(get);
}

TEST_F(HttpForwardTroubleTest, APostThatWasNotAdmittedInTimeIsSentElsewhere) {
  BuildSender();
  RawSocket* client = Client(a_, Post("Content-Length: 4\r\n", "body"));
  RawSocket* peer = Accepted(*peer_);
  EXPECT_TRUE(Gets(peer, "\r\n\r\n"));
  EXPECT_TRUE(IsOver(peer));
  EXPECT_FALSE(Has(peer, "body"));
  Move();
  AnsweredByNext(client, "body");
}

TEST_F(HttpForwardTroubleTest, AnAdmittedPostOfAPeerThatFreezesIsA504) {
  BuildSender();
  RawSocket* client = Client(a_, Post());
  RawSocket* peer = Accepted(*peer_);
  EXPECT_TRUE(Gets(peer, "\r\n\r\n"));
  peer->Send(kSaid);
  EXPECT_TRUE(Gets(peer, "0\r\n\r\n"));
  const base::MonoTime start = loop::Loop::Now();
  EXPECT_TRUE(Gets(client, "peer_timeout"));
  EXPECT_LE(loop::Loop::Now() - start, Duration::Millis(3500));
  EXPECT_EQ(client->received().find("HTTP/1.1 504 "), 0u);
}

TEST_F(HttpForwardTroubleTest, AStallOfOurOwnLoopIsNotThePeersSilence) {
  BuildSender();
  RawSocket* client = Client(a_, Get());
  RawSocket* peer = Accepted(*peer_);
  EXPECT_TRUE(Gets(peer, "\r\n\r\n"));
  peer->Send(PeerOk("in time"));
  const base::MonoTime end = loop::Loop::Now() + Duration::Millis(3300);
  while (loop::Loop::Now() < end) {  // as in a process that gets no processor
  }
  EXPECT_TRUE(Gets(client, "in time"));
  EXPECT_EQ(a_.doubts, 0);
}

TEST_F(HttpForwardTroubleTest, ResponseTimeoutBoundsAPeerThatOnlySaysThatItLives) {
  a_.options.response_timeout = Duration::Millis(200);
  BuildSender();
  RawSocket* client = Client(a_, Get());
  RawSocket* peer = Accepted(*peer_);
  EXPECT_TRUE(Gets(peer, "\r\n\r\n"));
  peer->Send(kSaid);
  EXPECT_TRUE(Gets(client, "peer_timeout"));
}

// ---- somebody else ----

TEST_F(HttpForwardTroubleTest, APeerThatRefusesUsIsAClearAnswerAtOnce) {
  BuildSender();
  for (const char* status : {"403 Forbidden", "508 Loop Detected"}) {
    RawSocket* client = Client(a_, Post("Content-Length: 4\r\n", "body"));
    RawSocket* peer = Accepted(*peer_);
    EXPECT_TRUE(Gets(peer, "\r\n\r\n"));
    peer->Send("HTTP/1.1 " + std::string(status) +
               "\r\nLease-Peer: refused\r\nContent-Length: 0\r\n\r\n");
    EXPECT_TRUE(Gets(client, "peer_refused"));
    EXPECT_EQ(client->received().find("HTTP/1.1 502 "), 0u);
    EXPECT_TRUE(Has(client, "advertise"));
    EXPECT_TRUE(Has(client, "peer_secret_file"));
    EXPECT_FALSE(Has(peer, "body"));
  }
  // Not one a pause: nobody waits for what does not change.
  RawSocket* one = Client(a_, Get());
  RawSocket* two = Client(a_, Get());
  for (RawSocket* peer : {Accepted(*peer_), Accepted(*peer_)}) {
    EXPECT_TRUE(Gets(peer, "\r\n\r\n"));
    peer->Send("HTTP/1.1 403 Forbidden\r\nLease-Peer: refused\r\nContent-Length: 0\r\n\r\n");
  }
  EXPECT_TRUE(Gets(one, "peer_refused"));
  EXPECT_TRUE(Gets(two, "peer_refused"));
}

TEST_F(HttpForwardTroubleTest, AServerThatIsNoPeerListenerIsNotBelieved) {
  BuildSender();
  RawSocket* client = Client(a_, Post("Content-Length: 4\r\n", "body"));
  RawSocket* peer = Accepted(*peer_);
  EXPECT_TRUE(Gets(peer, "\r\n\r\n"));
  peer->Send("HTTP/1.1 100 Continue\r\n\r\n" + Ok("not a gate"));
  EXPECT_TRUE(Gets(client, "peer_refused"));
  EXPECT_FALSE(Has(client, "not a gate"));
  EXPECT_FALSE(Has(peer, "body"));
}

TEST_F(HttpForwardTroubleTest, AServerThatSpeaksSomethingElseIsDoubted) {
  BuildSender();
  RawSocket* client = Client(a_, Post("Content-Length: 4\r\n", "body"));
  RawSocket* peer = Accepted(*peer_);
  EXPECT_TRUE(Gets(peer, "\r\n\r\n"));
  peer->Send("220 mail.example ESMTP\r\n");
  EXPECT_TRUE(IsOver(peer));
  EXPECT_FALSE(Has(peer, "body"));
  Move();
  AnsweredByNext(client, "body");
}

TEST_F(HttpForwardTroubleTest, AProcessIdFromARecordWritesNoLinesOfItsOwn) {
  Build(a_);
  a_.gate->SetPeer(PeerAt(peer_->address(), "x\r\nLease-Peer: y\r\n\r\nGET /"));
  Client(a_, Get());
  RawSocket* peer = Accepted(*peer_);
  EXPECT_TRUE(Gets(peer, "\r\n\r\n"));
  EXPECT_EQ(Count(peer->received(), "\r\nLease-Peer: "), 1u);
  EXPECT_EQ(Count(peer->received(), "GET / "), 1u);
}

}  // namespace
}  // namespace leasehold::gate

// The sender's side of forwarding against a peer that the test plays: what is sent before the
// admission, and what becomes of a request when the peer does not admit, dies, freezes or is
// somebody else.
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "http_pair_fixture.h"

namespace leasehold::gate {
namespace {

using base::Duration;

class HttpForwardPeerTest : public HttpPairFixture {
 protected:
  void SetUp() override {
    HttpPairFixture::SetUp();
    peer_ = std::make_unique<RawServer>(testing::TcpAddress("127.0.0.1", 0));
    next_ = std::make_unique<RawServer>(testing::TcpAddress("127.0.0.1", 0));
  }
  // a_ is a standby that believes peer_ to be the holder's gate.
  void BuildSender() {
    Build(a_);
    a_.gate->SetPeer(PeerAt(peer_->address()));
  }
  // The record now says that next_ is.
  void Move() { a_.gate->SetPeer(PeerAt(next_->address(), "process-y", 8)); }
  // One GET, so that all requests go from now on; the connection at the peer, kept.
  RawSocket* Prove() {
    RawSocket* client = Client(a_, Get("", "/prove"));
    RawSocket* peer = Accepted(*peer_);
    EXPECT_TRUE(Gets(peer, "\r\n\r\n"));
    peer->Send(std::string(kSaid) + PeerOk("proven"));
    EXPECT_TRUE(Gets(client, "proven"));
    client->Close();
    return peer;
  }
  // The request arrives at next_, is admitted and answered.
  void AnsweredByNext(RawSocket* client, std::string_view body = {}) {
    RawSocket* next = Accepted(*next_);
    EXPECT_TRUE(Gets(next, "to=process-y "));
    EXPECT_TRUE(Gets(next, "\r\n\r\n"));
    EXPECT_TRUE(body.empty() || !Has(next, body));
    next->Send(kSaid);
    EXPECT_TRUE(Gets(next, body));
    next->Send(PeerOk("from next"));
    EXPECT_TRUE(Gets(client, "from next"));
  }

  std::unique_ptr<RawServer> peer_;
  std::unique_ptr<RawServer> next_;
};

// ---- what is sent, and when ----

TEST_F(HttpForwardPeerTest, TheHeadIsStrippedAndGreets) {
  BuildSender();
  Prove();
  RawSocket* client = Client(
      a_, Get("Lease-Fencing-Token: 99\r\nLease_Sequence: 1\r\nLease-Name: x\r\nVia: 1.1 cdn\r\n"
              "Connection: X-Hop\r\nX-Hop: 1\r\n"));
  RawSocket* peer = sockets_[1].get();
  EXPECT_TRUE(GetsTimes(peer, "\r\n\r\n", 2));
  const std::string head = peer->received().substr(peer->received().find("\r\n\r\n") + 4);
  EXPECT_EQ(Count(head, "Lease"), 1u) << head;
  EXPECT_NE(head.find("Lease-Peer: 1 gate=web to=process-x from=process-a\r\n"), std::string::npos);
  EXPECT_EQ(Count(head, "Via: "), 1u);
  EXPECT_EQ(Count(head, "Via: 1.1 cdn\r\n"), 1u);
  EXPECT_EQ(Count(head, "X-Hop"), 0u);
  EXPECT_EQ(Count(head, "X-Forwarded-For: 127.0.0.1\r\n"), 1u);
  peer->Send(PeerOk("end"));
  EXPECT_TRUE(Gets(client, "end"));
}

TEST_F(HttpForwardPeerTest, NoByteOfABodyIsSentBeforeTheAdmission) {
  BuildSender();
  RawSocket* client = Client(a_, Post("Content-Length: 6\r\n", "sec"));
  RawSocket* peer = Accepted(*peer_);
  EXPECT_TRUE(Gets(peer, " say\r\n"));
  EXPECT_TRUE(Gets(peer, "\r\n\r\n"));
  client->Send("ret");
  RunFor(Duration::Millis(50));
  peer->Poll();
  EXPECT_EQ(peer->received().find("\r\n\r\n") + 4, peer->received().size());
  peer->Send(kSaid);
  EXPECT_TRUE(Gets(peer, "\r\n\r\nsecret"));
}

TEST_F(HttpForwardPeerTest, AnEmptyPostIsCompleteOnlyAfterTheAdmission) {
  BuildSender();
  RawSocket* client = Client(a_, Post("Content-Length: 0\r\n"));
  RawSocket* peer = Accepted(*peer_);
  EXPECT_TRUE(Gets(peer, "Transfer-Encoding: chunked\r\n\r\n"));
  EXPECT_FALSE(Has(peer, "Content-Length"));
  RunFor(Duration::Millis(50));
  peer->Poll();
  EXPECT_EQ(peer->received().find("\r\n\r\n") + 4, peer->received().size());
  peer->Send(kSaid);
  EXPECT_TRUE(Gets(peer, "\r\n\r\n0\r\n\r\n"));
  peer->Send(PeerOk("done"));
  EXPECT_TRUE(Gets(client, "done"));
  EXPECT_FALSE(Has(client, "Connection: close"));
}

TEST_F(HttpForwardPeerTest, APipelinedRequestWaitsForTheAdmittedOneBeforeIt) {
  BuildSender();
  RawSocket* client = Client(a_, Post() + Get("", "/second"));
  RawSocket* peer = Accepted(*peer_);
  EXPECT_TRUE(Gets(peer, "\r\n\r\n"));
  peer->Send(std::string(kSaid) + PeerOk("one"));
  EXPECT_TRUE(Gets(client, "one"));
  EXPECT_TRUE(Gets(peer, "\r\n\r\n0\r\n\r\nGET /second "));
}

TEST_F(HttpForwardPeerTest, OneProbeGoesAndTheOthersFollowItsAdmission) {
  BuildSender();
  RawSocket* first = Client(a_, Get("", "/1"));
  RawSocket* peer = Accepted(*peer_);
  EXPECT_TRUE(Gets(peer, " say\r\n"));
  RawSocket* second = Client(a_, Get("", "/2"));
  EXPECT_TRUE(Holds(a_, 1));
  EXPECT_TRUE(IsAlone(*peer_));
  peer->Send(kSaid);
  RawSocket* peer2 = Accepted(*peer_);
  EXPECT_TRUE(Gets(peer2, "GET /2 "));
  EXPECT_TRUE(Gets(peer2, "\r\n\r\n"));
  EXPECT_FALSE(Has(peer2, " say\r\n"));
  peer2->Send(PeerOk("two"));
  peer->Send(PeerOk("one"));
  EXPECT_TRUE(Gets(first, "one"));
  EXPECT_TRUE(Gets(second, "two"));
}

TEST_F(HttpForwardPeerTest, AProbeWhoseClientLeavesMakesWayForTheNext) {
  BuildSender();
  RawSocket* first = Client(a_, Get("", "/1"));
  RawSocket* peer = Accepted(*peer_);
  EXPECT_TRUE(Gets(peer, "\r\n\r\n"));
  RawSocket* second = Client(a_, Get("", "/2"));
  EXPECT_TRUE(Holds(a_, 1));
  first->CloseWithReset();
  RawSocket* peer2 = Accepted(*peer_);
  EXPECT_TRUE(Gets(peer2, "GET /2 "));
  EXPECT_TRUE(Gets(peer2, "\r\n\r\n"));
  peer2->Send(std::string(kSaid) + PeerOk("two"));
  EXPECT_TRUE(Gets(second, "two"));
}

// ---- not admitted ----

TEST_F(HttpForwardPeerTest, WhatIsNotAdmittedIsExecutedOnceByTheNextHolder) {
  BuildSender();
  RawSocket* client = Client(a_, Post("Content-Length: 4\r\n", "body"));
  RawSocket* peer = Accepted(*peer_);
  EXPECT_TRUE(Gets(peer, "\r\n\r\n"));
  peer->Send(kRefused);
  EXPECT_TRUE(IsOver(peer));
  EXPECT_FALSE(Has(peer, "body"));
  EXPECT_TRUE(Eventually([&] { return a_.doubts == 1; }));
  Move();
  AnsweredByNext(client, "body");
  EXPECT_EQ(Count(client->received(), "HTTP/1.1 "), 1u);
}

TEST_F(HttpForwardPeerTest, WhatIsNotAdmittedIsAskedAgainUntilItIs) {
  BuildSender();
  RawSocket* client = Client(a_, Post("", ""));
  for (int i = 0; i < 3; ++i) {
    RawSocket* peer = Accepted(*peer_);
    EXPECT_TRUE(Gets(peer, "\r\n\r\n"));
    peer->Send(kRefused);
  }
  RawSocket* peer = Accepted(*peer_);
  EXPECT_TRUE(Gets(peer, "\r\n\r\n"));
  peer->Send(kSaid);
  EXPECT_TRUE(Gets(peer, "0\r\n\r\n"));
  peer->Send(PeerOk("at last"));
  EXPECT_TRUE(Gets(client, "at last"));
}

TEST_F(HttpForwardPeerTest, WhatIsNotAdmittedIsServedHereAfterATakeBack) {
  BuildSender();
  RawSocket* client = Client(a_, Post("Content-Length: 4\r\n", "body"));
  RawSocket* peer = Accepted(*peer_);
  EXPECT_TRUE(Gets(peer, "\r\n\r\n"));
  Open(a_);  // while it is on its way
  peer->Send(kRefused);
  RawSocket* app = Accepted(*a_.app);
  EXPECT_TRUE(Gets(app, "\r\n\r\nbody"));
  app->Send(Ok("here"));
  EXPECT_TRUE(Gets(client, "here"));
}

TEST_F(HttpForwardPeerTest, TheFirstDeadlineOfAHeldRequestStands) {
  a_.options.hold_timeout = Duration::Millis(300);
  BuildSender();
  const base::MonoTime start = loop::Loop::Now();
  RawSocket* client = Client(a_, Get());
  EXPECT_TRUE(RunUntil([&] {
    if (auto peer = peer_->Accept()) sockets_.push_back(std::move(peer));
    for (size_t i = 1; i < sockets_.size(); ++i) {
      if (sockets_[i]->Poll() && Has(sockets_[i].get(), "\r\n\r\n")) sockets_[i]->Send(kRefused);
    }
    client->Poll();
    return Has(client, "hold_timeout");
  }));
  EXPECT_LT(loop::Loop::Now() - start, Duration::Seconds(2));
  // The next request of the same client waits anew.
  EXPECT_EQ(client->received().find("HTTP/1.1 503 "), 0u);
}

TEST_F(HttpForwardPeerTest, ASecondRequestOfAConnectionWaitsItsOwnTime) {
  a_.options.hold_timeout = Duration::Millis(300);
  BuildSender();
  RawSocket* client = Client(a_, Get("", "/1"));
  RawSocket* peer = Accepted(*peer_);
  EXPECT_TRUE(Gets(peer, "\r\n\r\n"));
  peer->Send(kRefused);  // so that it has a deadline
  peer = Accepted(*peer_);
  EXPECT_TRUE(Gets(peer, "\r\n\r\n"));
  peer->Send(std::string(kSaid) + PeerOk("one"));
  EXPECT_TRUE(Gets(client, "one"));
  RunFor(Duration::Millis(320));  // over
  client->Send(Get("", "/2"));
  EXPECT_TRUE(Gets(peer, "GET /2 "));
  peer->Send(kRefused);
  peer = Accepted(*peer_);
  EXPECT_TRUE(Gets(peer, "GET /2 "));
  EXPECT_TRUE(Gets(peer, "\r\n\r\n"));
  peer->Send(std::string(kSaid) + PeerOk("two"));
  EXPECT_TRUE(Gets(client, "two"));
}

TEST_F(HttpForwardPeerTest, AFullQueueRefusesWhatComesBack) {
  a_.options.max_held = 1;
  BuildSender();
  RawSocket* first = Client(a_, Get());
  RawSocket* peer = Accepted(*peer_);
  EXPECT_TRUE(Gets(peer, "\r\n\r\n"));
  Client(a_, Get());
  EXPECT_TRUE(Holds(a_, 1));
  RawSocket* third = Client(a_, Get());
  EXPECT_TRUE(Gets(third, "hold_full"));
  peer->Send(kRefused);
  EXPECT_TRUE(Gets(first, "hold_full"));
}

// ---- a peer that fails ----

TEST_F(HttpForwardPeerTest, APeerThatCannotBeReachedIsAskedAgain) {
  Build(a_);
  a_.gate->SetPeer(PeerAt(testing::TcpAddress("127.0.0.1", testing::ClosedPort())));
  RawSocket* client = Client(a_, Post("Content-Length: 4\r\n", "body"));
  EXPECT_TRUE(Eventually([&] { return a_.doubts > 2; }));
  EXPECT_EQ(a_.gate->status().forwarding + a_.gate->status().held, 1u);
  Move();
  AnsweredByNext(client, "body");
}

TEST_F(HttpForwardPeerTest, AConnectionThatBreaksBeforeTheAdmissionCostsNothing) {
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

TEST_F(HttpForwardPeerTest, AnAdmittedGetIsSentAgainWhenItsPeerDies) {
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
TEST_F(HttpForwardPeerTest, AnAdmittedGetThatEveryPeerGivesUpIsAnsweredAfterTheThird) {
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

TEST_F(HttpForwardPeerTest, AnAdmittedPostIsNeverSentAgain) {
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
TEST_F(HttpForwardPeerTest, AnAdmittedPostThatExpects100IsNeverSentAgain) {
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

TEST_F(HttpForwardPeerTest, APostThatExpects100GoesElsewhereWhenItWasNotAdmitted) {
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
TEST_F(HttpForwardPeerTest, ABodyWithoutItsContinueFollowsALateAdmission) {
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

TEST_F(HttpForwardPeerTest, APutWithABodyIsNotRepeatedHalf) {
  BuildSender();
  RawSocket* client = Client(a_, "PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nbody");
  RawSocket* peer = Accepted(*peer_);
  EXPECT_TRUE(Gets(peer, "\r\n\r\n"));
  peer->Send(kSaid);
  EXPECT_TRUE(Gets(peer, "body"));
  peer->Close();
  EXPECT_TRUE(Gets(client, "peer_failed"));
}

TEST_F(HttpForwardPeerTest, AnAnswerThatBreaksOffIsCutNotEnded) {
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

TEST_F(HttpForwardPeerTest, AKeptConnectionThatHasJustEndedIsNoReasonToDoubt) {
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

TEST_F(HttpForwardPeerTest, APeerThatLosesTheLeaseAfterItsAdmissionSaysThatNothingWasDone) {
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

TEST_F(HttpForwardPeerTest, AHostThatDiesInMidAnswerIsNoticedWhileNothingIsSent) {
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

TEST_F(HttpForwardPeerTest, ATunnelToADeadHostIsCutIdleOrBusy) {
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

TEST_F(HttpForwardPeerTest, APeerThatAcceptsAndNeverAnswersIsGivenUpInTime) {
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

TEST_F(HttpForwardPeerTest, APostThatWasNotAdmittedInTimeIsSentElsewhere) {
  BuildSender();
  RawSocket* client = Client(a_, Post("Content-Length: 4\r\n", "body"));
  RawSocket* peer = Accepted(*peer_);
  EXPECT_TRUE(Gets(peer, "\r\n\r\n"));
  EXPECT_TRUE(IsOver(peer));
  EXPECT_FALSE(Has(peer, "body"));
  Move();
  AnsweredByNext(client, "body");
}

TEST_F(HttpForwardPeerTest, AnAdmittedPostOfAPeerThatFreezesIsA504) {
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

TEST_F(HttpForwardPeerTest, AStallOfOurOwnLoopIsNotThePeersSilence) {
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

TEST_F(HttpForwardPeerTest, ResponseTimeoutBoundsAPeerThatOnlySaysThatItLives) {
  a_.options.response_timeout = Duration::Millis(200);
  BuildSender();
  RawSocket* client = Client(a_, Get());
  RawSocket* peer = Accepted(*peer_);
  EXPECT_TRUE(Gets(peer, "\r\n\r\n"));
  peer->Send(kSaid);
  EXPECT_TRUE(Gets(client, "peer_timeout"));
}

// ---- somebody else ----

TEST_F(HttpForwardPeerTest, APeerThatRefusesUsIsAClearAnswerAtOnce) {
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

TEST_F(HttpForwardPeerTest, AServerThatIsNoPeerListenerIsNotBelieved) {
  BuildSender();
  RawSocket* client = Client(a_, Post("Content-Length: 4\r\n", "body"));
  RawSocket* peer = Accepted(*peer_);
  EXPECT_TRUE(Gets(peer, "\r\n\r\n"));
  peer->Send("HTTP/1.1 100 Continue\r\n\r\n" + Ok("not a gate"));
  EXPECT_TRUE(Gets(client, "peer_refused"));
  EXPECT_FALSE(Has(client, "not a gate"));
  EXPECT_FALSE(Has(peer, "body"));
}

TEST_F(HttpForwardPeerTest, AServerThatSpeaksSomethingElseIsDoubted) {
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

TEST_F(HttpForwardPeerTest, AProcessIdFromARecordWritesNoLinesOfItsOwn) {
  Build(a_);
  a_.gate->SetPeer(PeerAt(peer_->address(), "x\r\nLease-Peer: y\r\n\r\nGET /"));
  Client(a_, Get());
  RawSocket* peer = Accepted(*peer_);
  EXPECT_TRUE(Gets(peer, "\r\n\r\n"));
  EXPECT_EQ(Count(peer->received(), "\r\nLease-Peer: "), 1u);
  EXPECT_EQ(Count(peer->received(), "GET / "), 1u);
}

// ---- the record changes ----

TEST_F(HttpForwardPeerTest, KeptConnectionsToTheFormerHolderAreClosed) {
  BuildSender();
  RawSocket* kept = Prove();
  Move();
  EXPECT_TRUE(IsOver(kept));
}

TEST_F(HttpForwardPeerTest, AnExchangeWithTheFormerHolderFinishesThere) {
  BuildSender();
  RawSocket* client = Client(a_, Get());
  RawSocket* peer = Accepted(*peer_);
  EXPECT_TRUE(Gets(peer, "\r\n\r\n"));
  Move();
  peer->Send(std::string(kSaid) + PeerOk("old"));
  EXPECT_TRUE(Gets(client, "old"));
  EXPECT_TRUE(IsOver(peer));
  client->Send(Get());
  AnsweredByNext(client);
}

TEST_F(HttpForwardPeerTest, AStandbyHoldsWhileTheHolderDrains) {
  BuildSender();
  Prove();
  Peer draining = PeerAt(peer_->address());
  draining.draining = true;
  a_.gate->SetPeer(draining);
  RawSocket* client = Client(a_, Get());
  EXPECT_TRUE(Holds(a_, 1));
  a_.gate->SetPeer(PeerAt(peer_->address()));  // called off
  RawSocket* kept = sockets_[1].get();
  EXPECT_TRUE(GetsTimes(kept, "\r\n\r\n", 2));
  kept->Send(PeerOk("on"));
  EXPECT_TRUE(Gets(client, "on"));
}

TEST_F(HttpForwardPeerTest, AnUnknownHolderIsWaitedForThenRefused) {
  a_.options.hold_timeout = Duration::Millis(100);
  Build(a_);
  RawSocket* client = Client(a_, Get());
  EXPECT_TRUE(Gets(client, "hold_timeout"));
  EXPECT_TRUE(Has(client, "Retry-After: 1\r\n"));
  EXPECT_EQ(client->received().find("HTTP/1.1 503 "), 0u);
}

}  // namespace
}  // namespace leasehold::gate

// The sender's side of forwarding against a peer that the test plays: what is sent before the
// admission, what becomes of a request that is not admitted, and of all when the record changes.
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "http_forward_fixture.h"

namespace leasehold::gate {
namespace {

using base::Duration;

using HttpForwardPeerTest = HttpForwardFixture;

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

// ---- the record changes ----

TEST_F(HttpForwardPeerTest, KeptConnectionsToTheFormerHolderAreClosed) {
  BuildSender();
  RawSocket* kept = Prove();
  Move();
  EXPECT_TRUE(IsOver(kept));
}

// Nor kept among those to the new one.
TEST_F(HttpForwardPeerTest, AConnectionThatWasBeingMadeToTheFormerHolderIsNotUsed) {
  peer_ = std::make_unique<RawServer>(testing::TcpAddress("127.0.0.1", 0), 0);
  std::vector<std::unique_ptr<RawSocket>> fill;  // a full backlog: the kernel tries again in 1 s
  for (int i = 0; i < 3; ++i) fill.push_back(RawSocket::Connect(peer_->address()));
  BuildSender();
  RawSocket* client = Client(a_, Get());
  EXPECT_TRUE(Eventually([&] { return a_.gate->status().forwarding == 1; }));
  RunFor(Duration::Millis(50));
  Move();
  const base::MonoTime start = loop::Loop::Now();
  std::unique_ptr<RawSocket> next;
  EXPECT_TRUE(Eventually([&] {
    while (auto old = peer_->Accept()) fill.push_back(std::move(old));
    return (next = next_->Accept()) != nullptr;
  }));
  EXPECT_LT(loop::Loop::Now() - start, Duration::Seconds(3)) << "not after the old one's silence";
  EXPECT_TRUE(Gets(next.get(), "to=process-y "));
  EXPECT_TRUE(Gets(next.get(), "\r\n\r\n"));
  next->Send(PeerOk("from next"));
  EXPECT_TRUE(Gets(client, "from next"));
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

// The receiver's side of forwarding against a sender that the test plays: who may speak at the peer
// listener, what is said there of admission, and that nothing reaches the application too early,
// too late or twice.
#include <gtest/gtest.h>

#include <string>

#include "http_pair_fixture.h"

namespace leasehold::gate {
namespace {

using base::Duration;

class HttpPeerListenerTest : public HttpPairFixture {
 protected:
  void BuildHolder() {
    Build(b_);
    Open(b_);
  }
  RawSocket* Sender(std::string_view bytes = {}) {
    RawSocket* sender = Connect(b_.gate->status().peer_listen);
    if (!bytes.empty()) sender->Send(bytes);
    return sender;
  }
  // A sidecar's greeting as PeerKey writes it.
  std::string Greeting(const std::string& secret, const std::string& lease, const std::string& gate,
                       const std::string& to) {
    return "Lease-Peer: " + PeerKey(secret, lease, gate, "process-x").HelloTo(to) + "\r\n";
  }
};

// ---- admission ----

TEST_F(HttpPeerListenerTest, AnAdmissionIsSaidOnlyWhenAskedFor) {
  BuildHolder();
  RawSocket* sender = Sender(Get(Hello(b_, false)));
  RawSocket* app = Accepted(*b_.app);
  EXPECT_TRUE(Gets(app, "\r\n\r\n"));
  app->Send(Ok("quiet"));
  EXPECT_TRUE(Gets(sender, "quiet"));
  EXPECT_EQ(sender->received().find("HTTP/1.1 200 OK\r\n"), 0u);
  EXPECT_EQ(Count(sender->received(), "Lease-Peer: answer\r\n"), 1u);
  EXPECT_FALSE(Has(sender, "Via"));
  sender->Send(Get(Hello(b_, true)));
  EXPECT_TRUE(Gets(sender, kSaid));
  EXPECT_TRUE(GetsTimes(app, "\r\n\r\n", 2));
  app->Send(Ok("said"));
  EXPECT_TRUE(Gets(sender, "said"));
}

TEST_F(HttpPeerListenerTest, AnApplicationThatIsSlowIsToldApartFromADeadProcess) {
  BuildHolder();
  RawSocket* sender = Sender(Get(Hello(b_, false)));
  const base::MonoTime start = loop::Loop::Now();
  RawSocket* app = Accepted(*b_.app);
  EXPECT_TRUE(Gets(sender, kSaid));
  EXPECT_GE(loop::Loop::Now() - start, Duration::Millis(950));
  EXPECT_LE(loop::Loop::Now() - start, Duration::Millis(1500));
  EXPECT_TRUE(GetsTimes(sender, kSaid, 2));
  app->Send(Ok("slow"));
  EXPECT_TRUE(Gets(sender, "slow"));
}

TEST_F(HttpPeerListenerTest, TheHeadReachesTheApplicationWithTheFirstOfTheBody) {
  BuildHolder();
  RawSocket* sender = Sender(Post(Hello(b_, true) + "Content-Length: 4\r\n"));
  EXPECT_TRUE(Gets(sender, kSaid));
  RawSocket* app = Accepted(*b_.app);
  RunFor(Duration::Millis(30));
  app->Poll();
  EXPECT_EQ(app->received(), "");
  sender->Send("bo");
  EXPECT_TRUE(Gets(app, "\r\n\r\nbo"));
}

TEST_F(HttpPeerListenerTest, ASenderThatGivesUpBeforeItKnewOfTheAdmissionHasExecutedNothing) {
  BuildHolder();
  RawSocket* sender = Sender(Post(Hello(b_, true) + "Transfer-Encoding: chunked\r\n"));
  EXPECT_TRUE(Gets(sender, kSaid));
  RawSocket* app = Accepted(*b_.app);
  sender->Close();
  EXPECT_TRUE(IsOver(app));
  EXPECT_EQ(app->received(), "");
  EXPECT_TRUE(Eventually([&] { return b_.gate->status().in_flight == 0; }));
}

TEST_F(HttpPeerListenerTest, AKeptApplicationConnectionThatEndsBeforeTheBodyIsReplaced) {
  BuildHolder();
  RawSocket* sender = Sender(Get(Hello(b_, false)));
  RawSocket* kept = Accepted(*b_.app);
  EXPECT_TRUE(Gets(kept, "\r\n\r\n"));
  kept->Send(Ok("warm"));
  EXPECT_TRUE(Gets(sender, "warm"));
  sender->Send(Post(Hello(b_, true) + "Content-Length: 4\r\n"));
  EXPECT_TRUE(Gets(sender, kSaid));
  kept->Send("HTTP/1.1 408 Request Timeout\r\nConnection: close\r\n\r\n");  // the idle one, ending
  kept->Close();
  RawSocket* app = Accepted(*b_.app);
  sender->Send("body");
  EXPECT_TRUE(Gets(app, "\r\n\r\nbody"));
  app->Send(Ok("done"));
  EXPECT_TRUE(Gets(sender, "done"));
  EXPECT_FALSE(Has(sender, "408"));
}

// Its head was the end: it is repeated as it went the first time, or nothing would be.
TEST_F(HttpPeerListenerTest, AKeptApplicationConnectionThatEndsUnderAnEmptyChunkedBodyIsReplaced) {
  BuildHolder();
  RawSocket* sender = Sender(Get(Hello(b_, false)));
  RawSocket* kept = Accepted(*b_.app);
  EXPECT_TRUE(Gets(kept, "\r\n\r\n"));
  kept->Send(Ok("warm"));
  EXPECT_TRUE(Gets(sender, "warm"));
  sender->Send("PUT / HTTP/1.1\r\nHost: a\r\n" + Hello(b_, true) +
               "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n");
  EXPECT_TRUE(Gets(kept, "PUT / "));
  kept->Close();
  RawSocket* app = Accepted(*b_.app);
  EXPECT_TRUE(Gets(app, "PUT / "));
  EXPECT_TRUE(Gets(app, "Content-Length: 0\r\n"));
  EXPECT_FALSE(Has(app, "chunked"));
  app->Send(Ok("done"));
  EXPECT_TRUE(Gets(sender, "done"));
}

// ---- not admitted ----

TEST_F(HttpPeerListenerTest, AStandbyDoesNotAdmitHoldOrForward) {
  Build(a_);
  Build(b_);
  b_.gate->SetPeer(PeerOf(a_));
  Open(a_);
  RawSocket* sender = Sender(Get(Hello(b_, true)));
  EXPECT_TRUE(Gets(sender, "Lease-Peer: not_admitted\r\n"));
  EXPECT_TRUE(Gets(sender, "not_holding"));
  EXPECT_EQ(sender->received().find("HTTP/1.1 503 "), 0u);
  EXPECT_FALSE(Has(sender, "199"));
  EXPECT_EQ(b_.gate->status().held, 0u);
  EXPECT_NE(b_.metrics->Scrape().find("status=\"5xx\"} 0"), std::string::npos);  // nobody's answer
  EXPECT_TRUE(IsAlone(*a_.app));
  EXPECT_TRUE(IsAlone(*b_.app));
  sender->Send(Get(Hello(b_, false)));  // the connection is kept
  EXPECT_TRUE(GetsTimes(sender, "Lease-Peer: not_admitted\r\n", 2));
  sender->Send(Post(Hello(b_, true) + "Content-Length: 4\r\n"));
  EXPECT_TRUE(GetsTimes(sender, "Lease-Peer: not_admitted\r\n", 3));
  EXPECT_TRUE(IsOver(sender));  // a body was announced: what follows has no meaning
}

TEST_F(HttpPeerListenerTest, ADrainingHolderDoesNotAdmit) {
  BuildHolder();
  RawSocket* sender = Sender(Get(Hello(b_, false)));
  RawSocket* app = Accepted(*b_.app);
  EXPECT_TRUE(Gets(app, "\r\n\r\n"));
  Drain(b_);
  RawSocket* other = Sender(Get(Hello(b_, true)));
  EXPECT_TRUE(Gets(other, "Lease-Peer: not_admitted\r\n"));
  EXPECT_TRUE(Has(other, "draining"));
  EXPECT_EQ(b_.gate->status().held, 0u);
  app->Send(Ok("finished"));  // in flight
  EXPECT_TRUE(Gets(sender, "finished"));
  EXPECT_FALSE(Has(sender, "Connection: close"));
  EXPECT_TRUE(Eventually([&] { return b_.empty == 1; }));
}

TEST_F(HttpPeerListenerTest, AnAdmittedHeadThatCannotGoOnAnyMoreIsNotAdmitted) {
  for (const bool lost : {false, true}) {
    BuildHolder();
    RawSocket* sender = Sender(Post(Hello(b_, true) + "Content-Length: 4\r\n"));
    EXPECT_TRUE(Gets(sender, kSaid));
    RawSocket* app = Accepted(*b_.app);
    CloseGate(b_, lost);
    EXPECT_TRUE(Gets(sender, "Lease-Peer: not_admitted\r\n"));
    EXPECT_TRUE(IsOver(app));
    EXPECT_EQ(app->received(), "");
    b_.gate.reset();
  }
}

TEST_F(HttpPeerListenerTest, APermitThatEndsBeforeTheBodyCameIsNotAdmitted) {
  BuildHolder();
  RawSocket* sender = Sender(Post(Hello(b_, true) + "Content-Length: 4\r\n"));
  EXPECT_TRUE(Gets(sender, kSaid));
  RawSocket* app = Accepted(*b_.app);
  b_.permit.ExpireAt(loop::Loop::Now());
  sender->Send("body");
  EXPECT_TRUE(Gets(sender, "Lease-Peer: not_admitted\r\n"));
  EXPECT_TRUE(IsOver(app));
  EXPECT_EQ(app->received(), "");
}

TEST_F(HttpPeerListenerTest, WhatMayHaveReachedTheApplicationIsNeverMarked) {
  BuildHolder();
  RawSocket* sender = Sender(Get(Hello(b_, false)));
  RawSocket* app = Accepted(*b_.app);
  EXPECT_TRUE(Gets(app, "\r\n\r\n"));
  CloseGate(b_);  // grace is over
  EXPECT_TRUE(Gets(sender, "HTTP/1.1 503 "));
  EXPECT_TRUE(Has(sender, "Lease-Peer: answer\r\n"));
  EXPECT_FALSE(Has(sender, "not_admitted"));
}

TEST_F(HttpPeerListenerTest, APermitThatEndsInMidAnswerCutsIt) {
  BuildHolder();
  RawSocket* sender = Sender(Get(Hello(b_, false)));
  RawSocket* app = Accepted(*b_.app);
  EXPECT_TRUE(Gets(app, "\r\n\r\n"));
  app->Send("HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\nhalf");
  EXPECT_TRUE(Gets(sender, "half"));
  b_.permit.ExpireAt(loop::Loop::Now());
  app->Send("rest");
  EXPECT_TRUE(IsOver(sender));
  EXPECT_TRUE(sender->reset());
  EXPECT_FALSE(Has(sender, "rest"));
}

TEST_F(HttpPeerListenerTest, AnExpiredPermitAdmitsNobody) {
  BuildHolder();
  b_.permit.ExpireAt(loop::Loop::Now());
  RawSocket* sender = Sender(Get(Hello(b_, false)));
  EXPECT_TRUE(Gets(sender, "Lease-Peer: not_admitted\r\n"));
  EXPECT_TRUE(IsAlone(*b_.app));
}

// ---- who may speak ----

TEST_F(HttpPeerListenerTest, AStaleRecordsProcessIsNotServed) {
  BuildHolder();
  RawSocket* sender = Sender(Get(Greeting("", "orders", "web", "process-before")));
  EXPECT_TRUE(Gets(sender, "HTTP/1.1 503 "));
  EXPECT_TRUE(Has(sender, "Lease-Peer: not_admitted\r\n"));
  EXPECT_TRUE(IsAlone(*b_.app));
}

TEST_F(HttpPeerListenerTest, WhoIsNotOneOfUsIsRefusedWithASentence) {
  b_.secret = "s3cret";
  BuildHolder();
  struct Case {
    std::string greeting;
    const char* says;
  };
  const Case cases[] = {
      {"", "clients use listen"},
      {"Lease-Peer: \r\n", "clients use listen"},
      {"Lease-Peer: 2 gate=web to=process-b from=x\r\n", "clients use listen"},
      {Greeting("s3cret", "orders", "web", "process-b") + "Lease-Peer: x\r\n",
       "clients use listen"},
      {Greeting("s3cret", "orders", "api", "process-b"), "gate of another name"},
      {Greeting("other", "orders", "web", "process-b"), "same peer_secret_file"},
      {Greeting("", "orders", "web", "process-b"), "same peer_secret_file"},
      {Greeting("s3cret", "other", "web", "process-b"), "same peer_secret_file"},
  };
  for (const Case& one : cases) {
    SCOPED_TRACE(one.greeting);
    RawSocket* sender = Sender(Get(one.greeting));
    EXPECT_TRUE(Gets(sender, one.says));
    EXPECT_EQ(sender->received().find("HTTP/1.1 403 "), 0u) << sender->received();
    EXPECT_TRUE(Has(sender, "peer_refused"));
    EXPECT_TRUE(Has(sender, "Lease-Peer: refused\r\n"));
  }
  EXPECT_TRUE(IsAlone(*b_.app));
  RawSocket* good = Sender(Get(Greeting("s3cret", "orders", "web", "process-b")));
  RawSocket* app = Accepted(*b_.app);
  EXPECT_TRUE(Gets(app, "\r\n\r\n"));
  EXPECT_FALSE(Has(app, "mac="));
  app->Send(Ok("welcome"));
  EXPECT_TRUE(Gets(good, "welcome"));
}

TEST_F(HttpPeerListenerTest, ClientsAddressesAreBelievedHereOnly) {
  BuildHolder();
  const std::string forwarded =
      "X-Forwarded-For: 192.0.2.1, 198.51.100.7\r\nX-Forwarded-Host: shop\r\n"
      "X-Forwarded-Proto: https\r\n";
  Sender(Get(Hello(b_, false) + forwarded));
  RawSocket* app = Accepted(*b_.app);
  EXPECT_TRUE(Gets(app, "\r\n\r\n"));
  EXPECT_EQ(Count(app->received(), forwarded), 1u) << app->received();
  EXPECT_EQ(Count(app->received(), "X-Forwarded-"), 3u);
}

TEST_F(HttpPeerListenerTest, AForgedGreetingAtThePublicListenerIsALoop) {
  BuildHolder();
  for (const char* name : {"Lease-Peer", "lease_peer", "LEASE.PEER"}) {
    RawSocket* client = Client(b_, Get(std::string(name) + ": 1 gate=web to=process-b from=x\r\n"));
    EXPECT_TRUE(Gets(client, "loop_detected"));
    EXPECT_EQ(client->received().find("HTTP/1.1 508 Loop Detected\r\n"), 0u);
    EXPECT_TRUE(Has(client, "Lease-Peer: refused\r\n"));
    EXPECT_TRUE(Has(client, "advertise must name peer_listen"));
  }
  EXPECT_TRUE(IsAlone(*b_.app));
}

TEST_F(HttpPeerListenerTest, AnApplicationsOwnMarkReachesNobody) {
  BuildHolder();
  RawSocket* sender = Sender(Get(Hello(b_, false)));
  RawSocket* app = Accepted(*b_.app);
  EXPECT_TRUE(Gets(app, "\r\n\r\n"));
  app->Send(
      "HTTP/1.1 503 Service Unavailable\r\nLease-Peer: not_admitted\r\nLease_Peer: refused\r\n"
      "Content-Length: 0\r\n\r\n");
  EXPECT_TRUE(Gets(sender, "\r\n\r\n"));
  EXPECT_EQ(Count(sender->received(), "Lease"), 1u) << sender->received();
  EXPECT_TRUE(Has(sender, "Lease-Peer: answer\r\n"));
}

TEST_F(HttpPeerListenerTest, AnIdleSenderIsNotClosedByADrain) {
  BuildHolder();
  RawSocket* sender = Sender();
  EXPECT_TRUE(Eventually([&] { return b_.gate->status().connections == 1; }));
  RunFor(Duration::Millis(1050));
  Drain(b_);
  CloseGate(b_);
  RunFor(Duration::Millis(1300));
  sender->Poll();
  EXPECT_FALSE(sender->over());
  Open(b_);
  sender->Send(Get(Hello(b_, false)));
  EXPECT_TRUE(Gets(Accepted(*b_.app), "\r\n\r\n"));
}

TEST_F(HttpPeerListenerTest, BadRequestsAreRefusedAsEverywhere) {
  BuildHolder();
  RawSocket* sender = Sender("GET / HTTP/1.1\r\n" + Hello(b_, false) + "\r\n");
  EXPECT_TRUE(Gets(sender, "HTTP/1.1 400 "));
  EXPECT_TRUE(Has(sender, "Lease-Peer: answer\r\n"));
  EXPECT_TRUE(IsOver(sender));
}

TEST_F(HttpPeerListenerTest, WithoutPeerListenNobodyCanForwardHere) {
  b_.options.peer_listen = {};
  BuildHolder();
  EXPECT_EQ(b_.gate->advertised(), "");
  EXPECT_EQ(b_.gate->status().peer_listen, "");
}

}  // namespace
}  // namespace leasehold::gate

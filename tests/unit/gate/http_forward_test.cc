// Forwarding of http, both sides together: what a standby's client sends is answered by the
// holder's application, as if the client had gone there.
#include <gtest/gtest.h>

#include <string>

#include "http_pair_fixture.h"

namespace leasehold::gate {
namespace {

using base::Duration;

using HttpForwardTest = HttpPairFixture;

TEST_F(HttpForwardTest, AStandbyAnswersFromTheHoldersApplication) {
  BuildBoth();
  RawSocket* client = Client(a_, Get("X-Forwarded-For: 192.0.2.9\r\n", "/x?y"));
  RawSocket* app = Accepted(*b_.app);
  EXPECT_TRUE(Gets(app, "\r\n\r\n"));
  EXPECT_EQ(app->received().find("GET /x?y HTTP/1.1\r\nHost: a\r\n"), 0u);
  EXPECT_EQ(Count(app->received(), "Via: "), 1u) << app->received();
  EXPECT_TRUE(Has(app, "X-Forwarded-For: 192.0.2.9, 127.0.0.1\r\n")) << app->received();
  EXPECT_EQ(Count(app->received(), "X-Forwarded-Proto: http\r\n"), 1u);
  EXPECT_EQ(Count(app->received(), "X-Forwarded-Host: a\r\n"), 1u);
  EXPECT_EQ(Count(app->received(), "Lease-Fencing-Token: 7\r\n"), 1u);
  EXPECT_TRUE(Has(app, "Lease-Holder: node/process-b\r\n"));
  EXPECT_TRUE(Has(app, "Lease-Sequence: 1\r\n"));
  EXPECT_FALSE(Has(app, "Lease-Peer"));
  app->Send(Ok("from b", "Lease-Peer: admitted\r\nX-App: 1\r\n"));
  EXPECT_TRUE(Gets(client, "from b"));
  EXPECT_EQ(client->received().find("HTTP/1.1 200 OK\r\n"), 0u) << client->received();
  EXPECT_EQ(Count(client->received(), "Via: "), 1u);
  EXPECT_TRUE(Has(client, "X-App: 1\r\n"));
  EXPECT_FALSE(Has(client, "Lease-Peer"));
  EXPECT_FALSE(Has(client, "Connection: close"));
  EXPECT_TRUE(IsAlone(*a_.app));
  EXPECT_EQ(a_.gate->status().in_flight, 0u);
}

TEST_F(HttpForwardTest, ABodyFollowsTheAdmissionAndArrivesWhole) {
  BuildBoth();
  RawSocket* client = Client(a_, Post("Content-Length: 4\r\n", "bo"));
  RawSocket* app = Accepted(*b_.app);
  EXPECT_TRUE(Gets(app, "\r\n\r\nbo"));
  client->Send("dy");
  EXPECT_TRUE(Gets(app, "\r\n\r\nbody"));
  EXPECT_TRUE(Has(app, "Content-Length: 4\r\n"));
  app->Send(Ok("done"));
  EXPECT_TRUE(Gets(client, "done"));
  EXPECT_FALSE(Has(client, "199"));
}

TEST_F(HttpForwardTest, APostWithoutBodyArrivesAsOne) {
  BuildBoth();
  for (const char* more : {"", "Content-Length: 0\r\n"}) {
    RawSocket* client = Client(a_, Post(more));
    RawSocket* app = Accepted(*b_.app);
    EXPECT_TRUE(Gets(app, "\r\n\r\n"));
    EXPECT_EQ(Count(app->received(), "Content-Length: 0\r\n"), 1u) << app->received();
    EXPECT_FALSE(Has(app, "chunked"));
    app->Send("HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n");
    EXPECT_TRUE(Gets(client, "HTTP/1.1 204 No Content\r\n"));
    EXPECT_FALSE(Has(client, "Connection: close"));
  }
}

TEST_F(HttpForwardTest, ConnectionsAreKeptOnAllThreeHops) {
  BuildBoth();
  RawSocket* client = Client(a_);
  RawSocket* app = nullptr;
  for (size_t i = 1; i <= 3; ++i) {
    client->Send(i == 2 ? Post("Content-Length: 1\r\n", "x") : Get());
    if (i == 1) app = Accepted(*b_.app);
    EXPECT_TRUE(GetsTimes(app, i == 2 ? "\r\n\r\nx" : "\r\n\r\n", i == 3 ? 3 : 1));
    app->Send(Ok("answer" + std::to_string(i)));
    EXPECT_TRUE(Gets(client, "answer" + std::to_string(i)));
  }
  EXPECT_TRUE(IsAlone(*b_.app));
  EXPECT_EQ(b_.gate->status().connections, 1u);
}

TEST_F(HttpForwardTest, PipelinedRequestsAreAnsweredInOrder) {
  BuildBoth();
  RawSocket* client =
      Client(a_, Get("", "/1") + Post("Content-Length: 2\r\n", "ab") + Post() + Get("", "/4"));
  RawSocket* app = Accepted(*b_.app);
  for (size_t i = 1; i <= 4; ++i) {
    EXPECT_TRUE(GetsTimes(app, "Lease-Sequence: " + std::to_string(i) + "\r\n", 1));
    EXPECT_TRUE(GetsTimes(app, "\r\n\r\n", i));
    app->Send(Ok("answer" + std::to_string(i)));
  }
  EXPECT_TRUE(Gets(client, "answer4"));
  EXPECT_LT(client->received().find("answer1"), client->received().find("answer2"));
  EXPECT_LT(client->received().find("answer2"), client->received().find("answer3"));
}

TEST_F(HttpForwardTest, HeadHasNoBodyAndKeepsItsConnection) {
  BuildBoth();
  RawSocket* client = Client(a_, "HEAD / HTTP/1.1\r\nHost: a\r\n\r\n");
  RawSocket* app = Accepted(*b_.app);
  EXPECT_TRUE(Gets(app, "\r\n\r\n"));
  app->Send("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n");
  EXPECT_TRUE(Gets(client, "Content-Length: 5\r\n"));
  client->Send(Get("", "/next"));
  EXPECT_TRUE(Gets(app, "GET /next "));
  app->Send(Ok("next"));
  EXPECT_TRUE(Gets(client, "next"));
}

TEST_F(HttpForwardTest, ChunksAndTrailersPassBothWays) {
  BuildBoth();
  RawSocket* client = Client(a_, Post("Transfer-Encoding: chunked\r\nTE: trailers\r\n",
                                      "2\r\nab\r\n0\r\nX-Sum: 1\r\nLease-Peer: x\r\n\r\n"));
  RawSocket* app = Accepted(*b_.app);
  EXPECT_TRUE(Gets(app, "2\r\nab\r\n0\r\nX-Sum: 1\r\n\r\n")) << app->received();
  EXPECT_TRUE(Has(app, "TE: trailers\r\n"));
  app->Send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nz\r\n0\r\nX-End: 2\r\n\r\n");
  EXPECT_TRUE(Gets(client, "1\r\nz\r\n0\r\nX-End: 2\r\n\r\n"));
}

TEST_F(HttpForwardTest, AnEmptyChunkedBodyWithTrailersStaysChunked) {
  BuildBoth();
  RawSocket* client = Client(a_, Post("Transfer-Encoding: chunked\r\n", "0\r\nX-Sum: 1\r\n\r\n"));
  RawSocket* app = Accepted(*b_.app);
  EXPECT_TRUE(Gets(app, "0\r\nX-Sum: 1\r\n\r\n")) << app->received();
  EXPECT_TRUE(Has(app, "Transfer-Encoding: chunked\r\n"));
  app->Send(Ok());
  EXPECT_TRUE(Gets(client, "200 OK"));
}

TEST_F(HttpForwardTest, InterimAnswersOfTheApplicationAreRelayed) {
  BuildBoth();
  RawSocket* client = Client(a_, Get());
  RawSocket* app = Accepted(*b_.app);
  EXPECT_TRUE(Gets(app, "\r\n\r\n"));
  app->Send(
      "HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 199 Mine\r\nLease-Peer: "
      "admitted\r\n\r\n");
  EXPECT_TRUE(Gets(client, "HTTP/1.1 103 Early Hints\r\nLink: x\r\n"));
  EXPECT_TRUE(Gets(client, "HTTP/1.1 199 Mine\r\n"));
  EXPECT_FALSE(Has(client, "Lease-Peer"));
  app->Send(Ok("end"));
  EXPECT_TRUE(Gets(client, "end"));
}

TEST_F(HttpForwardTest, Expect100ContinueIsEndToEnd) {
  BuildBoth();
  RawSocket* client = Client(a_, Post("Expect: 100-continue\r\nContent-Length: 4\r\n"));
  RawSocket* app = Accepted(*b_.app);
  EXPECT_TRUE(Gets(app, "Expect: 100-continue\r\n"));
  EXPECT_TRUE(Gets(app, "\r\n\r\n"));
  RunFor(Duration::Millis(30));
  client->Poll();
  EXPECT_EQ(client->received(), "");
  app->Send("HTTP/1.1 100 Continue\r\n\r\n");
  EXPECT_TRUE(Gets(client, "HTTP/1.1 100 Continue\r\n"));
  client->Send("body");
  EXPECT_TRUE(Gets(app, "\r\n\r\nbody"));
  app->Send(Ok("done"));
  EXPECT_TRUE(Gets(client, "done"));
}

TEST_F(HttpForwardTest, AnEarly401ReachesAClientThatExpects100AndTheBodyIsNeverSent) {
  BuildBoth();
  RawSocket* client = Client(a_, Post("Expect: 100-continue\r\nContent-Length: 4\r\n"));
  RawSocket* app = Accepted(*b_.app);
  EXPECT_TRUE(Gets(app, "\r\n\r\n"));
  app->Send("HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n");
  EXPECT_TRUE(Gets(client, "HTTP/1.1 401 Unauthorized\r\n"));
  EXPECT_FALSE(Has(client, "100 Continue"));
  EXPECT_TRUE(IsOver(app));
  EXPECT_FALSE(Has(app, "body"));
}

TEST_F(HttpForwardTest, AnHttp10ClientIsServed) {
  BuildBoth();
  RawSocket* client = Client(a_, "GET / HTTP/1.0\r\n\r\n");
  RawSocket* app = Accepted(*b_.app);
  EXPECT_TRUE(Gets(app, "\r\n\r\n"));
  EXPECT_FALSE(Has(app, "X-Forwarded-Host"));
  app->Send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n");
  EXPECT_TRUE(IsOver(client));
  EXPECT_TRUE(client->ended());
  EXPECT_FALSE(Has(client, "chunked"));
  EXPECT_EQ(client->received().substr(client->received().size() - 6), "\r\n\r\nhi");
}

TEST_F(HttpForwardTest, AClientThatWantsToCloseIsClosed) {
  BuildBoth();
  RawSocket* client = Client(a_, Get("Connection: close, X-Hop\r\nX-Hop: 1\r\n"));
  RawSocket* app = Accepted(*b_.app);
  EXPECT_TRUE(Gets(app, "\r\n\r\n"));
  EXPECT_FALSE(Has(app, "X-Hop"));
  app->Send(Ok("bye"));
  EXPECT_TRUE(IsOver(client));
  EXPECT_TRUE(client->ended());
  EXPECT_TRUE(Has(client, "bye"));
  EXPECT_TRUE(Has(client, "Connection: close\r\n"));
}

TEST_F(HttpForwardTest, AnUpgradeBecomesATunnelThroughBoth) {
  BuildBoth();
  RawSocket* client = Client(a_, Get("Connection: Upgrade\r\nUpgrade: websocket\r\n"));
  RawSocket* app = Accepted(*b_.app);
  EXPECT_TRUE(Gets(app, "Upgrade: websocket\r\n"));
  app->Send(
      "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\nA");
  EXPECT_TRUE(Gets(client, "\r\n\r\nA"));
  EXPECT_TRUE(Has(client, "Upgrade: websocket\r\n"));
  EXPECT_FALSE(Has(client, "Lease-Peer"));
  EXPECT_EQ(Count(client->received(), "Via: "), 1u);
  client->Send("ping");
  EXPECT_TRUE(Gets(app, "ping"));
  app->Send("pong");
  EXPECT_TRUE(Gets(client, "pong"));
  EXPECT_EQ(a_.gate->status().forwarding, 1u);
  EXPECT_EQ(a_.gate->status().in_flight, 0u);
  EXPECT_EQ(b_.gate->status().in_flight, 1u);
  Drain(b_);
  EXPECT_TRUE(IsOver(client));  // at the end of the holder's drain_tunnels
  client->Close();
  EXPECT_TRUE(Eventually([&] { return a_.gate->status().forwarding == 0; }));
}

TEST_F(HttpForwardTest, AForwardedTunnelOutlivesTheSendersOwnValve) {
  BuildBoth();
  RawSocket* client = Client(a_, Get("Connection: Upgrade\r\nUpgrade: websocket\r\n"));
  RawSocket* app = Accepted(*b_.app);
  EXPECT_TRUE(Gets(app, "Upgrade: websocket\r\n"));
  app->Send(
      "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n");
  EXPECT_TRUE(Gets(client, "\r\n\r\n"));
  Open(a_);
  Drain(a_);
  RunFor(Duration::Millis(150));  // past drain_tunnels
  CloseGate(a_, true);
  client->Send("still");
  EXPECT_TRUE(Gets(app, "still"));
}

TEST_F(HttpForwardTest, FiftyMegabytesPassBothWaysInBoundedMemory) {
  a_.options.body_timeout = b_.options.body_timeout = Duration::Seconds(60);
  BuildBoth();
  constexpr size_t kBytes = size_t{50} * 1024 * 1024;
  RawSocket* client = Client(a_, Post("Content-Length: " + std::to_string(kBytes) + "\r\n"));
  RawSocket* app = Accepted(*b_.app);
  const std::string block(size_t{256} * 1024, 'x');
  size_t sent = 0;
  EXPECT_TRUE(RunUntil(
      [&] {
        sent +=
            client->Send(std::string_view(block).substr(0, std::min(block.size(), kBytes - sent)));
        app->Poll();
        return app->received().size() > kBytes;
      },
      Duration::Seconds(40)));
  app->Send("HTTP/1.1 200 OK\r\nContent-Length: " + std::to_string(kBytes) + "\r\n\r\n");
  sent = 0;
  EXPECT_TRUE(RunUntil(
      [&] {
        sent += app->Send(std::string_view(block).substr(0, std::min(block.size(), kBytes - sent)));
        client->Poll();
        return client->received().size() > kBytes;
      },
      Duration::Seconds(40)));
  EXPECT_TRUE(Has(client, "200 OK"));
  EXPECT_FALSE(client->over());
}

TEST_F(HttpForwardTest, AReaderThatTakesNothingHoldsTheApplicationBack) {
  BuildBoth();
  RawSocket* client = Client(a_, Get());
  RawSocket* app = Accepted(*b_.app);
  EXPECT_TRUE(Gets(app, "\r\n\r\n"));
  app->Send("HTTP/1.1 200 OK\r\nContent-Length: 99999999\r\n\r\n");
  const std::string block(size_t{256} * 1024, 'x');
  size_t sent = 0;
  size_t last = 1;
  // Until a whole look at both gates moved nothing any more.
  EXPECT_TRUE(RunUntil([&] {
    const size_t before = sent;
    sent += app->Send(block);
    RunFor(Duration::Millis(20));
    const bool stuck = sent == before && last == 0;
    last = sent - before;
    return stuck;
  }));
  EXPECT_LT(sent, size_t{30} * 1024 * 1024);  // what six socket buffers of loopback may take
  client->Close();
  EXPECT_TRUE(IsOver(app));
}

TEST_F(HttpForwardTest, ASlowAnswerIsWaitedForBecauseTheHolderSaysThatItLives) {
  BuildBoth();
  RawSocket* client = Client(a_, Get());
  RawSocket* app = Accepted(*b_.app);
  EXPECT_TRUE(Gets(app, "\r\n\r\n"));
  RunFor(Duration::Millis(4500));  // more than a silent peer is given
  client->Poll();
  EXPECT_EQ(client->received(), "");
  EXPECT_EQ(a_.gate->status().forwarding, 1u);
  EXPECT_EQ(a_.doubts, 0);
  app->Send(Ok("slow"));
  EXPECT_TRUE(Gets(client, "slow"));
  EXPECT_FALSE(Has(client, "199"));
  EXPECT_TRUE(IsAlone(*b_.app));
}

TEST_F(HttpForwardTest, AHeadThatIsJustSmallEnoughPassesTwoHops) {
  a_.secret = b_.secret = "s3cret";
  BuildBoth();
  const std::string frame = Get("X-Big: \r\n");
  const std::string big(a_.options.head_bytes_max - frame.size(), 'x');
  RawSocket* client = Client(a_, Get("X-Big: " + big + "\r\n"));
  RawSocket* app = Accepted(*b_.app);
  EXPECT_TRUE(Gets(app, "\r\n\r\n"));
  const std::string answer = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nX-Big: ";
  app->Send(answer + std::string(a_.options.head_bytes_max - answer.size() - 4, 'y') +
            "\r\n\r\nhi");
  EXPECT_TRUE(Gets(client, "\r\n\r\nhi"));
  EXPECT_EQ(client->received().find("HTTP/1.1 200 OK\r\n"), 0u);
}

TEST_F(HttpForwardTest, ASlowUploadIsNotTakenForASilentPeer) {
  BuildBoth();
  RawSocket* client = Client(a_, Post("Content-Length: 4\r\n", "sl"));
  RawSocket* app = Accepted(*b_.app);
  EXPECT_TRUE(Gets(app, "\r\n\r\nsl"));
  RunFor(Duration::Millis(3800));
  client->Send("ow");
  EXPECT_TRUE(Gets(app, "\r\n\r\nslow"));
  app->Send(Ok("taken"));
  EXPECT_TRUE(Gets(client, "taken"));
}

TEST_F(HttpForwardTest, AnApplicationThatTakesNothingForLongIsNotTakenForADeadPeer) {
  BuildBoth();
  RawSocket* client = Client(a_, Post("Content-Length: 50000000\r\n"));
  RawSocket* app = Accepted(*b_.app);
  const std::string block(size_t{256} * 1024, 'x');
  const base::MonoTime end = loop::Loop::Now() + Duration::Millis(4500);
  EXPECT_TRUE(Eventually([&] {
    client->Send(block);
    return loop::Loop::Now() >= end;
  }));
  client->Poll();
  EXPECT_FALSE(client->over()) << client->received();
  EXPECT_EQ(a_.gate->status().forwarding, 1u);
  app->Send("HTTP/1.1 413 Content Too Large\r\nContent-Length: 0\r\n\r\n");
  EXPECT_TRUE(Gets(client, "HTTP/1.1 413 "));
}

TEST_F(HttpForwardTest, AClientThatLeavesEndsTheExchangeOnBothSides) {
  BuildBoth();
  RawSocket* client = Client(a_, Post("Content-Length: 10\r\n", "x"));
  RawSocket* app = Accepted(*b_.app);
  EXPECT_TRUE(Gets(app, "\r\n\r\nx"));
  client->CloseWithReset();
  EXPECT_TRUE(IsOver(app));
  EXPECT_TRUE(Eventually([&] { return b_.gate->status().in_flight == 0; }));
  EXPECT_EQ(a_.gate->status().forwarding, 0u);
}

TEST_F(HttpForwardTest, AnUnreachableApplicationIsThe502OfTheHolder) {
  BuildBoth();
  b_.app->Close();
  RawSocket* client = Client(a_, Get());
  EXPECT_TRUE(Gets(client, "upstream_unreachable"));
  EXPECT_EQ(client->received().find("HTTP/1.1 502 "), 0u);
  EXPECT_FALSE(Has(client, "Lease-Peer"));
  EXPECT_EQ(a_.doubts, 0);
  client->Send(Post("Content-Length: 1\r\n", "x"));
  EXPECT_TRUE(GetsTimes(client, "upstream_unreachable", 2));
}

// The sender and the holder each add fields: heads as full as one sidecar takes them got 431 or 502
// over two.
TEST_F(HttpForwardTest, HeadsWithAsManyFieldsAsOneSidecarTakesPassTwo) {
  BuildBoth();
  std::string full;
  for (int i = 0; i < 255; ++i) full += "X-Full:" + std::to_string(i) + "\r\n";
  RawSocket* client = Client(a_, "POST / HTTP/1.1\r\nHost: a\r\n" + full + "\r\n");
  RawSocket* app = Accepted(*b_.app);
  EXPECT_TRUE(Gets(app, "X-Full: 254\r\n"));
  EXPECT_TRUE(Gets(app, "\r\n\r\n"));
  app->Send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n" + full + "\r\n0\r\n\r\n");
  EXPECT_TRUE(Gets(client, "X-Full: 254\r\n")) << client->received();
  EXPECT_EQ(client->received().find("HTTP/1.1 200 "), 0u);
}

TEST_F(HttpForwardTest, AHeadAsLargeAsOneSidecarTakesItPassesTwo) {
  BuildBoth();
  // The host, which is repeated, as long as it may be; then fields that grow by a blank each.
  std::string head = "POST / HTTP/1.1\r\nHost: " + std::string(1024, 'h') + "\r\n";
  for (int i = 0; i < 254; ++i) head += "X:y\r\n";
  head += "Y: ";
  head += std::string(a_.options.head_bytes_max - head.size() - 4, 'z') + "\r\n\r\n";
  ASSERT_EQ(head.size(), a_.options.head_bytes_max);
  RawSocket* client = Client(a_, head);
  RawSocket* app = Accepted(*b_.app);
  EXPECT_TRUE(Gets(app, "\r\n\r\n"));
  app->Send(Ok("whole"));
  EXPECT_TRUE(Gets(client, "whole")) << client->received();
}

TEST_F(HttpForwardTest, ForwardedRequestsAreCounted) {
  BuildBoth();
  Warm();
  EXPECT_NE(
      a_.metrics->Scrape().find("leasehold_gate_forwarded_total{gate=\"web\",lease=\"orders\"} 1"),
      std::string::npos);
  EXPECT_NE(a_.metrics->Scrape().find("status=\"2xx\"} 1"), std::string::npos);
  EXPECT_NE(b_.metrics->Scrape().find("status=\"2xx\"} 1"), std::string::npos);
}

}  // namespace
}  // namespace leasehold::gate

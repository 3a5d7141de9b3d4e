// The http gate as a proxy: what reaches the application and what comes back.
#include <gtest/gtest.h>

#include <string>

#include "http_gate_fixture.h"

namespace leasehold::gate {
namespace {

class HttpGateTest : public HttpGateFixture {};

const std::string kTe = "Transfer-Encoding: chunked\r\n";

TEST_F(HttpGateTest, ARequestReachesTheApplicationWithTheLeasesFields) {
  BuildOpen();
  Pair pair = Exchange(Get("X-Own: 1\r\n", "/a?b"), Ok());
  EXPECT_TRUE(Gets(pair.client, "\r\n\r\nhi"));
  const std::string& seen = pair.app->received();
  EXPECT_EQ(seen.find("GET /a?b HTTP/1.1\r\nHost: a\r\n"), 0u) << seen;
  for (const char* field :
       {"X-Own: 1\r\n", "X-Forwarded-For: 127.0.0.1\r\n", "X-Forwarded-Proto: http\r\n",
        "X-Forwarded-Host: a\r\n", "Via: 1.1 leasehold\r\n", "Lease-Fencing-Token: 7\r\n",
        "Lease-Holder: node-1/process-1\r\n", "Lease-Name: orders\r\n", "Lease-Sequence: 1\r\n"}) {
    EXPECT_TRUE(Has(pair.app, field)) << field << seen;
  }
  EXPECT_TRUE(Has(pair.client, "Via: 1.1 leasehold\r\n"));
}

TEST_F(HttpGateTest, AClientCannotForgeTheLeasesFields) {
  BuildOpen();
  Pair pair =
      Exchange(Post("lease-FENCING-token: 99\r\nLease_Fencing_Token: 99\r\nLEASE-Holder: x\r\n"
                    "Lease-Name: x\r\nLease-Sequence: 99\r\n" +
                        kTe,
                    "1\r\na\r\n0\r\nLease-Fencing-Token: 99\r\nX-Sum: 1\r\n\r\n"),
               Ok());
  EXPECT_TRUE(Gets(pair.app, "X-Sum: 1\r\n\r\n"));
  EXPECT_FALSE(Has(pair.app, "99")) << pair.app->received();
  EXPECT_EQ(Count(pair.app->received(), "Lease-"), 4u);
}

TEST_F(HttpGateTest, TheSequenceRisesAndStartsAgainWithANewToken) {
  BuildOpen();
  Pair pair = Exchange(Get(), Ok());
  EXPECT_TRUE(Gets(pair.client, "hi"));
  pair.client->Send(Get());
  EXPECT_TRUE(Gets(pair.app, "Lease-Sequence: 2\r\n"));
  pair.app->Send(Ok("ho"));
  EXPECT_TRUE(Gets(pair.client, "ho"));
  Open(8);
  pair.client->Send(Get());
  EXPECT_TRUE(Gets(pair.app, "Lease-Fencing-Token: 8\r\n"));
  EXPECT_TRUE(Eventually([&] {
    pair.app->Poll();
    return Count(pair.app->received(), "Lease-Sequence: 1\r\n") == 2;
  }));
}

TEST_F(HttpGateTest, HopByHopHeadersAndThoseNamedInConnectionStayHere) {
  BuildOpen();
  Pair pair = Exchange(Get("Connection: keep-alive, X-Secret\r\nX-Secret: 1\r\nKeep-Alive: 5\r\n"
                           "Proxy-Connection: x\r\nTE: gzip\r\n"),
                       "HTTP/1.1 200 OK\r\nConnection: X-Inner\r\nX-Inner: 1\r\nKeep-Alive: 5\r\n"
                       "X-Outer: 1\r\nContent-Length: 0\r\n\r\n");
  EXPECT_TRUE(Gets(pair.client, "\r\n\r\n"));
  for (const char* gone : {"X-Secret", "Keep-Alive", "Proxy-Connection", "TE: ", "X-Inner"}) {
    EXPECT_FALSE(Has(pair.app, gone)) << gone;
    EXPECT_FALSE(Has(pair.client, gone)) << gone;
  }
  EXPECT_TRUE(Has(pair.client, "X-Outer: 1\r\n"));
}

TEST_F(HttpGateTest, NamingHostOrForwardedForInConnectionStripsNeither) {
  BuildOpen();
  Pair pair =
      Exchange(Get("Connection: Host, X-Forwarded-For\r\nX-Forwarded-For: 10.0.0.9\r\n"), Ok());
  EXPECT_TRUE(Has(pair.app, "Host: a\r\n"));
  EXPECT_TRUE(Has(pair.app, "X-Forwarded-For: 10.0.0.9, 127.0.0.1\r\n"));
}

TEST_F(HttpGateTest, AbsoluteFormBecomesOriginFormForItsOwnHost) {
  BuildOpen();
  Pair pair = Exchange("GET http://real?x HTTP/1.1\r\nHost: other\r\n\r\n", Ok());
  EXPECT_EQ(pair.app->received().find("GET /?x HTTP/1.1\r\nHost: real\r\n"), 0u);
  EXPECT_FALSE(Has(pair.app, "other"));
}

TEST_F(HttpGateTest, ConnectionsAreKeptOnBothSides) {
  BuildOpen();
  Pair pair = Exchange(Get(), Ok("1"));
  for (int i = 2; i < 6; ++i) {
    EXPECT_TRUE(Gets(pair.client, "\r\n\r\n" + std::to_string(i - 1)));
    pair.client->Send(Get());
    EXPECT_TRUE(Gets(pair.app, "Lease-Sequence: " + std::to_string(i)));
    pair.app->Send(Ok(std::to_string(i)));
  }
  EXPECT_TRUE(Gets(pair.client, "\r\n\r\n5"));
  EXPECT_TRUE(AppIsAlone());
  EXPECT_FALSE(Has(pair.client, "Connection:"));
}

TEST_F(HttpGateTest, PipelinedRequestsAreAnsweredInOrder) {
  BuildOpen();
  RawSocket* client = Client(Get("", "/1") + Post("Content-Length: 2\r\n", "ab") + Get("", "/3"));
  RawSocket* app = App();
  EXPECT_TRUE(Gets(app, "GET /1 "));
  EXPECT_FALSE(Has(app, "POST")) << "one at a time";
  app->Send(Ok("one"));
  EXPECT_TRUE(Gets(app, "\r\n\r\nab"));
  app->Send(Ok("two"));
  EXPECT_TRUE(Gets(app, "GET /3 "));
  app->Send(Ok("three"));
  EXPECT_TRUE(Gets(client, "three"));
  EXPECT_LT(client->received().find("one"), client->received().find("two"));
  EXPECT_LT(client->received().find("two"), client->received().find("three"));
}

TEST_F(HttpGateTest, AnEndRightAfterTheRequestIsAnswered) {
  BuildOpen();
  RawSocket* client = Client(Get("", "/1") + Get("", "/2"));
  client->ShutdownWrite();
  RawSocket* app = App();
  EXPECT_TRUE(Gets(app, "GET /1 "));
  app->Send(Ok("one"));
  EXPECT_TRUE(Gets(app, "GET /2 "));
  app->Send(Ok("two"));
  EXPECT_TRUE(Gets(client, "two"));
  EXPECT_TRUE(IsOver(client));
  EXPECT_TRUE(client->ended());
  EXPECT_EQ(Count(client->received(), "200 OK"), 2u);
}

TEST_F(HttpGateTest, ABodyOfAGetIsKept) {
  BuildOpen();
  Pair pair = Exchange(Get("Content-Length: 3\r\n") + "abc", Ok());
  EXPECT_TRUE(Gets(pair.app, "\r\n\r\nabc"));
}

TEST_F(HttpGateTest, ChunksAndTrailersPassBothWays) {
  BuildOpen();
  RawSocket* client = Client(Post(kTe, "3\r\nabc\r\n0\r\nX-Request-Sum: 1\r\n\r\n"));
  RawSocket* app = App();
  EXPECT_TRUE(Gets(app, "\r\n\r\n3\r\nabc\r\n0\r\nX-Request-Sum: 1\r\n\r\n"));
  app->Send("HTTP/1.1 200 OK\r\n" + kTe + "\r\n2\r\nhi\r\n0\r\nX-Answer-Sum: 2\r\n\r\n");
  EXPECT_TRUE(Gets(client, "\r\n\r\n2\r\nhi\r\n0\r\nX-Answer-Sum: 2\r\n\r\n"));
  client->Send(Get());
  EXPECT_TRUE(Gets(app, "Lease-Sequence: 2")) << "kept after a chunked exchange";
}

TEST_F(HttpGateTest, TrailersThatCouldChangeFramingOrRoutingAreDropped) {
  BuildOpen();
  Pair pair =
      Exchange(Post(kTe, "0\r\nHost: evil\r\nX-Forwarded-For: 6.6.6.6\r\nX-Ok: 1\r\n\r\n"), Ok());
  EXPECT_TRUE(Gets(pair.app, "X-Ok: 1\r\n\r\n"));
  EXPECT_FALSE(Has(pair.app, "evil"));
  EXPECT_FALSE(Has(pair.app, "6.6.6.6"));
}

TEST_F(HttpGateTest, AnAnswerThatRunsUntilCloseGetsChunksAndAnEnd) {
  BuildOpen();
  Pair pair = Exchange(Get(), "HTTP/1.0 200 OK\r\n\r\nsome");
  EXPECT_TRUE(Gets(pair.client, "some"));
  pair.app->Close();
  EXPECT_TRUE(Gets(pair.client, "\r\n0\r\n\r\n"));
  EXPECT_TRUE(Has(pair.client, kTe));
}

TEST_F(HttpGateTest, Http10ClientsGetWhatTheyUnderstand) {
  BuildOpen();
  Pair pair =
      Exchange("GET / HTTP/1.0\r\n\r\n", "HTTP/1.1 200 OK\r\n" + kTe + "\r\n2\r\nhi\r\n0\r\n\r\n");
  EXPECT_TRUE(IsOver(pair.client));
  EXPECT_EQ(pair.client->received().substr(pair.client->received().find("\r\n\r\n")), "\r\n\r\nhi");
  EXPECT_TRUE(Has(pair.client, "Connection: close"));
  EXPECT_TRUE(Has(pair.app, "Host: "));
}

TEST_F(HttpGateTest, AnAnswerToHeadHasNoBodyAndKeepsItsLength) {
  BuildOpen();
  Pair pair = Exchange("HEAD / HTTP/1.1\r\nHost: a\r\n\r\n",
                       "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n");
  EXPECT_TRUE(Gets(pair.client, "Content-Length: 9\r\n"));
  pair.client->Send(Get());
  EXPECT_TRUE(Gets(pair.app, "GET / "));
}

TEST_F(HttpGateTest, AnswersWithoutABodyEndAtTheirHead) {
  BuildOpen();
  Pair pair = Exchange(Get(), "HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\n\r\n");
  EXPECT_TRUE(Gets(pair.client, "304"));
  pair.client->Send(Get("", "/2"));
  EXPECT_TRUE(Gets(pair.app, "GET /2 "));
  pair.app->Send("HTTP/1.1 204 No Content\r\n\r\n");
  EXPECT_TRUE(Gets(pair.client, "204 No Content"));
}

TEST_F(HttpGateTest, ALengthOfWhatHasNoBodyIsNotPassedOn) {
  BuildOpen();
  Pair pair = Exchange(Get(),
                       "HTTP/1.1 103 Early Hints\r\nContent-Length: 77\r\n\r\n"
                       "HTTP/1.1 204 No Content\r\nContent-Length: 77\r\nX-Id: 5\r\n\r\n");
  EXPECT_TRUE(Gets(pair.client, "X-Id: 5"));
  EXPECT_FALSE(Has(pair.client, "77")) << pair.client->received();
  pair.client->Send(Get("", "/2"));
  EXPECT_TRUE(Gets(pair.app, "GET /2 "));
}

TEST_F(HttpGateTest, InterimAnswersPass) {
  BuildOpen();
  Pair pair = Exchange(Get(), "HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" + Ok());
  EXPECT_TRUE(Gets(pair.client, "\r\n\r\nhi"));
  EXPECT_EQ(pair.client->received().find("HTTP/1.1 103 Early Hints\r\nLink: x\r\n"), 0u);
}

TEST_F(HttpGateTest, AContinueComesFromTheApplicationBeforeTheBodyGoes) {
  BuildOpen();
  RawSocket* client = Client(Post("Expect: 100-continue\r\nContent-Length: 4\r\n"));
  RawSocket* app = App();
  EXPECT_TRUE(Gets(app, "Expect: 100-continue\r\n"));
  app->Send("HTTP/1.1 100 Continue\r\n\r\n");
  EXPECT_TRUE(Gets(client, "100 Continue"));
  client->Send("body");
  EXPECT_TRUE(Gets(app, "\r\n\r\nbody"));
  app->Send(Ok());
  EXPECT_TRUE(Gets(client, "\r\n\r\nhi"));
}

TEST_F(HttpGateTest, AnEarly401ReachesTheClientAndTheBodyIsNeverSent) {
  BuildOpen();
  RawSocket* client = Client(Post("Expect: 100-continue\r\nContent-Length: 4\r\n", "body"));
  RawSocket* app = App();
  EXPECT_TRUE(Gets(app, "Expect: 100-continue\r\n"));
  app->Send("HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n");
  EXPECT_TRUE(Gets(client, "401 Unauthorized"));
  EXPECT_TRUE(Has(client, "Connection: close"));
  EXPECT_TRUE(IsOver(app));
  EXPECT_FALSE(Has(app, "body"));
}

TEST_F(HttpGateTest, ABodyThatDoesNotWaitForAContinueGoesOnAfterASecond) {
  BuildOpen();
  RawSocket* client = Client(Post("Expect: 100-continue\r\nContent-Length: 4\r\n", "bo"));
  RawSocket* app = App();
  EXPECT_TRUE(Gets(app, "\r\n\r\nbo"));  // although the application says nothing
  client->Send("dy");
  EXPECT_TRUE(Gets(app, "\r\n\r\nbody"));
  app->Send(Ok());
  EXPECT_TRUE(Gets(client, "\r\n\r\nhi"));
}

TEST_F(HttpGateTest, ForwardedHeadersOfAProxyBeforeUsAreKeptButNotTheirDisguises) {
  BuildOpen();
  Pair pair = Exchange(Get("X-Forwarded-Proto: https\r\nX-Forwarded-Host: shop\r\n"
                           "X-Forwarded-For: 10.0.0.8\r\nx-forwarded-for: 10.0.0.9\r\n"
                           "X_Forwarded_For: 6.6.6.6\r\nX.Forwarded-Proto: gopher\r\n"),
                       Ok());
  EXPECT_TRUE(Has(pair.app, "X-Forwarded-Proto: https\r\n"));
  EXPECT_TRUE(Has(pair.app, "X-Forwarded-Host: shop\r\n"));
  EXPECT_TRUE(Has(pair.app, "X-Forwarded-For: 10.0.0.8, 10.0.0.9, 127.0.0.1\r\n"));
  EXPECT_FALSE(Has(pair.app, "6.6.6.6"));
  EXPECT_FALSE(Has(pair.app, "gopher"));
}

TEST_F(HttpGateTest, AnUpgradeBecomesATunnel) {
  BuildOpen();
  RawSocket* client = Client(Get("Connection: Upgrade\r\nUpgrade: websocket\r\n") + "early");
  RawSocket* app = App();
  EXPECT_TRUE(Gets(app, "Upgrade: websocket\r\nConnection: Upgrade\r\n"));
  app->Send(
      "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\nfirst");
  EXPECT_TRUE(Gets(client, "\r\n\r\nfirst"));
  EXPECT_TRUE(Has(client, "Upgrade: websocket\r\n"));
  EXPECT_TRUE(Gets(app, "\r\n\r\nearly"));
  client->Send("ping");
  EXPECT_TRUE(Gets(app, "earlyping"));
  app->Send("pong");
  EXPECT_TRUE(Gets(client, "firstpong"));
  EXPECT_EQ(gate_->status().in_flight, 1u);
  client->Close();
  EXPECT_TRUE(IsOver(app));
  app->Close();
  EXPECT_TRUE(Eventually([&] { return gate_->status().in_flight == 0; }));
}

TEST_F(HttpGateTest, AnUpgradeToHttp2IsNotLetThrough) {
  BuildOpen();
  Pair pair = Exchange(
      Get("Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: A\r\n"), Ok());
  EXPECT_FALSE(Has(pair.app, "h2c"));
  EXPECT_FALSE(Has(pair.app, "HTTP2-Settings"));
}

TEST_F(HttpGateTest, ABrokenAnswerIsA502AndAnUnreachableApplicationToo) {
  BuildOpen();
  Pair pair = Exchange(Get(), "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n");
  EXPECT_TRUE(Gets(pair.client, "HTTP/1.1 502 Bad Gateway\r\n"));
  EXPECT_TRUE(Gets(pair.client, "\"lease\":\"orders\",\"state\":\"active\""));
  app_->Close();
  pair.client->Send(Get());
  EXPECT_TRUE(Eventually([&] {
    pair.client->Poll();
    return Count(pair.client->received(), "502 Bad Gateway\r\n") == 2;
  })) << "kept alive after a 502 to a whole request";
}

TEST_F(HttpGateTest, ACutAnswerDoesNotLookComplete) {
  BuildOpen();
  Pair pair = Exchange(Get(), "HTTP/1.1 200 OK\r\n" + kTe + "\r\n2\r\nhi\r\n");
  EXPECT_TRUE(Gets(pair.client, "hi"));
  pair.app->Close();
  EXPECT_TRUE(IsOver(pair.client));
  EXPECT_FALSE(Has(pair.client, "0\r\n\r\n"));
  EXPECT_TRUE(pair.client->reset());
}

TEST_F(HttpGateTest, AStalePooledConnectionIsRetriedOnceForAnIdempotentRequest) {
  BuildOpen();
  Pair pair = Exchange(Get(), Ok());
  EXPECT_TRUE(Gets(pair.client, "hi"));
  pair.client->Send(Get("", "/again"));
  EXPECT_TRUE(Gets(pair.app, "/again"));
  pair.app->Close();  // without one byte of an answer
  RawSocket* fresh = App();
  EXPECT_TRUE(Gets(fresh, "/again"));
  EXPECT_TRUE(Has(fresh, "Lease-Sequence: 2\r\n"));
  fresh->Close();
  EXPECT_TRUE(Gets(pair.client, "502 Bad Gateway")) << "once, not for ever";
}

TEST_F(HttpGateTest, ARequestThatIsNotIdempotentIsNeverSentTwice) {
  BuildOpen();
  Pair pair = Exchange(Get(), Ok());
  EXPECT_TRUE(Gets(pair.client, "hi"));
  pair.client->Send(Post("Content-Length: 0\r\n"));
  EXPECT_TRUE(Gets(pair.app, "POST"));
  pair.app->Close();
  EXPECT_TRUE(Gets(pair.client, "502 Bad Gateway"));
  EXPECT_TRUE(AppIsAlone());
}

TEST_F(HttpGateTest, AnIdempotentRequestWhoseBodyIsGoneIsNotSentAgain) {
  BuildOpen();
  Pair pair = Exchange(Get(), Ok());
  EXPECT_TRUE(Gets(pair.client, "hi"));
  pair.client->Send("PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc");
  EXPECT_TRUE(Gets(pair.app, "abc"));
  pair.app->Close();
  EXPECT_TRUE(Gets(pair.client, "502 Bad Gateway"));
  EXPECT_TRUE(AppIsAlone());
}

TEST_F(HttpGateTest, APooledConnectionThatEndedIsNotUsed) {
  BuildOpen();
  Pair pair = Exchange(Get(), Ok());
  EXPECT_TRUE(Gets(pair.client, "hi"));
  pair.app->Close();
  RunFor(base::Duration::Millis(20));
  pair.client->Send(Post("Content-Length: 0\r\n"));
  RawSocket* fresh = App();
  EXPECT_TRUE(Gets(fresh, "POST"));
  fresh->Send(Ok("ok"));
  EXPECT_TRUE(Gets(pair.client, "\r\n\r\nok"));
}

TEST_F(HttpGateTest, ALeavingClientFreesItsUpstream) {
  BuildOpen();
  RawSocket* client = Client(Get());
  RawSocket* app = App();
  EXPECT_TRUE(Gets(app, "GET"));
  client->CloseWithReset();
  EXPECT_TRUE(IsOver(app));
  EXPECT_EQ(gate_->status().in_flight, 0u);
}

TEST_F(HttpGateTest, ABadRequestBehindAGoodOneIsAnsweredAndCounted) {
  BuildOpen();
  Pair pair = Exchange(Get(), Ok());
  EXPECT_TRUE(Gets(pair.client, "hi"));
  pair.client->Send("GET / HTTP/1.1\r\nNo host\r\n\r\n");
  EXPECT_TRUE(Gets(pair.client, "HTTP/1.1 400 "));
  EXPECT_NE(metrics_.Scrape().find("status=\"4xx\"} 1"), std::string::npos);
}

TEST_F(HttpGateTest, CountsWhatItServes) {
  BuildOpen();
  Pair pair = Exchange(Get(), Ok());
  EXPECT_TRUE(Gets(pair.client, "hi"));
  const std::string text = metrics_.Scrape();
  EXPECT_NE(
      text.find("leasehold_gate_requests_total{gate=\"web\",lease=\"orders\",status=\"2xx\"} 1"),
      std::string::npos)
      << text;
  EXPECT_NE(text.find("leasehold_gate_request_seconds_count{gate=\"web\",lease=\"orders\"} 1"),
            std::string::npos);
}

}  // namespace
}  // namespace leasehold::gate

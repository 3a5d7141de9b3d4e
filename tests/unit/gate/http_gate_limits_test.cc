// The http gate under bad, slow and greedy peers: vectors, limits, time-outs, back-pressure.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "http_gate_fixture.h"

namespace leasehold::gate {
namespace {

using base::Duration;

const std::string kTe = "Transfer-Encoding: chunked\r\n";

class HttpGateLimitsTest : public HttpGateFixture {
 protected:
  // Sends `bytes` on a connection of its own; the answer must have `status` and end the connection.
  void ExpectRefused(const std::string& bytes, const std::string& status) {
    RawSocket* client = Client(bytes);
    EXPECT_TRUE(IsOver(client)) << bytes;
    const std::string got = client->received().substr(0, 12);
    EXPECT_TRUE(got == "HTTP/1.1 " + status || (status == "4.." && got == "HTTP/1.1 400") ||
                (status == "4.." && got == "HTTP/1.1 501"))
        << got << " for " << bytes;
    EXPECT_TRUE(Has(client, "Connection: close\r\n"));
    EXPECT_TRUE(Has(client, "Content-Type: application/problem+json\r\n"));
    EXPECT_TRUE(Has(client, "\"lease\":\"orders\""));
  }
  static size_t ResidentKib() {
    std::ifstream status("/proc/self/status");
    std::string line;
    while (std::getline(status, line)) {
      if (line.rfind("VmRSS:", 0) == 0) return std::stoul(line.substr(6));
    }
    return 0;
  }
};

TEST_F(HttpGateLimitsTest, EveryAmbiguousFramingIsRefusedAndCloses) {
  using namespace std::string_literals;
  BuildOpen();
  const std::string length = "Content-Length: 3\r\n";
  const std::vector<std::pair<std::string, std::string>> vectors = {
      {Post(length + kTe, "abc"), "400"},
      {Post(length + "Content-Length: 4\r\n", "abc"), "400"},
      {Post("Content-Length: +3\r\n", "abc"), "400"},
      {Post("Content-Length: 3, 3\r\n", "abc"), "400"},
      {Post("Transfer-Encoding: chunked, gzip\r\n"), "4.."},
      {Post("Transfer-Encoding: gzip, chunked\r\n"), "4.."},
      {Post("Transfer-Encoding: xchunked\r\n"), "4.."},
      {Post("Transfer-Encoding : chunked\r\n"), "400"},
      {"POST / HTTP/1.0\r\n" + kTe + "\r\n", "400"},
      {Post(kTe + kTe), "400"},
      {Post("X: a\r\n b\r\n"), "400"},
      {"GET / HTTP/1.1\nHost: a\n\n", "400"},
      {Post("X: a\0b\r\n"s), "400"},
      {"GET / HTTP/1.1\r\n\r\n", "400"},
      {Get("Host: b\r\n"), "400"},
      {"GET / HTTP/2.0\r\nHost: a\r\n\r\n", "505"},
      {"CONNECT a:80 HTTP/1.1\r\nHost: a\r\n\r\n", "501"},
      {"\x16\x03\x01\x02\x01\x01\x01\x02", "400"}};
  for (const auto& [bytes, status] : vectors) ExpectRefused(bytes, status);
  EXPECT_TRUE(AppIsAlone()) << "none of them reached the application";
}

TEST_F(HttpGateLimitsTest, BadChunksAreRefusedAndTheApplicationSeesNoEnd) {
  BuildOpen();
  for (const std::string body : {"0x3\r\nabc\r\n", "-1\r\n", "00000000000000003\r\nabc\r\n",
                                 "3\nabc\r\n", "3\r\nabcd\r\n"}) {
    RawSocket* client = Client(Post(kTe, body));
    RawSocket* app = App();
    EXPECT_TRUE(IsOver(client));
    EXPECT_EQ(client->received().substr(0, 12), "HTTP/1.1 400") << body;
    EXPECT_TRUE(IsOver(app));
    EXPECT_FALSE(Has(app, "\r\n0\r\n"));
  }
  RawSocket* client = Client(Post(kTe, "3;" + std::string(64 * 1024, 'x')));
  EXPECT_TRUE(Gets(client, "HTTP/1.1 400 Bad Request"));
}

TEST_F(HttpGateLimitsTest, EachLimitHasItsAnswer) {
  options_.head_bytes_max = 1024;
  options_.target_bytes_max = 200;
  options_.body_bytes_max = 10;
  BuildOpen();
  ExpectRefused(Get("X: " + std::string(2000, 'a') + "\r\n"), "431");
  ExpectRefused(Get("", "/" + std::string(300, 'a')), "414");
  ExpectRefused(Post("Content-Length: 11\r\n", "hello"), "413");
  RawSocket* client = Client(Post(kTe, "6\r\nabcdef\r\n6\r\nabcdef\r\n"));
  EXPECT_TRUE(Gets(client, "HTTP/1.1 413"));
}

TEST_F(HttpGateLimitsTest, OverMaxConnectionsIsSaidSo) {
  options_.max_connections = 1;
  BuildOpen();
  RawSocket* first = Client(Get());
  RawSocket* app = App();
  RawSocket* second = Client();
  EXPECT_TRUE(Gets(second, "HTTP/1.1 503 "));
  EXPECT_TRUE(Has(second, "max_connections"));
  EXPECT_TRUE(IsOver(second));
  app->Send(Ok());
  EXPECT_TRUE(Gets(first, "hi"));
}

TEST_F(HttpGateLimitsTest, AHeadThatDribblesInIsA408) {
  options_.head_timeout = Duration::Millis(80);
  BuildOpen();
  RawSocket* client = Client("GET / HTTP/1.1\r\nHo");
  RunFor(Duration::Millis(50));
  client->Send("st: a");  // does not move the deadline
  EXPECT_TRUE(Gets(client, "HTTP/1.1 408 "));
  EXPECT_TRUE(IsOver(client));
}

TEST_F(HttpGateLimitsTest, AnIdleConnectionIsClosedInOrderWithoutAWord) {
  options_.idle_timeout = Duration::Millis(60);
  BuildOpen();
  RawSocket* client = Client();
  EXPECT_TRUE(IsOver(client));
  EXPECT_TRUE(client->ended());
  EXPECT_EQ(client->received(), "");
}

TEST_F(HttpGateLimitsTest, ABodyThatStopsIsA408AndTheApplicationIsCut) {
  options_.body_timeout = Duration::Millis(80);
  BuildOpen();
  RawSocket* client = Client(Post("Content-Length: 9\r\n", "abc"));
  RawSocket* app = App();
  EXPECT_TRUE(Gets(app, "abc"));
  EXPECT_TRUE(Gets(client, "HTTP/1.1 408 "));
  EXPECT_TRUE(IsOver(app));
}

TEST_F(HttpGateLimitsTest, ASilentApplicationIsA504) {
  options_.response_timeout = Duration::Millis(80);
  BuildOpen();
  RawSocket* client = Client(Get());
  RawSocket* app = App();
  EXPECT_TRUE(Gets(client, "HTTP/1.1 504 "));
  EXPECT_TRUE(IsOver(app));
}

TEST_F(HttpGateLimitsTest, AClientThatGoesOnSendingKeepsAnEarlyAnswerAlive) {
  options_.response_timeout = Duration::Millis(500);
  BuildOpen();
  RawSocket* client = Client(Post("Content-Length: 100000\r\n", "a"));
  RawSocket* app = App();
  EXPECT_TRUE(Gets(app, "\r\n\r\na"));
  app->Send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nx");
  EXPECT_TRUE(Gets(client, "\r\n\r\nx"));
  const base::MonoTime end = loop::Loop::Now() + options_.response_timeout * 2;
  while (loop::Loop::Now() < end) {
    client->Send("b");
    RunFor(Duration::Millis(20));
    app->Poll();
  }
  app->Send("y");
  EXPECT_TRUE(Gets(client, "\r\n\r\nxy"));
}

TEST_F(HttpGateLimitsTest, AnUnansweredConnectIsA504) {
  options_.connect_timeout = Duration::Millis(80);
  // A backlog of one that is full: further connects get no answer.
  app_ = std::make_unique<RawServer>(testing::TcpAddress("127.0.0.1", 0), 0);
  BuildOpen();
  std::vector<std::unique_ptr<RawSocket>> fill;
  for (int i = 0; i < 4; ++i) fill.push_back(RawSocket::Connect(app_->address()));
  RunFor(Duration::Millis(20));
  RawSocket* client = Client(Get());
  EXPECT_TRUE(Gets(client, "HTTP/1.1 504 "));
}

TEST_F(HttpGateLimitsTest, ASlowClientOfALargeAnswerCostsBoundedMemory) {
  BuildOpen();
  const size_t total = 50 * 1024 * 1024;
  Pair pair =
      Exchange(Get(), "HTTP/1.1 200 OK\r\nContent-Length: " + std::to_string(total) + "\r\n\r\n");
  const std::string block(256 * 1024, 'x');
  size_t sent = 0;
  size_t idle_rounds = 0;
  // The client reads nothing: the application must come to a stand.
  while (idle_rounds < 20 && sent < total) {
    const size_t took = pair.app->Send({block.data(), std::min(block.size(), total - sent)});
    sent += took;
    idle_rounds = took == 0 ? idle_rounds + 1 : 0;
    RunFor(Duration::Millis(2));
  }
  EXPECT_LT(sent, total / 2) << "back-pressure reaches the application";
  // Now it reads, and gets all of it.
  const size_t before = ResidentKib();
  EXPECT_TRUE(Eventually([&] {
    if (sent < total) sent += pair.app->Send({block.data(), std::min(block.size(), total - sent)});
    pair.client->Poll();
    return pair.client->received().size() > total;
  }));
  EXPECT_EQ(pair.client->received().size() - pair.client->received().find("\r\n\r\n") - 4, total);
  EXPECT_LT(ResidentKib(), before + 150 * 1024) << "beside what the test itself keeps";
}

TEST_F(HttpGateLimitsTest, ASlowApplicationHoldsTheUploadBack) {
  BuildOpen();
  const size_t total = 50 * 1024 * 1024;
  RawSocket* client = Client(Post("Content-Length: " + std::to_string(total) + "\r\n"));
  RawSocket* app = App();
  const std::string block(256 * 1024, 'y');
  size_t sent = 0;
  size_t idle_rounds = 0;
  while (idle_rounds < 20 && sent < total) {
    const size_t took = client->Send({block.data(), std::min(block.size(), total - sent)});
    sent += took;
    idle_rounds = took == 0 ? idle_rounds + 1 : 0;
    RunFor(Duration::Millis(2));
  }
  EXPECT_LT(sent, total / 2);
  EXPECT_TRUE(Eventually([&] {
    if (sent < total) sent += client->Send({block.data(), std::min(block.size(), total - sent)});
    app->Poll();
    return app->received().size() > total;
  }));
  app->Send(Ok());
  EXPECT_TRUE(Gets(client, "\r\n\r\nhi"));
}

TEST_F(HttpGateLimitsTest, AClientThatTakesNothingIsCutInTheEnd) {
  options_.body_timeout = Duration::Millis(100);
  BuildOpen();
  Pair pair = Exchange(Get(), "HTTP/1.1 200 OK\r\nContent-Length: 99999999\r\n\r\n");
  const std::string block(256 * 1024, 'x');
  EXPECT_TRUE(Eventually([&] {
    pair.app->Send(block);
    return gate_->status().in_flight == 0;
  }));
  EXPECT_TRUE(IsOver(pair.client));
  EXPECT_TRUE(pair.client->reset());
}

}  // namespace
}  // namespace leasehold::gate

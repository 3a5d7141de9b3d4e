// The HTTP server under the API: framing, pipelining, limits, time-outs, clients that misbehave.
#include "admin/http_server.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "lib/raw_socket_fixture.h"
#include "lib/socket_peer.h"
#include "unit/admin/http_client.h"

namespace leasehold::admin {
namespace {

class HttpServerTest : public testing::RawSocketFixture {
 protected:
  void SetUp() override {
    log_ = observe::Log::Silent();
    options_.max_connections = 200;
  }
  void TearDown() override {
    held_.clear();
    server_.reset();
  }
  void Start() {
    auto server = HttpServer::Start(
        loop_, testing::TcpAddress("127.0.0.1", 0), options_,
        [this](const HttpRequest& request, const HttpReply& reply) {
          ++handled_;
          order_.push_back(request.target);
          if (request.target == "/hold") {
            held_.push_back(reply);
            return;
          }
          HttpAnswer answer;
          answer.content_type = "text/plain";
          answer.body = request.target == "/big" ? std::string(8 << 20, 'b')
                                                 : request.method + request.target + request.body;
          reply(answer);
        },
        *log_);
    ASSERT_TRUE(server.ok()) << server.error().message;
    server_ = std::move(server).value();
  }
  std::unique_ptr<HttpClient> Client() { return std::make_unique<HttpClient>(server_->bound()); }
  Answered Answer(HttpClient& client, size_t n = 0, bool bodies = true) {
    Eventually([&] { return client.Answers(bodies).size() > n || client.socket().over(); });
    const auto answers = client.Answers(bodies);
    return n < answers.size() ? answers[n] : Answered{};
  }
  bool IsOver(HttpClient& client) {
    return Eventually([&] {
      client.socket().Poll();
      return client.socket().over();
    });
  }

  HttpServerOptions options_;
  std::unique_ptr<observe::Log> log_;
  std::unique_ptr<HttpServer> server_;
  std::vector<HttpReply> held_;
  std::vector<std::string> order_;
  int handled_ = 0;
};

TEST_F(HttpServerTest, ARequestIsAnsweredAndTheConnectionKept) {
  Start();
  auto client = Client();
  client->Send(Get("/a"));
  EXPECT_EQ(Answer(*client).body, "GET/a");
  client->Send(Get("/b"));
  const Answered second = Answer(*client, 1);
  EXPECT_EQ(second.body, "GET/b");
  EXPECT_EQ(second.status, 200);
  EXPECT_EQ(second.Header("Cache-Control"), "no-store");
  EXPECT_EQ(second.Header("Connection"), "");
}

TEST_F(HttpServerTest, PipelinedRequestsAreAnsweredInOrder) {
  Start();
  auto client = Client();
  client->Send(Get("/1") + Get("/hold") + Post("/3", "body") + Get("/4"));
  ASSERT_TRUE(Eventually([&] { return held_.size() == 1; }));
  EXPECT_EQ(handled_, 2) << "looked past a request that has no answer yet";
  HttpAnswer answer;
  answer.body = "held";
  held_[0](answer);
  ASSERT_TRUE(Eventually([&] { return client->Answers().size() == 4; }));
  const auto answers = client->Answers();
  EXPECT_EQ(answers[0].body, "GET/1");
  EXPECT_EQ(answers[1].body, "held");
  EXPECT_EQ(answers[2].body, "POST/3body");
  EXPECT_EQ(answers[3].body, "GET/4");
}

TEST_F(HttpServerTest, ManyPipelinedRequestsInOneBurstAreAllAnswered) {
  Start();
  auto client = Client();
  std::string burst;
  for (int i = 0; i < 500; ++i) burst += Get("/" + std::to_string(i));
  client->Send(burst);
  ASSERT_TRUE(Eventually([&] { return client->Answers().size() == 500; }));
  EXPECT_EQ(client->Answers().back().body, "GET/499");
}

TEST_F(HttpServerTest, ABurstLetsOthersInBetween) {
  Start();
  auto greedy = Client();
  auto other = Client();
  std::string burst;
  for (int i = 0; i < 200; ++i) burst += Get("/burst");
  greedy->Send(burst);
  ASSERT_TRUE(Eventually([&] { return handled_ > 0; }));
  EXPECT_LT(handled_, 20) << "the loop did not turn";
  other->Send(Get("/other"));
  ASSERT_TRUE(Eventually([&] { return handled_ == 201; }));
  EXPECT_NE(order_.back(), "/other");
}

TEST_F(HttpServerTest, ARequestInSingleBytesIsAnswered) {
  Start();
  auto client = Client();
  for (const char c : Post("/slow", "xyz")) {
    client->Send(std::string(1, c));
    loop_.Post([] {});
    loop_.RunOnce();
  }
  EXPECT_EQ(Answer(*client).body, "POST/slowxyz");
}

TEST_F(HttpServerTest, HeadHasTheHeadOfGetAndNoBody) {
  Start();
  auto client = Client();
  client->Send("HEAD /a HTTP/1.1\r\nHost: localhost\r\n\r\n" + Get("/b"));
  ASSERT_TRUE(Eventually([&] {
    client->socket().Poll();
    return client->socket().received().ends_with("GET/b");
  }));
  EXPECT_NE(client->socket().received().find("Content-Length: 6"), std::string::npos);
  EXPECT_EQ(client->socket().received().find("HEAD/a"), std::string::npos);
}

TEST_F(HttpServerTest, ConnectionCloseIsHonoured) {
  Start();
  auto client = Client();
  client->Send(Get("/a", "Connection: close\r\n"));
  ASSERT_TRUE(IsOver(*client));
  EXPECT_TRUE(client->socket().ended());
  EXPECT_EQ(client->Answers().at(0).Header("Connection"), "close");
}

TEST_F(HttpServerTest, Http10IsClosedUnlessKeepAliveIsAskedFor) {
  Start();
  auto closing = Client();
  closing->Send("GET /a HTTP/1.0\r\n\r\n");
  ASSERT_TRUE(IsOver(*closing));
  EXPECT_EQ(closing->Answers().at(0).body, "GET/a");
  auto keeping = Client();
  keeping->Send("GET /a HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
  EXPECT_EQ(Answer(*keeping).Header("Connection"), "keep-alive");
  keeping->Send("GET /b HTTP/1.0\r\n\r\n");
  EXPECT_EQ(Answer(*keeping, 1).body, "GET/b");
}

TEST_F(HttpServerTest, AFinRightAfterTheRequestIsAnswered) {
  Start();
  auto client = Client();
  client->Send(Get("/1") + Get("/hold") + Get("/3"));
  client->socket().ShutdownWrite();
  ASSERT_TRUE(Eventually([&] { return held_.size() == 1; }));
  held_[0](HttpAnswer{});
  ASSERT_TRUE(IsOver(*client));
  EXPECT_TRUE(client->socket().ended());
  EXPECT_EQ(client->Answers().size(), 3U);
  EXPECT_TRUE(Eventually([&] { return server_->connections() == 0; }));
}

TEST_F(HttpServerTest, ExpectContinueIsAnsweredBeforeTheBody) {
  Start();
  auto client = Client();
  client->Send("POST /a HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n");
  ASSERT_TRUE(Eventually([&] {
    client->socket().Poll();
    return client->socket().received() == "HTTP/1.1 100 Continue\r\n\r\n";
  }));
  client->Send("hi");
  EXPECT_EQ(Answer(*client, 1).body, "POST/ahi");
}

TEST_F(HttpServerTest, BadRequestsAreAnsweredOnceAndClosed) {
  Start();
  const std::pair<std::string, int> cases[] = {
      {"\x16\x03\x01\x02garbage\r\n\r\n", 400},
      {"GET / HTTP/1.1\r\n\r\n", 400},
      {"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", 400},
      {"GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n", 400},
      {"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: +3\r\n\r\n", 400},
      {"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 16385\r\n\r\n", 413},
      {"GET /" + std::string(2100, 'a') + " HTTP/1.1\r\nHost: a\r\n\r\n", 414},
      {"GET / HTTP/1.1\r\nHost: a\r\nX: " + std::string(17000, 'a') + "\r\n\r\n", 431},
  };
  for (const auto& [text, status] : cases) {
    auto client = Client();
    client->Send(text);
    ASSERT_TRUE(IsOver(*client)) << text.substr(0, 40);
    ASSERT_EQ(client->Answers().size(), 1U) << text.substr(0, 40);
    const Answered answer = client->Answers()[0];
    EXPECT_EQ(answer.status, status) << answer.body;
    EXPECT_EQ(answer.Header("Content-Type"), "application/problem+json");
    EXPECT_EQ(answer.Header("Connection"), "close");
  }
  EXPECT_EQ(handled_, 0);
}

TEST_F(HttpServerTest, AChunkedBodyBeyondTheLimitIsRefused) {
  Start();
  auto client = Client();
  client->Send("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5000\r\n" +
               std::string(0x5000, 'x') + "\r\n0\r\n\r\n");
  ASSERT_TRUE(IsOver(*client));
  EXPECT_EQ(client->Answers().at(0).status, 413);
  EXPECT_EQ(handled_, 0);
}

TEST_F(HttpServerTest, AnErrorAnswerIsReadEvenWhenMoreWasSent) {
  Start();
  auto client = Client();
  client->Send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\n" +
               std::string(100000, 'x'));
  ASSERT_TRUE(IsOver(*client));
  EXPECT_EQ(client->Answers().at(0).status, 413) << "a reset ate the answer";
}

TEST_F(HttpServerTest, AHeadThatDoesNotComeIs408) {
  options_.head_timeout = base::Duration::Millis(60);
  options_.linger_timeout = base::Duration::Millis(60);
  Start();
  auto client = Client();
  client->Send("GET / HT");
  ASSERT_TRUE(IsOver(*client));
  EXPECT_EQ(client->Answers().at(0).status, 408);
}

TEST_F(HttpServerTest, ABodyThatDoesNotComeIs408) {
  options_.body_timeout = base::Duration::Millis(60);
  options_.linger_timeout = base::Duration::Millis(60);
  Start();
  auto client = Client();
  client->Send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nab");
  ASSERT_TRUE(IsOver(*client));
  EXPECT_EQ(client->Answers().at(0).status, 408);
}

TEST_F(HttpServerTest, DripFeedingAHeadDoesNotExtendItsTime) {
  options_.head_timeout = base::Duration::Millis(150);
  Start();
  auto client = Client();
  client->Send("GET / HTTP/1.1\r\nX: ");
  bool over = false;
  const base::MonoTime start = loop::Loop::Now();
  while (!over && loop::Loop::Now() - start < base::Duration::Seconds(5)) {
    client->Send("a");
    RunFor(base::Duration::Millis(10));
    client->socket().Poll();
    over = client->Answers().size() == 1;
  }
  EXPECT_TRUE(over);
}

TEST_F(HttpServerTest, AnIdleConnectionIsClosedWithoutAWord) {
  options_.idle_timeout = base::Duration::Millis(60);
  Start();
  auto client = Client();
  client->Send(Get("/a"));
  ASSERT_TRUE(IsOver(*client));
  EXPECT_EQ(client->Answers().size(), 1U);
}

TEST_F(HttpServerTest, AClientThatNeverSpeaksIsClosed) {
  options_.head_timeout = base::Duration::Millis(60);
  Start();
  auto client = Client();
  ASSERT_TRUE(IsOver(*client));
  EXPECT_EQ(client->socket().received(), "");
}

TEST_F(HttpServerTest, AnAnswerNobodyReadsIsGivenUp) {
  options_.write_timeout = base::Duration::Millis(100);
  Start();
  auto client = Client();
  client->Send(Get("/big"));
  EXPECT_TRUE(Eventually([&] { return handled_ == 1; }));
  EXPECT_TRUE(Eventually([&] { return server_->connections() == 0; }));
}

TEST_F(HttpServerTest, AReaderThatSleepsIsNotSentMoreAnswers) {
  Start();
  auto client = Client();
  client->Send(Get("/big") + Get("/big") + Get("/big"));
  EXPECT_TRUE(Eventually([&] { return handled_ == 1; }));
  RunFor(base::Duration::Millis(50));
  EXPECT_EQ(handled_, 1);
  EXPECT_TRUE(Eventually([&] { return client->Answers().size() == 3; }));
}

TEST_F(HttpServerTest, AHundredConnectionsAtOnceAreAllServed) {
  Start();
  std::vector<std::unique_ptr<HttpClient>> clients;
  for (int i = 0; i < 100; ++i) {
    clients.push_back(Client());
    clients.back()->Send(Get("/" + std::to_string(i)));
  }
  for (size_t i = 0; i < clients.size(); ++i) {
    EXPECT_EQ(Answer(*clients[i]).body, "GET/" + std::to_string(i));
  }
  EXPECT_EQ(server_->connections(), 100U);
}

TEST_F(HttpServerTest, AFullServerMakesRoomByClosingTheOneThatWasQuietLongest) {
  options_.max_connections = 3;
  Start();
  std::vector<std::unique_ptr<HttpClient>> clients;
  for (int i = 0; i < 3; ++i) {
    clients.push_back(Client());
    clients.back()->Send(Get("/a"));
    ASSERT_EQ(Answer(*clients.back()).status, 200);
  }
  clients[0]->Send(Get("/again"));
  ASSERT_EQ(Answer(*clients[0], 1).status, 200);
  auto fresh = Client();
  fresh->Send(Get("/b"));
  EXPECT_EQ(Answer(*fresh).body, "GET/b");
  EXPECT_TRUE(IsOver(*clients[1]));
  EXPECT_EQ(server_->connections(), 3U);
  clients[0]->Send(Get("/still"));
  EXPECT_EQ(Answer(*clients[0], 2).body, "GET/still");
}

TEST_F(HttpServerTest, AClientThatWaitsForItsAnswerIsNeverCutToMakeRoom) {
  options_.max_connections = 2;
  Start();
  auto first = Client();
  auto second = Client();
  first->Send(Get("/hold"));
  second->Send(Get("/hold"));
  ASSERT_TRUE(Eventually([&] { return held_.size() == 2; }));
  auto third = Client();
  EXPECT_TRUE(IsOver(*third));
  for (const HttpReply& reply : held_) reply(HttpAnswer{});
  EXPECT_EQ(Answer(*first).status, 200);
  EXPECT_EQ(Answer(*second).status, 200);
}

TEST_F(HttpServerTest, AnAnswerForAClientThatLeftIsDropped) {
  Start();
  auto client = Client();
  client->Send(Get("/hold"));
  ASSERT_TRUE(Eventually([&] { return held_.size() == 1; }));
  client->socket().CloseWithReset();
  ASSERT_TRUE(Eventually([&] { return server_->connections() == 0; }));
  held_[0](HttpAnswer{});
}

TEST_F(HttpServerTest, OnlyTheFirstAnswerCounts) {
  Start();
  auto client = Client();
  client->Send(Get("/hold") + Get("/hold"));
  ASSERT_TRUE(Eventually([&] { return held_.size() == 1; }));
  held_[0](HttpAnswer{.status = 200, .content_type = "a/b", .body = "one", .headers = {}});
  ASSERT_TRUE(Eventually([&] { return held_.size() == 2; }));
  held_[0](HttpAnswer{.status = 200, .content_type = "a/b", .body = "late", .headers = {}});
  held_[1](HttpAnswer{.status = 200, .content_type = "a/b", .body = "two", .headers = {}});
  EXPECT_EQ(Answer(*client, 1).body, "two");
}

TEST_F(HttpServerTest, AClientThatFloodsWhileItWaitsIsHeldBack) {
  Start();
  auto client = Client();
  client->Send(Get("/hold"));
  ASSERT_TRUE(Eventually([&] { return held_.size() == 1; }));
  // Until its kernel buffers are full: the server has stopped reading.
  size_t sent = 0;
  const std::string block(65536, 'x');
  EXPECT_TRUE(Eventually([&] {
    const size_t took = client->socket().Send(block);
    sent += took;
    return took == 0;
  }));
  RunFor(base::Duration::Millis(20));
  EXPECT_EQ(client->socket().Send(block), 0U) << "after " << sent << " bytes";
}

TEST_F(HttpServerTest, AnAddressInUseIsAnErrorThatNamesIt) {
  Start();
  const auto second = HttpServer::Start(
      loop_, server_->bound(), options_, [](const HttpRequest&, const HttpReply&) {}, *log_);
  ASSERT_FALSE(second.ok());
  EXPECT_NE(second.error().message.find(server_->bound().ToString()), std::string::npos)
      << second.error().message;
}

}  // namespace
}  // namespace leasehold::admin

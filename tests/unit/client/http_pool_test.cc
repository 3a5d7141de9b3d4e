// HttpPool while all is well: connections are kept, shared out, bounded and let go.
#include "client/http_pool.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "http_pool_fixture.h"

namespace leasehold::client {
namespace {

using base::Duration;
using base::ErrorCode;
using testing::RawSocket;

class HttpPoolTest : public HttpPoolFixture {};

TEST_F(HttpPoolTest, TheNextCallGoesOverTheSameConnection) {
  request_.target = "/first";
  Outcome& first = Start();
  EXPECT_EQ(pool_->connections(), 1u);
  Peer(0).Send(Ok("one", "X-A: b\r\n"));
  ASSERT_TRUE(Told(first));
  ExpectBody(first, "one");
  EXPECT_EQ((*first.answer)->headers[0].first, "X-A");
  EXPECT_EQ(pool_->idle(), 1u);
  request_.target = "/second";
  Outcome& second = Start();
  EXPECT_EQ(pool_->idle(), 0u);
  Peer(0, 2).Send(Ok("two"));
  ASSERT_TRUE(Told(second));
  ExpectBody(second, "two");
  EXPECT_EQ(pool_->connects(), 1u);
  EXPECT_EQ(pool_->connections(), 1u);
  EXPECT_TRUE(peers_[0]->received().starts_with(
      "GET /first HTTP/1.1\r\nHost: " + server_->address().ToString() + "\r\n"));
  EXPECT_NE(peers_[0]->received().find("\r\nConnection: keep-alive\r\n"), std::string::npos);
}

TEST_F(HttpPoolTest, ACallStartedInTheCallbackUsesTheConnectionThatHasJustBecomeFree) {
  Outcome& first = Start();
  Outcome* second = nullptr;
  first.inside = [&] {
    first.call.reset();
    second = &Start();
  };
  Peer(0).Send(kOk);
  Peer(0, 2).Send(Ok("two"));
  ASSERT_TRUE(Eventually([&] { return second != nullptr && second->told > 0; }));
  ExpectBody(*second, "two");
  EXPECT_EQ(pool_->connects(), 1u);
}

TEST_F(HttpPoolTest, AnAnswerThatSaysCloseIsTheConnectionsLast) {
  for (const std::string& answer : std::vector<std::string>{
           Ok("x", "Connection: close\r\n"),
           std::string("HTTP/1.0 200 OK\r\nContent-Length: 1\r\n\r\nx"),
           std::string(
               "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: y\r\n\r\n")}) {
    Outcome& outcome = Start();
    RawSocket& peer = Peer(peers_.size());
    peer.Send(answer);
    ASSERT_TRUE(Told(outcome));
    EXPECT_TRUE(outcome.answer->ok()) << answer;
    EXPECT_EQ(pool_->connections(), 0u) << answer;
    EXPECT_TRUE(Over(peer)) << answer;
  }
}

TEST_F(HttpPoolTest, ABodyThatRunsUntilTheEndIsTheConnectionsLast) {
  Outcome& outcome = Start();
  Peer(0).Send("HTTP/1.1 200 OK\r\n\r\nall of it");
  peers_[0]->ShutdownWrite();
  ASSERT_TRUE(Told(outcome));
  ExpectBody(outcome, "all of it");
  EXPECT_EQ(pool_->connections(), 0u);
}

TEST_F(HttpPoolTest, AnHttp10ServerThatKeepsTheConnectionIsBelieved) {
  Outcome& outcome = Start();
  Peer(0).Send("HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 1\r\n\r\nx");
  ASSERT_TRUE(Told(outcome));
  ExpectBody(outcome, "x");
  EXPECT_EQ(pool_->idle(), 1u);
}

TEST_F(HttpPoolTest, AnswersWithoutABodyKeepTheConnection) {
  request_.method = "HEAD";
  Outcome& head = Start();
  Peer(0).Send("HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n");
  ASSERT_TRUE(Told(head));
  ExpectBody(head, "");
  request_.method = "DELETE";
  Outcome& none = Start();
  Peer(0, 2).Send("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n");
  ASSERT_TRUE(Told(none));
  ExpectBody(none, "");
  EXPECT_EQ((*none.answer)->status, 204);
  request_.method = "GET";
  Outcome& chunked = Start();
  Peer(0, 3).Send(
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\nT: x\r\n\r\n");
  ASSERT_TRUE(Told(chunked));
  ExpectBody(chunked, "ab");
  EXPECT_EQ(pool_->connects(), 1u);
}

TEST_F(HttpPoolTest, WhenTheHeadIsEnoughTheConnectionIsNotKept) {
  request_.head_is_enough = true;
  Outcome& outcome = Start();
  Peer(0).Send("HTTP/1.1 503 No\r\nContent-Length: 1000\r\n\r\nabc");
  ASSERT_TRUE(Told(outcome));
  ASSERT_TRUE(outcome.answer->ok());
  EXPECT_EQ((*outcome.answer)->status, 503);
  EXPECT_EQ(pool_->connections(), 0u);
}

TEST_F(HttpPoolTest, FiftyCallsAtATimeGetTheirOwnAnswersInWhateverOrderTheyCome) {
  constexpr size_t kCalls = 50;
  options_.idle_max = 16;
  MakePool();
  for (size_t i = 0; i < kCalls; ++i) {
    request_.target = "/" + std::to_string(i);
    Start();
  }
  EXPECT_EQ(pool_->connections(), kCalls);
  ASSERT_TRUE(Eventually([&] {
    Serve();
    if (peers_.size() < kCalls) return false;
    for (const auto& peer : peers_) {
      if (Heads(peer->received()) == 0) return false;
    }
    return true;
  }));
  for (size_t i = kCalls; i-- > 0;) {
    const std::string& request = peers_[i]->received();
    peers_[i]->Send(Ok(request.substr(4, request.find(' ', 4) - 4)));
  }
  for (size_t i = 0; i < kCalls; ++i) {
    ASSERT_TRUE(Told(*outcomes_[i]));
    ExpectBody(*outcomes_[i], "/" + std::to_string(i));
  }
  EXPECT_EQ(pool_->connects(), kCalls);
  EXPECT_EQ(pool_->idle(), options_.idle_max);
  EXPECT_EQ(pool_->connections(), options_.idle_max);
}

TEST_F(HttpPoolTest, AboveTheLimitACallFailsAtOnceAndSaysSo) {
  options_.connections_max = 2;
  MakePool();
  Start();
  Outcome& second = Start();
  Outcome& third = Start();
  EXPECT_EQ(third.told, 0) << "never from inside the call";
  ASSERT_TRUE(Told(third));
  ExpectError(third, ErrorCode::kLimit, "all 2 connections");
  EXPECT_EQ(pool_->connections(), 2u);
  second.call.reset();
  Outcome& fourth = Start();
  Outcome* first = outcomes_[0].get();
  ASSERT_TRUE(Eventually([&] {
    Serve();
    for (const auto& peer : peers_) {
      if (Heads(peer->received()) > 0 && !peer->over()) peer->Send(kOk);
    }
    return first->told > 0 && fourth.told > 0;
  }));
  ExpectBody(fourth, "ok");
}

TEST_F(HttpPoolTest, AnIdleConnectionIsClosedAfterItsTime) {
  options_.idle_timeout = Duration::Millis(50);
  MakePool();
  KeepOne();
  const base::MonoTime kept = loop::Loop::Now();
  EXPECT_TRUE(Over(*peers_[0]));
  EXPECT_GE(loop::Loop::Now() - kept, Duration::Millis(40));
  EXPECT_EQ(pool_->connections(), 0u);
}

TEST_F(HttpPoolTest, AnIdleConnectionWhoseTimePassedWhileTheLoopStoodStillIsNotUsed) {
  options_.idle_timeout = Duration::Millis(20);
  MakePool();
  KeepOne();
  const base::MonoTime kept = loop::Loop::Now();
  while (loop::Loop::Now() - kept < Duration::Millis(25)) {
  }
  Outcome& outcome = Start();
  Peer(1).Send(Ok("fresh"));
  ASSERT_TRUE(Told(outcome));
  ExpectBody(outcome, "fresh");
}

TEST_F(HttpPoolTest, OfTooManyIdleConnectionsTheOldestGoes) {
  options_.idle_max = 2;
  MakePool();
  for (int i = 0; i < 3; ++i) Start();
  for (size_t i = 0; i < 3; ++i) {
    Peer(i);
  }
  for (size_t i = 0; i < 3; ++i) {
    const size_t told_before = static_cast<size_t>(std::count_if(
        outcomes_.begin(), outcomes_.end(), [](const auto& o) { return o->told > 0; }));
    peers_[i]->Send(kOk);
    ASSERT_TRUE(Eventually([&] {
      return static_cast<size_t>(std::count_if(outcomes_.begin(), outcomes_.end(),
                                               [](const auto& o) { return o->told > 0; })) >
             told_before;
    }));
  }
  EXPECT_EQ(pool_->idle(), 2u);
  EXPECT_TRUE(Over(*peers_[0]));
  EXPECT_FALSE(peers_[2]->over());
}

TEST_F(HttpPoolTest, WithoutIdleConnectionsEveryCallHasItsOwn) {
  options_.idle_max = 0;
  MakePool();
  KeepOne();
  EXPECT_EQ(pool_->connections(), 0u);
  EXPECT_TRUE(Over(*peers_[0]));
}

TEST_F(HttpPoolTest, ABodyOfMegabytesArrivesWholeAlthoughTheServiceReadsLate) {
  request_.method = "POST";
  for (size_t i = 0; i < 4 * 1024 * 1024; ++i) {
    request_.body.push_back(static_cast<char>('a' + i % 23));
  }
  Outcome& outcome = Start();
  ASSERT_TRUE(Eventually([&] {
    Serve();
    return !peers_.empty() && peers_[0]->received().size() > request_.body.size();
  }));
  const std::string& got = peers_[0]->received();
  const size_t body = got.find("\r\n\r\n") + 4;
  ASSERT_TRUE(Eventually([&] {
    Serve();
    return got.size() == body + request_.body.size();
  }));
  EXPECT_EQ(got.substr(body), request_.body);
  peers_[0]->Send(kOk);
  ASSERT_TRUE(Told(outcome));
  ExpectBody(outcome, "ok");
  EXPECT_EQ(pool_->idle(), 1u);
}

TEST_F(HttpPoolTest, ARequestMaySayItsOwnUserAgentButNotWhatFramesIt) {
  request_.headers = {{"User-Agent", "orders/1"}};
  KeepOne();
  const std::string& got = peers_[0]->received();
  EXPECT_NE(got.find("\r\nUser-Agent: orders/1\r\n"), std::string::npos);
  EXPECT_EQ(got.find("leasehold/"), std::string::npos);
  for (const char* name : {"Host", "content-length", "Transfer-Encoding", "connection"}) {
    request_.headers = {{name, "1"}};
    Outcome& outcome = Start();
    EXPECT_EQ(outcome.told, 0) << "never from inside the call";
    ASSERT_TRUE(Told(outcome));
    ExpectError(outcome, ErrorCode::kInvalid, name);
  }
  EXPECT_EQ(pool_->connects(), 1u);
}

}  // namespace
}  // namespace leasehold::client

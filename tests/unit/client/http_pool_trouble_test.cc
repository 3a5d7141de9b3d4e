// HttpPool when things go wrong: connections that went stale, services that are silent, slow, early
// or mad, callers that let go in the middle.
#include <gtest/gtest.h>

#include <string>

#include "client/http_pool.h"
#include "http_pool_fixture.h"

namespace leasehold::client {
namespace {

using base::Duration;
using base::ErrorCode;
using testing::RawSocket;

class HttpPoolTroubleTest : public HttpPoolFixture {};

// ---- kept connections ----

TEST_F(HttpPoolTroubleTest, AKeptConnectionThatTheServiceClosesIsLetGo) {
  for (const bool reset : {false, true}) {
    const size_t number = peers_.size();
    KeepOne(number);
    EXPECT_EQ(pool_->idle(), 1u);
    if (reset) {
      peers_[number]->CloseWithReset();
    } else {
      peers_[number]->ShutdownWrite();
    }
    EXPECT_TRUE(Eventually([&] { return pool_->connections() == 0; }));
  }
}

TEST_F(HttpPoolTroubleTest, AKeptConnectionThatSaysSomethingUnaskedIsLetGo) {
  KeepOne();
  peers_[0]->Send("HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\n\r\n");
  EXPECT_TRUE(Eventually([&] { return pool_->connections() == 0; }));
}

TEST_F(HttpPoolTroubleTest, WhatWaitsUnreadOnAKeptConnectionIsNotTakenForAnAnswer) {
  KeepOne();
  peers_[0]->Send("HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\n\r\n");
  Outcome& outcome = Start();  // the loop has not turned since
  Peer(1).Send(Ok("right"));
  ASSERT_TRUE(Told(outcome));
  ExpectBody(outcome, "right");
}

TEST_F(HttpPoolTroubleTest, AnEndThatWaitsUnreadIsSeenBeforeTheRequestIsSent) {
  KeepOne();
  peers_[0]->ShutdownWrite();
  Outcome& outcome = Start(kNever);
  Peer(1).Send(Ok("right"));
  ASSERT_TRUE(Told(outcome));
  ExpectBody(outcome, "right");
  EXPECT_EQ(Heads(peers_[0]->received()), 1u);
}

TEST_F(HttpPoolTroubleTest, BytesBehindAnAnswerSpoilTheConnection) {
  Outcome& outcome = Start();
  Peer(0).Send(std::string(kOk) + "H");
  ASSERT_TRUE(Told(outcome));
  ExpectBody(outcome, "ok");
  EXPECT_EQ(pool_->connections(), 0u);
}

TEST_F(HttpPoolTroubleTest, AnIdempotentCallThatMetAClosingConnectionIsSentOnceMoreOnANewOne) {
  for (const bool reset : {false, true}) {
    peers_.clear();
    MakePool();
    KeepOne();
    request_.target = "/again";
    Outcome& outcome = Start(kIdempotent);
    RawSocket& closing = Peer(0, 2);
    if (reset) {
      closing.CloseWithReset();
    } else {
      closing.Close();
    }
    Peer(1).Send(Ok("second try"));
    ASSERT_TRUE(Told(outcome));
    ExpectBody(outcome, "second try");
    EXPECT_TRUE(peers_[1]->received().starts_with("GET /again "));
    EXPECT_EQ(pool_->connects(), 2u);
  }
}

TEST_F(HttpPoolTroubleTest, TheSecondSendingCarriesTheWholeBodyAgain) {
  KeepOne();
  request_.method = "POST";
  request_.body = std::string(3 * 1024 * 1024, 'b');
  Outcome& outcome = Start(kIdempotent);
  ASSERT_TRUE(Eventually([&] {
    Serve();
    return Heads(peers_[0]->received()) >= 2;
  }));
  peers_[0]->CloseWithReset();
  ASSERT_TRUE(Eventually([&] {
    Serve();
    return peers_.size() == 2 && peers_[1]->received().size() > request_.body.size() &&
           peers_[1]->received().ends_with(request_.body);
  }));
  peers_[1]->Send(kOk);
  ASSERT_TRUE(Told(outcome));
  ExpectBody(outcome, "ok");
}

TEST_F(HttpPoolTroubleTest, WhatIsNotIdempotentIsNeverSentAgain) {
  KeepOne();
  Outcome& outcome = Start(kNever);
  Peer(0, 2).Close();
  ASSERT_TRUE(Told(outcome));
  ExpectError(outcome, ErrorCode::kClosed, "without an answer");
  EXPECT_EQ(pool_->connects(), 1u);
}

TEST_F(HttpPoolTroubleTest, ANewConnectionThatClosesIsNotTriedAgain) {
  Outcome& outcome = Start(kIdempotent);
  Peer(0).Close();
  ASSERT_TRUE(Told(outcome));
  ExpectError(outcome, ErrorCode::kClosed, "without an answer");
}

TEST_F(HttpPoolTroubleTest, ACallIsSentTwiceAtMost) {
  KeepOne();
  Outcome& outcome = Start(kIdempotent);
  Peer(0, 2).Close();
  Peer(1).Close();
  ASSERT_TRUE(Told(outcome));
  ExpectError(outcome, ErrorCode::kClosed, "without an answer");
  EXPECT_EQ(pool_->connects(), 2u);
}

TEST_F(HttpPoolTroubleTest, AfterTheFirstByteOfAnAnswerNothingIsSentAgain) {
  KeepOne();
  Outcome& outcome = Start(kIdempotent);
  Peer(0, 2).Send("H");
  ASSERT_TRUE(Eventually([&] {
    RunFor(Duration::Millis(5));
    return true;
  }));
  peers_[0]->Close();
  ASSERT_TRUE(Told(outcome));
  ExpectError(outcome, ErrorCode::kClosed, "inside the answer");
  EXPECT_EQ(pool_->connects(), 1u);
}

TEST_F(HttpPoolTroubleTest, TheSecondSendingIsWithinTheSameDeadline) {
  KeepOne();
  request_.timeout = Duration::Millis(150);
  const base::MonoTime start = loop::Loop::Now();
  Outcome& outcome = Start(kIdempotent);
  Peer(0, 2).Close();
  Peer(1);
  ASSERT_TRUE(Told(outcome));
  ExpectError(outcome, ErrorCode::kTimeout, "no answer within 150ms");
  EXPECT_GE(loop::Loop::Now() - start, Duration::Millis(150));
}

TEST_F(HttpPoolTroubleTest, SilenceOnAKeptConnectionMakesTheOtherKeptOnesSuspect) {
  KeepMany(3);
  for (const auto& peer : peers_) peer->GoDeaf();
  request_.timeout = Duration::Millis(60);
  Outcome& outcome = Start(kIdempotent);
  ASSERT_TRUE(Told(outcome));
  ExpectError(outcome, ErrorCode::kTimeout, "no answer within 60ms");
  EXPECT_EQ(pool_->connections(), 0u);
  Outcome& next = Start();
  Peer(3).Send(kOk);
  ASSERT_TRUE(Told(next));
  ExpectBody(next, "ok");
}

// ---- time-outs ----

TEST_F(HttpPoolTroubleTest, AConnectThatGetsNoAnswerEndsAtItsOwnTimeout) {
  testing::RawServer full(testing::TcpAddress("127.0.0.1", 0), 0);
  const auto first = RawSocket::Connect(full.address());
  const auto second = RawSocket::Connect(full.address());
  options_.address = full.address();
  options_.connect_timeout = Duration::Millis(60);
  MakePool();
  Outcome& outcome = Start(kIdempotent);
  ASSERT_TRUE(Told(outcome));
  ExpectError(outcome, ErrorCode::kTimeout, "cannot connect to " + full.address().ToString());
  EXPECT_EQ(pool_->connections(), 0u);
  options_.connect_timeout = Duration::Seconds(5);
  MakePool();
  request_.timeout = Duration::Millis(60);
  Outcome& whole = Start();
  ASSERT_TRUE(Told(whole));
  ExpectError(whole, ErrorCode::kTimeout, full.address().ToString());
}

TEST_F(HttpPoolTroubleTest, ASilentServiceIsGivenUpAtTheTimeoutAndItsConnectionClosed) {
  request_.timeout = Duration::Millis(60);
  Outcome& outcome = Start();
  RawSocket& peer = Peer(0);
  ASSERT_TRUE(Told(outcome));
  ExpectError(outcome, ErrorCode::kTimeout, "no answer within 60ms");
  EXPECT_EQ(pool_->connections(), 0u);
  EXPECT_TRUE(Over(peer));
}

TEST_F(HttpPoolTroubleTest, HalfAHeadIsGivenUpAtTheTimeout) {
  request_.timeout = Duration::Millis(80);
  Outcome& outcome = Start();
  Peer(0).Send("HTTP/1.1 200 OK\r\nContent-");
  ASSERT_TRUE(Told(outcome));
  ExpectError(outcome, ErrorCode::kTimeout, "no complete answer within 80ms");
}

TEST_F(HttpPoolTroubleTest, ABodyThatTricklesIsGivenUpAtTheTimeoutOfTheWholeCall) {
  request_.timeout = Duration::Millis(100);
  Outcome& outcome = Start();
  Peer(0).Send("HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n");
  ASSERT_TRUE(Eventually([&] {
    peers_[0]->Send("x");
    return outcome.told > 0;
  }));
  ExpectError(outcome, ErrorCode::kTimeout, "no complete answer within 100ms");
}

TEST_F(HttpPoolTroubleTest, AServiceThatTakesNothingOfABigBodyIsGivenUpAtTheTimeout) {
  request_.method = "POST";
  request_.body = std::string(16 * 1024 * 1024, 'x');
  request_.timeout = Duration::Millis(150);
  Outcome& outcome = Start();
  ASSERT_TRUE(Told(outcome));
  ExpectError(outcome, ErrorCode::kTimeout, "no answer within 150ms");
  EXPECT_EQ(pool_->connections(), 0u);
}

TEST_F(HttpPoolTroubleTest, TheTimeCountsFromWhenTheErrandBegan) {
  request_.timeout = Duration::Millis(1000);
  request_.started = loop::Loop::Now() - Duration::Millis(800);
  const base::MonoTime start = loop::Loop::Now();
  Outcome& outcome = Start();
  ASSERT_TRUE(Told(outcome));
  ExpectError(outcome, ErrorCode::kTimeout, "within 1s");
  EXPECT_LT(loop::Loop::Now() - start, Duration::Millis(980));
}

TEST_F(HttpPoolTroubleTest, WithoutTimeLeftNothingIsSent) {
  request_.started = loop::Loop::Now() - request_.timeout;
  Outcome& outcome = Start();
  ASSERT_TRUE(Told(outcome));
  ExpectError(outcome, ErrorCode::kTimeout, "no time was left");
  EXPECT_EQ(server_->Accept(), nullptr);
}

// ---- answers ----

TEST_F(HttpPoolTroubleTest, ARefusedConnectNamesTheAddress) {
  server_->Close();
  Outcome& outcome = Start(kIdempotent);
  ASSERT_TRUE(Told(outcome));
  ExpectError(outcome, ErrorCode::kUnavailable, options_.address.ToString());
  EXPECT_EQ(pool_->connections(), 0u);
  EXPECT_EQ(pool_->connects(), 0u);
}

TEST_F(HttpPoolTroubleTest, AResetInsideAnAnswerIsAnError) {
  Outcome& outcome = Start(kIdempotent);
  Peer(0).Send("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf");
  RunFor(Duration::Millis(5));
  peers_[0]->CloseWithReset();
  ASSERT_TRUE(Told(outcome));
  ExpectError(outcome, ErrorCode::kClosed, options_.address.ToString());
}

TEST_F(HttpPoolTroubleTest, WhatIsNotHttpIsAnErrorAndTheConnectionIsClosed) {
  Outcome& outcome = Start();
  Peer(0).Send("220 mail.example ESMTP\r\n\r\n");
  ASSERT_TRUE(Told(outcome));
  ExpectError(outcome, ErrorCode::kUnavailable, "not HTTP/1");
  EXPECT_EQ(pool_->connections(), 0u);
}

TEST_F(HttpPoolTroubleTest, ABodyAboveTheLimitIsAnErrorThatNamesTheLimit) {
  request_.body_bytes_max = 4;
  Outcome& outcome = Start();
  Peer(0).Send(Ok("hello"));
  ASSERT_TRUE(Told(outcome));
  ExpectError(outcome, ErrorCode::kLimit, "4B");
  EXPECT_EQ(pool_->connections(), 0u);
}

TEST_F(HttpPoolTroubleTest, AnEarlyAnswerToABigBodyCountsAndTheConnectionIsNotKept) {
  request_.method = "POST";
  request_.body = std::string(16 * 1024 * 1024, 'x');
  Outcome& outcome = Start();
  ASSERT_TRUE(Eventually([&] {
    if (peers_.empty()) {
      if (auto peer = server_->Accept()) peers_.push_back(std::move(peer));
    }
    return !peers_.empty();
  }));
  peers_[0]->Send("HTTP/1.1 413 Too Large\r\nContent-Length: 5\r\n\r\nlarge");
  ASSERT_TRUE(Told(outcome));
  ExpectBody(outcome, "large");
  EXPECT_EQ((*outcome.answer)->status, 413);
  EXPECT_EQ(pool_->connections(), 0u);
}

TEST_F(HttpPoolTroubleTest, AnEarlyAnswerBehindWhichTheServiceHangsUpIsStillHeard) {
  request_.method = "POST";
  request_.body = std::string(16 * 1024 * 1024, 'x');
  Outcome& outcome = Start();
  std::unique_ptr<RawSocket> peer;
  ASSERT_TRUE(Eventually([&] {
    if (!peer) peer = server_->Accept();
    return peer != nullptr;
  }));
  peer->Send("HTTP/1.1 403 No\r\nContent-Length: 2\r\n\r\nno");
  peer->Close();  // with bytes unread: the kernel resets
  ASSERT_TRUE(Told(outcome));
  ExpectBody(outcome, "no");
}

TEST_F(HttpPoolTroubleTest, AServiceThatStopsSpeakingBeforeItAnsweredIsNotWaitedFor) {
  Outcome& outcome = Start();
  Peer(0).ShutdownWrite();
  ASSERT_TRUE(Told(outcome));
  ExpectError(outcome, ErrorCode::kClosed, "without an answer");
}

// ---- letting go ----

TEST_F(HttpPoolTroubleTest, ADestroyedCallClosesItsConnectionAndIsNeverTold) {
  Outcome& outcome = Start();
  RawSocket& peer = Peer(0);
  outcome.call.reset();
  EXPECT_EQ(pool_->connections(), 0u);
  EXPECT_TRUE(Over(peer));
  Outcome& connecting = Start();
  connecting.call.reset();
  Outcome& refused = [&]() -> Outcome& {
    request_.target = "/a b";
    return Start();
  }();
  refused.call.reset();
  RunFor(Duration::Millis(20));
  EXPECT_EQ(outcome.told + connecting.told + refused.told, 0);
  EXPECT_EQ(pool_->connections(), 0u);
}

TEST_F(HttpPoolTroubleTest, APoolThatGoesCancelsItsCallsWhichMayGoLater) {
  KeepOne();
  Outcome& sent = Start();
  RawSocket& peer = Peer(0, 2);
  Outcome& connecting = Start();
  request_.target = "/a b";
  Outcome& refused = Start();
  pool_.reset();
  EXPECT_TRUE(Over(peer));
  RunFor(Duration::Millis(20));
  EXPECT_EQ(sent.told + connecting.told + refused.told, 0);
  sent.call.reset();
  connecting.call.reset();
  refused.call.reset();
}

TEST_F(HttpPoolTroubleTest, APoolMayBeDestroyedInsideACallback) {
  Outcome& first = Start();
  Peer(0);
  Outcome& other = Start();
  Peer(1);
  first.inside = [&] {
    first.call.reset();
    pool_.reset();
  };
  peers_[0]->Send(kOk);
  ASSERT_TRUE(Told(first));
  ExpectBody(first, "ok");
  EXPECT_TRUE(Over(*peers_[1]));
  EXPECT_EQ(other.told, 0);
}

TEST_F(HttpPoolTroubleTest, APoolMayBeDestroyedInsideTheCallbackOfAFailure) {
  request_.timeout = Duration::Millis(40);
  Outcome& outcome = Start();
  outcome.inside = [&] {
    pool_.reset();
    outcome.call.reset();
  };
  ASSERT_TRUE(Told(outcome));
  ExpectError(outcome, ErrorCode::kTimeout, "within 40ms");
}

TEST_F(HttpPoolTroubleTest, OneCallMayCancelAnotherWhoseAnswerIsThere) {
  Outcome& first = Start();
  Peer(0);
  Outcome& second = Start();
  Peer(1);
  first.inside = [&] { second.call.reset(); };
  second.inside = [&] { first.call.reset(); };
  peers_[0]->Send(kOk);
  peers_[1]->Send(kOk);
  ASSERT_TRUE(Eventually([&] { return first.told + second.told > 0; }));
  RunFor(Duration::Millis(10));
  EXPECT_EQ(first.told + second.told, 1);
  EXPECT_EQ(pool_->connections(), 1u);
}

}  // namespace
}  // namespace leasehold::client

#include "loop/stream.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <string>
#include <vector>

#include "lib/loop_fixture.h"
#include "lib/socket_peer.h"

namespace leasehold::loop {
namespace {

using base::Duration;
using testing::SocketPeer;

enum class Kind { kTcp, kUnix };

// Every case runs over both kinds of socket, since one class serves both.
class StreamTest : public testing::LoopFixture, public ::testing::WithParamInterface<Kind> {
 protected:
  void SetUp() override {
    const auto [a, b] = GetParam() == Kind::kTcp ? testing::TcpPair() : testing::UnixPair();
    ASSERT_GE(a, 0);
    ASSERT_GE(b, 0);
    // Small kernel buffers, so that back-pressure comes early.
    const int bytes = 16 * 1024;
    for (const int fd : {a, b}) {
      setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes));
      setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof(bytes));
    }
    fd_b_ = b;
    a_.Adopt(AdoptSocket(loop_, a, "10.0.0.7:4711"));
  }
  void TearDown() override {
    if (fd_b_ >= 0) close(fd_b_);
    a_.Destroy();
    b_.Destroy();
  }
  void AdoptB(bool read = true) {
    b_.Adopt(AdoptSocket(loop_, std::exchange(fd_b_, -1), "unix"), read);
  }
  // The peer vanishes with a reset: for TCP by linger 0, for Unix by unread bytes.
  void ResetB() {
    if (GetParam() == Kind::kTcp) {
      const linger now{1, 0};
      setsockopt(fd_b_, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
    } else {
      a_.stream().Write("never read");
    }
    close(std::exchange(fd_b_, -1));
  }

  int fd_b_ = -1;
  SocketPeer a_;
  SocketPeer b_;
};

std::string Pattern(size_t size) {
  std::string bytes(size, '\0');
  uint32_t x = 12345;
  for (char& c : bytes) {
    x = x * 1664525 + 1013904223;
    c = static_cast<char>(x >> 24);
  }
  return bytes;
}

// What only TCP has: a reset.
class TcpStreamTest : public StreamTest {};

TEST_P(StreamTest, AStreamIsQuietUntilSomethingHasComeThatNobodyWasTold) {
  EXPECT_TRUE(a_.stream().Quiet());
  ASSERT_EQ(write(fd_b_, "x", 1), 1);
  EXPECT_FALSE(a_.stream().Quiet());
  ASSERT_TRUE(RunUntil([&] { return a_.received == "x"; }));
  EXPECT_TRUE(a_.stream().Quiet());
  shutdown(fd_b_, SHUT_WR);
  EXPECT_FALSE(a_.stream().Quiet());
  ASSERT_TRUE(RunUntil([&] { return a_.ends == 1; }));
  EXPECT_FALSE(a_.stream().Quiet()) << "an end is the end";
}

TEST_P(StreamTest, AResetIsNotQuiet) {
  ResetB();
  EXPECT_FALSE(a_.stream().Quiet());
  ASSERT_TRUE(RunUntil([&] { return a_.closes == 1; }));
  EXPECT_FALSE(a_.stream().Quiet());
}

TEST_P(StreamTest, BytesPassBothWays) {
  AdoptB();
  a_.stream().Write("ping");
  b_.stream().Write("pong");
  ASSERT_TRUE(RunUntil([&] { return a_.received == "pong" && b_.received == "ping"; }));
  EXPECT_EQ(a_.stream().queued(), 0u);
}

TEST_P(StreamTest, WritevKeepsItsOrderBehindAQueue) {
  AdoptB(false);
  const std::string big = Pattern(400000);
  a_.stream().Write(big);
  ASSERT_GT(a_.stream().queued(), 0u);
  std::vector<std::string> texts;
  std::vector<std::string_view> pieces;
  std::string expected = big;
  for (int i = 0; i < 100; ++i) texts.push_back("piece " + std::to_string(i) + ";");
  for (const std::string& text : texts) {
    pieces.push_back(text);
    expected += text;
  }
  pieces.push_back("");
  a_.stream().Writev(pieces);
  b_.stream().StartReading();
  ASSERT_TRUE(RunUntil([&] { return b_.received.size() == expected.size(); }));
  EXPECT_EQ(b_.received, expected);
  EXPECT_EQ(a_.drains, 1);
  EXPECT_EQ(a_.stream().queued(), 0u);
}

TEST_P(StreamTest, ManyPiecesWithoutAQueueArriveInOrder) {
  AdoptB();
  std::vector<std::string> texts;
  std::string expected;
  for (int i = 0; i < 100; ++i) texts.push_back(Pattern(static_cast<size_t>(i) * 37 + 1));
  std::vector<std::string_view> pieces(texts.begin(), texts.end());
  for (const std::string& text : texts) expected += text;
  a_.stream().Writev(pieces);
  ASSERT_TRUE(RunUntil([&] { return b_.received.size() == expected.size(); }));
  EXPECT_EQ(b_.received, expected);
}

TEST_P(StreamTest, HalfCloseKeepsTheOtherDirectionBothWays) {
  AdoptB();
  a_.stream().Write("request");
  a_.stream().ShutdownWrite();
  ASSERT_TRUE(RunUntil([&] { return b_.ends == 1; }));
  EXPECT_EQ(b_.received, "request");
  b_.stream().Write("answer");
  ASSERT_TRUE(RunUntil([&] { return a_.received == "answer"; }));
  EXPECT_EQ(a_.ends, 0);
  b_.stream().ShutdownWrite();
  ASSERT_TRUE(RunUntil([&] { return a_.ends == 1; }));
  RunFor(Duration::Millis(20));
  EXPECT_EQ(a_.closes + b_.closes, 0);
  EXPECT_EQ(a_.ends + b_.ends, 2);
}

TEST_P(StreamTest, ShutdownWriteWaitsForTheQueue) {
  AdoptB(false);
  const std::string big = Pattern(400000);
  a_.stream().Write(big);
  a_.stream().ShutdownWrite();
  a_.stream().Write("dropped: the end was announced");
  b_.stream().StartReading();
  ASSERT_TRUE(RunUntil([&] { return b_.ends == 1; }));
  EXPECT_EQ(b_.received, big);
}

TEST_P(StreamTest, StoppedReaderBoundsMemoryAndGetsEverythingLater) {
  AdoptB(false);
  const std::string chunk = Pattern(10000);
  std::string sent;
  // A well-behaved producer: stops above its own limit.
  while (a_.stream().queued() < 50000) {
    a_.stream().Write(chunk);
    sent += chunk;
  }
  RunFor(Duration::Millis(20));
  EXPECT_TRUE(b_.received.empty());
  EXPECT_LT(a_.stream().queued(), 60001u);
  EXPECT_EQ(a_.drains, 0);
  b_.stream().StartReading();
  ASSERT_TRUE(RunUntil([&] { return b_.received.size() == sent.size(); }));
  EXPECT_EQ(b_.received, sent);
  EXPECT_EQ(a_.drains, 1);
}

TEST_P(StreamTest, WhatWaitedIsNotSentOnceTheListenerForbidsIt) {
  const std::string bytes(1 << 20, 'x');
  a_.stream().Write(bytes);
  const size_t left_at_once = bytes.size() - a_.stream().queued();
  ASSERT_LT(left_at_once, bytes.size());
  a_.may_flush = false;
  AdoptB();  // the peer reads: the socket becomes writable again
  ASSERT_TRUE(RunUntil([&] { return a_.closes == 1; }, Duration::Seconds(5)));
  EXPECT_EQ(a_.stream().queued(), 0u);
  a_.Destroy();
  ASSERT_TRUE(RunUntil([&] { return b_.ends + b_.closes == 1; }, Duration::Seconds(5)));
  EXPECT_EQ(b_.received.size(), left_at_once)
      << "not one byte more than the kernel had taken before";
}

TEST_P(StreamTest, StopReadingInsideACallbackHoldsTheRestAndTheEnd) {
  AdoptB();
  b_.on_data = [&] { b_.stream().StopReading(); };
  a_.stream().Write("first");
  ASSERT_TRUE(RunUntil([&] { return b_.received == "first"; }));
  a_.stream().Write("second");
  a_.stream().ShutdownWrite();
  RunFor(Duration::Millis(20));
  EXPECT_EQ(b_.received, "first");
  EXPECT_EQ(b_.ends, 0);
  EXPECT_FALSE(b_.stream().reading());
  b_.on_data = nullptr;
  b_.stream().StartReading();
  ASSERT_TRUE(RunUntil([&] { return b_.ends == 1; }));
  EXPECT_EQ(b_.received, "firstsecond");
}

TEST_P(StreamTest, ResetWhileReadingIsReportedOnce) {
  ResetB();
  ASSERT_TRUE(RunUntil([&] { return a_.closes > 0; }));
  EXPECT_EQ(a_.closed->code, base::ErrorCode::kClosed);
  EXPECT_NE(a_.closed->message.find("10.0.0.7:4711"), std::string::npos);
  RunFor(Duration::Millis(20));
  EXPECT_EQ(a_.closes, 1);
  EXPECT_EQ(a_.ends, 0);
}

TEST_P(StreamTest, ResetWhileWritingIsReportedOnceAndNeverFromInsideWrite) {
  ResetB();
  int during_write = 0;
  for (int i = 0; i < 100; ++i) {
    a_.stream().Write(std::string(1000, 'x'));
    during_write += a_.closes;
  }
  EXPECT_EQ(during_write, 0);
  ASSERT_TRUE(RunUntil([&] { return a_.closes > 0; }));
  a_.stream().Write("dropped");
  RunFor(Duration::Millis(20));
  EXPECT_EQ(a_.closes, 1);
  EXPECT_EQ(a_.stream().queued(), 0u);
}

TEST_P(StreamTest, ResetWhileReadingIsStoppedIsNoticedWithoutTraffic) {
  a_.stream().StopReading();
  RunFor(Duration::Millis(5));
  ResetB();
  ASSERT_TRUE(RunUntil([&] { return a_.closes == 1; }));
}

TEST_P(StreamTest, BytesBeforeAResetAreDeliveredFirst) {
  const std::string last_words = "HTTP/1.1 413 Too Large\r\n\r\n";
  ASSERT_EQ(send(fd_b_, last_words.data(), last_words.size(), 0),
            static_cast<ssize_t>(last_words.size()));
  a_.stream().Write("a body nobody reads");
  ResetB();
  // Our writes fail now; the answer that came before must not be lost with them.
  for (int i = 0; i < 10; ++i) a_.stream().Write("more of the body");
  ASSERT_TRUE(RunUntil([&] { return a_.closes == 1; }));
  EXPECT_EQ(a_.received, last_words);
}

TEST_P(StreamTest, BytesBeforeAResetWaitForAStoppedReader) {
  a_.stream().StopReading();
  ASSERT_EQ(send(fd_b_, "answer", 6, 0), 6);
  ResetB();
  for (int i = 0; i < 10; ++i) a_.stream().Write("more of the body");
  RunFor(Duration::Millis(20));
  EXPECT_EQ(a_.closes, 0);
  a_.stream().StartReading();
  ASSERT_TRUE(RunUntil([&] { return a_.closes == 1; }));
  EXPECT_EQ(a_.received, "answer");
}

TEST_P(TcpStreamTest, ResetOnCloseResetsThePeer) {
  AdoptB();
  a_.stream().ResetOnClose();
  a_.Destroy();
  ASSERT_TRUE(RunUntil([&] { return b_.closes == 1; }));
  EXPECT_EQ(b_.ends, 0);
}

TEST_P(StreamTest, MayBeDestroyedInsideOnData) {
  AdoptB();
  b_.on_data = [&] { b_.Destroy(); };
  a_.stream().Write("x");
  ASSERT_TRUE(RunUntil([&] { return a_.ends + a_.closes == 1; }));
}

TEST_P(StreamTest, MayBeDestroyedInsideOnEnd) {
  AdoptB();
  b_.on_end = [&] { b_.Destroy(); };
  a_.stream().ShutdownWrite();
  ASSERT_TRUE(RunUntil([&] { return a_.ends == 1; }));
}

TEST_P(StreamTest, MayBeDestroyedInsideOnDrained) {
  AdoptB(false);
  a_.on_drained = [&] { a_.Destroy(); };
  a_.stream().Write(Pattern(400000));
  b_.stream().StartReading();
  ASSERT_TRUE(RunUntil([&] { return b_.ends == 1; }));
  EXPECT_EQ(b_.received.size(), 400000u);
}

TEST_P(StreamTest, MayBeDestroyedInsideOnClosed) {
  a_.on_closed = [&] { a_.Destroy(); };
  ResetB();
  ASSERT_TRUE(RunUntil([&] { return a_.closes == 1; }));
  RunFor(Duration::Millis(5));
}

TEST_P(StreamTest, DestroyedBeforeAPostedReportHearsNothing) {
  ResetB();
  for (int i = 0; i < 10; ++i) a_.stream().Write("x");
  a_.Destroy();
  RunFor(Duration::Millis(5));
  EXPECT_EQ(a_.closes, 0);
}

TEST_P(StreamTest, DetachedDescriptorKeepsUnreadBytesAndMayBeAdoptedAgain) {
  a_.stream().StopReading();
  ASSERT_EQ(send(fd_b_, "kept", 4, 0), 4);
  RunFor(Duration::Millis(5));
  const int fd = a_.stream().Detach();
  ASSERT_GE(fd, 0);
  // The old object is still there and libuv's handle not yet closed: the number may be used at
  // once.
  SocketPeer again;
  again.Adopt(AdoptSocket(loop_, fd, "again"));
  a_.Destroy();
  ASSERT_TRUE(RunUntil([&] { return again.received == "kept"; }));
}

TEST_P(StreamTest, DetachInsideOnDataStopsTheDelivery) {
  AdoptB();
  int fd = -1;
  b_.on_data = [&] { fd = b_.stream().Detach(); };
  a_.stream().Write("x");
  ASSERT_TRUE(RunUntil([&] { return fd >= 0; }));
  a_.stream().Write("y");
  RunFor(Duration::Millis(5));
  EXPECT_EQ(b_.received, "x");
  char byte = 0;
  EXPECT_EQ(recv(fd, &byte, 1, 0), 1);
  EXPECT_EQ(byte, 'y');
  close(fd);
}

TEST_P(StreamTest, PeerNameAndUserId) {
  EXPECT_EQ(a_.stream().peer(), "10.0.0.7:4711");
  EXPECT_EQ(a_.stream().peer_host(), "10.0.0.7");
  const int expected = GetParam() == Kind::kUnix ? static_cast<int>(getuid()) : -1;
  EXPECT_EQ(a_.stream().peer_uid(), expected);
  SocketPeer v6;
  v6.Adopt(AdoptSocket(loop_, std::exchange(fd_b_, -1), "[::1]:80"));
  EXPECT_EQ(v6.stream().peer_host(), "::1");
}

TEST_P(StreamTest, IdleHalfClosedConnectionDoesNotSpin) {
  AdoptB();
  a_.stream().ShutdownWrite();
  b_.on_end = [&] { b_.stream().ShutdownWrite(); };
  ASSERT_TRUE(RunUntil([&] { return a_.ends == 1; }));
  RunFor(Duration::Millis(10));
  int turns = 0;
  RunUntil(
      [&] {
        ++turns;
        return false;
      },
      Duration::Millis(100));
  EXPECT_LT(turns, 10);
}

INSTANTIATE_TEST_SUITE_P(Sockets, TcpStreamTest, ::testing::Values(Kind::kTcp));
INSTANTIATE_TEST_SUITE_P(Sockets, StreamTest, ::testing::Values(Kind::kTcp, Kind::kUnix),
                         [](const auto& kind) {
                           return kind.param == Kind::kTcp ? "Tcp" : "Unix";
                         });

}  // namespace
}  // namespace leasehold::loop

// What a descriptor tells of its connection without being read.
#include "loop/socket_facts.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <string>
#include <utility>

#include "lib/raw_socket_fixture.h"
#include "lib/socket_peer.h"

namespace leasehold::loop {
namespace {

using base::Duration;
using Family = base::IpEndpoint::Family;

class SocketFactsTest : public testing::RawSocketFixture {
 protected:
  void Connect(std::pair<int, int> pair) {
    ASSERT_GE(pair.first, 0);
    fd_ = pair.first;
    peer_ = std::make_unique<testing::RawSocket>(pair.second);
  }
  void TearDown() override { close(fd_); }

  int fd_ = -1;
  std::unique_ptr<testing::RawSocket> peer_;
};

TEST_F(SocketFactsTest, BothEndsOfAConnectionAreTold) {
  const auto [a, b] = testing::TcpPair();
  EXPECT_EQ(LocalEndpoint(a), RemoteEndpoint(b));
  EXPECT_EQ(LocalEndpoint(b), RemoteEndpoint(a));
  EXPECT_EQ(LocalEndpoint(a).family, Family::kIPv4);
  EXPECT_EQ(EndpointText(LocalEndpoint(a)), "127.0.0.1:" + std::to_string(LocalEndpoint(a).port));
  close(a);
  close(b);
}

TEST_F(SocketFactsTest, AUnixSocketHasNoEndpoint) {
  Connect(testing::UnixPair());
  EXPECT_EQ(LocalEndpoint(fd_), base::IpEndpoint{});
  EXPECT_EQ(RemoteEndpoint(fd_), base::IpEndpoint{});
  EXPECT_EQ(EndpointText({}), "unix");
  EXPECT_FALSE(LooksDead(fd_, Duration::Zero()));
}

TEST_F(SocketFactsTest, AnIPv6EndpointIsWrittenInBrackets) {
  base::IpEndpoint endpoint;
  endpoint.family = Family::kIPv6;
  endpoint.bytes = {0x20, 0x01, 0x0D, 0xB8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 7};
  endpoint.port = 80;
  EXPECT_EQ(EndpointText(endpoint), "[2001:db8::7]:80");
}

TEST_F(SocketFactsTest, PeekedBytesStay) {
  Connect(testing::TcpPair());
  std::array<char, 4> bytes;
  EXPECT_EQ(PeekBytes(fd_, bytes), 0u);
  peer_->Send("question");
  ASSERT_TRUE(Eventually([&] { return PeekBytes(fd_, bytes) == 4; }));
  EXPECT_EQ(std::string(bytes.data(), 4), "ques");
  EXPECT_EQ(PeekBytes(fd_, bytes), 4u);
}

TEST_F(SocketFactsTest, OnlyWhoStopsAnsweringWhatWasSentLooksDead) {
  Connect(testing::TcpPair());
  EXPECT_FALSE(LooksDead(fd_, Duration::Zero())) << "nothing is under way";
  peer_->GoDeaf();
  ASSERT_EQ(send(fd_, "x", 1, MSG_NOSIGNAL), 1);
  EXPECT_FALSE(LooksDead(fd_, Duration::Zero())) << "one sending is no proof";
  EXPECT_TRUE(Eventually([&] { return LooksDead(fd_, Duration::Millis(500)); }));
  EXPECT_FALSE(LooksDead(fd_, Duration::Seconds(60)));
}

TEST_F(SocketFactsTest, WhoTakesNothingButAnswersIsNotDead) {
  Connect(testing::TcpPair());
  const std::string chunk(1 << 20, 'x');
  while (send(fd_, chunk.data(), chunk.size(), MSG_NOSIGNAL | MSG_DONTWAIT) > 0) {
  }
  bool dead = false;
  RunUntil([&] { return dead = dead || LooksDead(fd_, Duration::Seconds(1)); },
           Duration::Seconds(4));
  EXPECT_FALSE(dead);
}

}  // namespace
}  // namespace leasehold::loop

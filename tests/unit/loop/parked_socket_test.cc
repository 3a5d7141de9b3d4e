// ParkedSocket: who has left and who may be waiting for an answer.
#include "loop/parked_socket.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <utility>

#include "lib/raw_socket_fixture.h"
#include "lib/socket_peer.h"

namespace leasehold::loop {
namespace {

using base::Duration;
using testing::RawSocket;

class ParkedSocketTest : public testing::RawSocketFixture {
 protected:
  void Park(std::pair<int, int> pair) {
    ASSERT_GE(pair.first, 0);
    fd_ = pair.first;
    peer_ = std::make_unique<RawSocket>(pair.second);
    parked_ = ParkedSocket::Park(loop_, pair.first, [this] {
      ++left_;
      parked_.reset();  // the usual thing to do there
    });
  }

  int fd_ = -1;
  int left_ = 0;
  std::unique_ptr<RawSocket> peer_;
  std::unique_ptr<ParkedSocket> parked_;
};

TEST_F(ParkedSocketTest, APeerThatStaysHasNotLeftWhateverItSends) {
  Park(testing::TcpPair());
  peer_->Send("bytes");
  RunFor(Duration::Millis(20));
  EXPECT_EQ(left_, 0);
}

TEST_F(ParkedSocketTest, TheFirstBytesAreShownOnceAndStay) {
  Park(testing::TcpPair());
  std::string first;
  int shown = 0;
  parked_->PeekFirst(4, [&](const std::string& bytes) {
    first = bytes;
    ++shown;
  });
  RunFor(Duration::Millis(10));
  EXPECT_EQ(shown, 0);
  peer_->Send("question");
  ASSERT_TRUE(Eventually([&] { return shown == 1; }));
  EXPECT_EQ(first, "ques") << "no more than asked for";
  peer_->Send("more");
  RunFor(Duration::Millis(10));
  EXPECT_EQ(shown, 1);
  char bytes[16];
  EXPECT_EQ(recv(fd_, bytes, sizeof(bytes), 0), 12) << "nothing was taken";
  peer_->Close();
  EXPECT_TRUE(Eventually([&] { return left_ == 1; })) << "and its leaving is still noticed";
}

TEST_F(ParkedSocketTest, WhoSeesTheFirstBytesMayDestroyIt) {
  Park(testing::TcpPair());
  parked_->PeekFirst(4, [&](const std::string&) { parked_.reset(); });
  peer_->Send("question");
  EXPECT_TRUE(Eventually([&] {
    peer_->Poll();
    return peer_->over();
  }));
}

TEST_F(ParkedSocketTest, APeerThatLeavesWithoutAByteShowsNone) {
  Park(testing::TcpPair());
  int shown = 0;
  parked_->PeekFirst(4, [&](const std::string&) { ++shown; });
  peer_->Close();
  EXPECT_TRUE(Eventually([&] { return left_ == 1; }));
  EXPECT_EQ(shown, 0);
}

TEST_F(ParkedSocketTest, FirstBytesThatWereSeenButNotShownWhenItWasReleasedAreNotShown) {
  Park(testing::TcpPair());
  int shown = 0;
  parked_->PeekFirst(4, [&](const std::string&) { ++shown; });
  peer_->Send("question");
  loop_.Post([&] { close(parked_->Release()); });
  RunFor(Duration::Millis(20));
  EXPECT_EQ(shown, 0);
}

TEST_F(ParkedSocketTest, APeerThatEndsWithNothingUnreadHasLeft) {
  Park(testing::TcpPair());
  peer_->Close();
  EXPECT_TRUE(Eventually([&] { return left_ == 1; }));
}

TEST_F(ParkedSocketTest, APeerThatHadLeftBeforeItWasParkedIsNoticed) {
  auto pair = testing::TcpPair();
  close(std::exchange(pair.second, -1));
  Park(pair);
  EXPECT_TRUE(Eventually([&] { return left_ == 1; }));
}

TEST_F(ParkedSocketTest, APeerThatResetsHasLeftAlsoWithBytesUnread) {
  Park(testing::TcpPair());
  peer_->Send("bytes");
  peer_->CloseWithReset();
  EXPECT_TRUE(Eventually([&] { return left_ == 1; }));
}

TEST_F(ParkedSocketTest, APeerThatEndsAfterBytesMayWaitForItsAnswerAndCostsNoTurnsOfTheLoop) {
  Park(testing::TcpPair());
  peer_->Send("question");
  peer_->ShutdownWrite();
  int turns = 0;
  RunUntil(
      [&] {
        ++turns;
        return false;
      },
      Duration::Millis(30));
  EXPECT_EQ(left_, 0);
  EXPECT_LT(turns, 20) << "the end stays readable; watching it would spin";
  peer_->CloseWithReset();
  EXPECT_TRUE(Eventually([&] { return left_ == 1; }));
}

TEST_F(ParkedSocketTest, AUnixPeerThatClosesHasLeftAlsoWithBytesUnread) {
  Park(testing::UnixPair());
  peer_->Send("bytes");
  peer_->Close();
  EXPECT_TRUE(Eventually([&] { return left_ == 1; }));
}

TEST_F(ParkedSocketTest, AReleasedDescriptorStillHasWhatThePeerSent) {
  Park(testing::TcpPair());
  peer_->Send("kept");
  RawSocket socket(parked_->Release());
  parked_.reset();
  EXPECT_TRUE(Eventually([&] {
    socket.Poll();
    return socket.received() == "kept";
  }));
  peer_->Close();
  RunFor(Duration::Millis(20));
  EXPECT_EQ(left_, 0) << "no longer watched";
}

TEST_F(ParkedSocketTest, DestructionEndsInOrderOrResetsWhenAsked) {
  Park(testing::TcpPair());
  parked_.reset();
  EXPECT_TRUE(Eventually([&] { return peer_->Poll() && peer_->ended(); }));
  Park(testing::TcpPair());
  parked_->ResetOnClose();
  parked_.reset();
  EXPECT_TRUE(Eventually([&] { return peer_->Poll() && peer_->reset(); }));
}

TEST_F(ParkedSocketTest, ADestroyedOneNeverCallsBack) {
  Park(testing::TcpPair());
  peer_->Close();
  parked_.reset();
  RunFor(Duration::Millis(20));
  EXPECT_EQ(left_, 0);
}

}  // namespace
}  // namespace leasehold::loop

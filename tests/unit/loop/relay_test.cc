#include "loop/relay.h"

#include <dirent.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <functional>
#include <optional>
#include <string>

#include "base/random.h"
#include "lib/loop_fixture.h"
#include "lib/socket_peer.h"
#include "loop/relay_direction.h"

namespace leasehold::loop {
namespace {

using base::Duration;
using testing::SocketPeer;

// An endless sequence of bytes, produced and checked without keeping it. Its period is a prime near
// 1 MiB, so that no lost, doubled or displaced chunk of a round size can go unseen.
class Sequence {
 public:
  explicit Sequence(uint64_t seed) : period_(kPeriod, '\0') {
    base::Random random(seed);
    for (char& c : period_) c = static_cast<char>(random.Next());
  }
  void Fill(std::string& bytes) {
    for (size_t at = 0; at < bytes.size();) {
      const std::string_view part = Next(bytes.size() - at);
      bytes.replace(at, part.size(), part);
      at += part.size();
    }
  }
  bool Matches(std::string_view bytes) {
    while (!bytes.empty()) {
      const std::string_view part = Next(bytes.size());
      if (bytes.substr(0, part.size()) != part) return false;
      bytes.remove_prefix(part.size());
    }
    return true;
  }

 private:
  static constexpr size_t kPeriod = 1000003;
  std::string_view Next(size_t size_max) {
    const std::string_view part = std::string_view(period_).substr(position_, size_max);
    position_ = (position_ + part.size()) % kPeriod;
    return part;
  }

  std::string period_;
  size_t position_ = 0;
};

// The client and the server on both outer ends; the relay holds the two inner descriptors.
class RelayTest : public testing::LoopFixture, public ::testing::WithParamInterface<bool> {
 protected:
  void SetUp() override {
    const auto [client, a] = MakePair();
    const auto [b, server] = MakePair();
    ASSERT_GE(a, 0);
    ASSERT_GE(b, 0);
    a_ = a;
    b_ = b;
    client_fd_ = client;
    client_.Adopt(AdoptSocket(loop_, client, "client"));
    server_.Adopt(AdoptSocket(loop_, server, "server"));
  }
  void TearDown() override {
    relay_.reset();
    client_.Destroy();
    server_.Destroy();
    if (a_ >= 0) close(a_);
    if (b_ >= 0) close(b_);
  }
  static std::pair<int, int> MakePair() {
    return GetParam() ? testing::TcpPair() : testing::UnixPair();
  }
  void Start(const RelayOptions& options = {}, std::string_view first_for_b = "",
             std::string_view first_for_a = "") {
    relay_ = Relay::Start(
        loop_, std::exchange(a_, -1), std::exchange(b_, -1), first_for_b, first_for_a, options,
        [this] {
          ++asked_;
          return may_pass_;
        },
        [this](base::Status status, const RelayStats& stats) {
          ++dones_;
          status_ = std::move(status);
          stats_ = stats;
          relay_.reset();  // what a gate does
        });
  }
  bool Done() {
    return RunUntil([this] { return dones_ > 0; });
  }

  int a_ = -1;
  int b_ = -1;
  int client_fd_ = -1;
  SocketPeer client_;
  SocketPeer server_;
  std::unique_ptr<Relay> relay_;
  bool may_pass_ = true;
  int asked_ = 0;
  int dones_ = 0;
  std::optional<base::Status> status_;
  RelayStats stats_;
};

// Writes `total` bytes of a sequence as the queue drains, and verifies what comes from the other
// end.
class Flood {
 public:
  Flood(SocketPeer& from, SocketPeer& to, uint64_t seed, size_t total)
      : from_(from), to_(to), produced_(seed), expected_(seed), left_(total), awaited_(total) {}

  void Start() {
    from_.on_drained = [this] { Produce(); };
    to_.on_data = [this] { Verify(); };
    Produce();
  }
  bool complete() const { return awaited_ == 0 && intact_; }
  bool intact() const { return intact_; }

 private:
  void Produce() {
    std::string chunk;
    while (left_ > 0 && from_.stream().queued() == 0) {
      chunk.resize(std::min<size_t>(left_, 256 * 1024));
      produced_.Fill(chunk);
      left_ -= chunk.size();
      from_.stream().Write(chunk);
    }
    if (left_ == 0) from_.stream().ShutdownWrite();
  }
  void Verify() {
    intact_ = intact_ && expected_.Matches(to_.received);
    awaited_ -= to_.received.size();
    to_.received.clear();
  }

  SocketPeer& from_;
  SocketPeer& to_;
  Sequence produced_;
  Sequence expected_;
  size_t left_;
  size_t awaited_;
  bool intact_ = true;
};

// What only TCP has: a reset.
class TcpRelayTest : public RelayTest {};

TEST_P(RelayTest, HundredMebibytesBothWaysArriveIdentical) {
  Start();
  constexpr size_t kTotal = 100u * 1024 * 1024;
  Flood there(client_, server_, 1, kTotal);
  Flood back(server_, client_, 2, kTotal);
  there.Start();
  back.Start();
  ASSERT_TRUE(RunUntil([&] { return dones_ > 0 && client_.ends + server_.ends == 2; },
                       Duration::Seconds(120)));
  EXPECT_TRUE(there.complete());
  EXPECT_TRUE(back.complete());
  EXPECT_TRUE(status_->ok()) << status_->error().message;
  EXPECT_EQ(stats_.a_to_b, kTotal);
  EXPECT_EQ(stats_.b_to_a, kTotal);
}

TEST_P(RelayTest, SmallMessagesPassBothWaysAndHalfCloseIsKept) {
  Start();
  client_.stream().Write("request");
  client_.stream().ShutdownWrite();
  ASSERT_TRUE(RunUntil([&] { return server_.ends == 1; }));
  EXPECT_EQ(server_.received, "request");
  RunFor(Duration::Millis(10));
  EXPECT_EQ(dones_, 0);
  EXPECT_EQ(client_.ends, 0);
  server_.stream().Write("late answer");
  ASSERT_TRUE(RunUntil([&] { return client_.received == "late answer"; }));
  server_.stream().ShutdownWrite();
  ASSERT_TRUE(Done());
  EXPECT_TRUE(status_->ok());
  ASSERT_TRUE(RunUntil([&] { return client_.ends == 1; }));
  EXPECT_EQ(client_.closes + server_.closes, 0);
}

TEST_P(RelayTest, FirstBytesGoBeforeEverythingElse) {
  client_.stream().Write("second");
  Start({}, "first,", "greeting,");
  server_.stream().Write("answer");
  ASSERT_TRUE(RunUntil(
      [&] { return server_.received == "first,second" && client_.received == "greeting,answer"; }));
}

TEST_P(RelayTest, WhoLooksAtTheFirstBytesSeesThemOnceBeforeTheyGoOn) {
  RelayOptions options;
  std::string seen;
  options.look_at_first = [&](std::string_view bytes) {
    EXPECT_EQ(server_.received, "");
    seen += bytes;
    return true;
  };
  Start(options, "", "greeting");
  server_.stream().Write("banner");
  ASSERT_TRUE(RunUntil([&] { return client_.received == "greetingbanner"; }));
  EXPECT_EQ(seen, "") << "what the other side says is not looked at";
  client_.stream().Write("one");
  ASSERT_TRUE(RunUntil([&] { return server_.received == "one"; }));
  client_.stream().Write("two");
  ASSERT_TRUE(RunUntil([&] { return server_.received == "onetwo"; }));
  EXPECT_EQ(seen, "one");
}

TEST_P(RelayTest, FirstBytesThatAreRefusedDoNotGoOnAndBothSidesAreCut) {
  RelayOptions options;
  options.look_at_first = [](std::string_view bytes) { return bytes != "bad"; };
  Start(options);
  client_.stream().Write("bad");
  ASSERT_TRUE(Done());
  EXPECT_EQ(status_->error().code, base::ErrorCode::kRefused);
  EXPECT_EQ(stats_.a_to_b, 0u);
  EXPECT_EQ(server_.received, "");
}

TEST_P(RelayTest, EveryChunkAsksAndRefusalCutsBothSidesAtOnce) {
  Start();
  client_.stream().Write("one");
  ASSERT_TRUE(RunUntil([&] { return server_.received == "one"; }));
  const int asked = asked_;
  EXPECT_GT(asked, 0);
  may_pass_ = false;
  client_.stream().Write("two");
  ASSERT_TRUE(Done());
  EXPECT_GT(asked_, asked);
  EXPECT_EQ(status_->error().code, base::ErrorCode::kRefused);
  ASSERT_TRUE(RunUntil(
      [&] { return client_.closes + client_.ends > 0 && server_.closes + server_.ends > 0; }));
  EXPECT_EQ(server_.received, "one");
  EXPECT_EQ(dones_, 1);
}

TEST_P(RelayTest, RefusalInTheMiddleOfBulkLetsNothingMoreThrough) {
  Start();
  Flood there(client_, server_, 1, 50u * 1024 * 1024);
  there.Start();
  ASSERT_TRUE(RunUntil([&] { return relay_ && relay_->stats().a_to_b > 5u * 1024 * 1024; }));
  may_pass_ = false;
  const uint64_t passed = relay_->stats().a_to_b;
  ASSERT_TRUE(Done());
  EXPECT_EQ(stats_.a_to_b, passed);
  EXPECT_TRUE(there.intact());
}

TEST_P(RelayTest, PeerThatDoesNotReadStopsTheOtherWithBoundedMemory) {
  server_.stream().StopReading();
  const int bytes = 256 * 1024;  // the kernel's own buffers on the way, kept from growing
  setsockopt(client_fd_, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes));
  setsockopt(a_, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof(bytes));
  Start();
  const std::string chunk(64 * 1024, 'x');
  uint64_t written = 0;
  uint64_t before = 1;
  // Fills every buffer on the way until a while passes without progress.
  while (written - client_.stream().queued() != before) {
    before = written - client_.stream().queued();
    while (client_.stream().queued() < chunk.size()) {
      client_.stream().Write(chunk);
      written += chunk.size();
    }
    RunFor(Duration::Millis(30));
  }
  const uint64_t on_the_way = written - client_.stream().queued() - relay_->stats().a_to_b;
  // Two socket buffers (the kernel doubles what is asked) and one pipe, whatever was offered.
  EXPECT_LT(on_the_way, 3u * 1024 * 1024);
  server_.stream().StartReading();
  client_.stream().ShutdownWrite();
  ASSERT_TRUE(RunUntil([&] { return server_.ends == 1; }));
  EXPECT_EQ(server_.received.size(), written);
}

TEST_P(RelayTest, StalledPeerDoesNotSpinTheLoop) {
  server_.stream().StopReading();
  Start();
  client_.stream().Write(std::string(16 * 1024 * 1024, 'x'));
  RunFor(Duration::Millis(100));
  int turns = 0;
  RunUntil(
      [&] {
        ++turns;
        return false;
      },
      Duration::Millis(100));
  EXPECT_LT(turns, 10);
}

TEST_P(TcpRelayTest, ResetOfThePeerIsReportedOnceAndPassedOn) {
  Start();
  client_.stream().Write("x");
  ASSERT_TRUE(RunUntil([&] { return server_.received == "x"; }));
  server_.stream().ResetOnClose();
  server_.Destroy();
  ASSERT_TRUE(Done());
  EXPECT_EQ(status_->error().code, base::ErrorCode::kClosed);
  EXPECT_NE(status_->error().message.find("side b"), std::string::npos);
  ASSERT_TRUE(RunUntil([&] { return client_.closes == 1; }));
  EXPECT_EQ(client_.ends, 0);
}

TEST_P(TcpRelayTest, AnswerSentBeforeAResetStillArrives) {
  // The server answers and closes without reading the request: its kernel resets.
  server_.stream().StopReading();
  client_.stream().Write("a long request");
  RunFor(Duration::Millis(5));
  Start();
  ASSERT_TRUE(RunUntil([&] { return relay_->stats().a_to_b > 0; }));
  client_.stream().StopReading();
  server_.stream().Write("413");
  server_.Destroy();
  ASSERT_TRUE(Done());
  EXPECT_EQ(stats_.b_to_a, 3u);
}

TEST_P(RelayTest, IdleTimeoutEndsItAndTrafficPutsItOff) {
  RelayOptions options;
  options.idle_timeout = Duration::Millis(60);
  Start(options);
  const base::MonoTime start = Loop::Now();
  for (int i = 0; i < 4; ++i) {
    RunFor(Duration::Millis(25));
    if (dones_ == 0) client_.stream().Write("x");
  }
  ASSERT_TRUE(Done());
  EXPECT_EQ(status_->error().code, base::ErrorCode::kTimeout);
  EXPECT_GE(Loop::Now() - start, Duration::Millis(60));
  EXPECT_GT(stats_.a_to_b, 0u);
}

TEST_P(RelayTest, DestroyedRelayClosesBothSidesAndCallsNobody) {
  Start();
  client_.stream().Write("x");
  ASSERT_TRUE(RunUntil([&] { return server_.received == "x"; }));
  relay_.reset();
  ASSERT_TRUE(RunUntil([&] { return client_.ends == 1 && server_.ends == 1; }));
  EXPECT_EQ(dones_, 0);
}

int OpenDescriptors() {
  int count = 0;
  DIR* dir = opendir("/proc/self/fd");
  while (readdir(dir) != nullptr) ++count;
  closedir(dir);
  return count;
}

TEST_P(RelayTest, BulkTakesAPipeAndSmallTrafficGivesItBack) {
  Start();
  client_.stream().Write("small");
  ASSERT_TRUE(RunUntil([&] { return server_.received == "small"; }));
  const int without = OpenDescriptors();
  int most = 0;
  server_.on_data = [&] { most = std::max(most, OpenDescriptors()); };
  client_.stream().Write(std::string(8 * 1024 * 1024, 'x'));
  ASSERT_TRUE(RunUntil([&] { return server_.received.size() == 5 + 8u * 1024 * 1024; }));
  EXPECT_EQ(most, without + 2);
  for (int i = 0; i < 40; ++i) {
    const size_t before = server_.received.size();
    client_.stream().Write("small");
    ASSERT_TRUE(RunUntil([&] { return server_.received.size() > before; }));
  }
  EXPECT_EQ(OpenDescriptors(), without);
}

INSTANTIATE_TEST_SUITE_P(Sockets, TcpRelayTest, ::testing::Values(true));
INSTANTIATE_TEST_SUITE_P(Sockets, RelayTest, ::testing::Values(true, false),
                         [](const auto& tcp) { return tcp.param ? "Tcp" : "Unix"; });

}  // namespace
}  // namespace leasehold::loop

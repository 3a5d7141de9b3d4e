#include "loop/listener.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <fstream>
#include <vector>

#include "lib/loop_fixture.h"
#include "lib/raw_socket.h"
#include "lib/socket_peer.h"
#include "loop/connect.h"

namespace leasehold::loop {
namespace {

using base::Address;
using base::Duration;
using base::ErrorCode;
using testing::TcpAddress;
using testing::UnixAddress;

class ListenerTest : public testing::LoopFixture {
 protected:
  void TearDown() override {
    for (const int fd : accepted_) close(fd);
    connecting_.clear();
    connected_.clear();
    listener_.reset();
  }
  base::Status Open(const Address& address, const ListenOptions& options = {}) {
    auto listener = Listener::Open(
        loop_, address, options,
        [this](int fd, std::string peer) {
          accepted_.push_back(fd);
          peers_.push_back(std::move(peer));
          if (on_accept_) on_accept_();
        },
        [this](const base::Error& error) { troubles_.push_back(error); });
    if (!listener) return listener.error();
    listener_ = std::move(*listener);
    return {};
  }
  void ConnectOnce() {
    connecting_.push_back(
        Connect(loop_, listener_->bound(), {}, [this](base::Result<std::unique_ptr<Stream>> r) {
          if (r) connected_.push_back(std::move(*r));
        }));
  }
  // Leaves a socket file that nobody listens on, as a killed process does.
  static void LeaveStaleSocket(const std::string& path) {
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path.copy(address.sun_path, sizeof(address.sun_path) - 1);
    ASSERT_EQ(bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
    close(fd);
  }

  testing::TempDir dir_;
  std::unique_ptr<Listener> listener_;
  std::vector<int> accepted_;
  std::vector<std::string> peers_;
  std::vector<base::Error> troubles_;
  std::vector<std::unique_ptr<Connecting>> connecting_;
  std::vector<std::unique_ptr<Stream>> connected_;
  std::function<void()> on_accept_;
};

TEST_F(ListenerTest, PortZeroIsResolvedAndThePeerNamed) {
  ASSERT_TRUE(Open(TcpAddress("127.0.0.1", 0)).ok());
  EXPECT_NE(listener_->bound().port, 0);
  ConnectOnce();
  ASSERT_TRUE(RunUntil([&] { return accepted_.size() == 1 && connected_.size() == 1; }));
  EXPECT_TRUE(peers_[0].starts_with("127.0.0.1:")) << peers_[0];
}

TEST_F(ListenerTest, AcceptedDescriptorsAreNonBlockingAndCloseOnExec) {
  ASSERT_TRUE(Open(TcpAddress("localhost", 0)).ok());
  ConnectOnce();
  ASSERT_TRUE(RunUntil([&] { return accepted_.size() == 1; }));
  EXPECT_NE(fcntl(accepted_[0], F_GETFL) & O_NONBLOCK, 0);
  EXPECT_NE(fcntl(accepted_[0], F_GETFD) & FD_CLOEXEC, 0);
}

TEST_F(ListenerTest, AddressInUseIsAConflictNamingIt) {
  ASSERT_TRUE(Open(TcpAddress("127.0.0.1", 0)).ok());
  const Address taken = listener_->bound();
  auto second = Listener::Open(
      loop_, taken, {}, [](int fd, std::string) { close(fd); }, nullptr);
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.error().code, ErrorCode::kConflict);
  EXPECT_NE(second.error().message.find(taken.ToString()), std::string::npos);
}

TEST_F(ListenerTest, HostNameIsRefusedWithWhatWouldBeRight) {
  const base::Status status = Open(TcpAddress("example.com", 80));
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code, ErrorCode::kInvalid);
  EXPECT_NE(status.error().message.find("example.com"), std::string::npos);
}

TEST_F(ListenerTest, Ipv6ListensAndShowsIpv4ClientsAsIpv4) {
  if (!Open(TcpAddress("::", 0)).ok()) GTEST_SKIP() << "no IPv6 here";
  connecting_.push_back(Connect(loop_, TcpAddress("127.0.0.1", listener_->bound().port), {},
                                [this](base::Result<std::unique_ptr<Stream>> r) {
                                  if (r) connected_.push_back(std::move(*r));
                                }));
  ASSERT_TRUE(RunUntil([&] { return accepted_.size() == 1; }));
  EXPECT_TRUE(peers_[0].starts_with("127.0.0.1:")) << peers_[0];
}

TEST_F(ListenerTest, UnixSocketHasItsModeAndGoesWithTheListener) {
  const std::string path = dir_.File("s");
  ListenOptions options;
  options.unix_mode = 0600;
  ASSERT_TRUE(Open(UnixAddress(path), options).ok());
  struct stat info {};
  ASSERT_EQ(lstat(path.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777u, 0600u);
  ConnectOnce();
  ASSERT_TRUE(RunUntil([&] { return accepted_.size() == 1; }));
  EXPECT_EQ(peers_[0], "unix");
  listener_.reset();
  EXPECT_NE(lstat(path.c_str(), &info), 0);
}

TEST_F(ListenerTest, StaleUnixSocketIsReplaced) {
  const std::string path = dir_.File("stale");
  LeaveStaleSocket(path);
  ASSERT_TRUE(Open(UnixAddress(path)).ok());
  ConnectOnce();
  ASSERT_TRUE(RunUntil([&] { return accepted_.size() == 1; }));
}

TEST_F(ListenerTest, LiveUnixSocketIsRefusedNamingThePathAndLeftAlone) {
  const std::string path = dir_.File("live");
  ASSERT_TRUE(Open(UnixAddress(path)).ok());
  auto second = Listener::Open(
      loop_, UnixAddress(path), {}, [](int fd, std::string) { close(fd); }, nullptr);
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.error().code, ErrorCode::kConflict);
  EXPECT_NE(second.error().message.find(path), std::string::npos);
  ConnectOnce();
  ASSERT_TRUE(RunUntil([&] { return connected_.size() == 1; }));
}

TEST_F(ListenerTest, FileThatIsNotASocketIsLeftAlone) {
  const std::string path = dir_.File("file");
  std::ofstream(path) << "precious";
  const base::Status status = Open(UnixAddress(path));
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code, ErrorCode::kConflict);
  EXPECT_EQ(access(path.c_str(), F_OK), 0);
}

TEST_F(ListenerTest, SocketFileOfASuccessorIsNotRemoved) {
  const std::string path = dir_.File("s");
  ASSERT_TRUE(Open(UnixAddress(path)).ok());
  ASSERT_EQ(unlink(path.c_str()), 0);
  LeaveStaleSocket(path);  // somebody else's file by now
  listener_.reset();
  EXPECT_EQ(access(path.c_str(), F_OK), 0);
}

TEST_F(ListenerTest, DirectoryThatIsMissingIsNamed) {
  const std::string path = dir_.File("missing/s");
  const base::Status status = Open(UnixAddress(path));
  ASSERT_FALSE(status.ok());
  EXPECT_NE(status.error().message.find(path), std::string::npos);
}

TEST_F(ListenerTest, PausedListenerLeavesConnectionsInTheBacklog) {
  ASSERT_TRUE(Open(TcpAddress("127.0.0.1", 0)).ok());
  listener_->Pause();
  ConnectOnce();
  ASSERT_TRUE(RunUntil([&] { return connected_.size() == 1; }));
  RunFor(Duration::Millis(10));
  EXPECT_TRUE(accepted_.empty());
  listener_->Resume();
  ASSERT_TRUE(RunUntil([&] { return accepted_.size() == 1; }));
}

TEST_F(ListenerTest, MayBeDestroyedInsideItsAcceptCallback) {
  ASSERT_TRUE(Open(TcpAddress("127.0.0.1", 0)).ok());
  on_accept_ = [&] { listener_.reset(); };
  for (int i = 0; i < 3; ++i) ConnectOnce();
  ASSERT_TRUE(RunUntil([&] { return !accepted_.empty(); }));
  RunFor(Duration::Millis(5));
  EXPECT_EQ(accepted_.size(), 1u);
}

TEST_F(ListenerTest, PauseInsideTheCallbackEndsTheBatch) {
  ASSERT_TRUE(Open(TcpAddress("127.0.0.1", 0)).ok());
  listener_->Pause();
  for (int i = 0; i < 5; ++i) ConnectOnce();
  ASSERT_TRUE(RunUntil([&] { return connected_.size() == 5; }));
  on_accept_ = [&] { listener_->Pause(); };
  listener_->Resume();
  ASSERT_TRUE(RunUntil([&] { return !accepted_.empty(); }));
  RunFor(Duration::Millis(10));
  EXPECT_EQ(accepted_.size(), 1u);
}

TEST_F(ListenerTest, OutOfDescriptorsIsToldOnceASecondWithoutSpinningAndSurvived) {
  ASSERT_TRUE(Open(TcpAddress("127.0.0.1", 0)).ok());
  listener_->Pause();
  ConnectOnce();
  ASSERT_TRUE(RunUntil([&] { return connected_.size() == 1; }));
  rlimit old{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &old), 0);
  const int next = dup(0);
  close(next);
  const rlimit none{static_cast<rlim_t>(next), old.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
  listener_->Resume();
  int turns = 0;
  RunUntil(
      [&] {
        ++turns;
        return false;
      },
      Duration::Millis(350));
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &old), 0);
  EXPECT_EQ(troubles_.size(), 1u);
  EXPECT_LT(turns, 20);
  EXPECT_TRUE(accepted_.empty());
  ASSERT_TRUE(RunUntil([&] { return accepted_.size() == 1; }));
}

TEST_F(ListenerTest, WhoWaitsInTheBacklogIsAcceptedInsideTheCall) {
  ASSERT_TRUE(Open(TcpAddress("127.0.0.1", 0)).ok());
  // More than one wake-up takes; connected by the kernel alone, the loop does not run.
  std::vector<std::unique_ptr<testing::RawSocket>> clients;
  for (int i = 0; i < 100; ++i) clients.push_back(testing::RawSocket::Connect(listener_->bound()));
  listener_->AcceptWaiting();
  EXPECT_EQ(accepted_.size(), 100u);
  listener_->AcceptWaiting();
  EXPECT_EQ(accepted_.size(), 100u);
}

TEST_F(ListenerTest, AListenerMayGoWhileItAcceptsWhoWaits) {
  ASSERT_TRUE(Open(TcpAddress("127.0.0.1", 0)).ok());
  auto one = testing::RawSocket::Connect(listener_->bound());
  auto two = testing::RawSocket::Connect(listener_->bound());
  on_accept_ = [this] { listener_.reset(); };
  listener_->AcceptWaiting();
  EXPECT_EQ(accepted_.size(), 1u);
}

}  // namespace
}  // namespace leasehold::loop

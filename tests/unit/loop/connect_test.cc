#include "loop/connect.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <optional>
#include <string>
#include <vector>

#include "lib/loop_fixture.h"
#include "lib/socket_peer.h"
#include "loop/listener.h"

namespace leasehold::loop {
namespace {

using base::Address;
using base::Duration;
using base::ErrorCode;
using testing::TcpAddress;
using testing::UnixAddress;

class ConnectTest : public testing::LoopFixture {
 protected:
  void TearDown() override {
    connecting_.reset();
    stream_.reset();
    listener_.reset();
    for (const int fd : accepted_) close(fd);
    for (const int fd : hole_) close(fd);
  }
  void Listen(const Address& address) {
    auto listener = Listener::Open(
        loop_, address, {}, [this](int fd, std::string) { accepted_.push_back(fd); }, nullptr);
    ASSERT_TRUE(listener.ok()) << listener.error().message;
    listener_ = std::move(*listener);
  }
  void Start(const Address& address, Duration timeout = Duration::Seconds(5)) {
    ConnectOptions options;
    options.timeout = timeout;
    started_ = Loop::Now();
    connecting_ =
        Connect(loop_, address, options, [this](base::Result<std::unique_ptr<Stream>> result) {
          ++calls_;
          took_ = Loop::Now() - started_;
          if (result.ok()) {
            stream_ = std::move(*result);
          } else {
            error_ = result.error();
          }
        });
    EXPECT_EQ(calls_, 0) << "never from inside Connect";
  }
  bool Finished() {
    return RunUntil([this] { return calls_ > 0; });
  }

  // A loopback port whose backlog is full: its kernel drops further SYNs, as a dead host would.
  uint16_t BlackHole() {
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    EXPECT_EQ(bind(fd, reinterpret_cast<const sockaddr*>(&address), size), 0);
    EXPECT_EQ(listen(fd, 0), 0);
    getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size);
    hole_.push_back(fd);
    for (int i = 0; i < 3; ++i) {
      const int filler = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
      (void)connect(filler, reinterpret_cast<const sockaddr*>(&address), size);
      hole_.push_back(filler);
    }
    RunFor(Duration::Millis(20));
    return ntohs(address.sin_port);
  }

  std::unique_ptr<Listener> listener_;
  std::unique_ptr<Connecting> connecting_;
  std::unique_ptr<Stream> stream_;
  std::optional<base::Error> error_;
  std::vector<int> accepted_;
  std::vector<int> hole_;
  base::MonoTime started_;
  Duration took_;
  int calls_ = 0;
};

TEST_F(ConnectTest, ReachesATcpListenerByLiteral) {
  Listen(TcpAddress("127.0.0.1", 0));
  Start(listener_->bound());
  ASSERT_TRUE(Finished());
  ASSERT_NE(stream_, nullptr);
  EXPECT_EQ(stream_->peer(), listener_->bound().ToString());
  EXPECT_FALSE(stream_->is_tls());
}

TEST_F(ConnectTest, LocalhostNeedsNoResolverAndTriesBothLoopbacks) {
  Listen(TcpAddress("::1", 0));  // 127.0.0.1 comes first, and nobody listens there
  Start(TcpAddress("LocalHost", listener_->bound().port));
  ASSERT_TRUE(Finished());
  ASSERT_NE(stream_, nullptr) << error_->message;
  EXPECT_EQ(stream_->peer_host(), "::1");
}

TEST_F(ConnectTest, ReachesATcpListenerByName) {
  Listen(TcpAddress("127.0.0.1", 0));
  // No literal to us, but every resolver knows it without asking anybody: 127.0.0.1.
  Start(TcpAddress("127.1", listener_->bound().port));
  ASSERT_TRUE(Finished());
  ASSERT_NE(stream_, nullptr) << error_->message;
  EXPECT_EQ(stream_->peer_host(), "127.0.0.1");
}

TEST_F(ConnectTest, ReachesAUnixListenerAndSeesThePeersUserId) {
  const testing::TempDir dir;
  Listen(UnixAddress(dir.File("s")));
  Start(listener_->bound());
  ASSERT_TRUE(Finished());
  ASSERT_NE(stream_, nullptr);
  EXPECT_EQ(stream_->peer(), "unix");
  EXPECT_EQ(stream_->peer_uid(), static_cast<int>(getuid()));
}

TEST_F(ConnectTest, RefusedConnectReportsAtOnceNamingTheAddress) {
  const uint16_t port = testing::ClosedPort();
  Start(TcpAddress("127.0.0.1", port));
  ASSERT_TRUE(Finished());
  ASSERT_TRUE(error_.has_value());
  EXPECT_EQ(error_->code, ErrorCode::kUnavailable);
  EXPECT_NE(error_->message.find("127.0.0.1:" + std::to_string(port)), std::string::npos);
  EXPECT_NE(error_->message.find("connection refused"), std::string::npos);
  EXPECT_LT(took_, Duration::Seconds(1));
}

TEST_F(ConnectTest, MissingUnixSocketReportsAtOnceNamingThePath) {
  Start(UnixAddress("/nonexistent/leasehold.sock"));
  ASSERT_TRUE(Finished());
  ASSERT_TRUE(error_.has_value());
  EXPECT_EQ(error_->code, ErrorCode::kNotFound);
  EXPECT_NE(error_->message.find("/nonexistent/leasehold.sock"), std::string::npos);
}

TEST_F(ConnectTest, BlackHoleTimesOutAtTheDeadline) {
  Start(TcpAddress("127.0.0.1", BlackHole()), Duration::Millis(200));
  ASSERT_TRUE(Finished());
  ASSERT_TRUE(error_.has_value());
  EXPECT_EQ(error_->code, ErrorCode::kTimeout);
  EXPECT_GE(took_, Duration::Millis(200));
  EXPECT_LT(took_, Duration::Seconds(2));
}

TEST_F(ConnectTest, FullUnixBacklogIsWaitedForWithinTheDeadline) {
  const testing::TempDir dir;
  ListenOptions options;
  options.backlog = 1;
  auto listener = Listener::Open(
      loop_, UnixAddress(dir.File("s")), options,
      [this](int fd, std::string) { accepted_.push_back(fd); }, nullptr);
  ASSERT_TRUE(listener.ok());
  listener_ = std::move(*listener);
  listener_->Pause();
  std::vector<std::unique_ptr<Connecting>> fillers;
  std::vector<std::unique_ptr<Stream>> filled;
  for (int i = 0; i < 2; ++i) {
    fillers.push_back(Connect(loop_, listener_->bound(), {},
                              [&](auto result) { filled.push_back(std::move(*result)); }));
  }
  ASSERT_TRUE(RunUntil([&] { return filled.size() == 2; }));
  Start(listener_->bound());
  RunFor(Duration::Millis(20));
  EXPECT_EQ(calls_, 0);
  listener_->Resume();
  ASSERT_TRUE(Finished());
  EXPECT_NE(stream_, nullptr);
}

TEST_F(ConnectTest, NameThatDoesNotResolveSaysSo) {
  // RFC 6761 reserves .invalid: no resolver may know it.
  Start(TcpAddress("no-such-host.invalid", 6379), Duration::Seconds(9));
  ASSERT_TRUE(Finished());
  ASSERT_TRUE(error_.has_value());
  EXPECT_NE(error_->message.find("resolve the host name \"no-such-host.invalid\""),
            std::string::npos)
      << error_->message;
}

TEST_F(ConnectTest, DestroyedHandleCallsNobody) {
  Listen(TcpAddress("127.0.0.1", 0));
  Start(listener_->bound());
  connecting_.reset();
  Start(TcpAddress("localhost", listener_->bound().port));
  connecting_.reset();
  Start(UnixAddress("/nonexistent"));
  connecting_.reset();
  RunFor(Duration::Millis(50));
  EXPECT_EQ(calls_, 0);
}

TEST_F(ConnectTest, HandleMayBeDestroyedInsideItsCallback) {
  int calls = 0;
  std::unique_ptr<Connecting> connecting;
  connecting = Connect(loop_, TcpAddress("127.0.0.1", testing::ClosedPort()), {}, [&](auto result) {
    EXPECT_FALSE(result.ok());
    connecting.reset();
    ++calls;
  });
  ASSERT_TRUE(RunUntil([&] { return calls == 1; }));
}

TEST_F(ConnectTest, CallbackMayStartTheNextConnect) {
  int calls = 0;
  std::unique_ptr<Connecting> connecting;
  std::function<void()> again = [&] {
    connecting =
        Connect(loop_, TcpAddress("127.0.0.1", testing::ClosedPort()), {}, [&](auto result) {
          EXPECT_FALSE(result.ok());
          if (++calls < 20) again();
        });
  };
  again();
  ASSERT_TRUE(RunUntil([&] { return calls == 20; }));
}

double CpuSeconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) / 1e6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

// Field case: a descriptor number reused before its poll handle was closed aborted the process, or
// left a watcher spinning on a stranger's descriptor.
TEST_F(ConnectTest, ThousandReconnectsWithParallelAcceptsNeitherAbortNorSpin) {
  std::vector<std::unique_ptr<testing::SocketPeer>> served;
  auto opened = Listener::Open(
      loop_, TcpAddress("127.0.0.1", 0), {},
      [&](int fd, std::string peer) {
        served.push_back(std::make_unique<testing::SocketPeer>());
        testing::SocketPeer* one = served.back().get();
        one->on_data = [one] { one->stream().Write("pong"); };
        one->on_end = [one] { one->Destroy(); };
        one->on_closed = [one] { one->Destroy(); };
        one->Adopt(AdoptSocket(loop_, fd, std::move(peer)));
      },
      nullptr);
  ASSERT_TRUE(opened.ok());
  listener_ = std::move(*opened);

  constexpr int kParallel = 8;
  struct Client {
    testing::SocketPeer peer;
    std::unique_ptr<Connecting> connecting;
  };
  std::vector<Client> clients(kParallel);
  int finished = 0;
  int started = 0;
  std::function<void(Client&)> connect = [&](Client& client) {
    if (started == 1000) return;
    ++started;
    client.connecting = Connect(loop_, listener_->bound(), {}, [&](auto result) {
      ASSERT_TRUE(result.ok()) << result.error().message;
      client.peer.on_data = [&] {
        client.peer.Destroy();
        ++finished;
        connect(client);
      };
      client.peer.Adopt(std::move(*result));
      client.peer.stream().Write("ping");
    });
  };
  for (Client& client : clients) connect(client);
  ASSERT_TRUE(RunUntil([&] { return finished == 1000; }, Duration::Seconds(60)));

  RunFor(Duration::Millis(50));
  const double before = CpuSeconds();
  RunFor(Duration::Seconds(1));
  EXPECT_LT(CpuSeconds() - before, 0.02);
  served.clear();
}

}  // namespace
}  // namespace leasehold::loop

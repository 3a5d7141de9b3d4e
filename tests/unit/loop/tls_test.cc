// The TLS client against a real server, `openssl s_server`, with certificates the openssl command
// makes for the test.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include "lib/certificates.h"
#include "lib/loop_fixture.h"
#include "lib/socket_peer.h"
#include "loop/child.h"
#include "loop/connect.h"
#include "loop/listener.h"

namespace leasehold::loop {
namespace {

using base::Duration;
using base::ErrorCode;
using testing::Certificates;
using testing::SocketPeer;
using testing::TcpAddress;

class TlsTest : public testing::LoopFixture {
 protected:
  void SetUp() override { ASSERT_TRUE(Certificates::Get().ok()) << "the openssl command failed"; }
  void TearDown() override {
    connecting_.reset();
    peer_.Destroy();
    server_.reset();
  }

  static std::string File(const std::string& name) { return Certificates::Get().File(name); }

  // s_server cannot report a port it was given, so a free one is looked up; if somebody takes it in
  // between, the next is tried.
  void StartServer(const std::string& certificate, std::vector<std::string> more = {}) {
    for (int attempt = 0; attempt < 5; ++attempt) {
      port_ = testing::ClosedPort();
      ChildOptions options;
      options.argv = {"openssl", "s_server",
                      "-accept", "127.0.0.1:" + std::to_string(port_),
                      "-cert",   File(certificate + ".pem"),
                      "-key",    File(certificate + ".key"),
                      "-quiet"};
      options.argv.insert(options.argv.end(), more.begin(), more.end());
      bool exited = false;
      auto child = Child::Start(loop_, options, [&exited](const ChildExit&) { exited = true; });
      ASSERT_TRUE(child.ok()) << child.error().message;
      server_ = std::move(*child);
      if (RunUntil([&] { return exited || Listens(); }) && !exited) return;
    }
    FAIL() << "openssl s_server does not start";
  }
  bool Listens() {
    std::optional<bool> reached;
    auto probe = Connect(loop_, TcpAddress("127.0.0.1", port_), {},
                         [&](auto result) { reached = result.ok(); });
    while (!reached) loop_.RunOnce();
    return *reached;
  }

  TlsOptions Trusting(const std::string& authority, const std::string& name) {
    TlsOptions tls;
    tls.server_name = name;
    tls.ca_file = File(authority + ".pem");
    return tls;
  }
  void Start(const TlsOptions& tls, Duration timeout = Duration::Seconds(5)) {
    ConnectOptions options;
    options.tls = &tls;
    options.timeout = timeout;
    error_.reset();
    calls_ = 0;
    connecting_ = Connect(loop_, TcpAddress("127.0.0.1", port_), options,
                          [this](base::Result<std::unique_ptr<Stream>> result) {
                            ++calls_;
                            if (result.ok()) {
                              peer_.Adopt(std::move(*result));
                            } else {
                              error_ = result.error();
                            }
                          });
  }
  bool Finished() {
    return RunUntil([this] { return calls_ > 0; });
  }
  void ExpectRefusal(const std::string& words) {
    ASSERT_TRUE(Finished());
    ASSERT_TRUE(error_.has_value()) << "the server was trusted";
    EXPECT_EQ(error_->code, ErrorCode::kRefused);
    EXPECT_NE(error_->message.find(words), std::string::npos) << error_->message;
    EXPECT_NE(error_->message.find("127.0.0.1:" + std::to_string(port_)), std::string::npos);
    EXPECT_EQ(error_->message.find('\n'), std::string::npos);
  }

  uint16_t port_ = 0;
  std::unique_ptr<Child> server_;
  std::unique_ptr<Connecting> connecting_;
  SocketPeer peer_;
  std::optional<base::Error> error_;
  int calls_ = 0;
};

// `-rev` makes s_server answer each line reversed.
TEST_F(TlsTest, BytesPassBothWaysByNameAndByAddress) {
  StartServer("good", {"-rev"});
  for (const char* name : {"localhost", "127.0.0.1"}) {
    Start(Trusting("ca", name));
    ASSERT_TRUE(Finished());
    ASSERT_FALSE(error_.has_value()) << error_->message;
    EXPECT_TRUE(peer_.stream().is_tls());
    EXPECT_EQ(peer_.stream().Detach(), -1);
    peer_.received.clear();
    const std::string_view pieces[] = {"drawer", "\n"};
    peer_.stream().Writev(pieces);
    ASSERT_TRUE(RunUntil([&] { return peer_.received == "reward\n"; }));
    peer_.Destroy();
  }
}

TEST_F(TlsTest, OldestProtocolAcceptedIsTls12) {
  StartServer("good", {"-rev", "-tls1_2"});
  Start(Trusting("ca", "localhost"));
  ASSERT_TRUE(Finished());
  EXPECT_FALSE(error_.has_value());
}

TEST_F(TlsTest, WrongAuthorityIsRefused) {
  StartServer("good");
  Start(Trusting("other-ca", "localhost"));
  ExpectRefusal("not signed by a trusted authority");
}

TEST_F(TlsTest, SystemAuthoritiesDoNotTrustOurs) {
  StartServer("good");
  TlsOptions tls = Trusting("ca", "localhost");
  tls.ca_file.clear();
  Start(tls);
  ExpectRefusal("not signed by a trusted authority");
}

TEST_F(TlsTest, WrongNameIsRefusedNamingTheWantedOne) {
  StartServer("elsewhere");
  Start(Trusting("ca", "localhost"));
  ExpectRefusal("not for the name \"localhost\"");
}

TEST_F(TlsTest, WrongAddressIsRefused) {
  StartServer("elsewhere");
  Start(Trusting("ca", "127.0.0.1"));
  ExpectRefusal("does not bear the address");
}

TEST_F(TlsTest, ExpiredCertificateIsRefused) {
  StartServer("expired");
  Start(Trusting("ca", "localhost"));
  ExpectRefusal("expired");
}

TEST_F(TlsTest, VerificationMayBeTurnedOff) {
  StartServer("expired", {"-rev"});
  TlsOptions tls = Trusting("other-ca", "anything");
  tls.verify = false;
  Start(tls);
  ASSERT_TRUE(Finished());
  EXPECT_FALSE(error_.has_value());
}

TEST_F(TlsTest, ClientCertificateIsShown) {
  StartServer("good", {"-rev", "-Verify", "1", "-verify_return_error", "-CAfile", File("ca.pem")});
  TlsOptions tls = Trusting("ca", "localhost");
  tls.cert_file = File("client.pem");
  tls.key_file = File("client.key");
  Start(tls);
  ASSERT_TRUE(Finished());
  ASSERT_FALSE(error_.has_value()) << error_->message;
  peer_.stream().Write("drawer\n");
  ASSERT_TRUE(RunUntil([&] { return peer_.received == "reward\n"; }));
}

// In TLS 1.3 the server looks at our certificate after the handshake is over for us.
TEST_F(TlsTest, MissingClientCertificateIsNamedAsTheReason) {
  StartServer("good", {"-Verify", "1", "-verify_return_error", "-CAfile", File("ca.pem")});
  Start(Trusting("ca", "localhost"));
  ASSERT_TRUE(RunUntil([&] { return error_.has_value() || peer_.closes == 1; }));
  const base::Error& error = error_ ? *error_ : *peer_.closed;
  EXPECT_EQ(error.code, ErrorCode::kRefused);
  EXPECT_NE(error.message.find("client certificate"), std::string::npos) << error.message;
}

TEST_F(TlsTest, FilesThatCannotBeUsedAreNamed) {
  StartServer("good");
  TlsOptions tls = Trusting("ca", "localhost");
  tls.ca_file = "/nonexistent/ca.pem";
  Start(tls);
  ASSERT_TRUE(Finished());
  EXPECT_EQ(error_->code, ErrorCode::kInvalid);
  EXPECT_NE(error_->message.find("/nonexistent/ca.pem"), std::string::npos);
  tls = Trusting("ca", "localhost");
  tls.cert_file = File("client.pem");
  tls.key_file = File("good.key");  // of another certificate
  Start(tls);
  ASSERT_TRUE(Finished());
  EXPECT_EQ(error_->code, ErrorCode::kInvalid);
  EXPECT_NE(error_->message.find(File("good.key")), std::string::npos);
}

class TlsPlainServerTest : public TlsTest {
 protected:
  void TearDown() override {
    TlsTest::TearDown();
    listener_.reset();
    plain_.Destroy();
  }
  // A server that knows no TLS; `answer` is what it says to the first bytes.
  void Serve(const std::string& answer, bool close_after) {
    auto listener = Listener::Open(
        loop_, TcpAddress("127.0.0.1", 0), {},
        [this, answer, close_after](int fd, std::string peer) {
          plain_.on_data = [this, answer, close_after] {
            if (!answer.empty()) plain_.stream().Write(answer);
            if (close_after) plain_.Destroy();
          };
          plain_.Adopt(AdoptSocket(loop_, fd, std::move(peer)));
        },
        nullptr);
    ASSERT_TRUE(listener.ok());
    listener_ = std::move(*listener);
    port_ = listener_->bound().port;
  }
  std::unique_ptr<Listener> listener_;
  SocketPeer plain_;
};

TEST_F(TlsPlainServerTest, ServerWithoutTlsIsNamedAsSuch) {
  Serve("-ERR unknown command\r\n", false);
  Start(Trusting("ca", "localhost"));
  ExpectRefusal("does not speak TLS");
}

TEST_F(TlsPlainServerTest, ServerThatClosesInTheHandshakeIsNamedAsSuch) {
  Serve("", true);
  Start(Trusting("ca", "localhost"));
  ASSERT_TRUE(Finished());
  EXPECT_EQ(error_->code, ErrorCode::kUnavailable);
  EXPECT_NE(error_->message.find("handshake"), std::string::npos) << error_->message;
}

TEST_F(TlsPlainServerTest, ServerThatNeverAnswersTimesOutInTheSameDeadline) {
  Serve("", false);
  Start(Trusting("ca", "localhost"), Duration::Millis(200));
  ASSERT_TRUE(Finished());
  EXPECT_EQ(error_->code, ErrorCode::kTimeout);
  EXPECT_NE(error_->message.find("TLS with"), std::string::npos) << error_->message;
}

TEST_F(TlsPlainServerTest, HandshakeMayBeCancelledAtAnyTime) {
  Serve("", false);
  Start(Trusting("ca", "localhost"));
  ASSERT_TRUE(RunUntil([&] { return !plain_.received.empty(); }));
  connecting_.reset();
  ASSERT_TRUE(RunUntil([&] { return plain_.ends + plain_.closes == 1; }));
  EXPECT_EQ(calls_, 0);
}

// Between the client and the real server: passes bytes on until told to cut.
class TlsCutTest : public TlsTest {
 protected:
  void TearDown() override {
    TlsTest::TearDown();
    front_.reset();
    near_.Destroy();
    far_.Destroy();
    reaching_.reset();
  }
  void StartBehindProxy(std::vector<std::string> more) {
    StartServer("good", std::move(more));
    const uint16_t real = port_;
    auto listener = Listener::Open(
        loop_, TcpAddress("127.0.0.1", 0), {},
        [this, real](int fd, std::string) {
          reaching_ = Connect(loop_, TcpAddress("127.0.0.1", real), {}, [this, fd](auto result) {
            near_.on_data = [this] { PassOn(near_, far_); };
            far_.on_data = [this] { PassOn(far_, near_); };
            far_.Adopt(std::move(*result));
            near_.Adopt(AdoptSocket(loop_, fd, "near"));
          });
        },
        nullptr);
    ASSERT_TRUE(listener.ok());
    front_ = std::move(*listener);
    port_ = front_->bound().port;
  }
  static void PassOn(SocketPeer& from, SocketPeer& to) {
    if (to.has_stream()) to.stream().Write(from.received);
    from.received.clear();
  }
  std::unique_ptr<Listener> front_;
  std::unique_ptr<Connecting> reaching_;
  SocketPeer near_;
  SocketPeer far_;
};

TEST_F(TlsCutTest, EndWithoutCloseNotifyIsAnErrorNotAnEnd) {
  StartBehindProxy({"-rev"});
  Start(Trusting("ca", "localhost"));
  ASSERT_TRUE(Finished());
  ASSERT_FALSE(error_.has_value()) << error_->message;
  peer_.stream().Write("drawer\n");
  ASSERT_TRUE(RunUntil([&] { return peer_.received == "reward\n"; }));
  near_.stream().ShutdownWrite();  // a FIN in the middle, as an attacker or a crash gives
  ASSERT_TRUE(RunUntil([&] { return peer_.closes == 1; }));
  EXPECT_EQ(peer_.ends, 0);
  EXPECT_NE(peer_.closed->message.find("close_notify"), std::string::npos);
}

TEST_F(TlsCutTest, ResetIsReportedOnce) {
  StartBehindProxy({"-rev"});
  Start(Trusting("ca", "localhost"));
  ASSERT_TRUE(Finished());
  near_.stream().ResetOnClose();
  near_.Destroy();
  peer_.stream().Write("x");
  ASSERT_TRUE(RunUntil([&] { return peer_.closes == 1; }));
  RunFor(Duration::Millis(10));
  EXPECT_EQ(peer_.closes, 1);
  EXPECT_EQ(peer_.ends, 0);
}

// `-WWW` serves files and ends each answer with close_notify.
class TlsFileTest : public TlsTest {
 protected:
  static constexpr size_t kFileBytes = 3 * 1024 * 1024;
  void SetUp() override {
    TlsTest::SetUp();
    std::ofstream(File("big.txt")) << std::string(kFileBytes, 'x');
    // s_server serves from its working directory only.
    ASSERT_EQ(chdir(File("").c_str()), 0);
    StartServer("good", {"-WWW"});
    Start(Trusting("ca", "localhost"));
    ASSERT_TRUE(Finished());
    ASSERT_FALSE(error_.has_value()) << error_->message;
  }
  void TearDown() override {
    TlsTest::TearDown();
    (void)!chdir("/");
  }
};

TEST_F(TlsFileTest, CloseNotifyIsAnEndAfterTheLastByte) {
  peer_.stream().Write("GET /big.txt HTTP/1.0\r\n\r\n");
  ASSERT_TRUE(RunUntil([&] { return peer_.ends + peer_.closes > 0; }));
  EXPECT_EQ(peer_.ends, 1);
  EXPECT_GT(peer_.received.size(), kFileBytes);
}

TEST_F(TlsFileTest, StoppedReaderGetsEverythingLater) {
  int stops = 0;
  peer_.on_data = [&] {
    if (++stops <= 20) peer_.stream().StopReading();
  };
  peer_.stream().Write("GET /big.txt HTTP/1.0\r\n\r\n");
  for (int i = 1; i <= 20; ++i) {
    ASSERT_TRUE(RunUntil([&] { return stops == i; }));
    const size_t before = peer_.received.size();
    RunFor(Duration::Millis(5));
    ASSERT_EQ(peer_.received.size(), before);
    peer_.stream().StartReading();
  }
  ASSERT_TRUE(RunUntil([&] { return peer_.ends == 1; }));
  EXPECT_GT(peer_.received.size(), kFileBytes);
}

TEST_F(TlsFileTest, MayBeDestroyedInsideOnData) {
  peer_.on_data = [&] { peer_.Destroy(); };
  peer_.stream().Write("GET /big.txt HTTP/1.0\r\n\r\n");
  ASSERT_TRUE(RunUntil([&] { return !peer_.has_stream(); }));
}

TEST_F(TlsFileTest, MayBeDestroyedInsideOnEnd) {
  peer_.on_end = [&] { peer_.Destroy(); };
  peer_.stream().Write("GET /big.txt HTTP/1.0\r\n\r\n");
  ASSERT_TRUE(RunUntil([&] { return !peer_.has_stream(); }));
}

}  // namespace
}  // namespace leasehold::loop

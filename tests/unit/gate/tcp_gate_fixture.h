// TcpGateFixture: a tcp gate over real sockets with a permit the test chooses. The upstream and the
// clients are plain sockets outside the loop, so that the test sees what the wire shows.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "gate/gate.h"
#include "lib/permit_for_test.h"
#include "lib/raw_socket_fixture.h"
#include "lib/socket_peer.h"
#include "observe/log.h"
#include "observe/metrics.h"

namespace leasehold::gate {

class TcpGateFixture : public testing::RawSocketFixture {
 protected:
  using RawSocket = testing::RawSocket;
  using RawServer = testing::RawServer;

  void SetUp() override {
    options_.name = "broker";
    options_.type = Type::kTcp;
    options_.standby = StandbyPolicy::kRefuse;
    options_.listen = testing::TcpAddress("127.0.0.1", 0);
    options_.hold_timeout = base::Duration::Seconds(30);
    upstream_ = std::make_unique<RawServer>(testing::TcpAddress("127.0.0.1", 0));
  }

  // Builds and starts a gate with options_, upstream_ and drain_tunnels_.
  void Build() {
    options_.upstream = upstream_->address();
    gate_ = MakeTcpGate(
        options_, Host{loop_, *log_, metrics_, permit_.permit, "orders", "node-1", "process-1",
                       drain_tunnels_, [this] { ++expired_; }, [this] { ++empty_; }});
    ASSERT_TRUE(gate_->Start().ok());
  }

  base::Status Open() {
    permit_.Open();
    return gate_->SetValve({lease::Valve::kOpen, false, {}, ""});
  }
  void Hold() {
    permit_.Set(lease::Valve::kHolding, base::MonoTime::Never());
    EXPECT_TRUE(gate_->SetValve({lease::Valve::kHolding, false, {}, ""}).ok());
  }
  void Drain(base::Duration grace) {
    const base::MonoTime end = loop::Loop::Now() + grace;
    permit_.Set(lease::Valve::kDraining, base::MonoTime::Never());
    EXPECT_TRUE(gate_->SetValve({lease::Valve::kDraining, false, end, "requested"}).ok());
  }
  void CloseGate(bool lost) {
    permit_.Close();
    EXPECT_TRUE(gate_->SetValve({lease::Valve::kClosed, lost, {}, ""}).ok());
  }

  base::Address Listening() const {
    auto address = base::ParseAddress(gate_->status().listen);
    return address.ok() ? *address : base::Address{};
  }
  // Connects to where the gate listens; for a refused connect the socket is reset().
  RawSocket* Client() { return Client(Listening()); }
  RawSocket* Client(const base::Address& address) {
    return sockets_.emplace_back(RawSocket::Connect(address)).get();
  }
  // The next connection that arrives at the upstream within the limit.
  RawSocket* Upstream() {
    std::unique_ptr<RawSocket> socket;
    EXPECT_TRUE(Eventually([&] { return (socket = upstream_->Accept()) != nullptr; }));
    return socket == nullptr ? nullptr : sockets_.emplace_back(std::move(socket)).get();
  }
  // A client and its upstream connection with a first byte carried each way.
  struct Pair {
    RawSocket* client = nullptr;
    RawSocket* upstream = nullptr;
  };
  Pair Connected() {
    Pair pair;
    pair.client = Client();
    pair.upstream = Upstream();
    pair.client->Send("1");
    EXPECT_TRUE(Eventually([&] { return Received(pair.upstream, "1"); }));
    pair.upstream->Send("2");
    EXPECT_TRUE(Eventually([&] { return Received(pair.client, "2"); }));
    return pair;
  }
  static bool Received(RawSocket* socket, const std::string& bytes) {
    socket->Poll();
    return socket->received() == bytes;
  }
  static bool WasReset(RawSocket* socket) {
    socket->Poll();
    return socket->reset();
  }
  static bool WasEnded(RawSocket* socket) {
    socket->Poll();
    return socket->ended();
  }
  bool Scraped(const std::string& line) const {
    return metrics_.Scrape().find(line) != std::string::npos;
  }

  std::unique_ptr<observe::Log> log_ = observe::Log::Silent();
  observe::Metrics metrics_;
  lease::PermitForTest permit_;
  base::Duration drain_tunnels_ = base::Duration::Millis(100);
  int expired_ = 0;
  int empty_ = 0;
  Options options_;
  std::unique_ptr<RawServer> upstream_;
  std::vector<std::unique_ptr<RawSocket>> sockets_;
  std::unique_ptr<Gate> gate_;
};

}  // namespace leasehold::gate

// TcpForwardFixture: two tcp gates that forward to one another, in one loop, over real sockets: the
// sidecars "one" and "two" of a lease. Each has its own permit, upstream, metrics and log. Clients,
// upstreams and impostors are plain sockets outside the loop.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "gate/gate.h"
#include "gate/peer_hello.h"
#include "lib/permit_for_test.h"
#include "lib/raw_socket_fixture.h"
#include "lib/socket_peer.h"
#include "observe/log.h"
#include "observe/metrics.h"
#include "proto/proxy_protocol.h"

namespace leasehold::gate {

// One sidecar, as far as its gate can tell.
struct SideForTest {
  SideForTest(loop::Loop& on, const std::string& process_id)
      : loop(on),
        process(process_id),
        log_path(dir.File("log")),
        log_fd(open(log_path.c_str(), O_CREAT | O_WRONLY | O_APPEND | O_CLOEXEC, 0600)),
        log(observe::Log::ToDescriptor({.level = observe::LogLevel::kDebug}, log_fd)),
        upstream(std::make_unique<testing::RawServer>(testing::TcpAddress("127.0.0.1", 0))) {
    options.name = "broker";
    options.type = Type::kTcp;
    options.standby = StandbyPolicy::kForward;
    options.listen = testing::TcpAddress("127.0.0.1", 0);
    options.peer_listen = testing::TcpAddress("127.0.0.1", 0);
    options.hold_timeout = base::Duration::Seconds(30);
  }
  ~SideForTest() {
    gate.reset();
    log.reset();
    close(log_fd);
  }
  SideForTest(const SideForTest&) = delete;
  SideForTest& operator=(const SideForTest&) = delete;

  void Build() {
    options.upstream = upstream->address();
    Host host{loop,    *log,          metrics, permit.permit,      "orders", "node-" + process,
              process, drain_tunnels, nullptr, [this] { ++empty; }};
    host.on_peer_doubt = [this] { ++doubts; };
    host.peer_secret = secret;
    gate = MakeTcpGate(options, host);
    const base::Status status = gate->Start();
    ASSERT_TRUE(status.ok()) << status.error().message;
  }
  void Open(uint64_t token = 1) {
    permit.Open(base::MonoTime::Never(), token);
    ASSERT_TRUE(gate->SetValve({lease::Valve::kOpen, false, {}, ""}).ok());
  }
  void Drain(base::Duration grace = base::Duration::Seconds(20)) {
    permit.Set(lease::Valve::kDraining, base::MonoTime::Never());
    const base::MonoTime end = loop::Loop::Now() + grace;
    ASSERT_TRUE(gate->SetValve({lease::Valve::kDraining, false, end, "requested"}).ok());
  }
  void Shut(bool lost) {
    permit.Close();
    ASSERT_TRUE(gate->SetValve({lease::Valve::kClosed, lost, {}, ""}).ok());
  }
  // What the record says of `holder`, as this side sees it.
  void See(const SideForTest& holder, uint64_t token = 1, bool draining = false) {
    gate->SetPeer({Address(holder.gate->advertised()), holder.process, token, draining});
  }
  void SeeNobody() { gate->SetPeer({}); }
  // A forged or mistaken record.
  void SeeAt(const base::Address& address, const std::string& process_id) {
    gate->SetPeer({address, process_id, 1, false});
  }

  static base::Address Address(const std::string& text) {
    auto address = base::ParseAddress(text);
    return address.ok() ? *address : base::Address{};
  }
  base::Address Listening() const { return Address(gate->status().listen); }
  base::Address PeerListening() const { return Address(gate->status().peer_listen); }
  bool Logged(const std::string& text) const {
    std::ifstream file(log_path);
    std::stringstream all;
    all << file.rdbuf();
    return all.str().find(text) != std::string::npos;
  }
  bool Scraped(const std::string& line) const {
    return metrics.Scrape().find(line) != std::string::npos;
  }

  loop::Loop& loop;
  const std::string process;
  testing::TempDir dir;
  const std::string log_path;
  const int log_fd;
  std::unique_ptr<observe::Log> log;
  observe::Metrics metrics;
  lease::PermitForTest permit;
  Options options;
  std::string secret;
  base::Duration drain_tunnels = base::Duration::Millis(100);
  int empty = 0;
  int doubts = 0;
  std::unique_ptr<testing::RawServer> upstream;
  std::unique_ptr<Gate> gate;
};

class TcpForwardFixture : public testing::RawSocketFixture {
 protected:
  using RawSocket = testing::RawSocket;
  using RawServer = testing::RawServer;
  using Duration = base::Duration;

  void Build() {
    one_.Build();
    two_.Build();
  }
  // "two" holds, "one" stands by and knows it.
  void Scene() {
    Build();
    two_.Open();
    one_.See(two_);
  }

  RawSocket* Connect(const base::Address& address) {
    return sockets_.emplace_back(RawSocket::Connect(address)).get();
  }
  RawSocket* Client(const SideForTest& side) { return Connect(side.Listening()); }
  RawSocket* AcceptAt(RawServer& server) {
    std::unique_ptr<RawSocket> socket;
    EXPECT_TRUE(Eventually([&] { return (socket = server.Accept()) != nullptr; }));
    return socket == nullptr ? nullptr : sockets_.emplace_back(std::move(socket)).get();
  }
  RawSocket* Upstream(const SideForTest& side) { return AcceptAt(*side.upstream); }
  bool Nobody(const SideForTest& side) { return side.upstream->Accept() == nullptr; }

  // A client of `at` and its upstream connection at `holder`, a byte carried each way.
  struct Pair {
    RawSocket* client = nullptr;
    RawSocket* upstream = nullptr;
  };
  Pair Connected(const SideForTest& at, const SideForTest& holder) {
    Pair pair;
    pair.client = Client(at);
    pair.upstream = Upstream(holder);
    pair.client->Send("1");
    EXPECT_TRUE(Eventually([&] { return Received(pair.upstream, "1"); }));
    pair.upstream->Send("2");
    EXPECT_TRUE(Eventually([&] { return Received(pair.client, "2"); }));
    return pair;
  }
  bool Held(const SideForTest& side, uint64_t count = 1) {
    return Eventually([&] { return side.gate->status().held == count; });
  }
  bool Forwarding(const SideForTest& side, uint64_t count = 1) {
    return Eventually([&] { return side.gate->status().forwarding == count; });
  }
  bool ComesToBeReset(RawSocket* socket) {
    return Eventually([&] { return WasReset(socket); });
  }
  bool ComesToReceive(RawSocket* socket, const std::string& bytes) {
    return Eventually([&] { return Received(socket, bytes); });
  }
  bool ComesToBeOver(RawSocket* socket) {
    return Eventually([&] {
      socket->Poll();
      return socket->over();
    });
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
  // What a sidecar writes for a client "192.0.2.7:51234", with this hello.
  static std::string HeaderWith(std::string_view hello) {
    proto::ProxyHeader header;
    header.source = {base::IpEndpoint::Family::kIPv4, {192, 0, 2, 7}, 51234};
    header.destination = {base::IpEndpoint::Family::kIPv4, {192, 0, 2, 1}, 443};
    header.hello = hello;
    return proto::WriteProxyHeader(header);
  }
  static std::string HelloTo(const std::string& process, const std::string& gate = "broker",
                             const std::string& secret = "") {
    return PeerKey(secret, "orders", gate, "process-3").HelloTo(process);
  }
  static std::string Verdict(char code) { return std::string("LHPEER\x01", 7) + code; }

  SideForTest one_{loop_, "process-1"};
  SideForTest two_{loop_, "process-2"};
  std::vector<std::unique_ptr<RawSocket>> sockets_;
};

}  // namespace leasehold::gate

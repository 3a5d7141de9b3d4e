// HttpPairFixture: two sidecars' http gates in one loop, each with a permit the test chooses and an
// application of its own, so that what one forwards the other serves. Either may be replaced by
// plain sockets that speak the words of a peer: a_ with a fake holder, b_ with a fake sender.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "gate/gate.h"
#include "gate/peer_hello.h"
#include "lib/permit_for_test.h"
#include "lib/raw_socket_fixture.h"
#include "lib/socket_peer.h"
#include "observe/log.h"
#include "observe/metrics.h"

namespace leasehold::gate {

class HttpPairFixture : public testing::RawSocketFixture {
 protected:
  using RawSocket = testing::RawSocket;
  using RawServer = testing::RawServer;

  struct Node {
    std::string process_id;
    std::unique_ptr<observe::Log> log = observe::Log::Silent();
    std::unique_ptr<observe::Metrics> metrics = std::make_unique<observe::Metrics>();
    lease::PermitForTest permit;
    std::unique_ptr<RawServer> app;
    Options options;
    std::string secret;
    std::string state = "standby";
    int empty = 0;
    int doubts = 0;
    std::unique_ptr<Gate> gate;
  };

  void SetUp() override {
    Prepare(a_, "process-a");
    Prepare(b_, "process-b");
  }

  void Prepare(Node& node, const std::string& process_id) {
    node.process_id = process_id;
    node.app = std::make_unique<RawServer>(testing::TcpAddress("127.0.0.1", 0));
    node.options.name = "web";
    node.options.listen = testing::TcpAddress("127.0.0.1", 0);
    node.options.peer_listen = testing::TcpAddress("127.0.0.1", 0);
    node.options.standby = StandbyPolicy::kForward;
    node.options.hold_timeout = base::Duration::Seconds(30);
  }
  void Build(Node& node) {
    node.options.upstream = node.app->address();
    Host host{loop_,           *node.log,
              *node.metrics,   node.permit.permit,
              "orders",        "node",
              node.process_id, base::Duration::Millis(100),
              [] {},           [&node] { ++node.empty; },
              nullptr,         [&node] { return std::string_view(node.state); }};
    host.on_peer_doubt = [&node] { ++node.doubts; };
    host.peer_secret = node.secret;
    node.gate = MakeHttpGate(node.options, host);
    ASSERT_TRUE(node.gate->Start().ok());
  }
  void Open(Node& node, uint64_t token = 7) {
    node.state = "active";
    node.permit.Open(base::MonoTime::Never(), token);
    EXPECT_TRUE(node.gate->SetValve({lease::Valve::kOpen, false, {}, ""}).ok());
  }
  void Drain(Node& node, base::Duration grace = base::Duration::Seconds(10)) {
    node.state = "draining";
    node.permit.Set(lease::Valve::kDraining, base::MonoTime::Never(), 7);
    const base::MonoTime end = loop::Loop::Now() + grace;
    EXPECT_TRUE(node.gate->SetValve({lease::Valve::kDraining, false, end, "requested"}).ok());
  }
  void CloseGate(Node& node, bool lost = false) {
    node.state = "standby";
    node.permit.Close();
    EXPECT_TRUE(node.gate->SetValve({lease::Valve::kClosed, lost, {}, ""}).ok());
  }
  // What the record says of `holder` in the sight of `node`.
  static Peer PeerOf(const Node& holder, uint64_t token = 7) {
    Peer peer;
    peer.address = *base::ParseAddress(holder.gate->advertised());
    peer.process_id = holder.process_id;
    peer.token = token;
    return peer;
  }
  static Peer PeerAt(const base::Address& address, const std::string& process_id = "process-x",
                     uint64_t token = 7) {
    Peer peer;
    peer.address = address;
    peer.process_id = process_id;
    peer.token = token;
    return peer;
  }
  // b_ holds, a_ is a standby and knows it.
  void BuildBoth() {
    Build(a_);
    Build(b_);
    Open(b_);
    a_.gate->SetPeer(PeerOf(b_));
  }

  RawSocket* Connect(const std::string& address) {
    return sockets_.emplace_back(RawSocket::Connect(*base::ParseAddress(address))).get();
  }
  RawSocket* Client(Node& node, std::string_view bytes = {}) {
    RawSocket* client = Connect(node.gate->status().listen);
    if (!bytes.empty()) client->Send(bytes);
    return client;
  }
  RawSocket* Accepted(RawServer& server) {
    std::unique_ptr<RawSocket> socket;
    EXPECT_TRUE(Eventually([&] { return (socket = server.Accept()) != nullptr; }));
    return socket == nullptr ? nullptr : sockets_.emplace_back(std::move(socket)).get();
  }
  bool IsAlone(RawServer& server) {
    auto socket = server.Accept();
    const bool alone = socket == nullptr;
    if (!alone) sockets_.push_back(std::move(socket));
    return alone;
  }
  bool Gets(RawSocket* socket, std::string_view text) {
    return Eventually([&] {
      socket->Poll();
      return socket->received().find(text) != std::string::npos;
    });
  }
  bool GetsTimes(RawSocket* socket, std::string_view text, size_t times) {
    return Eventually([&] {
      socket->Poll();
      return Count(socket->received(), text) >= times;
    });
  }
  bool IsOver(RawSocket* socket) {
    return Eventually([&] {
      socket->Poll();
      return socket->over();
    });
  }
  bool Holds(Node& node, uint64_t count) {
    return Eventually([&] { return node.gate->status().held == count; });
  }
  static size_t Count(std::string_view text, std::string_view what) {
    size_t count = 0;
    for (size_t at = text.find(what); at != std::string_view::npos; at = text.find(what, at + 1)) {
      ++count;
    }
    return count;
  }
  static bool Has(const RawSocket* socket, std::string_view text) {
    return socket->received().find(text) != std::string::npos;
  }
  static std::string Get(const std::string& more = "", const std::string& target = "/") {
    return "GET " + target + " HTTP/1.1\r\nHost: a\r\n" + more + "\r\n";
  }
  static std::string Post(const std::string& more = "", const std::string& body = "") {
    return "POST / HTTP/1.1\r\nHost: a\r\n" + more + "\r\n" + body;
  }
  static std::string Ok(const std::string& body = "hi", const std::string& more = "") {
    return "HTTP/1.1 200 OK\r\n" + more + "Content-Length: " + std::to_string(body.size()) +
           "\r\n\r\n" + body;
  }
  // The same as a peer listener says it.
  static std::string PeerOk(const std::string& body = "hi") {
    return Ok(body, "Lease-Peer: answer\r\n");
  }
  static constexpr std::string_view kSaid = "HTTP/1.1 199 Admitted\r\nLease-Peer: admitted\r\n\r\n";
  static constexpr std::string_view kRefused =
      "HTTP/1.1 503 Service Unavailable\r\nLease-Peer: not_admitted\r\nContent-Length: 0\r\n\r\n";
  // As a sidecar with process id "process-x" would greet `node`, without a secret.
  static std::string Hello(const Node& node, bool say) {
    return "Lease-Peer: 1 gate=web to=" + node.process_id + " from=process-x" +
           (say ? " say" : "") + "\r\n";
  }
  // One exchange, so that the route is proven and a connection is kept.
  void Warm() {
    RawSocket* client = Client(a_, Get("", "/warm"));
    RawSocket* app = Accepted(*b_.app);
    EXPECT_TRUE(Gets(app, "GET /warm "));
    app->Send(Ok("warm"));
    EXPECT_TRUE(Gets(client, "warm"));
    client->Close();
  }

  Node a_;
  Node b_;
  std::vector<std::unique_ptr<RawSocket>> sockets_;
};

}  // namespace leasehold::gate

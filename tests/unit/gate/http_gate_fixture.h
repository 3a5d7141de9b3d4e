// HttpGateFixture: an http gate over real sockets with a permit the test chooses. Clients and the
// application are plain sockets outside the loop, so that a test writes and sees the wire itself.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "gate/gate.h"
#include "lib/permit_for_test.h"
#include "lib/raw_socket_fixture.h"
#include "lib/socket_peer.h"
#include "observe/log.h"
#include "observe/metrics.h"

namespace leasehold::gate {

class HttpGateFixture : public testing::RawSocketFixture {
 protected:
  using RawSocket = testing::RawSocket;
  using RawServer = testing::RawServer;

  void SetUp() override {
    options_.name = "web";
    options_.listen = testing::TcpAddress("127.0.0.1", 0);
    options_.hold_timeout = base::Duration::Seconds(30);
    app_ = std::make_unique<RawServer>(testing::TcpAddress("127.0.0.1", 0));
  }

  // Builds and starts a gate with options_.
  void Build() {
    if (app_ != nullptr) options_.upstream = app_->address();
    gate_ = MakeHttpGate(
        options_, Host{loop_, *log_, metrics_, permit_.permit, "orders", "node-1", "process-1",
                       drain_tunnels_, [this] { ++expired_; }, [this] { ++empty_; }, nullptr,
                       [this] { return std::string_view(state_word_); }});
    ASSERT_TRUE(gate_->Start().ok());
  }
  void BuildOpen() {
    Build();
    Open();
  }

  void Open(uint64_t token = 7) {
    state_word_ = "active";
    permit_.Open(base::MonoTime::Never(), token);
    EXPECT_TRUE(gate_->SetValve({lease::Valve::kOpen, false, {}, ""}).ok());
  }
  void Drain(base::Duration grace = base::Duration::Seconds(10)) {
    state_word_ = "draining";
    permit_.Set(lease::Valve::kDraining, base::MonoTime::Never(), 7);
    const base::MonoTime end = loop::Loop::Now() + grace;
    EXPECT_TRUE(gate_->SetValve({lease::Valve::kDraining, false, end, "requested"}).ok());
  }
  void CloseGate(bool lost) {
    state_word_ = "standby";
    permit_.Close();
    EXPECT_TRUE(gate_->SetValve({lease::Valve::kClosed, lost, {}, ""}).ok());
  }

  RawSocket* Client() {
    auto address = base::ParseAddress(gate_->status().listen);
    return sockets_.emplace_back(RawSocket::Connect(*address)).get();
  }
  RawSocket* Client(std::string_view bytes) {
    RawSocket* client = Client();
    client->Send(bytes);
    return client;
  }
  // The next connection that arrives at the application within the limit.
  RawSocket* App() {
    std::unique_ptr<RawSocket> socket;
    EXPECT_TRUE(Eventually([&] { return (socket = app_->Accept()) != nullptr; }));
    return socket == nullptr ? nullptr : sockets_.emplace_back(std::move(socket)).get();
  }
  // Nobody has connected to the application.
  bool AppIsAlone() {
    auto socket = app_->Accept();
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
  bool GetsAll(RawSocket* socket, const std::string& text) {
    return Eventually([&] {
      socket->Poll();
      return socket->received() == text;
    });
  }
  bool IsOver(RawSocket* socket) {
    return Eventually([&] {
      socket->Poll();
      return socket->over();
    });
  }
  // The application answers each request on one connection with `answer`, `times` times.
  bool Serve(RawSocket* app, std::string_view answer, int times = 1) {
    for (int i = 0; i < times; ++i) {
      const size_t seen = Count(app->received(), "\r\n\r\n");
      if (!Eventually([&] {
            app->Poll();
            return app->over() || Count(app->received(), "\r\n\r\n") > answered_ ||
                   Count(app->received(), "\r\n\r\n") > seen;
          })) {
        return false;
      }
      answered_ = Count(app->received(), "\r\n\r\n");
      app->Send(answer);
    }
    return true;
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
  static std::string Ok(const std::string& body = "hi") {
    return "HTTP/1.1 200 OK\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
  }
  // One request and its answer through a fresh connection on both sides.
  struct Pair {
    RawSocket* client = nullptr;
    RawSocket* app = nullptr;
  };
  Pair Exchange(const std::string& request, const std::string& answer) {
    Pair pair;
    pair.client = Client(request);
    pair.app = App();
    EXPECT_TRUE(Gets(pair.app, "\r\n\r\n"));
    pair.app->Send(answer);
    return pair;
  }

  std::unique_ptr<observe::Log> log_ = observe::Log::Silent();
  observe::Metrics metrics_;
  lease::PermitForTest permit_;
  base::Duration drain_tunnels_ = base::Duration::Millis(100);
  std::string state_word_ = "standby";
  int expired_ = 0;
  int empty_ = 0;
  Options options_;
  std::unique_ptr<RawServer> app_;
  std::vector<std::unique_ptr<RawSocket>> sockets_;
  std::unique_ptr<Gate> gate_;
  size_t answered_ = 0;
};

}  // namespace leasehold::gate

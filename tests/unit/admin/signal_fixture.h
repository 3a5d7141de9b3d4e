// SignalFixture: a signal socket on a fake control, and clients that speak lines.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "admin/signal_server.h"
#include "lib/fake_control.h"
#include "lib/raw_socket_fixture.h"
#include "lib/socket_peer.h"
#include "proto/json.h"

namespace leasehold::admin {

class SignalFixture : public testing::RawSocketFixture {
 protected:
  using Outcome = lease::StepDownDone::Outcome;

  void SetUp() override {
    options_.socket = dir_.File("s.sock");
    log_ = observe::Log::Silent();
  }
  void TearDown() override { server_.reset(); }

  void Start() {
    auto server = SignalServer::Start(loop_, options_, control_, events_, *log_);
    ASSERT_TRUE(server.ok()) << server.error().message;
    server_ = std::move(server).value();
  }
  std::unique_ptr<testing::RawSocket> Connect() {
    return testing::RawSocket::Connect(testing::UnixAddress(options_.socket));
  }
  // Connected and greeted.
  std::unique_ptr<testing::RawSocket> Client() {
    auto client = Connect();
    EXPECT_NE(Line(*client, 0), "") << "no hello";
    return client;
  }
  static std::vector<std::string> Lines(const testing::RawSocket& client) {
    std::vector<std::string> lines;
    size_t start = 0;
    for (size_t end = 0; (end = client.received().find('\n', start)) != std::string::npos;) {
      lines.push_back(client.received().substr(start, end - start));
      start = end + 1;
    }
    return lines;
  }
  // The n-th line the client received; waits for it. "" if it did not come.
  std::string Line(testing::RawSocket& client, size_t n) {
    const bool came = Eventually([&] {
      client.Poll();
      return Lines(client).size() > n || client.over();
    });
    const auto lines = Lines(client);
    return came && lines.size() > n ? lines[n] : "";
  }
  // Sends a line and gives the next one that comes, parsed.
  proto::Json Ask(testing::RawSocket& client, const std::string& line) {
    client.Poll();
    const size_t before = Lines(client).size();
    client.Send(line + "\n");
    const std::string answer = Line(client, before);
    const auto json = proto::Json::Parse(answer);
    EXPECT_TRUE(json.ok()) << "answer: " << answer;
    return json.ok() ? *json : proto::Json();
  }
  bool IsOver(testing::RawSocket& client) {
    return Eventually([&] {
      client.Poll();
      return client.over();
    });
  }
  void Publish(const std::string& name, uint64_t token, const std::string& lease = "orders") {
    observe::Event event;
    event.name = name;
    event.lease = lease;
    event.token = token;
    events_.Publish(event);
  }
  void Drain(uint64_t token) {
    control_.lease_views[0].view.state = lease::State::kDraining;
    control_.lease_views[0].view.token = token;
    Publish("lease.draining", token);
  }

  testing::TempDir dir_;
  testing::FakeControl control_;
  observe::EventBus events_;
  std::unique_ptr<observe::Log> log_;
  SignalOptions options_;
  std::unique_ptr<SignalServer> server_;
};

}  // namespace leasehold::admin

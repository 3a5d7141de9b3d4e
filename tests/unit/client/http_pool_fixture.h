// HttpPoolFixture: a pool, calls whose outcomes are kept, and a service that says what the test
// wants, byte by byte, on each connection that the pool makes.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "client/http_pool.h"
#include "lib/raw_socket_fixture.h"
#include "lib/socket_peer.h"

namespace leasehold::client {

class HttpPoolFixture : public testing::RawSocketFixture {
 protected:
  struct Outcome {
    std::unique_ptr<HttpCall> call;
    std::optional<base::Result<HttpResponse>> answer;
    int told = 0;
    std::function<void()> inside;  // runs in the callback
  };
  enum Again { kNever, kIdempotent };

  void SetUp() override {
    server_ = std::make_unique<testing::RawServer>(testing::TcpAddress("127.0.0.1", 0));
    options_.address = server_->address();
    MakePool();
  }
  void MakePool() { pool_ = std::make_unique<HttpPool>(loop_, options_); }

  Outcome& Start(Again again = kNever) {
    outcomes_.push_back(std::make_unique<Outcome>());
    Outcome* outcome = outcomes_.back().get();
    outcome->call =
        pool_->Start(request_, again == kIdempotent, [outcome](base::Result<HttpResponse> answer) {
          ++outcome->told;
          outcome->answer.emplace(std::move(answer));
          if (outcome->inside) outcome->inside();
        });
    return *outcome;
  }
  bool Told(const Outcome& outcome) {
    return Eventually([&] { return outcome.told > 0; });
  }

  void Serve() {
    while (auto peer = server_->Accept()) peers_.push_back(std::move(peer));
    for (const auto& peer : peers_) peer->Poll();
  }
  static size_t Heads(const std::string& text) {
    size_t count = 0;
    for (size_t at = text.find("\r\n\r\n"); at != std::string::npos;
         at = text.find("\r\n\r\n", at + 4)) {
      ++count;
    }
    return count;
  }
  // The connection of this number, once `requests` requests without bodies have come on it.
  testing::RawSocket& Peer(size_t number, size_t requests = 1) {
    EXPECT_TRUE(Eventually([&] {
      Serve();
      return peers_.size() > number && Heads(peers_[number]->received()) >= requests;
    })) << "connection "
        << number << " did not bring " << requests << " requests";
    static testing::RawSocket nobody(-1);
    return peers_.size() > number ? *peers_[number] : nobody;
  }
  bool Over(testing::RawSocket& peer) {
    return Eventually([&] {
      peer.Poll();
      return peer.over();
    });
  }
  // One call, answered on connection `number`, which is kept then.
  void KeepOne(size_t number = 0) {
    Outcome& outcome = Start();
    Peer(number).Send(kOk);
    ASSERT_TRUE(Told(outcome));
    ASSERT_TRUE(outcome.answer->ok()) << outcome.answer->error().message;
  }
  // As many kept connections.
  void KeepMany(size_t count) {
    const size_t first = outcomes_.size();
    for (size_t i = 0; i < count; ++i) Start();
    for (size_t i = 0; i < count; ++i) Peer(i).Send(kOk);
    for (size_t i = first; i < outcomes_.size(); ++i) ASSERT_TRUE(Told(*outcomes_[i]));
    ASSERT_EQ(pool_->idle(), count);
  }

  static void ExpectBody(const Outcome& outcome, const std::string& body) {
    ASSERT_TRUE(outcome.answer.has_value());
    ASSERT_TRUE(outcome.answer->ok()) << outcome.answer->error().message;
    EXPECT_EQ((*outcome.answer)->body, body);
    EXPECT_EQ(outcome.told, 1);
  }
  static void ExpectError(const Outcome& outcome, base::ErrorCode code, const std::string& part) {
    ASSERT_TRUE(outcome.answer.has_value());
    ASSERT_FALSE(outcome.answer->ok());
    const base::Error& error = outcome.answer->error();
    EXPECT_EQ(error.code, code) << error.message;
    EXPECT_NE(error.message.find(part), std::string::npos) << error.message;
    EXPECT_EQ(outcome.told, 1);
  }
  static std::string Ok(const std::string& body, const std::string& more = "") {
    return "HTTP/1.1 200 OK\r\n" + more + "Content-Length: " + std::to_string(body.size()) +
           "\r\n\r\n" + body;
  }

  static constexpr const char* kOk = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
  HttpPoolOptions options_;
  HttpRequest request_;
  std::unique_ptr<testing::RawServer> server_;
  std::vector<std::unique_ptr<testing::RawSocket>> peers_;
  std::unique_ptr<HttpPool> pool_;
  std::vector<std::unique_ptr<Outcome>> outcomes_;
};

}  // namespace leasehold::client

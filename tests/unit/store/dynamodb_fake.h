// FakeDynamoDb: a service of the test on the loop under test that says what the test wants, for
// what no emulator can be made to do. It keeps its connections, as DynamoDB does.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/text.h"
#include "lib/socket_peer.h"
#include "loop/listener.h"

namespace leasehold::store {

struct FakeAnswer {
  int status = 200;
  std::string body = "{}";
  bool cut = false;     // close instead, in the middle of the body
  bool silent = false;  // never answer
  std::string date = "Tue, 01 Dec 2026 01:30:00 GMT";
};

class FakeDynamoDb {
 public:
  struct Request {
    std::string operation;  // "GetItem"
    std::string body;
    std::string head;
  };
  using Answer = std::function<FakeAnswer(const Request&)>;

  explicit FakeDynamoDb(loop::Loop& loop) : loop_(loop) {
    auto listener = loop::Listener::Open(
        loop, testing::TcpAddress("127.0.0.1", 0), {},
        [this](int fd, const std::string& peer) { Accept(fd, peer); }, [](const base::Error&) {});
    EXPECT_TRUE(listener.ok()) << listener.error().message;
    listener_ = std::move(*listener);
  }
  base::Address address() const { return listener_->bound(); }
  int accepted() const { return accepted_; }
  // Requests that came, by operation.
  size_t Count(std::string_view operation) const {
    size_t count = 0;
    for (const Request& request : requests) count += request.operation == operation ? 1 : 0;
    return count;
  }

  Answer answer = [](const Request&) { return FakeAnswer{}; };
  std::vector<Request> requests;

 private:
  struct Peer : loop::StreamListener {
    FakeDynamoDb* server = nullptr;
    std::unique_ptr<loop::Stream> stream;
    std::string received;
    void OnData(std::span<const char> bytes) override {
      received.append(bytes.data(), bytes.size());
      while (stream != nullptr && TakeOne()) {
      }
    }
    // One whole request, answered.
    bool TakeOne() {
      const size_t head_end = received.find("\r\n\r\n");
      if (head_end == std::string::npos) return false;
      const std::string head = received.substr(0, head_end);
      const std::string lower = base::ToLower(head);
      const size_t at = lower.find("content-length:");
      const size_t length = at == std::string::npos ? 0 : std::stoul(lower.substr(at + 15));
      if (received.size() < head_end + 4 + length) return false;
      const size_t target = lower.find("dynamodb_20120810.");
      const std::string operation = head.substr(target + 18, head.find('\r', target) - target - 18);
      server->requests.push_back({operation, received.substr(head_end + 4, length), head});
      received.erase(0, head_end + 4 + length);
      Say(server->answer(server->requests.back()));
      return true;
    }
    void Say(const FakeAnswer& what) {
      if (what.silent) return;
      const std::string text =
          "HTTP/1.1 " + std::to_string(what.status) + " X\r\nDate: " + what.date +
          "\r\nContent-Type: application/x-amz-json-1.0" +
          "\r\nContent-Length: " + std::to_string(what.body.size()) + "\r\n\r\n" + what.body;
      stream->Write(what.cut ? text.substr(0, text.size() - 1) : text);
      if (what.cut) stream.reset();
    }
    void OnEnd() override { stream.reset(); }
    void OnDrained() override {}
    void OnClosed(const base::Error&) override { stream.reset(); }
  };

  void Accept(int fd, const std::string& peer) {
    ++accepted_;
    std::erase_if(peers_, [](const auto& old) { return old->stream == nullptr; });
    peers_.push_back(std::make_unique<Peer>());
    peers_.back()->server = this;
    peers_.back()->stream = loop::AdoptSocket(loop_, fd, peer);
    peers_.back()->stream->SetListener(peers_.back().get());
    peers_.back()->stream->StartReading();
  }

  loop::Loop& loop_;
  int accepted_ = 0;
  std::unique_ptr<loop::Listener> listener_;
  std::vector<std::unique_ptr<Peer>> peers_;
};

}  // namespace leasehold::store

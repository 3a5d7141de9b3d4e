// Many planned moves under load: clients on both sidecars, with and without bodies, never fail and
// nothing is executed twice, in whatever order the record and the valves are seen to change.
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/random.h"
#include "http_pair_fixture.h"

namespace leasehold::gate {
namespace {

using base::Duration;

class HttpMovesLoadTest : public HttpPairFixture {
 protected:
  // One after the other on a kept connection, as a careful client does it.
  struct LoadClient {
    Node* node = nullptr;
    int kind = 0;
    std::string id;
    std::unique_ptr<RawSocket> socket;
    bool waiting = false;
    size_t answers = 0;  // on this connection
  };

  std::string Request(LoadClient& client) {
    client.id = "n" + std::to_string(next_id_++) + ".";
    switch (client.kind) {
      case 0: return Get("", "/" + client.id);
      case 1: return "POST /" + client.id + " HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nbody";
      case 2: return "POST /" + client.id + " HTTP/1.1\r\nHost: a\r\n\r\n";
      default:
        return "PUT /" + client.id +
               " HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nbody\r\n0\r\n\r\n";
    }
  }

  void Step(LoadClient& client) {
    if (client.socket != nullptr) client.socket->Poll();
    if (client.waiting) {
      const std::string& text = client.socket->received();
      const std::string wanted = "done " + client.id;
      if (text.find(wanted) != std::string::npos) {
        ++answered_;
        client.waiting = false;
        if (text.find("Connection: close") != std::string::npos) client.socket.reset();
      } else if (client.socket->over() || text.find("HTTP/1.1 5") != std::string::npos) {
        failures_.push_back(client.id + (client.socket->over() ? " ended " : " failed ") +
                            text.substr(text.size() - std::min<size_t>(text.size(), 300)));
        client.waiting = false;
        client.socket.reset();
      }
      return;
    }
    if (stop_) return;
    if (client.socket != nullptr && (client.socket->over() || client.answers++ > 40)) {
      client.socket.reset();
    }
    if (client.socket == nullptr) {
      client.answers = 0;
      client.socket = RawSocket::Connect(*base::ParseAddress(client.node->gate->status().listen));
    }
    client.socket->Send(Request(client));
    client.waiting = true;
  }

  // The application: answers each request that is complete, and notes it.
  struct AppConnection {
    std::unique_ptr<RawSocket> socket;
    size_t done = 0;  // bytes of requests that were answered
  };
  void StepApp(Node& node, std::vector<AppConnection>& connections) {
    while (auto socket = node.app->Accept()) connections.push_back({std::move(socket), 0});
    for (AppConnection& one : connections) {
      one.socket->Poll();
      while (AnswerNext(node, one)) {
      }
    }
  }
  bool AnswerNext(Node& node, AppConnection& one) {
    const std::string text = one.socket->received().substr(one.done);
    const size_t head = text.find("\r\n\r\n");
    if (head == std::string::npos) return false;
    size_t size = head + 4;
    if (text.substr(0, head).find("Content-Length: 4") != std::string::npos) size += 4;
    if (text.substr(0, head).find("chunked") != std::string::npos) {
      const size_t end = text.find("0\r\n\r\n", head + 4);
      if (end == std::string::npos) return false;
      size = end + 5;
    }
    if (text.size() < size) return false;
    one.done += size;
    const std::string id = text.substr(text.find('/') + 1, text.find(". ") - text.find('/'));
    ++executed_[id];
    EXPECT_EQ(&node, holder_) << id;
    one.socket->Send(Ok("done " + id));
    return true;
  }

  void Turn() {
    for (auto& client : clients_) Step(client);
    StepApp(a_, apps_a_);
    StepApp(b_, apps_b_);
  }
  bool Until(const std::function<bool()>& condition) {
    return Eventually([&] {
      Turn();
      return condition();
    });
  }
  void Some(int64_t most_ms) {
    const base::MonoTime end =
        loop::Loop::Now() +
        Duration::Millis(static_cast<int64_t>(random_.Below(static_cast<uint64_t>(most_ms) + 1)));
    EXPECT_TRUE(Until([&] { return loop::Loop::Now() >= end; }));
  }

  // From the holder to the other, or back to itself; what each sees comes in any order.
  void Move(Node& from, Node& to) {
    const bool seen_draining = random_.Below(2) == 0;
    if (seen_draining && &from != &to) {
      Peer draining = PeerOf(from, token_);
      draining.draining = true;
      to.gate->SetPeer(draining);
    }
    from.empty = 0;
    Drain(from);
    EXPECT_TRUE(Until([&] { return from.empty > 0; }));
    CloseGate(from);
    holder_ = &to;
    Some(5);
    ++token_;
    const bool peer_first = random_.Below(2) == 0;
    if (peer_first && &from != &to) from.gate->SetPeer(PeerOf(to, token_));
    if (peer_first) Some(5);
    if (&from != &to) to.gate->SetPeer({});
    Open(to, token_);
    Some(5);
    if (!peer_first && &from != &to) from.gate->SetPeer(PeerOf(to, token_));
    Some(30);
  }

  base::Random random_{20261130};
  std::vector<LoadClient> clients_;
  std::vector<AppConnection> apps_a_;
  std::vector<AppConnection> apps_b_;
  std::map<std::string, int> executed_;
  std::vector<std::string> failures_;
  Node* holder_ = nullptr;
  uint64_t token_ = 7;
  uint64_t next_id_ = 1;
  uint64_t answered_ = 0;
  bool stop_ = false;
};

TEST_F(HttpMovesLoadTest, FortyMovesFailNothingAndExecuteNothingTwice) {
  Build(a_);
  Build(b_);
  holder_ = &a_;
  Open(a_);
  b_.gate->SetPeer(PeerOf(a_));
  for (int i = 0; i < 16; ++i) {
    clients_.emplace_back();
    clients_.back().node = i % 2 == 0 ? &a_ : &b_;
    clients_.back().kind = i / 2 % 4;
  }
  Some(30);
  for (int i = 0; i < 40; ++i) {
    Node& from = *holder_;
    Node& other = &from == &a_ ? b_ : a_;
    Move(from, i % 8 == 7 ? from : other);
  }
  stop_ = true;
  EXPECT_TRUE(Until([&] {
    for (const auto& client : clients_) {
      if (client.waiting) return false;
    }
    return true;
  }));
  for (const std::string& failure : failures_) ADD_FAILURE() << failure;
  EXPECT_GT(answered_, 500u);
  EXPECT_EQ(executed_.size(), answered_);
  for (const auto& [id, times] : executed_) EXPECT_EQ(times, 1) << id;
}

}  // namespace
}  // namespace leasehold::gate

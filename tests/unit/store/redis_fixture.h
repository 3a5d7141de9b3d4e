// RedisFixture: a loop, adapters on it, and blocking-looking calls for the tests of the redis
// adapter. FakeRedis: a server of the test on the same loop that greets like a Redis and then does
// what the test says, for what no real server can be made to do.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lib/loop_fixture.h"
#include "lib/redis_server.h"
#include "loop/listener.h"
#include "observe/log.h"
#include "store/redis_store.h"

namespace leasehold::store {

class RedisFixture : public testing::LoopFixture {
 protected:
  using Read = ReadResult::Outcome;
  using Cas = CasResult::Outcome;
  static constexpr base::Duration kCall = base::Duration::Seconds(5);

  void TearDown() override {
    while (!stores_.empty()) Close(stores_.back().get());
  }

  // The server every test but the fake ones uses; fails the test if there is none.
  testing::RedisServer& Server(const testing::RedisServerOptions& options = {}) {
    if (server_ == nullptr) {
      auto started = testing::RedisServer::Start(options);
      EXPECT_TRUE(started.ok()) << started.error().message;
      server_ = std::move(*started);
    }
    return *server_;
  }
  RedisOptions Options() {
    RedisOptions options;
    options.url = Server().url();
    return options;
  }

  LeaseStore* Make(const RedisOptions& options) { return Make(options, TuningOf(options)); }
  LeaseStore* Make(const RedisOptions& options, const RedisTuning& tuning) {
    const base::Status valid = ValidateRedisOptions(options);
    EXPECT_TRUE(valid.ok()) << valid.error().message;
    stores_.push_back(MakeRedisStore(loop_, options, tuning, "t", *log_));
    return stores_.back().get();
  }
  base::Status OpenNow(LeaseStore* store) {
    std::optional<base::Status> opened;
    store->Open(
        [this](std::string_view kind, bool active, const std::string& sentence) {
          troubles_.emplace_back(std::string(kind), active, sentence);
          active_[std::string(kind)] = active ? sentence : "";
        },
        [&opened](base::Status status) { opened = std::move(status); });
    EXPECT_TRUE(RunUntil([&] { return opened.has_value(); })) << "Open never called back";
    return opened.value_or(base::Status(base::Error{}));
  }
  // A store that is connected.
  LeaseStore* Opened(const RedisOptions& options) {
    LeaseStore* store = Make(options);
    const base::Status opened = OpenNow(store);
    EXPECT_TRUE(opened.ok()) << opened.error().message;
    return store;
  }
  void Close(LeaseStore* store) {
    bool closed = false;
    store->Close([&closed] { closed = true; });
    EXPECT_TRUE(RunUntil([&closed] { return closed; }));
    std::erase_if(stores_, [store](const auto& owned) { return owned.get() == store; });
  }

  ReadResult ReadNow(LeaseStore* store, base::Duration timeout = kCall) {
    std::optional<ReadResult> answer;
    store->Read("orders", timeout, [&answer](ReadResult result) { answer = std::move(result); });
    EXPECT_TRUE(RunUntil([&answer] { return answer.has_value(); })) << "Read never called back";
    return answer.value_or(ReadResult{});
  }
  CasResult CasNow(LeaseStore* store, const std::optional<lease::Version>& expected,
                   const lease::Record& record, base::Duration timeout = kCall) {
    std::optional<CasResult> answer;
    store->CompareAndSet("orders", expected, record, timeout,
                         [&answer](CasResult result) { answer = std::move(result); });
    EXPECT_TRUE(RunUntil([&answer] { return answer.has_value(); })) << "CAS never called back";
    return answer.value_or(CasResult{});
  }
  base::Status ProbeNow(LeaseStore* store) {
    std::optional<base::Status> answer;
    store->ProbeWrite("orders", kCall,
                      [&answer](base::Status status) { answer = std::move(status); });
    EXPECT_TRUE(RunUntil([&answer] { return answer.has_value(); })) << "no probe answer";
    return answer.value_or(base::Status(base::Error{}));
  }
  // Renews until it applies or patience ends; the last result.
  CasResult CasUntilApplied(LeaseStore* store, lease::Version expected, lease::Record record) {
    CasResult result;
    const base::MonoTime end = loop::Loop::Now() + kLimit;
    do {
      result = CasNow(store, expected, record, base::Duration::Millis(500));
      if (result.outcome == Cas::kConflict) expected = result.version;
      ++record.beat;
    } while (result.outcome != Cas::kApplied && loop::Loop::Now() < end);
    return result;
  }
  bool InTrouble(const std::string& kind) const {
    const auto found = active_.find(kind);
    return found != active_.end() && !found->second.empty();
  }
  base::Status Do(const std::vector<std::string>& words) {
    const auto reply = server_->Command(words);
    if (!reply.ok()) return reply.error();
    if (!reply->is_error()) return {};
    return base::Error{base::ErrorCode::kRefused, reply->text()};
  }

  static lease::Record Beat(uint64_t beat, uint64_t token = 1) {
    lease::Record record;
    record.lease = "orders";
    record.node_id = "node-a";
    record.process_id = "p-1";
    record.token = token;
    record.beat = beat;
    record.ttl_ms = 10000;
    record.peers = {{"web", "127.0.0.1:8081"}};
    return record;
  }

  std::unique_ptr<observe::Log> log_ = observe::Log::Silent();
  std::unique_ptr<testing::RedisServer> server_;
  std::vector<std::unique_ptr<LeaseStore>> stores_;
  std::vector<std::tuple<std::string, bool, std::string>> troubles_;
  std::map<std::string, std::string> active_;  // kind -> sentence, "" when over
};

class FakeRedis {
 public:
  // What it answers to the bytes of one command after the greeting; nullopt: closes.
  using Answer = std::function<std::optional<std::string>(std::string_view bytes)>;

  FakeRedis(loop::Loop& loop, Answer answer) : loop_(loop), answer_(std::move(answer)) {
    auto listener = loop::Listener::Open(
        loop, testing::TcpAddress("127.0.0.1", 0), {},
        [this](int fd, const std::string& peer) { Accept(fd, peer); }, [](const base::Error&) {});
    EXPECT_TRUE(listener.ok()) << listener.error().message;
    listener_ = std::move(*listener);
  }
  std::string url() const { return "redis://" + listener_->bound().ToString(); }
  int accepted() const { return accepted_; }
  // Sent instead of the greeting when not empty.
  std::string greeting;

 private:
  struct Peer : loop::StreamListener {
    FakeRedis* server = nullptr;
    std::unique_ptr<loop::Stream> stream;
    bool greeted = false;
    void OnData(std::span<const char> bytes) override {
      std::optional<std::string> reply;
      if (!greeted) {
        greeted = true;
        const std::string digest(40, 'a');
        reply = server->greeting.empty() ? "$29\r\nmaxmemory_policy:noeviction\r\n\r\n$40\r\n" +
                                               digest + "\r\n$40\r\n" + digest + "\r\n"
                                         : server->greeting;
      } else {
        reply = server->answer_({bytes.data(), bytes.size()});
      }
      if (!reply) return stream.reset();
      const size_t cut = reply->find('\x04');  // "say this, then close"
      stream->Write(reply->substr(0, cut));
      if (cut != std::string::npos) stream.reset();
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
  Answer answer_;
  int accepted_ = 0;
  std::unique_ptr<loop::Listener> listener_;
  std::vector<std::unique_ptr<Peer>> peers_;
};

}  // namespace leasehold::store

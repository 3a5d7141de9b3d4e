// RedisLink: one connection to the server that is kept up: password read, name resolved, TCP and
// TLS, AUTH and SELECT, the user's own greeting, all within connect_timeout; then replies in order
// until it breaks; then again, with jittered back-off, until Stop(). It knows nothing of leases,
// and nothing of which reply belongs to what. Owned by RedisClient and RedisPush. Invariant:
// between OnUp and OnDown (or Drop) there is exactly one stream, and no byte of an earlier one.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/random.h"
#include "base/result.h"
#include "base/time.h"
#include "loop/connect.h"
#include "loop/loop.h"
#include "loop/stream.h"
#include "loop/timer.h"
#include "proto/resp.h"
#include "store/redis_errors.h"
#include "store/redis_target.h"

namespace leasehold::store {

// Called from the loop; may destroy the link.
class RedisLinkUser {
 public:
  virtual ~RedisLinkUser() = default;
  // The answer to the index-th greeting command. A failure closes the connection.
  virtual std::optional<RedisFailure> OnGreeting(size_t index, const proto::Reply& reply) = 0;
  virtual void OnUp() = 0;
  virtual void OnReply(const proto::Reply& reply) = 0;
  // The connection broke, or an attempt to connect failed. The next attempt is already planned.
  virtual void OnDown(const RedisFailure& failure) = 0;
};

class RedisLink final : private loop::StreamListener {
 public:
  // `greeting`: formatted commands sent at each connect, after AUTH and SELECT.
  RedisLink(loop::Loop& loop, const RedisTarget& target, const RedisTuning& tuning,
            std::vector<std::string> greeting, RedisLinkUser& user);
  ~RedisLink() override;
  RedisLink(const RedisLink&) = delete;
  RedisLink& operator=(const RedisLink&) = delete;

  void Start();
  void Stop();
  bool up() const { return state_ == State::kUp; }
  bool started() const { return state_ != State::kStopped; }
  // Only while up.
  void Send(std::string_view bytes);
  size_t queued() const;
  // Closes the connection and plans the next one, `pause` from now at the earliest. OnDown is not
  // called: whoever drops knows.
  void Drop(base::Duration pause = base::Duration::Zero());

 private:
  enum class State {
    kStopped,
    kWaiting,   // for the back-off to pass
    kOpening,   // password file, name, TCP, TLS
    kGreeting,  // connected; greeting sent, not all of it answered
    kUp,
  };

  void OnData(std::span<const char> bytes) override;
  void OnEnd() override;
  void OnDrained() override {}
  void OnClosed(const base::Error& error) override;

  void Attempt();
  void Connect(const std::string& password);
  void OnConnected(base::Result<std::unique_ptr<loop::Stream>> result, const std::string& password);
  void OnTimer();
  void Deliver(const proto::Reply& reply);
  std::optional<RedisFailure> Greeted(const proto::Reply& reply);
  void GoUp();
  void Fail(const RedisFailure& failure);
  void CloseAndPlan(base::Duration pause);
  void CloseStream();
  base::Duration NextDelay();

  loop::Loop& loop_;
  const RedisTarget& target_;
  const RedisTuning tuning_;
  const std::vector<std::string> greeting_;
  RedisLinkUser& user_;
  base::Random random_;
  State state_ = State::kStopped;
  loop::Timer timer_;  // end of the back-off, or of the attempt
  std::unique_ptr<loop::Connecting> connecting_;
  std::unique_ptr<loop::Stream> stream_;
  std::unique_ptr<proto::RespReader> reader_;
  uint64_t session_ = 0;  // rises whenever a stream or an attempt ends
  std::vector<std::string_view>
      own_steps_;  // "AUTH", "SELECT": answered before the user's greeting
  size_t greeted_ = 0;
  base::MonoTime up_since_;
  int failures_ = 0;  // in a row, without a steady connection between
  std::shared_ptr<char> alive_ = std::make_shared<char>();
  bool* gone_ = nullptr;
};

}  // namespace leasehold::store

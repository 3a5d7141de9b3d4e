// RedisPush: hints by pub/sub on a connection of their own, kept up by itself. A hint is never
// trusted, only sooner than a poll: kPushUp after the server confirmed the subscription (with a
// kChangedHands, since something may have been missed before), kPushDown when the connection broke
// or fell silent (PINGs tell a quiet server from a frozen one). Owned by the adapter.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "base/time.h"
#include "loop/loop.h"
#include "loop/timer.h"
#include "proto/resp.h"
#include "store/lease_store.h"
#include "store/redis_errors.h"
#include "store/redis_link.h"
#include "store/redis_target.h"

namespace leasehold::store {

class RedisPush final : private RedisLinkUser {
 public:
  // nullptr: the subscriptions work; else why the server refuses them (DESIGN: hints then never
  // come, polling does the work). Changes only.
  using Trouble = std::function<void(const RedisFailure*)>;

  RedisPush(loop::Loop& loop, const RedisTarget& target, const RedisTuning& tuning,
            Trouble trouble);
  ~RedisPush() override;
  RedisPush(const RedisPush&) = delete;
  RedisPush& operator=(const RedisPush&) = delete;

  // One watcher per channel. Connects with the first.
  void Watch(const std::string& channel, LeaseStore::WatchCallback hint);
  // Drops the connection, if there is one, and resolves the name again.
  void Reconnect();
  void Close();

 private:
  struct Watcher {
    LeaseStore::WatchCallback hint;
    bool confirmed = false;
  };

  std::optional<RedisFailure> OnGreeting(size_t index, const proto::Reply& reply) override;
  void OnUp() override;
  void OnReply(const proto::Reply& reply) override;
  void OnDown(const RedisFailure& failure) override;

  void OnTimer();
  void Subscribe(const std::string& channel);
  void OnConfirmed(const std::string& channel);
  void OnMessage(const std::string& channel, const std::string& message);
  void OnRefused(const std::string& error);
  void TellDown();
  void Expect();  // an answer is due within ping_timeout

  const RedisTuning tuning_;
  const std::string server_;
  Trouble trouble_;
  bool in_trouble_ = false;
  RedisLink link_;
  loop::Timer timer_;  // the next PING, or the end of the wait for its answer
  std::map<std::string, Watcher> watchers_;
  base::MonoTime heard_;  // when bytes last came
  base::MonoTime answer_due_ = base::MonoTime::Never();
  bool* gone_ = nullptr;
};

}  // namespace leasehold::store

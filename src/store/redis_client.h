// RedisClient: commands and their answers over one RedisLink: pipelined, each with a deadline of
// its own. While there is no connection commands wait for it, within their deadline; an attempt
// that fails answers all that wait. A command that was sent and not answered in time is answered
// ambiguous and keeps its place, so that a late reply is dropped by position and the replies after
// it stay in step: a slow server costs one call, not everybody's connection. A connection on which
// nothing at all was heard for two time-outs is dead and dropped; everything outstanding on it is
// then ambiguous. Nothing is ever sent twice. Owned by the adapter. Invariant: every Call is
// answered exactly once, later, from the loop, by its deadline (unless the client is destroyed).
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/time.h"
#include "loop/lifetime.h"
#include "loop/loop.h"
#include "loop/timer.h"
#include "proto/resp.h"
#include "store/redis_answer.h"
#include "store/redis_errors.h"
#include "store/redis_link.h"
#include "store/redis_target.h"

namespace leasehold::store {

class RedisClient final : private RedisLinkUser {
 public:
  struct Hooks {
    std::function<std::optional<RedisFailure>(size_t index, const proto::Reply&)> on_greeting;
    std::function<void()> on_up;                       // before what waits is sent
    std::function<void(const RedisFailure&)> on_down;  // after what was outstanding is answered
  };
  using Done = std::function<void(RedisAnswer)>;

  RedisClient(loop::Loop& loop, const RedisTarget& target, const RedisTuning& tuning,
              std::vector<std::string> greeting, Hooks hooks);
  ~RedisClient() override;
  RedisClient(const RedisClient&) = delete;
  RedisClient& operator=(const RedisClient&) = delete;

  void Start() { link_.Start(); }
  // `command` from FormatRespCommand. `timeout` is cut to command_timeout.
  void Call(std::string command, base::Duration timeout, Done done);
  // Closes the connection for good and answers everything outstanding, from inside this call.
  void Close(const std::string& why);
  bool up() const { return link_.up(); }

 private:
  struct Pending {
    std::string command;     // empty once sent
    base::MonoTime sent_at;  // once sent
    base::MonoTime deadline;
    base::Duration timeout;
    Done done;  // empty: forsaken, its late reply is dropped
  };
  using Answers = std::vector<std::pair<Done, RedisAnswer>>;

  std::optional<RedisFailure> OnGreeting(size_t index, const proto::Reply& reply) override;
  void OnUp() override;
  void OnReply(const proto::Reply& reply) override;
  void OnDown(const RedisFailure& failure) override;

  void OnTimer();
  bool LetSocketBeRead(base::MonoTime now);
  bool ForsakeLate(base::MonoTime now, Answers& answers, RedisFailure& down);
  void Transmit(Pending pending);
  void FlushWaiting();
  void TakeAll(std::deque<Pending>& from, const RedisFailure& failure, Answers& into);
  void Arm();
  // Calls them; true if this object was destroyed meanwhile.
  bool Deliver(Answers answers);

  const RedisTarget& target_;
  const RedisTuning tuning_;
  Hooks hooks_;
  RedisLink link_;
  loop::Timer timer_;  // the earliest deadline
  loop::Poster poster_;
  std::deque<Pending> sent_;     // in the order of their replies
  std::deque<Pending> waiting_;  // for a connection
  bool retiring_ = false;        // send no more here: drop when the last answer is in
  base::MonoTime heard_at_;      // when the server last said anything on this connection
  bool late_look_ = false;       // a late timer has let the socket be read once
  RedisFailure last_down_;       // why there is no connection
  bool* gone_ = nullptr;
};

}  // namespace leasehold::store

// RedisStore: the class behind MakeRedisStore; private to the adapter's own sources. It joins the
// parts: RedisClient for commands, RedisPush for hints, the scripts, the policy check. What it is
// and promises stands in redis_store.h. redis_store.cc has the connection's life and the policy,
// redis_calls.cc the reads and compare-and-sets, redis_answer.h what their answers mean.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "loop/lifetime.h"
#include "loop/loop.h"
#include "loop/timer.h"
#include "observe/log.h"
#include "store/lease_store.h"
#include "store/options.h"
#include "store/redis_answer.h"
#include "store/redis_client.h"
#include "store/redis_errors.h"
#include "store/redis_policy.h"
#include "store/redis_push.h"
#include "store/redis_record.h"
#include "store/redis_scripts.h"
#include "store/redis_target.h"

namespace leasehold::store {

class RedisStore final : public LeaseStore {
 public:
  RedisStore(loop::Loop& loop, const RedisOptions& options, RedisTarget target,
             const RedisTuning& tuning, std::string prefix, observe::Log& log);
  ~RedisStore() override { loop::CallGuard::MarkGone(gone_); }

  void Open(TroubleCallback trouble, std::function<void(base::Status)> done) override;
  void Read(std::string_view lease, base::Duration timeout, ReadCallback done) override;
  void CompareAndSet(std::string_view lease, const std::optional<lease::Version>& expected,
                     const lease::Record& record, base::Duration timeout,
                     CasCallback done) override;
  void Watch(std::string_view lease, WatchCallback hint) override;
  void ProbeWrite(std::string_view lease, base::Duration timeout,
                  std::function<void(base::Status)> done) override;
  StoreStats stats() const override;
  std::string Describe() const override { return target_.name; }
  void Close(std::function<void()> done) override;

 private:
  // One Read on its way.
  struct ReadCall {
    RedisNames names;
    base::MonoTime started, deadline;
    ReadCallback done;
  };
  // One CompareAndSet on its way: the script and, with wait_replicas, a WAIT behind it.
  struct CasCall {
    RedisNames names;
    std::vector<std::string> arguments;
    lease::Version version;
    base::MonoTime started, deadline;
    CasCallback done;
    int sending = 0;  // which sending a WAIT belongs to
    // Applied, and waiting for replicas.
    std::optional<CasResult> applied;
    std::optional<RedisAnswer> early_wait;  // the WAIT could not be sent, and said so first
    bool answered = false;
  };
  using ReadCallPtr = std::shared_ptr<ReadCall>;
  using CasCallPtr = std::shared_ptr<CasCall>;

  RedisClient::Hooks MakeHooks();
  std::vector<std::string> MakeGreeting() const;
  std::optional<RedisFailure> OnGreeting(size_t index, const proto::Reply& reply);
  void OnUp();
  void OnDown(const RedisFailure& failure);
  void OnPolicyTimer();
  void OnPolicy(const RedisPolicy& policy);
  void FinishOpen(base::Status status);

  void SendRead(const ReadCallPtr& call, bool by_digest);
  void OnReadAnswer(const ReadCallPtr& call, bool by_digest, const RedisAnswer& answer);
  void FinishRead(const ReadCallPtr& call, ReadResult result);
  void SendCas(const CasCallPtr& call, bool by_digest);
  void OnCasAnswer(const CasCallPtr& call, bool by_digest, const RedisAnswer& answer);
  void OnWaitAnswer(const CasCallPtr& call, int sending, const RedisAnswer& answer);
  void FinishCas(const CasCallPtr& call, CasResult result);

  void SetTrouble(std::string_view kind, bool active, const std::string& sentence);
  void Count(std::string_view operation, std::string_view result, base::MonoTime started);

  loop::Loop& loop_;
  const RedisTarget target_;
  const RedisTuning tuning_;
  const bool allow_eviction_;
  const int wait_replicas_;
  const std::string prefix_;
  observe::Log& log_;
  observe::RateLimit up_lines_;
  observe::RateLimit down_lines_;
  std::string down_logged_;  // the last sentence logged since the last connection
  loop::Poster poster_;
  RedisScript read_script_ = ReadScript();
  RedisScript cas_script_ = CompareAndSetScript();
  loop::Timer policy_timer_;
  TroubleCallback trouble_;
  std::map<std::string, std::string, std::less<>> troubles_;  // active: kind -> sentence
  std::function<void(base::Status)> open_done_;
  bool policy_accepted_ = false;  // once: a later change is trouble, not a stop
  std::string blocked_;           // why CompareAndSet is refused without asking; "" = it is not
  StoreStats stats_;
  bool closed_ = false;
  RedisClient client_;
  RedisPush push_;
  bool* gone_ = nullptr;
};

}  // namespace leasehold::store

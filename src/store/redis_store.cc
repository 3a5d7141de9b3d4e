#include "store/redis_store.h"

#include <utility>
#include <vector>

#include "store/redis_adapter.h"

namespace leasehold::store {
namespace {

using base::Duration;
using base::Error;
using base::ErrorCode;
using base::Status;

// A probe key goes by itself after this; long enough for any server to have really stored it.
constexpr std::string_view kProbeMillis = "1000";
// A flapping server must not fill the log: one line per direction in this time.
constexpr Duration kLogInterval = Duration::Seconds(5);

// Positions of our commands in the greeting.
enum Greeting : size_t { kInfo, kLoadRead, kLoadCas };

std::string Command(const std::vector<std::string_view>& words) {
  return proto::FormatRespCommand(words);
}

}  // namespace

RedisStore::RedisStore(loop::Loop& loop, const RedisOptions& options, RedisTarget target,
                       const RedisTuning& tuning, std::string prefix, observe::Log& log)
    : loop_(loop),
      target_(std::move(target)),
      tuning_(tuning),
      allow_eviction_(options.allow_eviction),
      wait_replicas_(options.wait_replicas),
      prefix_(std::move(prefix)),
      log_(log),
      up_lines_(kLogInterval),
      down_lines_(kLogInterval),
      poster_(loop),
      policy_timer_(loop, [this] { OnPolicyTimer(); }),
      client_(loop, target_, tuning_, MakeGreeting(), MakeHooks()),
      push_(loop, target_, tuning_, [this](const RedisFailure* failure) {
        SetTrouble("push", failure != nullptr,
                   failure == nullptr ? "" : "no hints, leases are polled: " + failure->sentence);
      }) {}

RedisClient::Hooks RedisStore::MakeHooks() {
  return {[this](size_t index, const proto::Reply& reply) { return OnGreeting(index, reply); },
          [this] { OnUp(); }, [this](const RedisFailure& failure) { OnDown(failure); }};
}

std::vector<std::string> RedisStore::MakeGreeting() const {
  return {Command({"INFO", "memory"}), read_script_.LoadCommand(), cas_script_.LoadCommand()};
}

// ---- connection and policy ----

void RedisStore::Open(TroubleCallback trouble, std::function<void(Status)> done) {
  trouble_ = std::move(trouble);
  open_done_ = std::move(done);
  client_.Start();
}

// An INFO that is refused for another reason than a missing permission (no password, a busy or
// starting server) closes the connection: our commands would fare no better.
std::optional<RedisFailure> RedisStore::OnGreeting(size_t index, const proto::Reply& reply) {
  if (index == kLoadRead) read_script_.OnLoaded(reply);
  if (index == kLoadCas) cas_script_.OnLoaded(reply);
  if (!reply.is_error()) {
    if (index == kInfo) OnPolicy(JudgePolicy(target_.name, reply));
    return std::nullopt;
  }
  if (index != kInfo) return std::nullopt;  // no SCRIPT LOAD: EVAL does it
  if (!TellsOfPolicy(reply)) return ClassifyRedisError(target_.name, reply.text());
  OnPolicy(JudgePolicy(target_.name, reply));
  return std::nullopt;
}

// Only the first look blocks writing: a holder must not lose its lease because somebody changes the
// policy later; that is trouble.
void RedisStore::OnPolicy(const RedisPolicy& policy) {
  using Verdict = RedisPolicy::Verdict;
  const bool evicts = policy.verdict == Verdict::kEvicts;
  const bool stop = evicts && !allow_eviction_ && !policy_accepted_;
  blocked_ = stop ? policy.sentence : "";
  if (!stop) policy_accepted_ = true;
  policy_timer_.StartAfter(stop ? tuning_.policy_interval_blocked : tuning_.policy_interval);
  // Told later: we are inside the connection's greeting, and the listener may close the store.
  poster_.Post([this, policy, stop] {
    if (stop && open_done_) return FinishOpen(Error{ErrorCode::kRefused, policy.sentence});
    SetTrouble("eviction", policy.verdict != Verdict::kSafe, policy.sentence);
  });
}

void RedisStore::OnPolicyTimer() {
  if (!client_.up()) return;  // the next connection asks
  client_.Call(Command({"INFO", "memory"}), tuning_.command_timeout, [this](RedisAnswer answer) {
    if (answer.reply && TellsOfPolicy(*answer.reply)) {
      return OnPolicy(JudgePolicy(target_.name, *answer.reply));
    }
    policy_timer_.StartAfter(tuning_.policy_interval);
  });
}

void RedisStore::OnUp() {
  down_logged_.clear();
  uint64_t swallowed = 0;
  if (up_lines_.Allow(loop::Loop::Now(), &swallowed)) {
    log_.Info("store.connected", "connected to " + target_.name,
              {{"tls", target_.tls ? "yes" : "no"}, {"not_logged", swallowed}});
  }
  Count("connect", "ok", loop::Loop::Now());
  poster_.Post([this] {
    if (blocked_.empty()) FinishOpen({});  // else OnPolicy's own task has answered
  });
  poster_.Post([this] { SetTrouble("access", false, ""); });
}

void RedisStore::OnDown(const RedisFailure& failure) {
  uint64_t swallowed = 0;
  // An outage of an hour is one line, unless its reason changes.
  const bool news = failure.sentence != down_logged_;
  if (news && down_lines_.Allow(loop::Loop::Now(), &swallowed)) {
    down_logged_ = failure.sentence;
    log_.Warn("store.disconnected", failure.sentence, {{"not_logged", swallowed}});
  }
  Count("connect", failure.refused() ? "refused" : "ambiguous", loop::Loop::Now());
  loop::CallGuard guard(gone_);
  if (failure.refused()) SetTrouble("access", true, failure.sentence);
  if (guard.gone()) return;
  // Behind the name there may be another server now; hints must come from the same one.
  if (WantsReconnect(failure.code)) push_.Reconnect();
  if (guard.gone()) return;
  FinishOpen({});  // a store that cannot be reached now is waited for
}

void RedisStore::FinishOpen(Status status) {
  if (!open_done_) return;
  const std::function<void(Status)> done = std::exchange(open_done_, nullptr);
  done(std::move(status));
}

void RedisStore::SetTrouble(std::string_view kind, bool active, const std::string& sentence) {
  const auto found = troubles_.find(kind);
  if (!active) {
    if (found == troubles_.end()) return;
    troubles_.erase(found);
  } else {
    if (found != troubles_.end() && found->second == sentence) return;
    troubles_[std::string(kind)] = sentence;
  }
  if (trouble_) trouble_(kind, active, sentence);
}

void RedisStore::Count(std::string_view operation, std::string_view result,
                       base::MonoTime started) {
  ++stats_.operations[{std::string(operation), std::string(result)}];
  if (operation != "connect") stats_.last_latency = loop::Loop::Now() - started;
}

StoreStats RedisStore::stats() const {
  StoreStats stats = stats_;
  stats.connected = client_.up();
  return stats;
}

// ---- the rest ----

void RedisStore::Watch(std::string_view lease, WatchCallback hint) {
  if (closed_) return;
  push_.Watch(NamesOf(prefix_, lease).channel, std::move(hint));
}

// A small string that goes by itself: it needs what a new record needs (memory, a writable server,
// a disk that works, the permission), and never touches the record.
void RedisStore::ProbeWrite(std::string_view lease, Duration timeout,
                            std::function<void(Status)> done) {
  const base::MonoTime started = loop::Loop::Now();
  const std::string command =
      Command({"SET", NamesOf(prefix_, lease).probe, "1", "PX", kProbeMillis});
  client_.Call(command, timeout, [this, started, done = std::move(done)](RedisAnswer answer) {
    if (answer.reply && answer.reply->kind() == proto::Reply::Kind::kStatus) {
      Count("probe", "ok", started);
      return done({});
    }
    const RedisFailure failure = FailureOf(target_.name, answer);
    Count("probe", failure.refused() ? "refused" : "ambiguous", started);
    if (!failure.refused()) return done(Error{ErrorCode::kUnavailable, failure.sentence});
    done(Error{ErrorCode::kRefused,
               (IsStoreFull(failure) ? "store_full: " : "") + failure.sentence});
  });
}

void RedisStore::Close(std::function<void()> done) {
  closed_ = true;
  policy_timer_.Stop();
  push_.Close();
  poster_.Post([this, done = std::move(done)] {
    loop::CallGuard guard(gone_);
    FinishOpen(Error{ErrorCode::kClosed, target_.name + ": the store was closed before it opened"});
    if (guard.gone()) return;
    client_.Close("the store was closed before " + target_.name + " answered");
    if (guard.gone()) return;
    done();
  });
}

std::unique_ptr<LeaseStore> MakeRedisStore(loop::Loop& loop, const RedisOptions& options,
                                           const RedisTuning& tuning, std::string prefix,
                                           observe::Log& log) {
  base::Result<RedisTarget> target = ResolveRedisTarget(options);
  CHECK(target.ok(), "MakeRedisStore needs options that passed ValidateRedisOptions");
  return std::make_unique<RedisStore>(loop, options, std::move(*target), tuning, std::move(prefix),
                                      log);
}

std::unique_ptr<LeaseStore> MakeRedisStore(loop::Loop& loop, const RedisOptions& options,
                                           std::string prefix, observe::Log& log) {
  return MakeRedisStore(loop, options, TuningOf(options), std::move(prefix), log);
}

}  // namespace leasehold::store

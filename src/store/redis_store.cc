#include "store/redis_store.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/text.h"
#include "loop/lifetime.h"
#include "loop/timer.h"
#include "store/redis_client.h"
#include "store/redis_policy.h"
#include "store/redis_push.h"
#include "store/redis_record.h"
#include "store/redis_scripts.h"

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

bool IsNoScript(const RedisAnswer& answer) {
  return answer.reply && answer.reply->is_error() &&
         RedisErrorCode(answer.reply->text()) == "NOSCRIPT";
}

ReadResult ReadFailed(const RedisFailure& failure) {
  ReadResult result;
  result.outcome =
      failure.refused() ? ReadResult::Outcome::kRefused : ReadResult::Outcome::kAmbiguous;
  result.error = failure.sentence;
  return result;
}

CasResult CasFailed(const RedisFailure& failure) {
  CasResult result;
  result.outcome =
      failure.refused() ? CasResult::Outcome::kRefused : CasResult::Outcome::kAmbiguous;
  result.error = failure.sentence;
  return result;
}

std::string_view Word(ReadResult::Outcome outcome) {
  if (outcome == ReadResult::Outcome::kAmbiguous) return "ambiguous";
  return outcome == ReadResult::Outcome::kRefused ? "refused" : "ok";
}

std::string_view Word(CasResult::Outcome outcome) {
  switch (outcome) {
    case CasResult::Outcome::kApplied: return "ok";
    case CasResult::Outcome::kConflict: return "conflict";
    case CasResult::Outcome::kAmbiguous: return "ambiguous";
    case CasResult::Outcome::kRefused: return "refused";
  }
  return "ambiguous";
}

bool IsFull(const RedisFailure& failure) {
  return failure.code == "OOM" || failure.code == "MISCONF";
}

class RedisStore final : public LeaseStore {
 public:
  RedisStore(loop::Loop& loop, const RedisOptions& options, RedisTarget target,
             const RedisTuning& tuning, std::string prefix, observe::Log& log);
  ~RedisStore() override { loop::CallGuard::MarkGone(gone_); }

  void Open(TroubleCallback trouble, std::function<void(Status)> done) override;
  void Read(std::string_view lease, Duration timeout, ReadCallback done) override;
  void CompareAndSet(std::string_view lease, const std::optional<lease::Version>& expected,
                     const lease::Record& record, Duration timeout, CasCallback done) override;
  void Watch(std::string_view lease, WatchCallback hint) override;
  void ProbeWrite(std::string_view lease, Duration timeout,
                  std::function<void(Status)> done) override;
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
    int sending = 0;       // which sending a WAIT belongs to
    bool applied = false;  // and waiting for replicas
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
  void FinishOpen(Status status);

  void SendRead(const ReadCallPtr& call, bool by_digest);
  void OnReadAnswer(const ReadCallPtr& call, bool by_digest, const RedisAnswer& answer);
  void FinishRead(const ReadCallPtr& call, ReadResult result);
  ReadResult JudgeRead(const ReadCall& call, const RedisAnswer& answer) const;
  void SendCas(const CasCallPtr& call, bool by_digest);
  void OnCasAnswer(const CasCallPtr& call, bool by_digest, const RedisAnswer& answer);
  void OnWaitAnswer(const CasCallPtr& call, int sending, const RedisAnswer& answer);
  void FinishCas(const CasCallPtr& call, CasResult result);
  CasResult JudgeCas(const CasCall& call, const RedisAnswer& answer) const;

  void SetTrouble(std::string_view kind, bool active, const std::string& sentence);
  void Count(std::string_view operation, std::string_view result, base::MonoTime started);
  RedisFailure FailureOf(const RedisAnswer& answer) const;

  loop::Loop& loop_;
  const RedisTarget target_;
  const RedisTuning tuning_;
  const bool allow_eviction_;
  const int wait_replicas_;
  const std::string prefix_;
  observe::Log& log_;
  observe::RateLimit up_lines_{kLogInterval};
  observe::RateLimit down_lines_{kLogInterval};
  loop::Poster poster_;
  RedisScript read_script_ = ReadScript();
  RedisScript cas_script_ = CompareAndSetScript();
  loop::Timer policy_timer_;
  TroubleCallback trouble_;
  std::map<std::string, std::string, std::less<>> troubles_;  // active: kind -> sentence
  std::function<void(Status)> open_done_;
  bool policy_accepted_ = false;  // once: a later change is trouble, not a stop
  std::string blocked_;           // why CompareAndSet is refused without asking; "" = it is not
  StoreStats stats_;
  bool closed_ = false;
  RedisClient client_;
  RedisPush push_;
  bool* gone_ = nullptr;
};

RedisStore::RedisStore(loop::Loop& loop, const RedisOptions& options, RedisTarget target,
                       const RedisTuning& tuning, std::string prefix, observe::Log& log)
    : loop_(loop),
      target_(std::move(target)),
      tuning_(tuning),
      allow_eviction_(options.allow_eviction),
      wait_replicas_(options.wait_replicas),
      prefix_(std::move(prefix)),
      log_(log),
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
  if (down_lines_.Allow(loop::Loop::Now(), &swallowed)) {
    log_.Warn("store.disconnected", failure.sentence, {{"not_logged", swallowed}});
  }
  Count("connect", failure.refused() ? "refused" : "ambiguous", loop::Loop::Now());
  loop::CallGuard guard(gone_);
  if (failure.refused()) SetTrouble("access", true, failure.sentence);
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

RedisFailure RedisStore::FailureOf(const RedisAnswer& answer) const {
  if (!answer.reply) return answer.failure;
  if (answer.reply->is_error()) return ClassifyRedisError(target_.name, answer.reply->text());
  return AmbiguousFailure(target_.name +
                          " answers something unexpected: " + answer.reply->Describe());
}

// ---- read ----

void RedisStore::Read(std::string_view lease, Duration timeout, ReadCallback done) {
  const base::MonoTime now = loop::Loop::Now();
  SendRead(std::make_shared<ReadCall>(
               ReadCall{NamesOf(prefix_, lease), now, now + timeout, std::move(done)}),
           true);
}

void RedisStore::SendRead(const ReadCallPtr& call, bool by_digest) {
  client_.Call(
      read_script_.RunCommand(by_digest, call->names.key, {}), call->deadline - loop::Loop::Now(),
      [this, call, by_digest](RedisAnswer answer) { OnReadAnswer(call, by_digest, answer); });
}

void RedisStore::OnReadAnswer(const ReadCallPtr& call, bool by_digest, const RedisAnswer& answer) {
  if (by_digest && IsNoScript(answer)) return SendRead(call, false);
  FinishRead(call, JudgeRead(*call, answer));
}

ReadResult RedisStore::JudgeRead(const ReadCall& call, const RedisAnswer& answer) const {
  if (!answer.reply || !answer.reply->is_array()) return ReadFailed(FailureOf(answer));
  ReadResult result;
  if (answer.reply->elements().empty()) {
    result.outcome = ReadResult::Outcome::kAbsent;
    return result;
  }
  base::Result<lease::Record> record = DecodeRecord(call.names.key, *answer.reply);
  if (!record) {
    result.outcome = ReadResult::Outcome::kRefused;
    result.error = record.error().message;
    return result;
  }
  result.outcome = ReadResult::Outcome::kRecord;
  result.version = lease::MakeVersion(*record);
  result.record = std::move(*record);
  return result;
}

void RedisStore::FinishRead(const ReadCallPtr& call, ReadResult result) {
  Count("read", Word(result.outcome), call->started);
  call->done(std::move(result));
}

// ---- compare and set ----

void RedisStore::CompareAndSet(std::string_view lease,
                               const std::optional<lease::Version>& expected,
                               const lease::Record& record, Duration timeout, CasCallback done) {
  const base::MonoTime now = loop::Loop::Now();
  auto call = std::make_shared<CasCall>();
  call->names = NamesOf(prefix_, lease);
  call->version = lease::MakeVersion(record);
  call->started = now;
  call->deadline = now + base::Min(timeout, tuning_.command_timeout);
  call->done = std::move(done);
  call->arguments = {expected.value_or(""), call->names.channel};
  for (auto& [name, value] : EncodeRecord(record)) {
    call->arguments.push_back(std::move(name));
    call->arguments.push_back(std::move(value));
  }
  if (!blocked_.empty()) {
    poster_.Post([this, call, why = blocked_] {
      FinishCas(call, CasFailed({RedisFailure::Kind::kRefused, "", why}));
    });
    return;
  }
  SendCas(call, true);
}

void RedisStore::SendCas(const CasCallPtr& call, bool by_digest) {
  const Duration left = call->deadline - loop::Loop::Now();
  const int sending = ++call->sending;
  client_.Call(
      cas_script_.RunCommand(by_digest, call->names.key, call->arguments), left,
      [this, call, by_digest](RedisAnswer answer) { OnCasAnswer(call, by_digest, answer); });
  if (wait_replicas_ == 0) return;
  // Half of what is left: the answer must be here before the deadline, and other leases' commands
  // stand behind it. Zero would wait for ever.
  const std::string millis = std::to_string(std::max<int64_t>(1, left.millis() / 2));
  client_.Call(Command({"WAIT", std::to_string(wait_replicas_), millis}), left,
               [this, call, sending](RedisAnswer answer) { OnWaitAnswer(call, sending, answer); });
}

void RedisStore::OnCasAnswer(const CasCallPtr& call, bool by_digest, const RedisAnswer& answer) {
  if (by_digest && IsNoScript(answer)) return SendCas(call, false);
  CasResult result = JudgeCas(*call, answer);
  if (result.outcome == CasResult::Outcome::kApplied && wait_replicas_ > 0) {
    call->applied = true;
    return;
  }
  FinishCas(call, std::move(result));
}

void RedisStore::OnWaitAnswer(const CasCallPtr& call, int sending, const RedisAnswer& answer) {
  if (call->answered || !call->applied || sending != call->sending) return;
  if (!answer.reply || answer.reply->kind() != proto::Reply::Kind::kInteger) {
    RedisFailure failure = FailureOf(answer);
    failure.kind = RedisFailure::Kind::kAmbiguous;  // the write is there, on the primary at least
    failure.sentence = "the write's replicas are not known: " + failure.sentence;
    return FinishCas(call, CasFailed(failure));
  }
  if (answer.reply->integer() < wait_replicas_) {
    return FinishCas(call, CasFailed(AmbiguousFailure(target_.name + " has the write on " +
                                                      std::to_string(answer.reply->integer()) +
                                                      " replicas, and "
                                                      "redis.wait_replicas = " +
                                                      std::to_string(wait_replicas_))));
  }
  CasResult result;
  result.outcome = CasResult::Outcome::kApplied;
  result.version = call->version;
  FinishCas(call, std::move(result));
}

CasResult RedisStore::JudgeCas(const CasCall& call, const RedisAnswer& answer) const {
  const bool ours = answer.reply && answer.reply->is_array() && !answer.reply->elements().empty();
  const std::string word = ours ? answer.reply->elements()[0].text() : "";
  CasResult result;
  if (word == "applied") {
    result.outcome = CasResult::Outcome::kApplied;
    result.version = call.version;
    return result;
  }
  if (word != "conflict" || answer.reply->elements().size() != 2) {
    RedisFailure failure = FailureOf(answer);
    if (IsFull(failure)) failure.sentence = "store_full: " + failure.sentence;
    return CasFailed(failure);
  }
  const proto::Reply& hash = answer.reply->elements()[1];
  result.outcome = CasResult::Outcome::kConflict;
  result.absent = hash.elements().empty();
  if (result.absent) return result;
  base::Result<lease::Record> record = DecodeRecord(call.names.key, hash);
  if (!record) return CasFailed({RedisFailure::Kind::kRefused, "", record.error().message});
  result.version = lease::MakeVersion(*record);
  result.record = std::move(*record);
  return result;
}

void RedisStore::FinishCas(const CasCallPtr& call, CasResult result) {
  if (std::exchange(call->answered, true)) return;
  Count("cas", Word(result.outcome), call->started);
  call->done(std::move(result));
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
    const RedisFailure failure = FailureOf(answer);
    Count("probe", failure.refused() ? "refused" : "ambiguous", started);
    if (!failure.refused()) return done(Error{ErrorCode::kUnavailable, failure.sentence});
    done(Error{ErrorCode::kRefused, (IsFull(failure) ? "store_full: " : "") + failure.sentence});
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

}  // namespace

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

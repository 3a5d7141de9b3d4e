// Reads and compare-and-sets of the redis adapter: sent, and answered by what redis_answer.h
// judges.
#include <algorithm>
#include <utility>

#include "store/redis_adapter.h"

namespace leasehold::store {
namespace {

using base::Duration;

std::string WaitCommand(int replicas, const std::string& millis) {
  const std::string count = std::to_string(replicas);
  return proto::FormatRespCommand(std::vector<std::string_view>{"WAIT", count, millis});
}

}  // namespace

// ---- read ----

void RedisStore::Read(std::string_view lease, Duration timeout, ReadCallback done) {
  const base::MonoTime now = loop::Loop::Now();
  SendRead(std::make_shared<ReadCall>(
               ReadCall{NamesOf(prefix_, lease), now, now + timeout, std::move(done)}),
           true);
}

void RedisStore::SendRead(const ReadCallPtr& call, bool by_digest) {
  client_.Call(read_script_.RunCommand(by_digest, call->names.key, {}),
               call->deadline - loop::Loop::Now(),
               [this, call, by_digest](const RedisAnswer& answer) {
                 OnReadAnswer(call, by_digest, answer);
               });
}

void RedisStore::OnReadAnswer(const ReadCallPtr& call, bool by_digest, const RedisAnswer& answer) {
  if (by_digest && IsNoScript(answer)) return SendRead(call, false);
  FinishRead(call, JudgeRead(target_.name, call->names.key, answer));
}

void RedisStore::FinishRead(const ReadCallPtr& call, ReadResult result) {
  Count("read", ResultName(result.outcome), call->started);
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
  call->early_wait.reset();
  client_.Call(
      cas_script_.RunCommand(by_digest, call->names.key, call->arguments), left,
      [this, call, by_digest](const RedisAnswer& answer) { OnCasAnswer(call, by_digest, answer); });
  if (wait_replicas_ == 0) return;
  // Half of what is left: the answer must be here before the deadline, and other leases' commands
  // stand behind it. Zero would wait for ever.
  const std::string millis = std::to_string(std::max<int64_t>(1, left.millis() / 2));
  client_.Call(
      WaitCommand(wait_replicas_, millis), left,
      [this, call, sending](const RedisAnswer& answer) { OnWaitAnswer(call, sending, answer); });
}

void RedisStore::OnCasAnswer(const CasCallPtr& call, bool by_digest, const RedisAnswer& answer) {
  if (by_digest && IsNoScript(answer)) return SendCas(call, false);
  CasResult result = JudgeCas(target_.name, call->names.key, call->version, answer);
  if (result.outcome == CasResult::Outcome::kApplied && wait_replicas_ > 0) {
    call->applied = std::move(result);
    if (call->early_wait) OnWaitAnswer(call, call->sending, RedisAnswer(*call->early_wait));
    return;
  }
  FinishCas(call, std::move(result));
}

void RedisStore::OnWaitAnswer(const CasCallPtr& call, int sending, const RedisAnswer& answer) {
  if (call->answered || sending != call->sending) return;
  if (!call->applied) {
    call->early_wait = answer;
    return;
  }
  FinishCas(call, JudgeReplicas(target_.name, wait_replicas_, std::move(*call->applied), answer));
}

void RedisStore::FinishCas(const CasCallPtr& call, CasResult result) {
  if (std::exchange(call->answered, true)) return;
  Count("cas", ResultName(result.outcome), call->started);
  call->done(std::move(result));
}

}  // namespace leasehold::store

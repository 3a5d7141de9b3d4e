#include "store/redis_answer.h"

#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "base/text.h"
#include "store/redis_record.h"

namespace leasehold::store {
namespace {

using proto::Reply;

// {"applied", clock} and {"conflict", fields and values, clock} (redis_scripts.cc). Nothing else
// counts: a yes that is taken for more than it says would be a permit without a lease.
bool IsApplied(const Reply& reply) {
  const std::vector<Reply>& parts = reply.elements();
  return parts.size() == 2 && parts[0].is_string() && parts[0].text() == "applied" &&
         parts[1].is_string();
}

bool IsConflict(const Reply& reply) {
  const std::vector<Reply>& parts = reply.elements();
  return parts.size() == 3 && parts[0].is_string() && parts[0].text() == "conflict" &&
         parts[1].is_array() && parts[2].is_string();
}

// The last element of an answer to a compare-and-set; nothing where the user may not ask the time.
std::optional<int64_t> StoreClock(const Reply& reply) {
  const base::Result<uint64_t> ms = base::ParseUint64(reply.elements().back().text());
  if (!ms || *ms > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) return std::nullopt;
  return static_cast<int64_t>(*ms);
}

ReadResult ReadFailed(const RedisFailure& failure) {
  ReadResult result;
  result.outcome =
      failure.refused() ? ReadResult::Outcome::kRefused : ReadResult::Outcome::kAmbiguous;
  result.error = failure.sentence;
  return result;
}

CasResult Conflict(std::string_view key, const Reply& reply) {
  CasResult result;
  result.outcome = CasResult::Outcome::kConflict;
  result.store_unix_ms = StoreClock(reply);
  const Reply& hash = reply.elements()[1];
  result.absent = hash.elements().empty();
  if (result.absent) return result;
  base::Result<lease::Record> record = DecodeRecord(key, hash);
  if (!record) return CasFailed({RedisFailure::Kind::kRefused, "", record.error().message});
  result.version = lease::MakeVersion(*record);
  result.record = std::move(*record);
  return result;
}

}  // namespace

bool IsNoScript(const RedisAnswer& answer) {
  return answer.reply && answer.reply->is_error() &&
         RedisErrorCode(answer.reply->text()) == "NOSCRIPT";
}

bool IsStoreFull(const RedisFailure& failure) {
  return failure.code == "OOM" || failure.code == "MISCONF";
}

RedisFailure FailureOf(std::string_view server, const RedisAnswer& answer) {
  if (!answer.reply) return answer.failure;
  if (answer.reply->is_error()) return ClassifyRedisError(server, answer.reply->text());
  return AmbiguousFailure(std::string(server) +
                          " answers something unexpected: " + answer.reply->Describe());
}

CasResult CasFailed(const RedisFailure& failure) {
  CasResult result;
  result.outcome =
      failure.refused() ? CasResult::Outcome::kRefused : CasResult::Outcome::kAmbiguous;
  result.error = failure.sentence;
  return result;
}

ReadResult JudgeRead(std::string_view server, std::string_view key, const RedisAnswer& answer) {
  if (!answer.reply || !answer.reply->is_array()) return ReadFailed(FailureOf(server, answer));
  ReadResult result;
  if (answer.reply->elements().empty()) {
    result.outcome = ReadResult::Outcome::kAbsent;
    return result;
  }
  base::Result<lease::Record> record = DecodeRecord(key, *answer.reply);
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

CasResult JudgeCas(std::string_view server, std::string_view key, const lease::Version& version,
                   const RedisAnswer& answer) {
  if (answer.reply && IsConflict(*answer.reply)) return Conflict(key, *answer.reply);
  if (!answer.reply || !IsApplied(*answer.reply)) {
    RedisFailure failure = FailureOf(server, answer);
    if (IsStoreFull(failure)) failure.sentence = "store_full: " + failure.sentence;
    return CasFailed(failure);
  }
  CasResult result;
  result.outcome = CasResult::Outcome::kApplied;
  result.version = version;
  result.store_unix_ms = StoreClock(*answer.reply);
  return result;
}

CasResult JudgeReplicas(std::string_view server, int wanted, CasResult applied,
                        const RedisAnswer& answer) {
  if (!answer.reply || answer.reply->kind() != Reply::Kind::kInteger) {
    RedisFailure failure = FailureOf(server, answer);
    failure.kind = RedisFailure::Kind::kAmbiguous;  // the write is there, on the primary at least
    failure.sentence = "the write's replicas are not known: " + failure.sentence;
    return CasFailed(failure);
  }
  if (answer.reply->integer() >= wanted) return applied;
  return CasFailed(AmbiguousFailure(
      std::string(server) + " has the write on " + std::to_string(answer.reply->integer()) +
      " replicas, and redis.wait_replicas = " + std::to_string(wanted)));
}

}  // namespace leasehold::store

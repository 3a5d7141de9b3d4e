// Reads, compare-and-sets and probes of the dynamodb adapter: sent, and answered by what
// dynamodb_answer.h judges.
#include <utility>

#include "store/dynamodb_adapter.h"
#include "store/dynamodb_record.h"
#include "store/dynamodb_requests.h"

namespace leasehold::store {
namespace {

using base::Duration;
using Cause = DynamoDbFailure::Cause;

bool Throttled(const DynamoDbAnswer& answer) {
  return answer.failure && answer.failure->cause == Cause::kThrottled;
}

}  // namespace

DynamoDbItem DynamoDbStore::ItemOf(std::string_view lease) const {
  return {DynamoDbKeyOf(prefix_, lease), std::string(lease)};
}

void DynamoDbStore::Read(std::string_view lease, Duration timeout, ReadCallback done) {
  const base::MonoTime started = loop::Loop::Now();
  const DynamoDbItem item = ItemOf(lease);
  Send(kGetItem, GetItemBody(place_.table, item.key), timeout,
       [this, item, started, done = std::move(done)](const DynamoDbAnswer& answer) {
         ReadResult result = JudgeRead(place_, item, answer);
         Count("read", Throttled(answer) ? "throttled" : ResultName(result.outcome), started);
         done(std::move(result));
       });
}

void DynamoDbStore::CompareAndSet(std::string_view lease,
                                  const std::optional<lease::Version>& expected,
                                  const lease::Record& record, Duration timeout, CasCallback done) {
  const base::MonoTime now = loop::Loop::Now();
  auto call = std::make_shared<CasCall>();
  call->item = ItemOf(lease);
  call->expected_absent = !expected;
  call->record = record;
  call->started = now;
  call->deadline = now + base::Min(timeout, options_.command_timeout);
  call->done = std::move(done);
  const auto answered = [this, call](const DynamoDbAnswer& answer) { OnCasAnswer(call, answer); };
  base::Result<std::string> body =
      CompareAndSetBody(place_.table, call->item.key, expected, record);
  if (!body) return AnswerUnsent(NotSent(body.error().message, true), answered);
  Send(kUpdateItem, std::move(*body), timeout, answered);
}

void DynamoDbStore::OnCasAnswer(const CasCallPtr& call, const DynamoDbAnswer& answer) {
  if (std::optional<CasResult> result = JudgeCas(place_, call->item, call->record, answer)) {
    return FinishCas(call, std::move(*result), answer);
  }
  const base::MonoTime now = loop::Loop::Now();
  Send(kGetItem, GetItemBody(place_.table, call->item.key), call->deadline - now,
       [this, call, now](const DynamoDbAnswer& shown) {
         Count("look", shown.failure ? "failed" : "ok", now);
         FinishCas(call, JudgeLook(place_, call->item, call->expected_absent, call->record, shown),
                   shown);
       });
}

void DynamoDbStore::FinishCas(const CasCallPtr& call, CasResult result,
                              const DynamoDbAnswer& answer) {
  Count("cas", Throttled(answer) ? "throttled" : ResultName(result.outcome), call->started);
  call->done(std::move(result));
}

void DynamoDbStore::ProbeWrite(std::string_view lease, Duration timeout,
                               std::function<void(base::Status)> done) {
  const base::MonoTime started = loop::Loop::Now();
  Send(kUpdateItem, ProbeBody(place_.table, ItemOf(lease).key), timeout,
       [this, started, done = std::move(done)](const DynamoDbAnswer& answer) {
         if (answer.condition_failed()) {
           Count("probe", "ok", started);
           return done({});
         }
         const DynamoDbFailure failure =
             answer.failure ? *answer.failure
                            : StrangeDynamoDbAnswer(place_, kUpdateItem,
                                                    "yes, where the condition cannot hold,");
         Count("probe", failure.refused ? "refused" : "ambiguous", started);
         done(base::Error{
             failure.refused ? base::ErrorCode::kRefused : base::ErrorCode::kUnavailable,
             failure.sentence});
       });
}

}  // namespace leasehold::store

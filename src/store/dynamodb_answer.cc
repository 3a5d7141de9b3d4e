#include "store/dynamodb_answer.h"

#include <utility>

#include "base/text.h"
#include "store/dynamodb_record.h"
#include "store/dynamodb_requests.h"

namespace leasehold::store {
namespace {

using proto::Json;

constexpr int kOk = 200;

// What the attempt's own item must show of it. No two attempts share it (lease::MakeVersion).
bool ShowsAttempt(const Json& attributes, const lease::Record& record) {
  const auto is = [&attributes](std::string_view name, const std::string& value) {
    const std::optional<Json> typed = attributes.Find(name);
    return typed && typed->String("S") == value;
  };
  return is("process_id", record.process_id) && is("token", std::to_string(record.token)) &&
         is("beat", std::to_string(record.beat));
}

CasResult Failed(bool refused, std::string sentence) {
  CasResult result;
  result.outcome = refused ? CasResult::Outcome::kRefused : CasResult::Outcome::kAmbiguous;
  result.error = std::move(sentence);
  return result;
}

// The write did not take on `found`; or it did, and this is the answer to a copy of the request
// that something on the way sent again: then `found` is the attempt itself, and it has happened.
CasResult DidNotTake(const lease::Record& record, lease::Record found) {
  CasResult result;
  result.version = lease::MakeVersion(found);
  if (result.version == lease::MakeVersion(record)) {
    result.outcome = CasResult::Outcome::kApplied;
    return result;
  }
  if (found.format > lease::kRecordFormat) {
    return Failed(true, "the lease's item has format " + std::to_string(found.format) +
                            " and this program knows " + std::to_string(lease::kRecordFormat) +
                            "; it is left alone: run the newer program");
  }
  result.outcome = CasResult::Outcome::kConflict;
  result.record = std::move(found);
  return result;
}

DynamoDbAnswer Strange(const DynamoDbPlace& place, std::string_view operation,
                       const std::string& what) {
  DynamoDbAnswer answer;
  answer.failure = StrangeDynamoDbAnswer(place, operation, what);
  return answer;
}

DynamoDbAnswer OfError(const DynamoDbPlace& place, std::string_view operation,
                       const aws::Response& response) {
  DynamoDbAnswer answer;
  answer.failure = ClassifyDynamoDbError(place, operation, *response.error);
  if (!answer.condition_failed()) return answer;
  if (const base::Result<Json> body = Json::Parse(response.body)) {
    std::optional<Json> item = body->Find("Item");
    if (item && item->is_object() && item->size() > 0) answer.shown = std::move(item);
  }
  return answer;
}

DynamoDbAnswer OfResponse(const DynamoDbPlace& place, std::string_view operation,
                          const aws::Response& response) {
  if (response.error) return OfError(place, operation, response);
  if (response.status != kOk) {
    return Strange(place, operation, "HTTP " + std::to_string(response.status));
  }
  base::Result<Json> body = Json::Parse(response.body);
  if (!body || !body->is_object()) {
    return Strange(place, operation, "\"" + base::Printable(response.body) + "\"");
  }
  DynamoDbAnswer answer;
  answer.body = std::move(*body);
  return answer;
}

}  // namespace

DynamoDbAnswer TakeApart(const DynamoDbPlace& place, std::string_view operation,
                         const base::Result<aws::Response>& response) {
  DynamoDbAnswer answer;
  if (!response) {
    answer.failure = NoDynamoDbAnswer(place, operation, response.error());
    return answer;
  }
  answer = OfResponse(place, operation, *response);
  answer.store_unix_ms = response->server_unix_ms;
  return answer;
}

DynamoDbAnswer NotSent(std::string why, bool refused) {
  DynamoDbAnswer answer;
  answer.failure = {refused ? DynamoDbFailure::Cause::kInvalid : DynamoDbFailure::Cause::kNoAnswer,
                    refused, std::move(why)};
  return answer;
}

ReadResult JudgeRead(const DynamoDbPlace& place, const DynamoDbItem& item,
                     const DynamoDbAnswer& answer) {
  ReadResult result;
  result.store_unix_ms = answer.store_unix_ms;
  if (answer.failure) {
    // A read has no condition that could fail: such an answer says nothing.
    const bool refused = answer.failure->refused && !answer.condition_failed();
    result.outcome = refused ? ReadResult::Outcome::kRefused : ReadResult::Outcome::kAmbiguous;
    result.error = answer.failure->sentence;
    return result;
  }
  const std::optional<Json> shown = answer.body.Find("Item");
  if (!shown) {
    result.outcome = ReadResult::Outcome::kAbsent;
    return result;
  }
  base::Result<lease::Record> record = DecodeItem(item.key, item.lease, *shown);
  if (!record) {
    result.outcome = ReadResult::Outcome::kRefused;
    result.error = record.error().message + " (" + place.ToString() + ")";
    return result;
  }
  result.outcome = ReadResult::Outcome::kRecord;
  result.version = lease::MakeVersion(*record);
  result.record = std::move(*record);
  return result;
}

std::optional<CasResult> JudgeCas(const DynamoDbPlace& place, const DynamoDbItem& item,
                                  const lease::Record& record, const DynamoDbAnswer& answer) {
  CasResult result;
  if (answer.condition_failed()) {
    if (!answer.shown) return std::nullopt;
    base::Result<lease::Record> found = DecodeItem(item.key, item.lease, *answer.shown);
    result = found ? DidNotTake(record, std::move(*found))
                   : Failed(true, found.error().message + " (" + place.ToString() + ")");
  } else if (answer.failure) {
    result = Failed(answer.failure->refused, answer.failure->sentence);
  } else if (ShowsAttempt(answer.body.Find("Attributes").value_or(Json()), record)) {
    result.outcome = CasResult::Outcome::kApplied;
    result.version = lease::MakeVersion(record);
  } else {
    result = Failed(
        false, StrangeDynamoDbAnswer(place, kUpdateItem, "a yes that does not show what it wrote")
                   .sentence);
  }
  result.store_unix_ms = answer.store_unix_ms;
  return result;
}

CasResult JudgeLook(const DynamoDbPlace& place, const DynamoDbItem& item, bool expected_absent,
                    const lease::Record& record, const DynamoDbAnswer& answer) {
  // Neither a conflict nor refused, though this request did not take: of one that was doubled on
  // the way the other may have.
  const auto unknown = [&place](const std::string& why) {
    return Failed(false, place.ToString() +
                             ": the conditional write did not take, but what is there instead is "
                             "not known: " +
                             why);
  };
  CasResult result;
  ReadResult look = JudgeRead(place, item, answer);
  if (answer.failure) {
    result = unknown(look.error);
  } else if (look.outcome == ReadResult::Outcome::kRecord) {
    result = DidNotTake(record, std::move(look.record));
  } else if (look.outcome == ReadResult::Outcome::kRefused) {
    result = Failed(true, look.error);  // no record, and it is left alone
  } else if (expected_absent) {
    result = unknown("an item was in the way, and is gone again");
  } else {
    result.outcome = CasResult::Outcome::kConflict;
    result.absent = true;
  }
  result.store_unix_ms = answer.store_unix_ms;
  return result;
}

}  // namespace leasehold::store

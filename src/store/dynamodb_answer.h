// What came back for one call to DynamoDB, and what it means for a lease. Pure. Invariants: every
// answer has an outcome; applied is only what shows the very attempt that was sent; a conflict only
// what shows what is there instead; what nobody has seen before is ambiguous.
//
// DynamoDB's x-amz-crc32 is not looked at: TLS guards what goes to it, a body cut short is no JSON,
// and a yes has to bear the attempt's own process id, token and beat anyway.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "aws/service.h"
#include "lease/record.h"
#include "proto/json.h"
#include "store/dynamodb_errors.h"
#include "store/lease_store.h"

namespace leasehold::store {

// An answer taken apart: the body of a 200, or the failure.
struct DynamoDbAnswer {
  proto::Json body;                        // of a 200: an object
  std::optional<DynamoDbFailure> failure;  // else
  std::optional<proto::Json> shown;        // the item that a failed condition met, where told
  // The service's clock. It tells whole seconds, so that it is up to one behind: lost time between
  // 2 and 3 s may go unnoticed by this witness, and a first answer that took more than a second may
  // raise one alarm too much, which costs one renewal (app/lost_time.h).
  std::optional<int64_t> store_unix_ms;

  bool condition_failed() const {
    return failure && failure->cause == DynamoDbFailure::Cause::kConditionFailed;
  }
};
DynamoDbAnswer TakeApart(const DynamoDbPlace& place, std::string_view operation,
                         const base::Result<aws::Response>& response);
// The store was closed, no time was left, the record cannot be written: nothing was sent.
DynamoDbAnswer NotSent(std::string why, bool refused);

// One call of a lease: what was asked for.
struct DynamoDbItem {
  std::string key;
  std::string lease;
};
// The answer to GetItem.
ReadResult JudgeRead(const DynamoDbPlace& place, const DynamoDbItem& item,
                     const DynamoDbAnswer& answer);
// The answer to the conditional write of `record`; nullopt: its condition failed, and the server
// did not show on what. It has to be looked at.
std::optional<CasResult> JudgeCas(const DynamoDbPlace& place, const DynamoDbItem& item,
                                  const lease::Record& record, const DynamoDbAnswer& answer);
// The answer to the GetItem after such a condition. It is of a later instant than the condition's:
// where it contradicts it, or says nothing, the write is ambiguous.
CasResult JudgeLook(const DynamoDbPlace& place, const DynamoDbItem& item, bool expected_absent,
                    const lease::Record& record, const DynamoDbAnswer& answer);

}  // namespace leasehold::store

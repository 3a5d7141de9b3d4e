// DynamoDbFailure: why a call to DynamoDB got no useful answer, classified as DESIGN 2.1 wants it:
// refused (it did not happen, and repeats until repaired) only for what is known to be so, by its
// own code; everything else, unknown codes and texts included, is ambiguous. One table, pure; no
// call is made here. Invariant: every failure has a sentence that names the table, where it is and
// what to do, and bears no secret.
#pragma once

#include <string>
#include <string_view>

#include "aws/api_error.h"
#include "aws/endpoint.h"
#include "base/result.h"

namespace leasehold::store {

// Which table, for messages.
struct DynamoDbPlace {
  std::string table;
  std::string region;
  std::string endpoint;  // "https://dynamodb.eu-central-1.amazonaws.com"

  static DynamoDbPlace Of(std::string table, const aws::Endpoint& at);
  // "dynamodb table \"leasehold\" in eu-central-1 at https://..."
  std::string ToString() const;
};

struct DynamoDbFailure {
  enum class Cause {
    kUnknown,          // nobody has seen it before, or a 5xx
    kNoAnswer,         // no connection, no answer in time, not HTTP
    kThrottled,        // more than the table or the account may
    kConditionFailed,  // the conditional write did not take: not a trouble
    kPassing,          // something under way at the store
    kClockSkew,        // signed for another time; corrected for the next call
    kCredentials,      // none, expired, unknown or wrong
    kDenied,           // who we are lacks a permission
    kNoTable,
    kTableExists,  // of CreateTable: somebody else was sooner
    kWrongTable,   // its key is not ours
    kInvalid,      // DynamoDB does not take the request as it is
  };
  Cause cause = Cause::kUnknown;
  bool refused = false;  // did not happen, and repeats until repaired
  std::string sentence;
};

// `operation`: "GetItem". `error`: of an answer with a status of 400 and above.
DynamoDbFailure ClassifyDynamoDbError(const DynamoDbPlace& place, std::string_view operation,
                                      const aws::ApiError& error);
// No answer came.
DynamoDbFailure NoDynamoDbAnswer(const DynamoDbPlace& place, std::string_view operation,
                                 const base::Error& error);
// One that says nothing: a status below 400 that is not 200, a body that is none of DynamoDB's.
DynamoDbFailure StrangeDynamoDbAnswer(const DynamoDbPlace& place, std::string_view operation,
                                      const std::string& what);

}  // namespace leasehold::store

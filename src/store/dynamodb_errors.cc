#include "store/dynamodb_errors.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/text.h"

namespace leasehold::store {
namespace {

using Cause = DynamoDbFailure::Cause;

struct KnownError {
  std::string_view code;
  std::string_view text;  // part of the message; "": any. The first row that fits counts
  Cause cause;
  bool refused;
  std::string_view remedy;
};

constexpr std::string_view kRaise =
    "the table takes no more now; make it on-demand, or raise its capacity or limit";
constexpr std::string_view kSlower =
    "the account asks too often; this passes, or have its DynamoDB limits raised";
constexpr std::string_view kExpired =
    "the credentials have expired; new ones are asked for at their source, where they must be "
    "renewed";
constexpr std::string_view kUnknownKey =
    "the credentials are not valid there; check the access key, its account and the region, or the "
    "role that gives them";
constexpr std::string_view kWrongSignature =
    "the secret access key does not belong to the access key, or something on the way alters what "
    "is signed (host, path, body)";
constexpr std::string_view kNoCredentials =
    "credentials are missing in the request; check where they come from, and what stands between "
    "here and the endpoint";
constexpr std::string_view kNoTable =
    "there is no such table; create it with the key pk (string), or correct dynamodb.table and "
    "dynamodb.region (dynamodb.create_table = true makes one, for development)";
constexpr std::string_view kWrongKey =
    "the table's key is not pk alone, a string; create a table with that partition key and no sort "
    "key, and name it in dynamodb.table";
constexpr std::string_view kBusyItem =
    "another write to the same item was under way; nothing was written by this one";
constexpr std::string_view kTooLarge =
    "the lease's item would exceed DynamoDB's 400 KB; remove from it what is not Leasehold's";
constexpr std::string_view kNoDynamoDb =
    "what answers is not DynamoDB, or lacks this operation; correct dynamodb.endpoint";
constexpr std::string_view kOwnFault =
    "it does not take the request; if this is DynamoDB, it is a fault of this program: report it";
constexpr std::string_view kKms =
    "the key that encrypts the table cannot be used; repair the KMS key or its policy";

// Codes: "Amazon DynamoDB Developer Guide", Error handling; "Common Errors" of its API Reference.
// Texts of a ValidationException: as the service words them.
constexpr std::array<KnownError, 45> kKnownErrors = {{
    {"ConditionalCheckFailedException", "", Cause::kConditionFailed, true,
     "the item is not what was expected"},
    {"ProvisionedThroughputExceededException", "", Cause::kThrottled, false, kRaise},
    {"ThrottlingException", "", Cause::kThrottled, false, kRaise},
    {"ThrottledException", "", Cause::kThrottled, false, kRaise},
    {"Throttling", "", Cause::kThrottled, false, kRaise},
    {"RequestLimitExceeded", "", Cause::kThrottled, false, kSlower},
    {"RequestThrottled", "", Cause::kThrottled, false, kSlower},
    {"RequestThrottledException", "", Cause::kThrottled, false, kSlower},
    {"TooManyRequestsException", "", Cause::kThrottled, false, kSlower},
    {"SlowDown", "", Cause::kThrottled, false, kSlower},
    {"LimitExceededException", "", Cause::kPassing, false,
     "too many tables are being made or changed at a time; this passes"},
    {"TransactionConflictException", "", Cause::kPassing, false, kBusyItem},
    {"TransactionInProgressException", "", Cause::kPassing, false, kBusyItem},
    {"ReplicatedWriteConflictException", "", Cause::kPassing, false,
     "the item was written in another region at the same time; let all instances use one region"},
    {"ResourceInUseException", "", Cause::kTableExists, false,
     "the table is being made or changed; this passes"},
    {"ExpiredTokenException", "", Cause::kCredentials, true, kExpired},
    {"ExpiredToken", "", Cause::kCredentials, true, kExpired},
    {"TokenRefreshRequired", "", Cause::kCredentials, true, kExpired},
    {"UnrecognizedClientException", "", Cause::kCredentials, true, kUnknownKey},
    {"InvalidClientTokenId", "", Cause::kCredentials, true, kUnknownKey},
    {"InvalidAccessKeyId", "", Cause::kCredentials, true, kUnknownKey},
    {"InvalidToken", "", Cause::kCredentials, true, kUnknownKey},
    {"InvalidTokenException", "", Cause::kCredentials, true, kUnknownKey},
    {"InvalidSignatureException", "", Cause::kCredentials, true, kWrongSignature},
    {"SignatureDoesNotMatch", "", Cause::kCredentials, true, kWrongSignature},
    {"IncompleteSignature", "", Cause::kCredentials, true, kWrongSignature},
    {"IncompleteSignatureException", "", Cause::kCredentials, true, kWrongSignature},
    {"MissingAuthenticationToken", "", Cause::kCredentials, true, kNoCredentials},
    {"MissingAuthenticationTokenException", "", Cause::kCredentials, true, kNoCredentials},
    {"OptInRequired", "", Cause::kDenied, true,
     "the account may not use DynamoDB in this region; enable the region, or correct "
     "dynamodb.region"},
    {"AccessDeniedException", "KMS", Cause::kDenied, true, kKms},
    {"AccessDeniedException", "kms:", Cause::kDenied, true, kKms},
    {"AccessDeniedException", "", Cause::kDenied, true, ""},  // the action needed: below
    {"AccessDenied", "", Cause::kDenied, true, ""},
    {"ResourceNotFoundException", "", Cause::kNoTable, true, kNoTable},
    {"ValidationException", "does not match the schema", Cause::kWrongTable, true, kWrongKey},
    {"ValidationException", "number of conditions on the keys", Cause::kWrongTable, true,
     kWrongKey},
    {"ValidationException", "Type mismatch for key", Cause::kWrongTable, true, kWrongKey},
    {"ValidationException", "Missing the key", Cause::kWrongTable, true, kWrongKey},
    {"ValidationException", "exceeded the maximum allowed size", Cause::kInvalid, true, kTooLarge},
    {"ValidationException", "ize of hashkey has exceeded", Cause::kInvalid, true,
     "store.prefix and the lease's name together are longer than the 2048 bytes of a key; shorten "
     "them"},
    {"ItemCollectionSizeLimitExceededException", "", Cause::kInvalid, true,
     "the table has a local secondary index that is full; use a table of Leasehold's own"},
    {"ValidationException", "", Cause::kInvalid, true, kOwnFault},
    {"SerializationException", "", Cause::kInvalid, true, kOwnFault},
    {"UnknownOperationException", "", Cause::kInvalid, true, kNoDynamoDb},
}};

const KnownError* Find(const aws::ApiError& error) {
  const auto* const found =
      std::find_if(kKnownErrors.begin(), kKnownErrors.end(), [&error](const KnownError& row) {
        return row.code == error.code && error.message.find(row.text) != std::string::npos;
      });
  return found == kKnownErrors.end() ? nullptr : found;
}

// "<place> answers <what> to <operation> ("<message>")"
std::string Said(const DynamoDbPlace& place, std::string_view operation, const std::string& what,
                 std::string_view message) {
  std::string said = place.ToString() + " answers " + what + " to " + std::string(operation);
  if (!message.empty()) said += " (\"" + base::Printable(message, 300) + "\")";
  return said;
}

// A code that is not in the table: by what room aws makes of it, never refused on a guess.
DynamoDbFailure Unlisted(const aws::ApiError& error, const std::string& said) {
  if (error.trouble == aws::Trouble::kThrottled) {
    return {Cause::kThrottled, false, said + ": " + std::string(kRaise)};
  }
  return {Cause::kUnknown, false, said};
}

}  // namespace

DynamoDbPlace DynamoDbPlace::Of(std::string table, const aws::Endpoint& at) {
  return {std::move(table), at.region, at.ToString()};
}

std::string DynamoDbPlace::ToString() const {
  return "dynamodb table \"" + table + "\" in " + region + " at " + endpoint;
}

DynamoDbFailure ClassifyDynamoDbError(const DynamoDbPlace& place, std::string_view operation,
                                      const aws::ApiError& error) {
  const std::string what =
      error.code.empty() ? "HTTP " + std::to_string(error.status) : base::Printable(error.code);
  const std::string said = Said(place, operation, what, error.message);
  // Before the codes: it is InvalidSignatureException for a wrong clock as well as a wrong secret.
  // Refused, not ambiguous: the signature is looked at before anything is done, so that the write
  // is known not to have happened; the next call is signed for the service's own time.
  if (error.trouble == aws::Trouble::kClockSkew && error.status < 500) {
    return {Cause::kClockSkew, true,
            said +
                ": this machine's clock is off; the next call is signed for the service's time, "
                "and the clock should be set"};
  }
  const KnownError* known =
      error.status < 500 ? Find(error) : nullptr;  // 5xx: it may have happened
  if (known == nullptr) return Unlisted(error, said);
  std::string remedy(known->remedy);
  if (known->cause == Cause::kDenied && remedy.empty()) {
    remedy = "allow dynamodb:" + std::string(operation) +
             " on this table to the identity that the credentials belong to";
  }
  return {known->cause, known->refused, said + ": " + remedy};
}

DynamoDbFailure NoDynamoDbAnswer(const DynamoDbPlace& place, std::string_view operation,
                                 const base::Error& error) {
  // The message names the endpoint.
  const std::string said = std::string(operation) + " on dynamodb table \"" + place.table +
                           "\" in " + place.region + ": " + error.message;
  // No credentials: nothing was sent.
  if (error.code == base::ErrorCode::kRefused) return {Cause::kCredentials, true, said};
  return {Cause::kNoAnswer, false, said};
}

DynamoDbFailure StrangeDynamoDbAnswer(const DynamoDbPlace& place, std::string_view operation,
                                      const std::string& what) {
  return {Cause::kUnknown, false,
          Said(place, operation, what, "") +
              ", which DynamoDB does not; is dynamodb.endpoint right, or does a proxy answer?"};
}

}  // namespace leasehold::store

// ApiError: what an AWS service answered when it did not do what it was asked, and what kind of
// trouble that is. Pure. Both wire forms: JSON ("__type", "message" or "Message", the header
// X-Amzn-ErrorType) and XML (<ErrorResponse><Error><Code>, or <Error> alone).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace leasehold::aws {

enum class Trouble : uint8_t {
  kThrottled,       // asked too often, or beyond capacity: later
  kServer,          // 5xx, or said to be its own fault: later; it may have happened
  kClockSkew,       // signed for another time: corrected, the next call is right
  kExpired,         // the credentials have expired: asked for anew
  kBadCredentials,  // unknown key, wrong signature, invalid token
  kDenied,          // who we are may not do this
  kConflict,        // a condition of the request did not hold
  kNotFound,        // table, queue, item: not there
  kInvalid,         // the request itself
  kUnknown,
};

struct ApiError {
  int status = 0;
  std::string code;  // "ConditionalCheckFailedException", without namespace; "" where it said none
  std::string message;  // bounded (1 KiB), printable
  Trouble trouble = Trouble::kUnknown;
};

// Of an answer with a status of 400 and above, whatever its body is.
ApiError ParseApiError(int status, const std::vector<std::pair<std::string, std::string>>& headers,
                       std::string_view body);
Trouble ClassifyTrouble(int status, std::string_view code);

}  // namespace leasehold::aws

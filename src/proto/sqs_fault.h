// Fault: an error as SQS itself would answer it, in either protocol, so that an unmodified SDK
// raises the exception it has for it, and repeats what it repeats. Pure.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace leasehold::proto::sqs {

enum class Protocol {
  kJson,   // AWS JSON 1.0: SDKs since the end of 2023
  kQuery,  // a form for a question, XML for an answer: older ones
};

enum class FaultKind {
  // The client's, not repeated by SDKs.
  kMalformedJson,     // SerializationException; Query: MalformedQueryString
  kMissingAction,     // none named
  kInvalidAction,     // no such
  kMissingParameter,  // a required one is absent
  kInvalidParameter,  // a value is not of its type or range
  kInvalidAddress,    // a QueueUrl that is none
  kNonExistentQueue,
  kReceiptHandleInvalid,  // not one of ours
  kMessageNotInflight,    // ChangeMessageVisibility of what is not received
  kEmptyBatch,
  kTooManyEntries,
  kEntryIdsNotDistinct,
  kInvalidEntryId,
  kBatchTooLong,
  kInvalidMessageContents,
  kAccessDenied,
  kUnsupportedOperation,
  kRequestTooLarge,  // 413
  // The service's, repeated by SDKs.
  kUnavailable,  // 503 ServiceUnavailable
  kThrottled,    // RequestThrottled
  kInternal,     // 500 InternalFailure
};

struct Fault {
  Protocol protocol = Protocol::kQuery;  // the client's
  int status = 400;
  std::string code;   // Query's: "AWS.SimpleQueueService.NonExistentQueue"
  std::string shape;  // JSON's "__type": "com.amazonaws.sqs#QueueDoesNotExist"
  std::string message;
  bool sender = true;  // whose fault it is: the client's
};
Fault MakeFault(Protocol protocol, FaultKind kind, std::string message);

struct Answer {
  int status = 200;
  std::string content_type;
  std::vector<std::pair<std::string, std::string>> headers;  // besides Content-Type and -Length
  std::string body;
};
Answer FaultAnswer(const Fault& fault, std::string_view request_id);

}  // namespace leasehold::proto::sqs

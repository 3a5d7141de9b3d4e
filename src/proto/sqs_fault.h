// Fault: an error as SQS itself would answer it, in either protocol, so that an unmodified SDK
// raises the exception it has for it, and repeats what it repeats. Pure.
//
// What SDKs make of these answers was tried with botocore 1.44 (JSON; retry modes legacy and
// standard), botocore 1.29 (Query) and @aws-sdk/client-sqs 3 (JSON, Node 20), against a server that
// answers nothing else:
// - JSON: the exception's class comes from "__type" behind its '#' (QueueDoesNotExist), its code
//   from x-amzn-query-error, without which code and fault are missing. Types of
//   com.amazon.coral.service have no class; they are ClientError, SQSServiceException.
// - Repeated: ServiceUnavailable (503), InternalFailure (500), RequestThrottled, which botocore's
//   legacy mode repeats with status 403 only. Nothing else is.
// Statuses, types and codes: the API reference; 404 for a receipt handle, MalformedInput, and a
// missing queue for a missing QueueUrl in JSON are what recordings of SQS show.
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

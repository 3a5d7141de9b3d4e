#include "proto/sqs_fault.h"

#include "base/check.h"
#include "base/json_writer.h"
#include "proto/xml.h"

namespace leasehold::proto::sqs {
namespace {

struct Row {
  FaultKind kind;
  int status;
  bool sender;
  std::string_view shape;  // JSON
  std::string_view code;   // Query, and JSON's x-amzn-query-error
};

constexpr Row kRows[] = {
    {FaultKind::kMalformedJson, 400, true, "com.amazon.coral.service#SerializationException",
     "MalformedInput"},
    {FaultKind::kMissingAction, 400, true, "com.amazon.coral.service#UnknownOperationException",
     "MissingAction"},
    {FaultKind::kInvalidAction, 400, true, "com.amazon.coral.service#UnknownOperationException",
     "InvalidAction"},
    {FaultKind::kMissingParameter, 400, true,
     "com.amazon.coral.service#MissingRequiredParameterException", "MissingParameter"},
    {FaultKind::kInvalidParameter, 400, true,
     "com.amazon.coral.service#InvalidParameterValueException", "InvalidParameterValue"},
    {FaultKind::kInvalidAddress, 404, true, "com.amazonaws.sqs#InvalidAddress", "InvalidAddress"},
    {FaultKind::kNonExistentQueue, 400, true, "com.amazonaws.sqs#QueueDoesNotExist",
     "AWS.SimpleQueueService.NonExistentQueue"},
    {FaultKind::kReceiptHandleInvalid, 404, true, "com.amazonaws.sqs#ReceiptHandleIsInvalid",
     "ReceiptHandleIsInvalid"},
    {FaultKind::kMessageNotInflight, 400, true, "com.amazonaws.sqs#MessageNotInflight",
     "AWS.SimpleQueueService.MessageNotInflight"},
    {FaultKind::kEmptyBatch, 400, true, "com.amazonaws.sqs#EmptyBatchRequest",
     "AWS.SimpleQueueService.EmptyBatchRequest"},
    {FaultKind::kTooManyEntries, 400, true, "com.amazonaws.sqs#TooManyEntriesInBatchRequest",
     "AWS.SimpleQueueService.TooManyEntriesInBatchRequest"},
    {FaultKind::kEntryIdsNotDistinct, 400, true, "com.amazonaws.sqs#BatchEntryIdsNotDistinct",
     "AWS.SimpleQueueService.BatchEntryIdsNotDistinct"},
    {FaultKind::kInvalidEntryId, 400, true, "com.amazonaws.sqs#InvalidBatchEntryId",
     "AWS.SimpleQueueService.InvalidBatchEntryId"},
    {FaultKind::kBatchTooLong, 400, true, "com.amazonaws.sqs#BatchRequestTooLong",
     "AWS.SimpleQueueService.BatchRequestTooLong"},
    {FaultKind::kInvalidMessageContents, 400, true, "com.amazonaws.sqs#InvalidMessageContents",
     "InvalidMessageContents"},
    {FaultKind::kAccessDenied, 403, true, "com.amazon.coral.service#AccessDeniedException",
     "AccessDenied"},
    {FaultKind::kUnsupportedOperation, 400, true, "com.amazonaws.sqs#UnsupportedOperation",
     "AWS.SimpleQueueService.UnsupportedOperation"},
    {FaultKind::kRequestTooLarge, 413, true,
     "com.amazon.coral.service#RequestEntityTooLargeException", "RequestEntityTooLarge"},
    {FaultKind::kUnavailable, 503, false, "com.amazon.coral.service#ServiceUnavailableException",
     "ServiceUnavailable"},
    {FaultKind::kThrottled, 403, true, "com.amazonaws.sqs#RequestThrottled", "RequestThrottled"},
    {FaultKind::kInternal, 500, false, "com.amazon.coral.service#InternalFailure",
     "InternalFailure"},
};

std::string JsonBody(const Fault& fault) {
  std::string body;
  base::JsonWriter json(body);
  json.BeginObject().Member("__type", fault.shape).Member("message", fault.message).EndObject();
  return body;
}

std::string XmlBody(const Fault& fault, std::string_view request_id) {
  return "<?xml version=\"1.0\"?>\n<ErrorResponse xmlns=\"http://queue.amazonaws.com/doc/"
         "2012-11-05/\"><Error><Type>" +
         std::string(fault.sender ? "Sender" : "Receiver") + "</Type><Code>" +
         XmlEscape(fault.code) + "</Code><Message>" + XmlEscape(fault.message) +
         "</Message><Detail/></Error><RequestId>" + XmlEscape(request_id) +
         "</RequestId></ErrorResponse>";
}

}  // namespace

Fault MakeFault(Protocol protocol, FaultKind kind, std::string message) {
  for (const Row& row : kRows) {
    if (row.kind != kind) continue;
    Fault fault;
    fault.protocol = protocol;
    fault.status = row.status;
    fault.code = row.code;
    fault.shape = row.shape;
    fault.message = std::move(message);
    fault.sender = row.sender;
    return fault;
  }
  CHECK(false, "a FaultKind outside its list");
}

Answer FaultAnswer(const Fault& fault, std::string_view request_id) {
  Answer answer;
  answer.status = fault.status;
  answer.headers.emplace_back("x-amzn-RequestId", request_id);
  if (fault.protocol == Protocol::kQuery) {
    answer.content_type = "text/xml";
    answer.body = XmlBody(fault, request_id);
    return answer;
  }
  answer.content_type = "application/x-amz-json-1.0";
  answer.headers.emplace_back("x-amzn-query-error",
                              fault.code + (fault.sender ? ";Sender" : ";Receiver"));
  answer.body = JsonBody(fault);
  return answer;
}

}  // namespace leasehold::proto::sqs

// What SQS answers, in either protocol: read for what a gate must know, changed only where it must,
// and made whole by us where SQS was not asked. Message bodies are never copied nor altered. Pure.
// Errors of Result here mean that the service's answer is not what SQS says (kInvalid, kLimit).
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "proto/sqs.h"

namespace leasehold::proto::sqs {

// 10 messages of 1 MiB each (the limit of a batch is for sending), with each byte escaped ("\u00XX"
// of JSON, "&quot;" of XML), and their attributes. An answer that is not taken is worse than a
// large one: its messages would be received, refused and received again until they are dead.
inline constexpr size_t kAnswerBytesMax = size_t{64} * 1024 * 1024;

struct Received {
  std::string message_id;
  std::string receipt_handle;
};
// Of a ReceiveMessage answered with 200.
base::Result<std::vector<Received>> ParseReceived(Protocol protocol, std::string_view body);

struct EntryFailure {
  std::string id;
  std::string code;  // "ReceiptHandleIsInvalid", "InternalError"
  std::string message;
  bool sender_fault = false;  // true: sending it again is in vain
};
struct BatchSuccess {
  std::string id;
  std::string message_id;   // of SendMessageBatch
  std::string md5_of_body;  // of SendMessageBatch, as the other
  std::string md5_of_attributes;
  std::string sequence_number;  // of a FIFO queue
};
struct BatchResult {
  std::vector<BatchSuccess> successful;
  std::vector<EntryFailure> failed;
};
base::Result<BatchResult> ParseBatchResult(Protocol protocol, std::string_view body);

// The service's answer to a batch with our own failures behind its own. A `body` that is empty:
// SQS was not asked at all.
base::Result<std::string> MergeBatchResult(Protocol protocol, Action action, std::string_view body,
                                           const std::vector<EntryFailure>& ours,
                                           std::string_view request_id);

// Every queue URL of an answer to GetQueueUrl, CreateQueue, ListQueues or
// ListDeadLetterSourceQueues (other actions: as it was) through `change`.
base::Result<std::string> RewriteQueueUrls(
    Protocol protocol, Action action, std::string_view body,
    const std::function<std::string(std::string_view)>& change);

// What SQS answers to a ReceiveMessage when there is nothing.
Answer EmptyReceive(Protocol protocol, std::string_view request_id);
// A 200 to an action that has nothing to say (DeleteMessage, ChangeMessageVisibility).
Answer EmptyAnswer(Protocol protocol, Action action, std::string_view request_id);
// A 200 with a body made here.
Answer AnswerWith(Protocol protocol, std::string body, std::string_view request_id);

}  // namespace leasehold::proto::sqs

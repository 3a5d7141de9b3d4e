#include "proto/sqs_parse.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/text.h"
#include "proto/sqs_limits.h"
#include "proto/sqs_url.h"

namespace leasehold::proto::sqs {
namespace {

bool IsNameCharacter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

bool NeedsQueue(const ClientRequest& request) {
  switch (request.action) {
    case Action::kCreateQueue:
    case Action::kGetQueueUrl:
    case Action::kListQueues:
    case Action::kStartMessageMoveTask:  // these three name queues by their ARN
    case Action::kCancelMessageMoveTask:
    case Action::kListMessageMoveTasks:
    case Action::kUnknown: return false;
    default: return true;
  }
}

// SQS answers it so: a missing QueueUrl is a missing queue in JSON.
std::optional<Fault> CheckQueue(const ClientRequest& request) {
  if (request.queue_url.empty()) {
    if (!NeedsQueue(request)) return std::nullopt;
    if (request.protocol == Protocol::kJson) {
      return MakeFault(request.protocol, FaultKind::kNonExistentQueue,
                       "The specified queue does not exist: the request has no QueueUrl.");
    }
    return MakeFault(request.protocol, FaultKind::kMissingParameter,
                     "The request must contain the parameter QueueUrl.");
  }
  if (ParseQueueUrl(request.queue_url)) return std::nullopt;
  return MakeFault(request.protocol, FaultKind::kInvalidAddress,
                   "The address " + base::Printable(request.queue_url) +
                       " is not valid for this endpoint: a QueueUrl is like "
                       "http://host:port/123456789012/name.");
}

std::optional<Fault> CheckBatch(const ClientRequest& request) {
  if (!request.batch || KindOf(request.action) != Kind::kAcknowledge) return std::nullopt;
  const auto fault = [&](FaultKind kind, std::string message) {
    return MakeFault(request.protocol, kind, std::move(message));
  };
  if (request.entries.empty()) {
    return fault(FaultKind::kEmptyBatch,
                 "There should be at least one " + EntryPrefix(request) + " in the request.");
  }
  if (request.entries.size() > kBatchEntriesMax) {
    return fault(FaultKind::kTooManyEntries,
                 "Maximum number of entries per request are " + std::to_string(kBatchEntriesMax) +
                     ". You have sent " + std::to_string(request.entries.size()) + ".");
  }
  std::vector<std::string_view> ids;
  for (const Entry& entry : request.entries) {
    if (!IsEntryId(entry.id)) {
      return fault(FaultKind::kInvalidEntryId,
                   "A batch entry id can only contain alphanumeric characters, hyphens and "
                   "underscores. It can be at most 80 letters long.");
    }
    ids.push_back(entry.id);
  }
  std::sort(ids.begin(), ids.end());
  if (const auto twice = std::adjacent_find(ids.begin(), ids.end()); twice != ids.end()) {
    return fault(FaultKind::kEntryIdsNotDistinct, "Id " + std::string(*twice) + " repeated.");
  }
  return std::nullopt;
}

std::optional<Fault> CheckEntries(const ClientRequest& request) {
  if (KindOf(request.action) != Kind::kAcknowledge) return std::nullopt;
  const bool visibility = request.action == Action::kChangeMessageVisibility;
  for (const Entry& entry : request.entries) {
    // Of a batch's entry SQS speaks in its result; who forwards it finds no such handle.
    if (request.batch) break;
    if (entry.receipt_handle.empty() || (visibility && !entry.visibility_timeout)) {
      return MakeFault(
          request.protocol, FaultKind::kMissingParameter,
          std::string("The request must contain the parameter ") +
              (entry.receipt_handle.empty() ? "ReceiptHandle." : "VisibilityTimeout."));
    }
  }
  return std::nullopt;
}

// The one parameter whose value we replace: a wrong one would go unnoticed.
std::optional<Fault> CheckWait(const ClientRequest& request) {
  if (!request.wait_seconds) return std::nullopt;
  if (*request.wait_seconds >= 0 && *request.wait_seconds <= kWaitSecondsMax) return std::nullopt;
  return MakeFault(request.protocol, FaultKind::kInvalidParameter,
                   "Value " + std::to_string(*request.wait_seconds) +
                       " for parameter WaitTimeSeconds is invalid. Reason: Must be >= 0 and <= " +
                       std::to_string(kWaitSecondsMax) + ", if provided.");
}

bool SpeaksJson(const RequestText& text) {
  constexpr std::string_view kJsonType = "application/x-amz-json-";
  return !text.target.empty() ||
         base::EqualsIgnoreCase(text.content_type.substr(0, kJsonType.size()), kJsonType);
}

}  // namespace

std::optional<Fault> SetAction(ClientRequest& request, std::string_view name) {
  constexpr size_t kNameMax = 64;  // the longest of SQS's has 28
  if (name.empty()) {
    const std::string what = request.protocol == Protocol::kJson
                                 ? "the header X-Amz-Target: AmazonSQS.<action>"
                                 : "the parameter Action, or speak AWS JSON 1.0";
    return MakeFault(request.protocol, FaultKind::kMissingAction,
                     "The request must contain " + what + ".");
  }
  if (name.size() > kNameMax || !std::all_of(name.begin(), name.end(), IsNameCharacter)) {
    return MakeFault(
        request.protocol, FaultKind::kInvalidAction,
        "The action " + base::Printable(name, kNameMax) + " is not valid for this endpoint.");
  }
  request.action_name = name;
  request.action = ActionOf(name);
  request.batch = request.action_name.ends_with("Batch") && request.action != Action::kUnknown;
  return std::nullopt;
}

std::string EntryPrefix(const ClientRequest& request) {
  return request.action_name + "RequestEntry";
}

std::variant<ClientRequest, Fault> ParseRequest(RequestText text) {
  ClientRequest request;
  request.protocol = SpeaksJson(text) ? Protocol::kJson : Protocol::kQuery;
  std::optional<Fault> fault = request.protocol == Protocol::kJson
                                   ? ParseJsonRequest(text, request)
                                   : ParseQueryRequest(text, request);
  if (fault) return *std::move(fault);
  for (const auto check : {CheckQueue, CheckBatch, CheckEntries, CheckWait}) {
    fault = check(request);
    if (fault) return *std::move(fault);
  }
  return request;
}

}  // namespace leasehold::proto::sqs

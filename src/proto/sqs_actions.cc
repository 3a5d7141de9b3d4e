#include <string_view>

#include "base/check.h"
#include "proto/sqs.h"

namespace leasehold::proto::sqs {
namespace {

struct Row {
  Action action;
  Kind kind;
  std::string_view name;
};

// "Amazon SQS API Reference", actions.
constexpr Row kRows[] = {
    {Action::kAddPermission, Kind::kAdminister, "AddPermission"},
    {Action::kCancelMessageMoveTask, Kind::kAdminister, "CancelMessageMoveTask"},
    {Action::kChangeMessageVisibility, Kind::kAcknowledge, "ChangeMessageVisibility"},
    {Action::kChangeMessageVisibilityBatch, Kind::kAcknowledge, "ChangeMessageVisibilityBatch"},
    {Action::kCreateQueue, Kind::kAdminister, "CreateQueue"},
    {Action::kDeleteMessage, Kind::kAcknowledge, "DeleteMessage"},
    {Action::kDeleteMessageBatch, Kind::kAcknowledge, "DeleteMessageBatch"},
    {Action::kDeleteQueue, Kind::kAdminister, "DeleteQueue"},
    {Action::kGetQueueAttributes, Kind::kRead, "GetQueueAttributes"},
    {Action::kGetQueueUrl, Kind::kRead, "GetQueueUrl"},
    {Action::kListDeadLetterSourceQueues, Kind::kRead, "ListDeadLetterSourceQueues"},
    {Action::kListMessageMoveTasks, Kind::kRead, "ListMessageMoveTasks"},
    {Action::kListQueues, Kind::kRead, "ListQueues"},
    {Action::kListQueueTags, Kind::kRead, "ListQueueTags"},
    {Action::kPurgeQueue, Kind::kAdminister, "PurgeQueue"},
    {Action::kReceiveMessage, Kind::kReceive, "ReceiveMessage"},
    {Action::kRemovePermission, Kind::kAdminister, "RemovePermission"},
    {Action::kSendMessage, Kind::kSend, "SendMessage"},
    {Action::kSendMessageBatch, Kind::kSend, "SendMessageBatch"},
    {Action::kSetQueueAttributes, Kind::kAdminister, "SetQueueAttributes"},
    {Action::kStartMessageMoveTask, Kind::kAdminister, "StartMessageMoveTask"},
    {Action::kTagQueue, Kind::kAdminister, "TagQueue"},
    {Action::kUntagQueue, Kind::kAdminister, "UntagQueue"},
    {Action::kUnknown, Kind::kUnknown, ""},
};

const Row& RowOf(Action action) {
  for (const Row& row : kRows) {
    if (row.action == action) return row;
  }
  CHECK(false, "an Action outside its list");
}

}  // namespace

Kind KindOf(Action action) { return RowOf(action).kind; }
std::string_view ActionName(Action action) { return RowOf(action).name; }

Action ActionOf(std::string_view name) {
  for (const Row& row : kRows) {
    if (row.name == name) return row.action;
  }
  return Action::kUnknown;
}

}  // namespace leasehold::proto::sqs

// What a client asks of SQS, in either protocol, and the same question as it goes on to SQS. Only
// what a gate must know is read, only what it must change is written anew: a parameter that we do
// not know, a number, a text arrive at SQS as the client wrote them. Pure, bounded by the size of
// the body. Not here: answers (sqs_answer.h), queue URLs (sqs_url.h), signatures, which are not
// looked at and not passed on (the client signed for this sidecar).
//
// Invariant: what SQS will read of a rewritten request (action, queue, entries) is what was read
// here: a member or parameter that stands twice is refused, not guessed.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "proto/form.h"
#include "proto/sqs_fault.h"
#include "proto/sqs_json.h"

namespace leasehold::proto::sqs {

enum class Action : uint8_t {
  kAddPermission,
  kCancelMessageMoveTask,
  kChangeMessageVisibility,
  kChangeMessageVisibilityBatch,
  kCreateQueue,
  kDeleteMessage,
  kDeleteMessageBatch,
  kDeleteQueue,
  kGetQueueAttributes,
  kGetQueueUrl,
  kListDeadLetterSourceQueues,
  kListMessageMoveTasks,
  kListQueues,
  kListQueueTags,
  kPurgeQueue,
  kReceiveMessage,
  kRemovePermission,
  kSendMessage,
  kSendMessageBatch,
  kSetQueueAttributes,
  kStartMessageMoveTask,
  kTagQueue,
  kUntagQueue,
  kUnknown,  // newer than this list, or none: for SQS to judge
};
enum class Kind : uint8_t {
  kReceive,
  kAcknowledge,  // deletes, or changes how long it is invisible
  kSend,
  kRead,        // changes nothing
  kAdminister,  // changes or empties queues
  kUnknown,     // may do anything
};
Kind KindOf(Action action);
Action ActionOf(std::string_view name);
std::string_view ActionName(Action action);  // "" for kUnknown

// One of an acknowledging request (without id when it is not a batch), or, of a batch that sends,
// its id alone.
struct Entry {
  std::string id;
  std::string receipt_handle;
  std::optional<int> visibility_timeout;
};

struct ClientRequest {
  Protocol protocol = Protocol::kJson;
  Action action = Action::kUnknown;
  std::string action_name;  // as the client wrote it: 1 to 64 letters and digits
  // As the client wrote it; a Query request that names none: the path it was posted to, when that
  // may be a queue's ("/123456789012/orders"). Empty: none (ListQueues).
  std::string queue_url;
  std::string queue_name;  // QueueName of GetQueueUrl and CreateQueue
  std::optional<int> wait_seconds;
  std::optional<int> visibility_timeout;
  std::optional<int> max_messages;
  std::vector<Entry> entries;
  bool batch = false;

  // What a rewrite needs.
  struct Source {
    std::string body;  // JSON
    std::optional<Span> queue_url;
    std::optional<Span> wait_seconds;
    std::optional<Span> entries;     // the array, with its brackets
    std::vector<Span> entry_values;  // its elements
    std::vector<FormField> fields;   // Query, without those of a signature
    std::string path;                // Query, if it may be a queue's
  } source;
};

struct RequestText {
  std::string_view method;
  std::string_view path;   // as it came, without the query
  std::string_view query;  // without "?"
  std::string_view content_type;
  std::string_view target;  // X-Amz-Target
  std::string body;         // moved in: it is kept for the rewrite
};
std::variant<ClientRequest, Fault> ParseRequest(RequestText text);

struct Rewrite {
  std::optional<std::string> queue_url;  // for SQS; nullopt: as it was
  std::optional<int> wait_seconds;       // set also where the client wrote none
  std::vector<bool> keep;                // of `entries`, batches only; empty: all
};
struct Outgoing {
  std::string path = "/";                                    // POST, always, without a query
  std::vector<std::pair<std::string, std::string>> headers;  // Content-Type, X-Amz-Target
  std::string body;
};
// `base_path`: the endpoint's own (aws/endpoint.h), which is not repeated in `path`.
Outgoing WriteRequest(const ClientRequest& request, const Rewrite& rewrite,
                      std::string_view base_path = "");
// Without a copy of the body where it stays as it was.
Outgoing WriteRequest(ClientRequest&& request, const Rewrite& rewrite,
                      std::string_view base_path = "");

}  // namespace leasehold::proto::sqs

// SqsClient: the calls of SQS that we make ourselves, over AWS JSON 1.0, and the gate's
// pass-through over either protocol. Owned by a gate or the bridge; borrows its Service, which
// outlives it. It repeats nothing: what may be sent again, and what must not, is its user's
// knowledge (sqs_batch.h has the arithmetic). Not here: queues of messages, pauses, credentials.
//
// Invariants: `done` is called once, later, from the loop, never after its call is destroyed. An
// answer of 200 that is not whole (an entry without a result, an MD5 that is another's) is not
// taken for success.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "aws/service.h"
#include "aws/sqs_batch.h"
#include "base/result.h"
#include "proto/sqs.h"

namespace leasehold::aws {

// Why a call did not do what it was asked.
struct SqsFailure {
  std::optional<ApiError> answer;  // what SQS said; nullopt: no answer that can be read
  base::Error error;               // in words, with the queue
  // False: SQS refused it and nothing was done. True: it may have been done (no answer, 5xx).
  bool may_have_happened = false;
  bool again_can_help = false;
};

template <typename T>
using SqsDone = std::function<void(std::variant<T, SqsFailure>)>;

class SqsClient {
 public:
  SqsClient(loop::Loop& loop, Service& service) : loop_(loop), service_(service) {}

  // Errors (kInvalid, told later like all others): no entries, more than 10, more than 1 MiB, ids
  // that are not distinct; SplitBatches never makes such.
  [[nodiscard]] std::unique_ptr<Call> SendMessageBatch(const std::string& queue_url,
                                                       const std::vector<SqsMessage>& messages,
                                                       base::Duration timeout,
                                                       SqsDone<std::vector<SendResult>> done);

  struct ReceiveOptions {
    int max_messages = 10;                  // 1..10
    int wait_seconds = 0;                   // 0..20, and within `timeout`
    std::optional<int> visibility_timeout;  // nullopt: the queue's
  };
  [[nodiscard]] std::unique_ptr<Call> ReceiveMessage(const std::string& queue_url,
                                                     const ReceiveOptions& options,
                                                     base::Duration timeout,
                                                     SqsDone<std::vector<SqsReceived>> done);

  // Entries of proto/sqs.h: id, receipt handle and, for visibilities, the seconds.
  [[nodiscard]] std::unique_ptr<Call> DeleteMessageBatch(
      const std::string& queue_url, const std::vector<proto::sqs::Entry>& entries,
      base::Duration timeout, SqsDone<std::vector<EntryResult>> done);
  [[nodiscard]] std::unique_ptr<Call> ChangeMessageVisibilityBatch(
      const std::string& queue_url, const std::vector<proto::sqs::Entry>& entries,
      base::Duration timeout, SqsDone<std::vector<EntryResult>> done);

  [[nodiscard]] std::unique_ptr<Call> GetQueueUrl(const std::string& queue_name,
                                                  base::Duration timeout,
                                                  SqsDone<std::string> done);
  // All of them: name to value.
  [[nodiscard]] std::unique_ptr<Call> GetQueueAttributes(
      const std::string& queue_url, base::Duration timeout,
      SqsDone<std::map<std::string, std::string>> done);

  // A client's request as WriteRequest made it: whatever SQS answers.
  [[nodiscard]] std::unique_ptr<Call> Forward(proto::sqs::Outgoing request, base::Duration timeout,
                                              std::function<void(base::Result<Response>)> done);

 private:
  loop::Loop& loop_;
  Service& service_;
};

}  // namespace leasehold::aws

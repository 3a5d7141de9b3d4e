// SqsQueues: what a gate must know of the queues that it receives from: how long a received message
// stays invisible and how long a receive waits, where the client does not say so. Asked of SQS once
// and kept about a minute (GetQueueAttributes; what may not be read is assumed, with a log line).
// Owned by its gate; bounded.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>

#include "aws/sqs_client.h"
#include "base/time.h"
#include "loop/loop.h"
#include "observe/log.h"

namespace leasehold::gate {

struct SqsQueueTimes {
  base::Duration visibility = base::Duration::Seconds(30);  // SQS's own default
  std::optional<int> wait_seconds;                          // nullopt: could not be read
};

class SqsQueues {
 public:
  // `on_known`: something that Find did not know is known now.
  SqsQueues(loop::Loop& loop, aws::SqsClient& client, observe::Log& log, std::string gate,
            std::function<void()> on_known);
  ~SqsQueues();
  SqsQueues(const SqsQueues&) = delete;
  SqsQueues& operator=(const SqsQueues&) = delete;

  // nullptr: not known yet; it is asked for, and on_known follows. Valid until the next call.
  const SqsQueueTimes* Find(const std::string& path, const std::string& queue_url,
                            base::MonoTime now);
  // The queue was changed through this gate: asked anew at the next Find.
  void Forget(const std::string& path);

 private:
  struct Queue {
    SqsQueueTimes times;
    bool known = false;
    base::MonoTime good_until;
    std::unique_ptr<aws::Call> call;
    bool asking = false;
  };
  using Attributes = std::map<std::string, std::string>;
  void Ask(const std::string& path, Queue& queue, const std::string& queue_url);
  void OnAnswer(const std::string& path, const std::variant<Attributes, aws::SqsFailure>& answer);
  void MakeRoom(base::MonoTime now);

  loop::Loop& loop_;
  aws::SqsClient& client_;
  observe::Log& log_;
  const std::string gate_;
  const std::function<void()> on_known_;
  const SqsQueueTimes assumed_;
  std::unordered_map<std::string, Queue> queues_;
};

}  // namespace leasehold::gate

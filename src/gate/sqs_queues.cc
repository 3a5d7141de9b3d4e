#include "gate/sqs_queues.h"

#include <map>
#include <utility>

#include "base/text.h"
#include "proto/sqs_limits.h"

namespace leasehold::gate {
namespace {

using base::Duration;
using base::MonoTime;

// SQS itself lets a changed attribute take up to 60 s to be in effect everywhere
// (SetQueueAttributes, API reference).
constexpr Duration kGoodFor = Duration::Seconds(60);
// A receive waits for the answer: not for long.
constexpr Duration kCallTimeout = Duration::Seconds(2);
// Queues of one application; beyond it the assumed times serve.
constexpr size_t kQueuesMax = 1024;

std::optional<int> Number(const std::map<std::string, std::string>& attributes,
                          const std::string& name, int max) {
  const auto found = attributes.find(name);
  if (found == attributes.end()) return std::nullopt;
  const base::Result<uint64_t> value = base::ParseUint64(found->second);
  if (!value || *value > static_cast<uint64_t>(max)) return std::nullopt;
  return static_cast<int>(*value);
}

}  // namespace

SqsQueues::SqsQueues(loop::Loop& loop, aws::SqsClient& client, observe::Log& log, std::string gate,
                     std::function<void()> on_known)
    : loop_(loop),
      client_(client),
      log_(log),
      gate_(std::move(gate)),
      on_known_(std::move(on_known)) {}

SqsQueues::~SqsQueues() = default;

const SqsQueueTimes* SqsQueues::Find(const std::string& path, const std::string& queue_url,
                                     MonoTime now) {
  auto found = queues_.find(path);
  if (found == queues_.end()) {
    MakeRoom(now);
    if (queues_.size() >= kQueuesMax) return &assumed_;
    found = queues_.emplace(path, Queue{}).first;
  }
  Queue& queue = found->second;
  if ((!queue.known || now >= queue.good_until) && !queue.asking) Ask(path, queue, queue_url);
  return queue.known ? &queue.times : nullptr;
}

void SqsQueues::Forget(const std::string& path) {
  if (const auto found = queues_.find(path); found != queues_.end()) {
    found->second.good_until = MonoTime();
  }
}

void SqsQueues::MakeRoom(MonoTime now) {
  if (queues_.size() < kQueuesMax) return;
  std::erase_if(queues_, [now](const auto& entry) {
    return !entry.second.asking && now >= entry.second.good_until;
  });
}

void SqsQueues::Ask(const std::string& path, Queue& queue, const std::string& queue_url) {
  queue.asking = true;
  queue.call = client_.GetQueueAttributes(
      queue_url, kCallTimeout,
      [this, path](const std::variant<Attributes, aws::SqsFailure>& answer) {
        OnAnswer(path, answer);
      });
}

// What was read once is better than what is assumed.
void SqsQueues::OnAnswer(const std::string& path,
                         const std::variant<Attributes, aws::SqsFailure>& answer) {
  Queue& queue = queues_[path];
  queue.asking = false;
  queue.good_until = loop::Loop::Now() + kGoodFor;
  if (const auto* attributes = std::get_if<Attributes>(&answer)) {
    const auto visibility =
        Number(*attributes, "VisibilityTimeout", proto::sqs::kVisibilitySecondsMax);
    if (visibility) queue.times.visibility = Duration::Seconds(*visibility);
    queue.times.wait_seconds =
        Number(*attributes, "ReceiveMessageWaitTimeSeconds", proto::sqs::kWaitSecondsMax);
  } else {
    log_.Warn("gate.sqs_attributes",
              "the queue's attributes could not be read; going on with its visibility time-out as "
              "last read, else 30s (the sidecar may be allowed sqs:GetQueueAttributes)",
              {{"gate", gate_},
               {"queue", base::Printable(path)},
               {"error", std::get<aws::SqsFailure>(answer).error.message}});
  }
  const bool first = !std::exchange(queue.known, true);
  if (first) on_known_();
}

}  // namespace leasehold::gate

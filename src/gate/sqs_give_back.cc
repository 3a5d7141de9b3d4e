#include "gate/sqs_give_back.h"

#include <algorithm>
#include <utility>

#include "proto/sqs_limits.h"

namespace leasehold::gate {
namespace {

using base::Duration;

// SQS in the same region answers in 10 to 30 ms; a crowded or far one in a few hundred.
constexpr Duration kSlowRoundTrip = Duration::Millis(250);
// Connecting, TLS and credentials may come on top of the first one.
constexpr Duration kLeadMin = Duration::Millis(500);
constexpr int64_t kLeadPart = 4;
// A call that has no answer by then is not worth more: the message comes back by itself.
constexpr Duration kCallTimeout = Duration::Seconds(5);

}  // namespace

Duration GiveBackLead(size_t messages, Duration drain) {
  constexpr size_t kRound = proto::sqs::kBatchEntriesMax * kGiveBackCallsMax;
  const size_t rounds = (messages + kRound - 1) / kRound;
  const Duration wanted = kLeadMin + kSlowRoundTrip * static_cast<int64_t>(rounds);
  return base::Max(Duration::Zero(), base::Min(wanted, drain / kLeadPart));
}

SqsGiveBack::SqsGiveBack(loop::Loop& loop, aws::SqsClient& client, Host host)
    : loop_(loop),
      client_(client),
      host_(std::move(host)),
      self_(std::make_shared<SqsGiveBack*>(this)) {}

SqsGiveBack::~SqsGiveBack() = default;

void SqsGiveBack::Add(Batch batch) {
  constexpr size_t kMax = proto::sqs::kBatchEntriesMax;
  for (size_t at = 0; at < batch.messages.size(); at += kMax) {
    const size_t end = std::min(at + kMax, batch.messages.size());
    Batch part;
    part.queue_url = batch.queue_url;
    part.seen = batch.seen;
    part.reason = batch.reason;
    part.messages.assign(batch.messages.begin() + static_cast<ptrdiff_t>(at),
                         batch.messages.begin() + static_cast<ptrdiff_t>(end));
    waiting_.push_back(std::move(part));
  }
  Next();
}

void SqsGiveBack::Next() {
  while (active_ < kGiveBackCallsMax && !waiting_.empty()) {
    Batch batch = std::move(waiting_.front());
    waiting_.pop_front();
    if (batch.seen && !host_.may_give_seen()) continue;
    Start(std::move(batch));
  }
}

void SqsGiveBack::Start(Batch batch) {
  std::vector<proto::sqs::Entry> entries;
  for (size_t i = 0; i < batch.messages.size(); ++i) {
    entries.push_back({std::to_string(i), batch.messages[i].handle, 0});
  }
  Running& running = running_.emplace_back();
  running.batch = std::move(batch);
  ++active_;
  running.call = client_.ChangeMessageVisibilityBatch(
      running.batch.queue_url, entries, kCallTimeout,
      [this, &running](const std::variant<std::vector<aws::EntryResult>, aws::SqsFailure>& answer) {
        OnDone(running, answer);
      });
}

void SqsGiveBack::OnDone(
    Running& running, const std::variant<std::vector<aws::EntryResult>, aws::SqsFailure>& answer) {
  Result result;
  if (const auto* entries = std::get_if<std::vector<aws::EntryResult>>(&answer)) {
    for (const aws::EntryResult& entry : *entries) {
      ++(entry.ok ? result.ok : result.failed);
      if (!entry.ok) result.error = entry.failure.code + ": " + entry.failure.message;
    }
  } else {
    result.failed = running.batch.messages.size();
    result.error = std::get<aws::SqsFailure>(answer).error.message;
  }
  running.over = true;
  --active_;
  BuryOver();
  host_.on_done(running.batch, result);
  Next();
}

void SqsGiveBack::DropSeen() {
  std::erase_if(waiting_, [](const Batch& batch) { return batch.seen; });
  for (Running& running : running_) {
    if (!running.batch.seen || running.over) continue;
    running.over = true;
    running.call.reset();  // never from inside its own callback: what is told there is over already
    --active_;
  }
  BuryOver();
  Next();
}

// A call may be on the stack: it is destroyed on the next turn.
void SqsGiveBack::BuryOver() {
  loop_.Post([weak = std::weak_ptr<SqsGiveBack*>(self_)] {
    if (auto self = weak.lock()) {
      (*self)->running_.remove_if([](const Running& running) { return running.over; });
    }
  });
}

}  // namespace leasehold::gate

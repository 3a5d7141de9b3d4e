// Receives: the only requests that wait, and whose answers are new work.
#include <algorithm>
#include <utility>

#include "gate/sqs_machine.h"
#include "proto/sqs_limits.h"

namespace leasehold::gate {

namespace sqs = proto::sqs;
using base::Duration;
using base::MonoTime;
using lease::Valve;
using loop::Loop;
using State = SqsExchange::State;

namespace {

// Of a receive that says nothing of its wait, while the lease is not held here: SQS might answer at
// once, but whoever asks in a loop would spin.
constexpr Duration kUnsaidWait = Duration::Seconds(1);
// On top of a receive's wait, until SQS has answered.
constexpr Duration kAnswerTime = Duration::Seconds(10);
// Of the grace, what a receive that goes on in the last moment before a drain leaves to its answer
// and to giving back what it brought.
constexpr Duration kAfterWait = Duration::Seconds(2);
// A rest shorter than this is not worth another receive: SQS counts whole seconds.
constexpr Duration kRestMin = Duration::Millis(500);

int RoundToSeconds(Duration d) { return static_cast<int>((d.millis() + 500) / 1000); }

bool IsWait(int seconds) { return seconds >= 0 && seconds <= sqs::kWaitSecondsMax; }

size_t MessagesOf(const sqs::ClientRequest& request) {
  return static_cast<size_t>(
      std::clamp(request.max_messages.value_or(1), 1, sqs::kReceiveMessagesMax));
}

}  // namespace

int SqsGate::WaitCap() const {
  const int64_t seconds = (host().step_down_grace - kAfterWait).nanos() / 1'000'000'000;
  return static_cast<int>(std::clamp(seconds, int64_t{1}, int64_t{sqs::kWaitSecondsMax}));
}

// ---- may it? ----

// New work, by the engine's word to all gates, by its word to this one, and by the clock.
bool SqsGate::MayReceive() {
  if (core().valve() != Valve::kOpen) return false;
  if (host().permit.MayAdmit(Loop::Now())) return true;
  MayPass();  // if it ran out, the host is told
  return false;
}

bool SqsGate::Confirming() const {
  const Valve valve = core().valve();
  if (valve != Valve::kOpen && valve != Valve::kHolding) return false;
  const bool holding = valve == Valve::kHolding || host().permit.valve() == Valve::kHolding;
  return holding && host().permit.MayAct(Loop::Now());
}

// One receive may always ask for what it wants when nothing else is in flight.
bool SqsGate::HasRoom(size_t messages) const {
  const size_t taken = in_flight_.size() + reserved_;
  return taken == 0 || taken + messages <= options().sqs.max_in_flight;
}

// ---- from the client to SQS ----

void SqsGate::BeginReceive(SqsExchange& poll) {
  if (polls_ >= options().sqs.max_polls) {
    poll.kind = sqs::Kind::kUnknown;  // is not counted as one
    CountRefused("max_polls");
    return AnswerFault(poll,
                       sqs::MakeFault(poll.protocol, sqs::FaultKind::kThrottled,
                                      "leasehold: " + std::to_string(options().sqs.max_polls) +
                                          " receives wait already (sqs.max_polls)"),
                       "refused");
  }
  ++polls_;
  poll.wait_given = poll.request.wait_seconds.has_value();
  const int seconds = std::clamp(poll.request.wait_seconds.value_or(0), 0, sqs::kWaitSecondsMax);
  poll.wait_until = poll.started + (poll.wait_given ? Duration::Seconds(seconds) : kUnsaidWait);
  Wait(poll);
  PumpPolls();
}

void SqsGate::Wait(SqsExchange& poll) {
  poll.state = State::kWaiting;
  waiting_.push_back(&poll);
}

// Sends on what may go. Called whenever something has changed for receives that wait.
void SqsGate::PumpPolls() {
  if (pumping_) return;
  pumping_ = true;
  const std::vector<SqsExchange*> polls(waiting_.begin(), waiting_.end());
  for (SqsExchange* poll : polls) {
    if (!MayReceive()) break;
    if (!Ask(*poll)) break;
  }
  pumping_ = false;
  EndDuePolls();
}

bool SqsGate::Ask(SqsExchange& poll) {
  const MonoTime now = Loop::Now();
  const SqsQueueTimes* times = queues_.Find(poll.queue, poll.queue_url, now);
  if (times == nullptr) return true;  // on_known
  const size_t messages = MessagesOf(poll.request);
  poll.full = !HasRoom(messages);
  if (poll.full) return false;
  if (!poll.wait_given && times->wait_seconds) {
    poll.wait_given = true;
    poll.wait_until = now + Duration::Seconds(*times->wait_seconds);
  }
  sqs::Rewrite rewrite;
  int seconds = sqs::kWaitSecondsMax;  // whatever the queue's own is
  if (poll.wait_given && IsWait(poll.request.wait_seconds.value_or(0))) {
    const Duration rest = base::Max(Duration::Zero(), poll.wait_until - now);
    seconds = std::min(RoundToSeconds(rest), WaitCap());
    rewrite.wait_seconds = seconds;
  }
  poll.asked_seconds = rewrite.wait_seconds.value_or(0);
  ++poll.asked_times;
  poll.reserved = messages;
  reserved_ += messages;
  waiting_.remove(&poll);
  Call(poll, rewrite, Duration::Seconds(seconds) + kAnswerTime);
  return true;
}

// ---- from SQS to the client ----

void SqsGate::OnReceiveAnswer(SqsExchange& poll, base::Result<aws::Response> result) {
  if (!result.ok() || result->status >= 300) {
    HandOn(poll, std::move(result));
    return PumpPolls();
  }
  auto received = sqs::ParseReceived(poll.protocol, result->body);
  if (!received.ok()) {
    NoteTrouble("gate.upstream", "SQS's answer is not what SQS says", received.error().message);
    AnswerFault(poll,
                sqs::MakeFault(poll.protocol, sqs::FaultKind::kInternal,
                               "leasehold: " + received.error().message),
                "server_error");
  } else if (received->empty()) {
    OnEmpty(poll, std::move(result).value());
  } else {
    poll.received = std::move(received).value();
    poll.answer = std::move(result).value();
    OnReceived(poll);
  }
  PumpPolls();
}

void SqsGate::OnEmpty(SqsExchange& poll, aws::Response&& response) {
  reserved_ -= std::exchange(poll.reserved, 0);
  const MonoTime now = Loop::Now();
  // A service that does not wait would be asked in a circle.
  const bool waited = (now - poll.sent) * 2 >= Duration::Seconds(poll.asked_seconds);
  const bool more = poll.asked_seconds > 0 && waited && poll.wait_until - now >= kRestMin;
  if (poll.client == nullptr || !more) {
    return Say(poll, SqsPassOn(std::move(response)), "ok");
  }
  Wait(poll);  // PumpPolls follows
}

void SqsGate::OnReceived(SqsExchange& poll) {
  if (poll.client == nullptr) {
    GiveBackUnseen(poll, poll.detached);
    return Over(poll);
  }
  if (Confirming()) {
    poll.state = State::kParked;
    return;
  }
  if (Deliver(poll)) return;
  GiveBackUnseen(poll, "not_holding");
  AnswerEmpty(poll);
}

// Each message is in flight from now on. False: not now.
bool SqsGate::Deliver(SqsExchange& poll) {
  if (!MayReceive()) return false;
  std::vector<Ticket> tickets(poll.received.size());
  for (Ticket& ticket : tickets) {
    if (Admit(ticket).verdict != Verdict::kAdmit) return false;
  }
  const MonoTime now = Loop::Now();
  const SqsQueueTimes* times = queues_.Find(poll.queue, poll.queue_url, now);
  Duration visibility = times == nullptr ? SqsQueueTimes{}.visibility : times->visibility;
  if (poll.request.visibility_timeout) {
    visibility = Duration::Seconds(*poll.request.visibility_timeout);
  }
  for (size_t i = 0; i < tickets.size(); ++i) {
    const std::string& handle = poll.received[i].receipt_handle;
    poll.client->delivering.push_back({poll.queue, handle});
    if (visibility <= Duration::Zero()) continue;  // visible to all at once, by its own wish
    in_flight_.Add(poll.queue, handle, now + visibility, std::move(tickets[i]));
  }
  poll.client->delivering_url = poll.queue_url;
  poll.gated = true;
  ArmExpiry();
  Say(poll, SqsPassOn(std::move(*poll.answer)), "ok");
  return true;
}

void SqsGate::GiveBackUnseen(const SqsExchange& poll, std::string_view reason) {
  SqsGiveBack::Batch batch;
  batch.queue_url = poll.queue_url;
  batch.reason = reason;
  for (const sqs::Received& message : poll.received) {
    batch.messages.push_back({poll.queue, message.receipt_handle});
  }
  give_back_.Add(std::move(batch));
}

void SqsGate::AnswerEmpty(SqsExchange& poll) {
  Say(poll, sqs::EmptyReceive(poll.protocol, RequestId()), poll.full ? "full" : "standby");
}

// ---- changes of the lease ----

// What is with SQS goes on without its client.
void SqsGate::EndOpenPolls(std::string_view reason) {
  std::vector<SqsExchange*> open;
  for (const auto& exchange : exchanges_) {
    if (exchange->kind == sqs::Kind::kReceive && exchange->state == State::kCalling &&
        exchange->client != nullptr) {
      open.push_back(exchange.get());
    }
  }
  for (SqsExchange* poll : open) {
    SqsConnection* client = std::exchange(poll->client, nullptr);
    if (client == nullptr) continue;  // it has left meanwhile
    poll->detached = reason;
    client->exchange = nullptr;
    CountRequest(*poll, "standby");
    client->Answer(sqs::EmptyReceive(poll->protocol, RequestId()), false);
  }
}

void SqsGate::SettleParked() {
  if (Confirming()) return;
  std::vector<SqsExchange*> parked;
  for (const auto& exchange : exchanges_) {
    if (exchange->state == State::kParked) parked.push_back(exchange.get());
  }
  for (SqsExchange* poll : parked) {
    if (poll->state == State::kParked) OnReceived(*poll);
  }
}

// ---- waits that are over ----

// A receive that may go on waits for its queue's times alone, and that is bounded. Nothing comes
// any more when the process goes away.
void SqsGate::EndDuePolls() {
  const bool may = MayReceive();
  const MonoTime now = Loop::Now();
  std::vector<SqsExchange*> due;
  for (SqsExchange* poll : waiting_) {
    if (leaving() || ((!may || poll->full) && poll->wait_until <= now)) due.push_back(poll);
  }
  for (SqsExchange* poll : due) {
    if (poll->state != State::kWaiting) continue;
    if (poll->full) {
      CountRefused("max_in_flight");
      uint64_t suppressed = 0;
      if (full_limit_.Allow(now, &suppressed)) {
        host().log.Warn("gate.sqs_full",
                        "as many messages as allowed are in flight: nothing more is received",
                        {{"gate", options().name},
                         {"in_flight", uint64_t{in_flight_.size()}},
                         {"max_in_flight", options().sqs.max_in_flight},
                         {"suppressed", suppressed}});
      }
    }
    AnswerEmpty(*poll);
  }
  ArmPollTimer();
}

void SqsGate::ArmPollTimer() {
  const bool may = MayReceive();
  MonoTime next = MonoTime::Never();
  for (const SqsExchange* poll : waiting_) {
    if (!may || poll->full) next = base::Min(next, poll->wait_until);
  }
  poll_timer_.StartAt(next);
}

}  // namespace leasehold::gate

// The gate's connections and exchanges: coming, leaving, being buried.
#include <algorithm>
#include <utility>

#include "base/check.h"
#include "gate/sqs_machine.h"

namespace leasehold::gate {

namespace sqs = proto::sqs;
using base::MonoTime;
using loop::Loop;
using State = SqsExchange::State;

namespace {

// All request bodies together, at least: eight of the largest, or thousands of usual ones.
constexpr size_t kBodiesBytesMin = size_t{64} * 1024 * 1024;

}  // namespace

// ---- connections ----

void SqsGate::OnAccepted(int fd, std::string peer) {
  connections_.push_back(std::make_unique<SqsConnection>(
      *this, host().loop, options(), loop::AdoptSocket(host().loop, fd, std::move(peer))));
  connections_.back()->index = connections_.size() - 1;
  if (!sweep_timer_.armed()) sweep_timer_.StartAfter(sweep_interval_);
  connections_.back()->Start();
}

uint64_t SqsGate::connections() const {
  uint64_t count = connections_.size();
  if (leaving()) count += exchanges_.size() + (give_back_.idle() ? 0 : 1);
  return count;
}

void SqsGate::OnLeave() {
  for (size_t i = connections_.size(); i-- > 0;) {
    if (i < connections_.size()) connections_[i]->EndAfterAnswer();
  }
  EndDuePolls();
}

void SqsGate::Sweep() {
  const MonoTime now = host().loop.CachedNow();
  for (size_t i = connections_.size(); i-- > 0;) {
    if (i < connections_.size()) connections_[i]->OnSweep(now);
  }
  if (!connections_.empty()) sweep_timer_.StartAfter(sweep_interval_);
}

// A client that waits for messages, or for its turn, has given up. What is with SQS is answered.
bool SqsGate::LeftBy(SqsConnection& connection) {
  const SqsExchange* exchange = connection.exchange;
  return exchange == nullptr || exchange->kind == sqs::Kind::kReceive ||
         exchange->state != State::kCalling;
}

void SqsGate::OnClosing(SqsConnection& connection, bool answered) {
  if (SqsExchange* exchange = std::exchange(connection.exchange, nullptr)) {
    exchange->client = nullptr;
    if (exchange->state != State::kCalling) {
      if (exchange->state == State::kParked) GiveBackUnseen(*exchange, "client_left");
      CountRequest(*exchange, "client_left");
      Over(*exchange);
    } else if (exchange->kind == sqs::Kind::kReceive) {
      exchange->detached = "client_left";
    }
  }
  // Half an answer is none: the application has not seen its messages.
  if (!answered && !connection.delivering.empty()) {
    SqsGiveBack::Batch batch;
    batch.queue_url = connection.delivering_url;
    batch.reason = "client_left";
    batch.messages = std::move(connection.delivering);
    for (const auto& place : batch.messages) in_flight_.GivenBack(place.queue, place.handle);
    give_back_.Add(std::move(batch));
  }
  const size_t index = connection.index;
  CHECK(index < connections_.size() && connections_[index].get() == &connection,
        "a connection is in its gate's table");
  buried_connections_.push_back(std::move(connections_[index]));
  if (index + 1 != connections_.size()) {
    connections_[index] = std::move(connections_.back());
    connections_[index]->index = index;
  }
  connections_.pop_back();
  Bury();
  ConnectionEnded();
}

bool SqsGate::TakeRoom(size_t bytes) {
  const size_t max = std::max(kBodiesBytesMin, size_t{options().body_bytes_max} * 4);
  if (body_bytes_ + bytes > max) return false;
  body_bytes_ += bytes;
  return true;
}

void SqsGate::CountBytes(size_t from_client, size_t to_client) {
  bytes_in_ += from_client;
  bytes_out_ += to_client;
}

// ---- exchanges ----

SqsExchange& SqsGate::Add(SqsConnection& connection) {
  exchanges_.push_back(std::make_unique<SqsExchange>());
  SqsExchange& exchange = *exchanges_.back();
  exchange.index = exchanges_.size() - 1;
  exchange.client = &connection;
  exchange.started = Loop::Now();
  connection.exchange = &exchange;
  return exchange;
}

// It is on the call stack more often than not: it is destroyed on the next turn.
void SqsGate::Over(SqsExchange& exchange) {
  if (exchange.state == State::kOver) return;
  if (exchange.state == State::kWaiting) waiting_.remove(&exchange);
  exchange.state = State::kOver;
  exchange.LeaveQueue();
  if (exchange.kind == sqs::Kind::kReceive) --polls_;
  reserved_ -= std::exchange(exchange.reserved, 0);
  if (exchange.client != nullptr) exchange.client->exchange = nullptr;
  exchange.client = nullptr;
  const size_t index = exchange.index;
  CHECK(index < exchanges_.size() && exchanges_[index].get() == &exchange,
        "an exchange is in its gate's table");
  buried_exchanges_.push_back(std::move(exchanges_[index]));
  if (index + 1 != exchanges_.size()) {
    exchanges_[index] = std::move(exchanges_.back());
    exchanges_[index]->index = index;
  }
  exchanges_.pop_back();
  Finished(exchange.ticket);
  Bury();
  ConnectionEnded();
}

void SqsGate::Bury() {
  if (std::exchange(burying_, true)) return;
  host().loop.Post([weak = std::weak_ptr<SqsGate*>(self_)] {
    auto self = weak.lock();
    if (self == nullptr) return;
    (*self)->burying_ = false;
    (*self)->buried_exchanges_.clear();
    (*self)->buried_connections_.clear();
  });
}

}  // namespace leasehold::gate

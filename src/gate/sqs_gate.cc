#include "gate/sqs_gate.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/check.h"
#include "base/text.h"
#include "crypto/digest.h"
#include "gate/sqs_machine.h"
#include "lease/events.h"
#include "proto/sqs_url.h"

namespace leasehold::gate {

namespace sqs = proto::sqs;
using base::Duration;
using base::MonoTime;
using lease::Valve;
using loop::Loop;
using State = SqsExchange::State;

namespace {

constexpr Duration kTroubleInterval = Duration::Seconds(1);
constexpr Duration kFullInterval = Duration::Seconds(30);  // a state, not an event
// One sweep for all messages: their times are whole seconds.
constexpr Duration kExpiryInterval = Duration::Millis(100);
// All request bodies together, at least: eight of the largest, or thousands of usual ones.
constexpr size_t kBodiesBytesMin = size_t{64} * 1024 * 1024;
// Connections to SQS beside those of receives: everything else is answered in milliseconds.
constexpr size_t kOtherCallsMax = 512;

aws::ServiceLimits LimitsOf(const Options& options) {
  aws::ServiceLimits limits;
  limits.connect_timeout = options.connect_timeout;
  limits.idle_max = options.upstream_idle_max;
  limits.connections_max = options.sqs.max_polls + kOtherCallsMax;
  return limits;
}

// A quarter of the shortest time-out: none is late by more than that. At most a second.
Duration SweepInterval(const Options& options) {
  Duration shortest = Duration::Seconds(4);
  for (const Duration d : {options.head_timeout, options.idle_timeout, options.body_timeout}) {
    shortest = base::Min(shortest, d);
  }
  return base::Max(shortest / 4, Duration::Millis(10));
}

}  // namespace

SqsGate::SqsGate(const Options& options, Host host_in,
                 std::shared_ptr<aws::CredentialsProvider> credentials, aws::Endpoint endpoint)
    : GateFrame(options, std::move(host_in), "sqs"),
      service_(host().loop, std::move(endpoint), std::move(credentials), LimitsOf(options),
               host().log),
      client_(host().loop, service_),
      random_(Loop::Entropy()),
      in_flight_(options.sqs.max_in_flight),
      queues_(host().loop, client_, host().log, options.name, [this] { PumpPolls(); }),
      give_back_(host().loop, client_,
                 {[this] { return MayPass(); },
                  [this](const SqsGiveBack::Batch& batch, const SqsGiveBack::Result& result) {
                    OnGivenBack(batch, result);
                  }}),
      sweep_timer_(host().loop, [this] { Sweep(); }),
      poll_timer_(host().loop, [this] { EndDuePolls(); }),
      expiry_timer_(host().loop, [this] { LookAtDeadlines(); }),
      give_back_timer_(host().loop, [this] { GiveBackSeen(); }),
      sweep_interval_(SweepInterval(options)),
      trouble_limit_(kTroubleInterval),
      full_limit_(kFullInterval),
      given_limit_(kTroubleInterval),
      latency_(host().metrics.AddHistogram("leasehold_gate_sqs_upstream_seconds",
                                           "From a call to SQS to its answer; receives apart.",
                                           Labels(), observe::LatencyBounds())),
      receive_latency_(
          host().metrics.AddHistogram("leasehold_gate_sqs_receive_seconds",
                                      "From a receive to SQS's answer, its wait included.",
                                      Labels(), {0.01, 0.1, 1, 2, 5, 10, 15, 20, 25})),
      self_(std::make_shared<SqsGate*>(this)) {
  host().metrics.AddCollector([weak = std::weak_ptr<SqsGate*>(self_)](observe::Samples& samples) {
    if (auto self = weak.lock()) (*self)->CollectSqs(samples);
  });
}

SqsGate::~SqsGate() {
  // What is with SQS can be waited for no longer.
  for (const auto& exchange : exchanges_) {
    exchange->client = nullptr;
    exchange->LeaveQueue();
  }
  for (const auto& connection : connections_) connection->exchange = nullptr;
  while (!connections_.empty()) connections_.back()->Cut();
}

// ---- the valve ----

base::Status SqsGate::OnValve(const ValveChange& change) {
  give_back_timer_.Stop();
  giving_back_ = false;
  switch (change.valve) {
    case Valve::kOpen:
    case Valve::kHolding: break;
    case Valve::kDraining: {
      EndOpenPolls("draining");
      const Duration drain = change.drain_end - Loop::Now();
      give_back_timer_.StartAt(change.drain_end - GiveBackLead(in_flight_.size(), drain));
      break;
    }
    case Valve::kClosed: {
      give_back_.DropSeen();
      CutExchanges();
      if (const size_t left = in_flight_.EndTerm(); left > 0) {
        host().log.Info(
            "gate.sqs_former",
            "messages were in flight when the term ended: they come back at their "
            "visibility time-outs, and their handles are refused until then",
            {{"gate", options().name}, {"messages", uint64_t{left}}, {"reason", change.reason}});
      }
      EndOpenPolls(change.lost ? "lost" : "released");
      for (size_t i = connections_.size(); i-- > 0;) {
        if (i < connections_.size()) connections_[i]->OnShut();
      }
      break;
    }
  }
  SettleParked();
  PumpPolls();
  return {};
}

// The drain's end is near. Again and again, as acknowledgements are answered; each message once.
void SqsGate::GiveBackSeen() {
  giving_back_ = core().valve() == Valve::kDraining;
  if (!giving_back_ || !MayPass()) return;
  std::vector<SqsInFlight::Place> places = in_flight_.TakeToGiveBack();
  for (size_t at = 0; at < places.size();) {
    SqsGiveBack::Batch batch;
    const std::string queue = places[at].queue;
    batch.queue_url = service_.endpoint().ToString() + queue;
    batch.seen = true;
    batch.reason = "grace_over";
    while (at < places.size() && places[at].queue == queue) {
      batch.messages.push_back(std::move(places[at++]));
    }
    give_back_.Add(std::move(batch));
  }
}

void SqsGate::OnGivenBack(const SqsGiveBack::Batch& batch, const SqsGiveBack::Result& result) {
  if (batch.seen) {
    for (const SqsInFlight::Place& place : batch.messages) {
      in_flight_.GivenBack(place.queue, place.handle);
    }
  }
  for (const bool ok : {true, false}) {
    observe::Labels labels = Labels();
    labels["reason"] = batch.reason;
    labels["result"] = ok ? "ok" : "failed";
    host()
        .metrics
        .AddCounter("leasehold_gate_sqs_given_back_total",
                    "Messages made visible again because this instance does not see them through.",
                    labels)
        .Add(ok ? result.ok : result.failed);
  }
  uint64_t suppressed = 0;
  if (given_limit_.Allow(Loop::Now(), &suppressed)) {
    host().log.Write(result.failed > 0 ? observe::LogLevel::kWarn : observe::LogLevel::kInfo,
                     "gate.sqs_given_back", "messages were given back to the queue",
                     {{"gate", options().name},
                      {"queue", base::Printable(batch.messages[0].queue)},
                      {"reason", batch.reason},
                      {"given_back", uint64_t{result.ok}},
                      {"failed", uint64_t{result.failed}},
                      {"error", result.error},
                      {"suppressed", suppressed}});
  }
  Ticket none;
  Finished(none);
  ArmExpiry();
  ConnectionEnded();
}

void SqsGate::LookAtDeadlines() {
  in_flight_.Expire(Loop::Now());
  Ticket none;
  Finished(none);
  PumpPolls();
  ArmExpiry();
}

void SqsGate::ArmExpiry() {
  const MonoTime next = in_flight_.NextExpiry();
  if (next.is_never()) return expiry_timer_.Stop();
  expiry_timer_.StartAt(base::Max(next, Loop::Now() + kExpiryInterval));
}

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

// ---- words and numbers ----

SqsSpeaker SqsGate::Speaker(const SqsExchange& exchange) const {
  SqsSpeaker speaker;
  speaker.lease = host().lease;
  speaker.state = host().lease_state ? host().lease_state()
                                     : std::string_view(lease::ValveName(core().valve()));
  speaker.action = sqs::ActionName(exchange.action);
  if (speaker.action.empty()) speaker.action = "the request";
  return speaker;
}

// As SQS makes them: a UUID.
std::string SqsGate::RequestId() {
  const uint64_t high = random_.Next();
  const uint64_t low = random_.Next();
  std::array<uint8_t, 16> bytes{};
  for (size_t i = 0; i < 8; ++i) {
    bytes[i] = static_cast<uint8_t>(high >> (8 * i));
    bytes[8 + i] = static_cast<uint8_t>(low >> (8 * i));
  }
  std::string id = crypto::Hex(bytes);
  for (const size_t at : {size_t{20}, size_t{16}, size_t{12}, size_t{8}}) id.insert(at, 1, '-');
  return id;
}

observe::Labels SqsGate::Labels() const {
  return {{"gate", options().name}, {"lease", host().lease}};
}

void SqsGate::CountRequest(const SqsExchange& exchange, std::string_view result) {
  observe::Labels labels = Labels();
  const std::string_view action = sqs::ActionName(exchange.action);
  labels["action"] = action.empty() ? "unknown" : action;
  labels["result"] = result;
  host()
      .metrics
      .AddCounter("leasehold_gate_sqs_requests_total",
                  "Requests of the application to an sqs gate, by action and what became of them.",
                  labels)
      .Add();
}

void SqsGate::CountRefused(std::string_view reason) {
  observe::Labels labels = Labels();
  labels["reason"] = reason;
  host()
      .metrics
      .AddCounter("leasehold_gate_sqs_refused_total",
                  "What an sqs gate refused for another reason than the lease's state.", labels)
      .Add();
}

void SqsGate::NoteTrouble(std::string_view event, std::string_view message,
                          std::string_view error) {
  uint64_t suppressed = 0;
  if (!trouble_limit_.Allow(Loop::Now(), &suppressed)) return;
  host().log.Warn(event, message,
                  {{"gate", options().name},
                   {"upstream", service_.endpoint().ToString()},
                   {"error", error},
                   {"suppressed", suppressed}});
}

void SqsGate::CollectSqs(observe::Samples& samples) const {
  samples.Gauge("leasehold_gate_sqs_polls", "Receives that wait, here or with SQS.", Labels(),
                static_cast<double>(polls_));
  samples.Gauge("leasehold_gate_sqs_messages_in_flight",
                "Messages that the application received and has not finished.", Labels(),
                static_cast<double>(in_flight_.size()));
  samples.Gauge("leasehold_gate_sqs_former_handles",
                "Receipt handles of ended terms, refused until their visibility time-out.",
                Labels(), static_cast<double>(in_flight_.former()));
}

std::unique_ptr<Gate> MakeSqsGate(const Options& options, Host host,
                                  std::shared_ptr<aws::CredentialsProvider> credentials,
                                  aws::Endpoint endpoint) {
  CHECK(options.type == Type::kSqs && options.outbound, "the options are another gate's");
  return std::make_unique<SqsGate>(options, std::move(host), std::move(credentials),
                                   std::move(endpoint));
}

}  // namespace leasehold::gate

#include "gate/sqs_gate.h"

#include <utility>

#include "base/check.h"
#include "base/text.h"
#include "gate/sqs_machine.h"

namespace leasehold::gate {

using base::Duration;
using base::MonoTime;
using lease::Valve;
using loop::Loop;

namespace {

constexpr Duration kTroubleInterval = Duration::Seconds(1);
constexpr Duration kGivenInterval = Duration::Millis(500);  // a drain's end is that short
constexpr Duration kFullInterval = Duration::Seconds(30);   // a state, not an event
// One sweep for all messages: their times are whole seconds.
constexpr Duration kExpiryInterval = Duration::Millis(100);
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
      given_timer_(host().loop, [this] { TellGivenBack(); }),
      sweep_interval_(SweepInterval(options)),
      trouble_limit_(kTroubleInterval),
      full_limit_(kFullInterval),
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
  TellGivenBack();
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
      TellGivenBack();
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
  NoteGivenBack(batch, result);
  Ticket none;
  Finished(none);
  ArmExpiry();
  ConnectionEnded();
}

// One line for what is given back within kGivenInterval, and none of it is left out: the end of a
// drain gives back thousands, ten at a time.
void SqsGate::NoteGivenBack(const SqsGiveBack::Batch& batch, const SqsGiveBack::Result& result) {
  const std::string queue = base::Printable(batch.messages[0].queue);
  const bool first = given_.ok + given_.failed == 0;
  given_queue_ = first || given_queue_ == queue ? queue : "several";
  given_reason_ = first || given_reason_ == batch.reason ? batch.reason : "several";
  given_.ok += result.ok;
  given_.failed += result.failed;
  if (result.failed > 0) given_.error = result.error;
  if (!given_timer_.armed()) given_timer_.StartAfter(kGivenInterval);
}

void SqsGate::TellGivenBack() {
  given_timer_.Stop();
  const SqsGiveBack::Result given = std::exchange(given_, {});
  if (given.ok + given.failed == 0) return;
  host().log.Write(given.failed > 0 ? observe::LogLevel::kWarn : observe::LogLevel::kInfo,
                   "gate.sqs_given_back", "messages were given back to the queue",
                   {{"gate", options().name},
                    {"queue", given_queue_},
                    {"reason", given_reason_},
                    {"given_back", uint64_t{given.ok}},
                    {"failed", uint64_t{given.failed}},
                    {"error", given.error}});
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

std::unique_ptr<Gate> MakeSqsGate(const Options& options, Host host,
                                  std::shared_ptr<aws::CredentialsProvider> credentials,
                                  aws::Endpoint endpoint) {
  CHECK(options.type == Type::kSqs && options.outbound, "the options are another gate's");
  return std::make_unique<SqsGate>(options, std::move(host), std::move(credentials),
                                   std::move(endpoint));
}

}  // namespace leasehold::gate

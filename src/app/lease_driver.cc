#include "app/lease_driver.h"

#include <algorithm>
#include <utility>

#include "base/text.h"

namespace leasehold::app {
namespace {

using base::Duration;
using base::MonoTime;
using loop::Loop;

// How often a standby proves that it could write: a full store is found well before it is needed,
// and two small writes a minute cost the store nothing.
constexpr Duration kWriteProbeInterval = Duration::Seconds(30);
constexpr Duration kWriteProbeTimeout = Duration::Seconds(5);

// A gate that doubts the holder it forwards to has the record read again, at most so often.
constexpr Duration kDoubtInterval = Duration::Millis(100);

// What a gate of this name may forward to, if the record names another process as the holder.
gate::Peer PeerOf(const lease::Record* holder, const std::string& gate) {
  gate::Peer peer;
  if (holder == nullptr) return peer;
  const auto advertised = holder->peers.find(gate);
  if (advertised == holder->peers.end()) return peer;
  const base::Result<base::Address> address = base::ParseAddress(advertised->second);
  const bool usable =
      address.ok() && (address->kind == base::Address::Kind::kUnix || address->port != 0);
  if (!usable) return peer;
  peer.address = *address;
  peer.process_id = holder->process_id;
  peer.token = holder->token;
  peer.draining = holder->state == lease::RecordState::kDraining;
  return peer;
}

lease::ReadAnswer ToAnswer(uint64_t op, store::ReadResult result) {
  lease::ReadAnswer answer;
  answer.op = op;
  switch (result.outcome) {
    case store::ReadResult::Outcome::kAbsent:
      answer.outcome = lease::ReadAnswer::Outcome::kAbsent;
      break;
    case store::ReadResult::Outcome::kRecord:
      answer.outcome = lease::ReadAnswer::Outcome::kRecord;
      answer.record = std::move(result.record);
      answer.version = std::move(result.version);
      answer.holder_dead = result.holder_dead;
      break;
    case store::ReadResult::Outcome::kAmbiguous:
      answer.outcome = lease::ReadAnswer::Outcome::kAmbiguous;
      break;
    case store::ReadResult::Outcome::kRefused:
      answer.outcome = lease::ReadAnswer::Outcome::kRefused;
      break;
  }
  answer.error = std::move(result.error);
  return answer;
}

lease::CasAnswer ToAnswer(uint64_t op, store::CasResult result) {
  lease::CasAnswer answer;
  answer.op = op;
  switch (result.outcome) {
    case store::CasResult::Outcome::kApplied:
      answer.outcome = lease::CasAnswer::Outcome::kApplied;
      break;
    case store::CasResult::Outcome::kConflict:
      answer.outcome = lease::CasAnswer::Outcome::kConflict;
      break;
    case store::CasResult::Outcome::kAmbiguous:
      answer.outcome = lease::CasAnswer::Outcome::kAmbiguous;
      break;
    case store::CasResult::Outcome::kRefused:
      answer.outcome = lease::CasAnswer::Outcome::kRefused;
      break;
  }
  answer.version = std::move(result.version);
  answer.record = std::move(result.record);
  answer.absent = result.absent;
  answer.error = std::move(result.error);
  return answer;
}

}  // namespace

LeaseDriver::LeaseDriver(Host host, const lease::Options& options, const lease::Identity& identity,
                         uint64_t seed, const lease::Memory& memory)
    : host_(std::move(host)),
      options_(options),
      identity_(identity),
      engine_(options, identity, seed, Loop::Now(), memory),
      deadline_(host_.loop, [this] { Feed(lease::Tick{}); }),
      probe_(host_.loop, [this] { ProbeWrite(); }),
      leave_end_(host_.loop, [this] { CheckLeft(); }),
      report_(host_.log, host_.metrics, host_.events, options.name, identity),
      audit_(host_.audit, options.name, identity) {}

LeaseDriver::~LeaseDriver() { *alive_ = false; }

void LeaseDriver::AddGate(std::unique_ptr<gate::Gate> gate) { gates_.push_back(std::move(gate)); }

base::Status LeaseDriver::StartGates() {
  for (const auto& gate : gates_) {
    if (base::Status started = gate->Start(); !started) return started;
  }
  return {};
}

void LeaseDriver::Start() {
  host_.store.Watch(options_.name, [this, alive = alive_](store::WatchEvent event) {
    if (*alive) OnWatch(event);
  });
  std::map<std::string, std::string> peers;
  for (const auto& gate : gates_) {
    if (std::string address = gate->advertised(); !address.empty()) {
      peers[gate->options().name] = std::move(address);
    }
  }
  engine_.SetPeers(std::move(peers));
  ProbeWrite();
  Feed(lease::Tick{});
}

// ---- events in ----

void LeaseDriver::Feed(lease::Event event) {
  if (stopped_) return;  // nothing is looked at any more, and other leases may go on for long
  queue_.push_back(std::move(event));
  if (!pumping_) Pump();
}

void LeaseDriver::Pump() {
  pumping_ = true;
  lease::Effects effects;
  while (!queue_.empty() && !stopped_) {
    const lease::Event event = std::move(queue_.front());
    queue_.pop_front();
    effects.clear();
    engine_.Step(Loop::Now(), event, effects);
    if (host_.on_step) host_.on_step(event, effects);
    TellPermit();
    for (const lease::Effect& effect : effects) {
      std::visit([this](const auto& e) { Carry(e); }, effect);
    }
    if (!effects.empty()) CheckDrained();
  }
  TellPeers();
  pumping_ = false;
  Arm();
  CheckLeft();
}

void LeaseDriver::Arm() {
  if (stopped_) {
    deadline_.Stop();
    probe_.Stop();
    leave_end_.Stop();
    return;
  }
  deadline_.StartAt(engine_.NextDeadline());
}

void LeaseDriver::LookSoon() {
  if (std::exchange(look_posted_, true)) return;
  host_.loop.Post([this, alive = alive_] {
    if (!*alive) return;
    look_posted_ = false;
    Feed(lease::Tick{});
    CheckDrained();
    CheckLeft();
  });
}

// ---- forwarding, and going away ----

void LeaseDriver::TellPeers() {
  const std::optional<lease::Record>& seen = engine_.seen();
  const bool other = seen && seen->held() && seen->process_id != identity_.process_id;
  const auto same = [&] {
    return told_peers_.has_value() == other &&
           (!other ||
            (told_peers_->process_id == seen->process_id && told_peers_->token == seen->token &&
             told_peers_->state == seen->state && told_peers_->peers == seen->peers));
  };
  if (same()) return;
  told_peers_ = other ? seen : std::nullopt;
  for (const auto& gate : gates_) {
    const gate::Peer peer = PeerOf(other ? &*told_peers_ : nullptr, gate->options().name);
    if (other && gate->options().forwards() && peer.address.empty()) TellNoPeer(gate->options());
    gate->SetPeer(peer);
  }
}

// Once for each holder and change of what it advertises: what clients wait for then does not come.
void LeaseDriver::TellNoPeer(const gate::Options& gate) {
  std::string advertised;
  for (const auto& [name, address] : told_peers_->peers) {
    advertised += (advertised.empty() ? "" : ", ") + name + " at " + address;
  }
  host_.log.Warn(
      "gate.no_peer",
      "the holder advertises nothing to forward to for this gate; requests are held until "
      "hold_timeout. Every instance gives the gate the same name, and a peer_listen",
      {{"lease", options_.name},
       {"gate", gate.name},
       {"holder", told_peers_->node_id},
       {"advertised", advertised.empty() ? "nothing" : base::Printable(advertised)}});
}

void LeaseDriver::DoubtPeer() {
  const MonoTime now = Loop::Now();
  if (now < next_doubt_) return;
  next_doubt_ = now + kDoubtInterval;
  Feed(lease::Hint{true});
}

void LeaseDriver::Leave() {
  leaving_ = true;
  const bool stays = std::any_of(gates_.begin(), gates_.end(),
                                 [](const auto& gate) { return gate->options().outlasts_lease(); });
  Feed(lease::Shutdown{stays});
}

// What was held waits for the next holder as long as a hold-off would: by then one that is there
// has taken the lease. What is forwarded, or still with SQS, may take the grace.
void LeaseDriver::CheckLeft() {
  if (!leaving_ || stopped_ || pumping_) return;
  const lease::State state = engine_.state();
  if (state != lease::State::kStandby && state != lease::State::kHoldOff) return;
  const MonoTime now = Loop::Now();
  if (!std::exchange(gates_leave_, true)) {
    const lease::Timing& timing = engine_.timing();
    for (const auto& gate : gates_) {
      if (gate->options().outlasts_lease()) gate->Leave(now + timing.hold_off);
    }
    leave_end_.StartAt(now + Max(timing.grace, timing.hold_off));
  }
  const bool gone = std::all_of(gates_.begin(), gates_.end(), [](const auto& gate) {
    return !gate->options().outlasts_lease() || gate->gone();
  });
  if (gone || !leave_end_.armed()) Feed(lease::Shutdown{});
}

void LeaseDriver::TellPermit() {
  if (std::exchange(told_expiry_, permit().expiry()) == permit().expiry()) return;
  for (const auto& gate : gates_) gate->OnPermit(permit().expiry());
}

// Every gate is empty and every listener has said so. An outbound gate says empty when it is idle
// or drain_tunnels is over, and goes on carrying what in-flight work needs until the valve closes.
void LeaseDriver::CheckDrained() {
  if (permit().valve() != lease::Valve::kDraining) return;
  for (const auto& gate : gates_) {
    if (!gate->ends_last() && !gate->empty()) return;
  }
  if (!host_.listeners_drained(options_.name, permit().token())) return;
  for (const auto& gate : gates_) gate->OthersEmpty();
  for (const auto& gate : gates_) {
    if (!gate->empty()) return;
  }
  Feed(lease::Drained{permit().token()});
}

void LeaseDriver::OnRead(uint64_t op, store::ReadResult result) {
  host_.see_clocks(result.store_unix_ms);
  if (host_.proven_dead(result.record.process_id)) result.holder_dead = true;
  if (result.outcome == store::ReadResult::Outcome::kAbsent) audit_.SawNone();
  Feed(ToAnswer(op, std::move(result)));
}

void LeaseDriver::OnCas(uint64_t op, lease::CasEffect::Purpose purpose, MonoTime sent_at,
                        store::CasResult result) {
  host_.see_clocks(result.store_unix_ms);
  if (purpose == lease::CasEffect::Purpose::kRenew) {
    report_.CountRenewal(result.outcome, Loop::Now() - sent_at);
  }
  Feed(ToAnswer(op, std::move(result)));
}

void LeaseDriver::OnWatch(store::WatchEvent event) {
  using Kind = store::WatchEvent::Kind;
  switch (event.kind) {
    case Kind::kChangedHands: return Feed(lease::Hint{true});
    case Kind::kBeat: return Feed(lease::Hint{false});
    case Kind::kPushUp: return Feed(lease::PushState{true});
    case Kind::kPushDown: return Feed(lease::PushState{false});
  }
}

void LeaseDriver::StepDown(const admin::StepDownAsk& ask,
                           std::function<void(const lease::StepDownDone&)> done) {
  if (stopped_) {
    lease::StepDownDone unknown;
    unknown.expected = ask.expected;
    unknown.detail = "this process has stopped and does not watch who takes the lease";
    host_.loop.Post([done = std::move(done), unknown] { done(unknown); });
    return;
  }
  lease::StepDownRequest request;
  request.request = next_request_++;
  request.expected = ask.expected;
  request.take_back = ask.take_back;
  requests_.emplace(request.request, std::move(done));
  Feed(request);
}

// ---- effects out ----

void LeaseDriver::Carry(const lease::ReadEffect& effect) {
  host_.store.Read(options_.name, effect.timeout,
                   [this, alive = alive_, op = effect.op](store::ReadResult result) {
                     if (*alive) OnRead(op, std::move(result));
                   });
}

void LeaseDriver::Carry(const lease::CasEffect& effect) {
  lease::Record record = effect.record;
  if (effect.purpose == lease::CasEffect::Purpose::kAcquire) {
    acquired_at_unix_ms_ = Loop::WallNow().unix_ms;
    former_ = audit_.Acquiring(engine_.view().seen, record.token);
  }
  record.acquired_at_unix_ms = acquired_at_unix_ms_;
  record.former = former_;
  host_.store.CompareAndSet(options_.name, effect.expected, record, effect.timeout,
                            [this, alive = alive_, op = effect.op, purpose = effect.purpose,
                             sent_at = Loop::Now()](store::CasResult result) {
                              if (*alive) OnCas(op, purpose, sent_at, std::move(result));
                            });
}

void LeaseDriver::Carry(const lease::ValveEffect& effect) {
  gate::ValveChange change;
  change.valve = effect.valve;
  change.lost = effect.lost;
  change.drain_end = effect.drain_end;
  change.reason = std::string(lease::ReasonName(effect.reason));
  for (const auto& gate : gates_) {
    if (base::Status set = gate->SetValve(change); !set) {
      host_.log.Error("gate.start_failed", set.error().message,
                      {{"lease", options_.name}, {"gate", gate->options().name}});
      queue_.push_back(lease::StartFailed{effect.token, set.error().message});
      return;
    }
    report_.TellGate(gate->options().name, effect);
  }
  if (host_.on_valve) host_.on_valve(effect);
}

void LeaseDriver::Carry(const lease::NoticeEffect& effect) {
  if (effect.notice == lease::Notice::kAcquired) {
    sequence_ = 0;
    host_.remember(options_.name, effect.token, options_.ttl);
  }
  if (effect.notice == lease::Notice::kObserved) {
    if (const lease::View view = engine_.view(); view.seen) {
      host_.remember(options_.name, effect.token, view.seen->ttl());
    }
  }
  report_.Tell(effect);
  Audit(effect);
}

void LeaseDriver::Audit(const lease::NoticeEffect& effect) {
  switch (effect.notice) {
    case lease::Notice::kAcquired:
      return audit_.Acquired(effect.token, base::WallTime{acquired_at_unix_ms_});
    case lease::Notice::kLost: return audit_.Lost(effect.token, lease::ReasonName(effect.reason));
    case lease::Notice::kObserved:
      if (const lease::View view = engine_.view(); view.seen) audit_.Saw(*view.seen);
      return;
    default: return;
  }
}

void LeaseDriver::Carry(const lease::StepDownDone& effect) {
  const auto request = requests_.find(effect.request);
  if (request == requests_.end()) return;
  host_.loop.Post([done = std::move(request->second), effect] { done(effect); });
  requests_.erase(request);
}

void LeaseDriver::Carry(const lease::StoppedEffect& effect) {
  stopped_ = true;
  // Requests that the engine can answer no more: their outcome is unknown to this process.
  for (auto& [request, done] : requests_) {
    lease::StepDownDone unknown;
    unknown.request = request;
    unknown.detail = "this process stopped before the outcome was known";
    host_.loop.Post([answer = std::move(done), unknown] { answer(unknown); });
  }
  requests_.clear();
  host_.loop.Post([this, alive = alive_, effect] {
    if (*alive) host_.on_stopped(effect.ok, effect.why);
  });
}

// ---- the write probe of a standby ----

void LeaseDriver::ProbeWrite() {
  if (stopped_) return;
  probe_.StartAfter(kWriteProbeInterval);
  // A holder proves it with every renewal.
  if (permit().valve() != lease::Valve::kClosed) return report_.SetWriteTrouble("");
  host_.store.ProbeWrite(
      options_.name, kWriteProbeTimeout, [this, alive = alive_](const base::Status& status) {
        if (!*alive) return;
        // Unreachable is the lease calls' own news; refused is what would surprise a takeover.
        const bool refused = !status && status.error().code == base::ErrorCode::kRefused;
        report_.SetWriteTrouble(refused ? status.error().message : "");
      });
}

// ---- views ----

admin::LeaseView LeaseDriver::View() const {
  admin::LeaseView view;
  const MonoTime now = Loop::Now();
  view.view = engine_.view();
  // Our own writes get their wall clock on the way to the store; the engine knows none.
  if (std::optional<lease::Record>& seen = view.view.seen;
      seen && seen->process_id == identity_.process_id && seen->acquired_at_unix_ms == 0) {
    seen->acquired_at_unix_ms = acquired_at_unix_ms_;
  }
  view.timing = engine_.timing();
  view.may_act = permit().MayAct(now);
  if (view.may_act) view.to_expiry = permit().expiry() - now;
  view.store_answered_within_ttl =
      view.view.seen_at > MonoTime() && now - view.view.seen_at <= view.timing.ttl;
  for (const auto& gate : gates_) {
    const gate::GateStatus status = gate->status();
    admin::GateView shown;
    shown.name = status.name;
    shown.type = status.type;
    shown.lease = options_.name;
    shown.listen = status.listen;
    shown.upstream = status.upstream;
    shown.state = status.state;
    shown.connections = status.connections;
    shown.in_flight = status.in_flight;
    shown.held = status.held;
    shown.forwarding = status.forwarding;
    shown.peer_listen = status.peer_listen;
    shown.peer = status.peer;
    view.gates.push_back(std::move(shown));
  }
  return view;
}

}  // namespace leasehold::app

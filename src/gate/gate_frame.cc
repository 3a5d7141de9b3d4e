#include "gate/gate_frame.h"

#include <utility>

#include "lease/events.h"
#include "loop/stream.h"

namespace leasehold::gate {

using lease::Valve;
using loop::Loop;

namespace {

// One line about the holder's gate in this time; the counter has them all.
constexpr base::Duration kPeerLogInterval = base::Duration::Seconds(1);

}  // namespace

GateFrame::GateFrame(const Options& options, Host host, std::string_view type)
    : options_(options),
      host_(std::move(host)),
      type_(type),
      labels_({{"gate", options.name}, {"lease", host_.lease}}),
      listen_address_(options.listen),
      core_(options),
      hold_timer_(host_.loop,
                  [this] {
                    RefuseHeld();
                    ArmTimers();
                  }),
      tunnels_timer_(host_.loop, [this] { TunnelsEnd(); }),
      peer_timer_(host_.loop,
                  [this] {
                    ForwardHeld();
                    ArmTimers();
                  }),
      accepted_(host_.metrics.AddCounter("leasehold_gate_connections_total",
                                         "Connections accepted by a gate.", labels_)),
      not_admitted_(host_.metrics.AddCounter(
          "leasehold_gate_peer_doubts_total",
          "Times the holder's gate did not admit what was forwarded, or could not be reached.",
          labels_)),
      peer_log_(kPeerLogInterval),
      self_(std::make_shared<GateFrame*>(this)) {
  host_.metrics.AddCollector([weak = std::weak_ptr<GateFrame*>(self_)](observe::Samples& samples) {
    if (auto self = weak.lock()) {
      (*self)->Collect(samples);
    }
  });
}

GateFrame::~GateFrame() = default;

base::Status GateFrame::SetValve(const ValveChange& change) {
  change_ = change;
  core_.SetValve(change.valve, Loop::Now(), change.drain_end, host_.drain_tunnels);
  base::Status status = OnValve(change);
  if (!status.ok()) {
    core_.SetValve(Valve::kClosed, Loop::Now());
  }
  ServeHeld();
  ForwardHeld();
  RefuseHeld();
  ArmTimers();
  TellHost();
  return status;
}

std::string GateFrame::advertised() const {
  if (peer_listener_ == nullptr) return {};
  if (options_.advertise.empty()) return peer_listener_->bound().ToString();
  base::Address address = options_.advertise;
  if (address.kind == base::Address::Kind::kTcp && address.port == 0) {
    address.port = peer_listener_->bound().port;
  }
  return address.ToString();
}

void GateFrame::SetPeer(const Peer& peer) {
  if (core_.route().Set(peer)) OnNewPeer();
  ForwardHeld();
  ArmTimers();
}

void GateFrame::Leave(base::MonoTime until) {
  if (leaving_) return;
  leaving_ = true;
  // Who connected before this would be reset.
  if (listener_ != nullptr) listener_->AcceptWaiting();
  StopListening();
  core_.Leave(until);
  OnLeave();
  ArmTimers();
  ConnectionEnded();
}

void GateFrame::ConnectionEnded() {
  if (gone()) PostEmpty();
}

GateStatus GateFrame::status() const {
  GateStatus status;
  status.name = options_.name;
  status.type = type_;
  status.listen = listener_ == nullptr ? "" : listener_->bound().ToString();
  status.upstream = upstream_name();
  status.state = lease::ValveName(core_.valve());
  status.connections = connections();
  status.in_flight = core_.in_flight();
  status.held = core_.held();
  status.forwarding = forwarding();
  if (peer_listener_ != nullptr) status.peer_listen = peer_listener_->bound().ToString();
  if (core_.route().known()) status.peer = core_.route().peer().address.ToString();
  return status;
}

base::Status GateFrame::Listen() {
  if (listener_ != nullptr) {
    return {};
  }
  auto opened = loop::Listener::Open(
      host_.loop, listen_address_, {},
      [this](int fd, std::string peer) { Accept(fd, std::move(peer)); },
      [this](const base::Error& error) { AcceptTrouble(error); });
  if (!opened.ok()) {
    return base::Error{opened.error().code,
                       "gate \"" + options_.name + "\": " + opened.error().message};
  }
  listener_ = std::move(opened).value();
  listen_address_ = listener_->bound();
  host_.log.Info("gate.listen", "listening",
                 {{"gate", options_.name}, {"address", listen_address_.ToString()}});
  return {};
}

base::Status GateFrame::ListenForPeers() {
  if (options_.peer_listen.empty() || peer_listener_ != nullptr) return {};
  auto opened = loop::Listener::Open(
      host_.loop, options_.peer_listen, {},
      [this](int fd, std::string peer) { AcceptPeer(fd, std::move(peer)); },
      [this](const base::Error& error) { AcceptTrouble(error); });
  if (!opened.ok()) {
    return base::Error{opened.error().code,
                       "gate \"" + options_.name + "\", peer_listen: " + opened.error().message};
  }
  peer_listener_ = std::move(opened).value();
  host_.log.Info("gate.listen", "listening for other sidecars",
                 {{"gate", options_.name},
                  {"address", peer_listener_->bound().ToString()},
                  {"advertised", advertised()}});
  return {};
}

void GateFrame::AcceptPeer(int fd, std::string peer) {
  accepted_.Add();
  if (connections() >= options_.max_connections) {
    core_.CountRefusal(Refusal::kMaxConnections);
    loop::AdoptSocket(host_.loop, fd, std::move(peer)).reset();
    return;
  }
  OnPeerAccepted(fd, std::move(peer));
}

void GateFrame::Accept(int fd, std::string peer) {
  accepted_.Add();
  if (connections() >= options_.max_connections) {
    core_.CountRefusal(Refusal::kMaxConnections);
    OnOverLimit(fd, std::move(peer));
    return;
  }
  OnAccepted(fd, std::move(peer));
}

// Not left in the kernel's backlog: a client that is told can go elsewhere.
void GateFrame::OnOverLimit(int fd, std::string peer) {
  loop::AdoptSocket(host_.loop, fd, std::move(peer)).reset();
}

void GateFrame::AcceptTrouble(const base::Error& error) {
  host_.log.Warn("gate.accept", "cannot accept connections; trying again",
                 {{"gate", options_.name}, {"error", error.message}});
}

Decision GateFrame::Admit(Ticket& ticket) {
  const Decision decision = core_.Admit(Loop::Now(), host_.permit, ticket);
  if (decision.verdict != Verdict::kAdmit) {
    TellHost();
  }
  return decision;
}

Decision GateFrame::AdmitFromPeer(Ticket& ticket) {
  const Decision decision = core_.AdmitFromPeer(Loop::Now(), host_.permit, ticket);
  if (decision.verdict != Verdict::kAdmit) TellHost();
  return decision;
}

bool GateFrame::MayPass() {
  const bool may = core_.MayPass(Loop::Now(), host_.permit);
  TellHost();  // also when it may: on_loss = "finish" passes chunks after expiry
  return may;
}

bool GateFrame::Hold(HoldEntry& entry) {
  if (!core_.Hold(entry, Loop::Now())) {
    return false;
  }
  // What forwards may have to ask the holder's gate again soon.
  if (!hold_timer_.armed() || (options_.forwards() && !peer_timer_.armed())) ArmTimers();
  return true;
}

bool GateFrame::HoldAgain(HoldEntry& entry) {
  if (entry.hold_deadline().is_never()) return Hold(entry);
  if (!core_.HoldAgain(entry)) return false;
  ArmTimers();  // it may be due before all others
  return true;
}

bool GateFrame::TakeProbe() {
  const bool probe = core_.route().MayGo(Loop::Now()) == PeerRoute::Go::kProbe;
  if (probe) core_.route().ProbeSent();
  return probe;
}

void GateFrame::PeerAdmitted(uint64_t generation) {
  if (!core_.route().Admitted(generation)) return;
  ForwardHeld();
  ArmTimers();
}

void GateFrame::PeerDidNotAdmit(uint64_t generation, std::string_view why) {
  not_admitted_.Add();
  if (!core_.route().NotAdmitted(generation, Loop::Now())) return;
  ArmTimers();
  uint64_t suppressed = 0;
  if (peer_log_.Allow(Loop::Now(), &suppressed)) {
    host_.log.Warn("gate.peer",
                   "the holder's gate takes nothing from here; holding, and asking again",
                   {{"gate", options_.name},
                    {"peer", core_.route().peer().address.ToString()},
                    {"error", why},
                    {"suppressed", suppressed}});
  }
  host_.loop.Post([weak = std::weak_ptr<GateFrame*>(self_)] {
    auto self = weak.lock();
    if (self != nullptr && (*self)->host_.on_peer_doubt) (*self)->host_.on_peer_doubt();
  });
}

void GateFrame::PeerProbeDropped(uint64_t generation) {
  core_.route().ProbeDropped(generation, Loop::Now());
  peer_timer_.StartAt(core_.next_probe_at());
}

void GateFrame::Finished(Ticket& ticket) {
  ticket.Finish();
  TellHost();
}

void GateFrame::ServeHeld() {
  while (true) {
    Ticket ticket;
    HoldEntry* entry = core_.NextToServe(Loop::Now(), host_.permit, ticket);
    if (entry == nullptr) {
      return;
    }
    Serve(*entry, std::move(ticket));
  }
}

void GateFrame::ForwardHeld() {
  bool probe = false;
  while (HoldEntry* entry = core_.NextToForward(Loop::Now(), host_.permit, &probe)) {
    if (probe) core_.route().ProbeSent();
    Forward(*entry, probe);
  }
}

void GateFrame::RefuseHeld() {
  Refusal reason = Refusal::kClosed;
  while (HoldEntry* entry = core_.NextToRefuse(Loop::Now(), &reason)) {
    Refuse(*entry, reason);
  }
}

void GateFrame::ArmTimers() {
  hold_timer_.StartAt(core_.next_hold_deadline());
  tunnels_timer_.StartAt(core_.tunnels_end());  // Never() unless draining
  peer_timer_.StartAt(core_.next_probe_at());
}

void GateFrame::TunnelsEnd() {
  if (!has_tunnels()) return;
  if (options_.outbound) {
    core_.StopWaitingForTunnels();
  } else {
    CutTunnels();
  }
  TellHost();
}

void GateFrame::TellHost() {
  if (core_.TakeBecameEmpty()) {
    PostEmpty();
  }
  if (core_.TakeSawExpired()) {
    host_.loop.Post([weak = std::weak_ptr<GateFrame*>(self_)] {
      auto self = weak.lock();
      if (self != nullptr && (*self)->host_.on_expired) {
        (*self)->host_.on_expired();
      }
    });
  }
}

void GateFrame::PostEmpty() {
  host_.loop.Post([weak = std::weak_ptr<GateFrame*>(self_)] {
    auto self = weak.lock();
    if (self == nullptr || !(*self)->host_.on_empty) return;
    // The drain may have been called off since; the next one reports anew.
    if ((*self)->core_.empty() || (*self)->gone()) (*self)->host_.on_empty();
  });
}

void GateFrame::Collect(observe::Samples& samples) const {
  const bool open = core_.valve() == Valve::kOpen && host_.permit.MayAdmit(Loop::Now());
  samples.Gauge("leasehold_gate_open", "1 while the gate admits, by a fresh look at the permit.",
                labels_, open ? 1 : 0);
  samples.Gauge("leasehold_gate_connections", "Downstream connections open now.", labels_,
                static_cast<double>(connections()));
  samples.Gauge("leasehold_gate_in_flight", "Admitted and not yet finished.", labels_,
                static_cast<double>(core_.in_flight()));
  samples.Gauge("leasehold_gate_held", "Waiting for the gate to open.", labels_,
                static_cast<double>(core_.held()));
  if (options_.forwards()) {
    samples.Gauge("leasehold_gate_forwarding", "At the holder's gate, and not yet finished.",
                  labels_, static_cast<double>(forwarding()));
    samples.Gauge("leasehold_gate_peer_known",
                  "1 while the record names a holder's gate to forward to.", labels_,
                  core_.route().known() ? 1 : 0);
  }
  for (size_t i = 0; i < kRefusalCount; ++i) {
    const auto reason = static_cast<Refusal>(i);
    observe::Labels labels = labels_;
    labels["reason"] = RefusalName(reason);
    samples.CounterValue("leasehold_gate_refused_total",
                         "Requests or connections refused by a gate, by reason.", labels,
                         static_cast<double>(core_.refusals(reason)));
  }
  observe::Labels labels = labels_;
  labels["direction"] = "upstream";
  samples.CounterValue("leasehold_gate_bytes_total", "Bytes carried, by where they went.", labels,
                       static_cast<double>(bytes_to_upstream()));
  labels["direction"] = "downstream";
  samples.CounterValue("leasehold_gate_bytes_total", "Bytes carried, by where they went.", labels,
                       static_cast<double>(bytes_to_downstream()));
}

}  // namespace leasehold::gate

#include "simulation/traffic.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "simulation/node.h"
#include "simulation/sim_gate.h"
#include "simulation/world.h"

namespace leasehold::simulation {
namespace {

constexpr uint64_t kStream = 0x74726166;
// A peer that is out of reach is noticed within this (DESIGN 4).
constexpr TrueNs kPeerNoticed = 3500 * kMillisecond;

}  // namespace

Traffic::Traffic(World& world)
    : world_(world),
      random_(world.scenario().seed ^ (kStream << 20)),
      breaks_(world.scenario().seed ^ (kStream << 10)) {
  every_ = static_cast<TrueNs>(static_cast<double>(world.scenario().ttl) /
                               world.scenario().requests_per_ttl);
}

TrueNs Traffic::Leg() {
  const double scale = static_cast<double>(world_.scenario().store.typical) / 4;
  return 1 + static_cast<TrueNs>(std::min(-std::log(1 - random_.Unit()), 8.0) * scale);
}

// ---- clients ----

void Traffic::Schedule() { Next(); }

void Traffic::Next() {
  const auto wait =
      static_cast<TrueNs>(-std::log(1 - random_.Unit()) * static_cast<double>(every_));
  world_.After(1 + wait, [this] {
    Send();
    Next();
  });
}

TrueNs Traffic::Work() {
  const double ttl = static_cast<double>(world_.scenario().ttl);
  if (world_.scenario().kind != Kind::kStorm) {
    return static_cast<TrueNs>(random_.Unit() * 0.005 * ttl);
  }
  // Mostly short; some longer than a grace, some longer than the lease.
  const double share = random_.Below(6) == 0 ? 1.5 * random_.Unit() * random_.Unit() : 0.01;
  return static_cast<TrueNs>(random_.Unit() * share * ttl);
}

void Traffic::Send() {
  const Scenario& s = world_.scenario();
  Request request;
  request.id = requests_.size() + 1;
  request.post = random_.Below(2) == 0;
  request.tunnel = s.kind == Kind::kStorm && random_.Below(40) == 0;
  request.sent_at = world_.now();
  request.work = Work();
  request.node = static_cast<int>(random_.Below(s.nodes.size()));
  // A configuration that a restart brings may have one gate only.
  request.gate = random_.Below(s.nodes[static_cast<size_t>(request.node)].gates.size());
  requests_.push_back(request);
  const Request& sent = requests_.back();
  world_.Tell(&Checker::Requested, sent);
  world_.After(Leg(), [this, &sent] { Arrive(sent); });
  if (s.kind != Kind::kStorm || random_.Below(25) != 0) return;
  const auto patience = static_cast<TrueNs>(random_.Unit() * static_cast<double>(s.ttl));
  world_.After(patience, [this, &sent] {
    world_.Tell(&Checker::Abandoned, sent);
    Node& at = *world_.nodes()[static_cast<size_t>(sent.node)];
    if (!at.running() || sent.gate >= at.gates().size()) return;
    at.Arrives([&at, &sent] { at.gates()[sent.gate]->ClientGone(sent); });
  });
}

void Traffic::Arrive(const Request& request) {
  Node& at = *world_.nodes()[static_cast<size_t>(request.node)];
  if (!at.running() || request.gate >= at.gates().size()) {  // nobody listens
    return Answer(request, AnswerFact::Kind::kRefused);
  }
  // What waits in the sockets of a process that dies is reset: nothing was done.
  at.Arrives([&at, &request] { at.gates()[request.gate]->Arrive(request); },
             [this, &request] { Answer(request, AnswerFact::Kind::kRefused); });
}

void Traffic::Answer(const Request& request, AnswerFact::Kind kind) {
  world_.After(Leg(), [this, &request, kind] {
    world_.Tell(&Checker::Answered, {request, world_.now(), kind});
  });
}

// ---- applications and the resource behind them ----

void Traffic::ToApplication(const Process& process, const Request& request, uint64_t token,
                            std::function<void(bool applied)> done) {
  Node& node = *world_.nodes()[static_cast<size_t>(process.node)];
  world_.After(Leg() + request.work, [this, &node, &process, &request, token, alive = node.Alive(),
                                      done = std::move(done)] {
    const bool applied = fence_.Apply(token, process.identity.process_id);
    if (world_.tracing()) {
      world_.Trace(Name(process), "executes request " + std::to_string(request.id) + " token=" +
                                      std::to_string(token) + (applied ? "" : ", fenced off"));
    }
    world_.Tell(&Checker::Executed, {process, world_.now(), request, token, applied});
    if (request.tunnel) return;
    world_.After(Leg(), [&node, alive, done, applied] {
      if (!alive.expired()) node.Arrives([done, applied] { done(applied); });
    });
  });
}

// ---- between gates ----

bool Traffic::Breaks(const std::string& address, const PeerCall& call) {
  if (*call.broken) return true;
  if (world_.faults_over() || breaks_.Unit() >= world_.scenario().faults.peer_break) return false;
  if (world_.tracing()) {
    world_.Trace("network", "breaks between n" + std::to_string(call.from) + " and " + address +
                                ", request " + std::to_string(call.request->id));
  }
  *call.broken = true;
  const auto noticed = [&] {
    const TrueNs most = breaks_.Below(2) == 0 ? kPeerNoticed : 10 * kMillisecond;
    return 1 + static_cast<TrueNs>(breaks_.Unit() * static_cast<double>(most));
  };
  world_.After(noticed(), [this, call] { Answered(call, PeerReply::kReset); });
  world_.After(noticed(), [this, address, call] { Gone(address, call); });
  return true;
}

void Traffic::AtPeer(const std::string& address, const PeerCall& call,
                     std::function<void(SimGate&)> arrives) {
  world_.After(Leg(), [this, address, call, arrives = std::move(arrives)] {
    for (const auto& node : world_.nodes()) {
      SimGate* gate = node->running() ? node->GateAt(address) : nullptr;
      if (gate == nullptr) continue;
      return node->Arrives([gate, arrives] { arrives(*gate); },
                           [this, call] { Reply(call, PeerReply::kReset); });
    }
    Reply(call, PeerReply::kReset);  // nobody listens there
  });
}

void Traffic::Call(const std::string& address, PeerCall call) {
  if (Breaks(address, call)) return;
  AtPeer(address, call, [call](SimGate& gate) { gate.FromPeer(call); });
}

void Traffic::Body(const std::string& address, PeerCall call) {
  if (Breaks(address, call)) return;
  AtPeer(address, call, [call](SimGate& gate) { gate.PeerBody(call); });
}

void Traffic::Gone(const std::string& address, PeerCall call) {
  AtPeer(address, call, [call](SimGate& gate) { gate.PeerGone(call); });
}

void Traffic::Reply(const PeerCall& call, PeerReply reply) {
  if (reply != PeerReply::kReset && Breaks(call.address, call)) return;
  world_.After(Leg(), [this, call, reply] { Answered(call, reply); });
}

bool Traffic::Lives(const std::string& address) const {
  for (const auto& node : world_.nodes()) {
    if (node->running() && node->GateAt(address) != nullptr) return !node->asleep();
  }
  return false;
}

void Traffic::Answered(const PeerCall& call, PeerReply reply) {
  if (call.sender.expired()) return;
  Node& node = *world_.nodes()[static_cast<size_t>(call.from)];
  node.Arrives([&node, call, reply] { node.gates().front()->FromHolder(call, reply); });
}

}  // namespace leasehold::simulation

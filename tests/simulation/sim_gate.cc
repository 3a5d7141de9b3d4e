#include "simulation/sim_gate.h"

#include <utility>
#include <vector>

#include "base/check.h"
#include "simulation/node.h"
#include "simulation/world.h"

namespace leasehold::simulation {
namespace {

using gate::Verdict;
using Said = AnswerFact::Kind;

// As the http gate's: how long a peer may give no sign of life, and how often one that admitted may
// break off before the client is told (gate/http_gate.h).
constexpr base::Duration kPeerPatience = base::Duration::Seconds(3);
constexpr int kLostAdmissionsMax = 3;

}  // namespace

SimGate::SimGate(World& world, Node& node, const Process& process, size_t index,
                 const gate::Options& options, gate::Host host)
    : GateFrame(options, std::move(host), "simulated"),
      world_(world),
      node_(node),
      process_(process),
      index_(index) {}

SimGate::Exchange& SimGate::Make(const Request& request) {
  auto exchange = std::make_unique<Exchange>();
  exchange->number = ++numbers_;
  exchange->request = &request;
  Exchange& made = *exchange;
  exchanges_.emplace(made.number, std::move(exchange));
  return made;
}

SimGate::Exchange* SimGate::Find(uint64_t number) {
  const auto found = exchanges_.find(number);
  return found == exchanges_.end() ? nullptr : found->second.get();
}

SimGate::Exchange* SimGate::FindFrom(const PeerCall& call) {
  for (const auto& [number, exchange] : exchanges_) {
    if (exchange->caller && exchange->caller->from == call.from &&
        exchange->caller->exchange == call.exchange && exchange->caller->attempt == call.attempt &&
        !exchange->caller->sender.owner_before(call.sender) &&
        !call.sender.owner_before(exchange->caller->sender)) {
      return exchange.get();
    }
  }
  return nullptr;
}

// ---- clients ----

void SimGate::Arrive(const Request& request) {
  if (leaving()) return world_.traffic().Answer(request, Said::kRefused);
  Exchange& exchange = Make(request);
  Route(exchange, Admit(exchange.ticket));
}

void SimGate::Route(Exchange& exchange, const gate::Decision& decision) {
  switch (decision.verdict) {
    case Verdict::kAdmit: Admitted(exchange); return ToApplication(exchange);
    case Verdict::kForward: return Send(exchange, TakeProbe());
    case Verdict::kHold:
      exchange.where = Exchange::Where::kHeld;
      exchange.was_held = true;
      if (!HoldAgain(exchange)) End(exchange, Said::kRefused);
      return;
    case Verdict::kRefuse: return End(exchange, Said::kRefused);
  }
}

void SimGate::ClientGone(const Request& request) {
  for (const auto& [number, exchange] : exchanges_) {
    if (exchange->caller || exchange->request != &request) continue;
    return Forget(*exchange);
  }
}

// ---- admitted ----

void SimGate::Serve(gate::HoldEntry& entry, gate::Ticket ticket) {
  auto& exchange = static_cast<Exchange&>(entry);
  exchange.ticket = std::move(ticket);
  Admitted(exchange);
  ToApplication(exchange);
}

void SimGate::Refuse(gate::HoldEntry& entry, gate::Refusal) {
  End(static_cast<Exchange&>(entry), Said::kRefused);
}

void SimGate::Admitted(Exchange& exchange) {
  world_.Tell(&Checker::Acted, {process_, world_.now(), host().permit.token(), *exchange.request,
                                index_, exchange.was_held, core().held()});
}

void SimGate::ToApplication(Exchange& exchange) {
  exchange.where = Exchange::Where::kApplication;
  const uint64_t token = host().permit.token();
  const uint64_t number = exchange.number;
  // Between the look at the permit and the act the kernel may stop the process, as long as it
  // likes. No look at a clock helps against that; the token does.
  if (!world_.faults_over() && world_.scenario().faults.freeze > 0 &&
      world_.traffic().StopsBetween()) {
    return node_.StopHere([this, number, token] { HandOver(number, token); });
  }
  HandOver(number, token);
}

void SimGate::HandOver(uint64_t number, uint64_t token) {
  const Exchange* exchange = Find(number);
  if (exchange == nullptr) return;
  world_.traffic().ToApplication(process_, *exchange->request, token, [this, number](bool applied) {
    ApplicationAnswered(number, applied);
  });
}

void SimGate::ApplicationAnswered(uint64_t number, bool applied) {
  Exchange* exchange = Find(number);
  if (exchange == nullptr) return;  // cut meanwhile
  if (!MayPass()) return End(*exchange, Said::kShut);
  world_.Tell(&Checker::Passed, {process_, world_.now(), index_});
  End(*exchange, applied ? Said::kDone : Said::kShut);  // the application's own error
}

base::Status SimGate::OnValve(const gate::ValveChange& change) {
  if (change.valve != lease::Valve::kClosed) return {};
  if (!change.lost || options().on_loss == gate::OnLoss::kCut) CutAdmitted();
  return {};
}

void SimGate::CutAdmitted() {
  std::vector<uint64_t> cut;
  for (const auto& [number, exchange] : exchanges_) {
    if (exchange->ticket.admitted()) cut.push_back(number);
  }
  for (const uint64_t number : cut) End(*Find(number), Said::kShut);
}

void SimGate::CutTunnels() {
  std::vector<uint64_t> cut;
  for (const auto& [number, exchange] : exchanges_) {
    if (exchange->ticket.admitted() && exchange->request->tunnel) cut.push_back(number);
  }
  for (const uint64_t number : cut) End(*Find(number), Said::kShut);
}

// ---- forwarding: this side ----

PeerCall SimGate::CallOf(const Exchange& exchange) const {
  return {process_.node,    node_.Alive(),    exchange.number,
          exchange.attempt, exchange.request, core().route().peer().process_id,
          exchange.address, exchange.broken};
}

void SimGate::Forward(gate::HoldEntry& entry, bool probe) {
  Send(static_cast<Exchange&>(entry), probe);
}

void SimGate::Send(Exchange& exchange, bool probe) {
  exchange.where = Exchange::Where::kPeer;
  exchange.was_held = true;
  exchange.probe = probe;
  exchange.admitted = false;
  exchange.generation = core().route().generation();
  exchange.address = core().route().peer().address.ToString();
  exchange.broken = std::make_shared<bool>(false);
  ++exchange.attempt;
  exchange.BeginWait(loop::Loop::Now() + options().hold_timeout);
  world_.traffic().Call(exchange.address, CallOf(exchange));
  Patience(exchange);
}

// A peer that lives says so now and then, before it admitted and after.
void SimGate::Patience(Exchange& exchange) {
  node_.CallAt(loop::Loop::Now() + kPeerPatience, [this, number = exchange.number,
                                                   attempt = exchange.attempt] {
    Exchange* late = Find(number);
    if (late == nullptr || late->where != Exchange::Where::kPeer || late->attempt != attempt) {
      return;
    }
    if (late->admitted && !*late->broken && world_.traffic().Lives(late->address)) {
      return Patience(*late);
    }
    Silent(*late);
  });
}

void SimGate::Silent(Exchange& exchange) {
  world_.traffic().Gone(exchange.address, CallOf(exchange));
  PeerFailed(exchange, exchange.admitted, "it gave no sign of life in time");
}

void SimGate::FromHolder(const PeerCall& call, PeerReply reply) {
  Exchange* exchange = Find(call.exchange);
  if (exchange == nullptr || exchange->where != Exchange::Where::kPeer ||
      exchange->attempt != call.attempt) {
    return;
  }
  switch (reply) {
    case PeerReply::kAdmitted:
    case PeerReply::kDone:
    case PeerReply::kShut:
      if (!exchange->admitted) {
        exchange->admitted = true;
        exchange->probe = false;
        exchange->ForgetDeadline();
        PeerAdmitted(exchange->generation);
      }
      if (reply == PeerReply::kDone) return End(*exchange, Said::kDone);
      if (reply == PeerReply::kShut) return End(*exchange, Said::kShut);
      if (exchange->request->post) world_.traffic().Body(exchange->address, call);
      return;
    case PeerReply::kNotAdmitted: return PeerFailed(*exchange, false, "it does not admit");
    case PeerReply::kReset:
      return PeerFailed(*exchange, exchange->admitted, "the connection broke");
  }
}

void SimGate::PeerFailed(Exchange& exchange, bool admission_lost, const char* why) {
  exchange.probe = false;
  PeerDidNotAdmit(exchange.generation, why);
  // What it may have executed is not sent again.
  if (admission_lost && exchange.request->post) return End(exchange, Said::kShut);
  if (admission_lost && ++exchange.lost_admissions >= kLostAdmissionsMax) {
    return End(exchange, Said::kShut);
  }
  RouteAgain(exchange);
}

void SimGate::RouteAgain(Exchange& exchange) {
  exchange.where = Exchange::Where::kHeld;
  const gate::Decision decision = Admit(exchange.ticket);
  const bool waits = decision.verdict == Verdict::kForward || decision.verdict == Verdict::kHold;
  if (waits && exchange.hold_deadline() <= loop::Loop::Now()) return End(exchange, Said::kShut);
  Route(exchange, decision);
}

// ---- forwarding: the holder's side ----

void SimGate::FromPeer(const PeerCall& call) {
  if (call.process_id != process_.identity.process_id) {
    return world_.traffic().Reply(call, PeerReply::kNotAdmitted);
  }
  Exchange& exchange = Make(*call.request);
  exchange.caller = call;
  if (AdmitFromPeer(exchange.ticket).verdict != Verdict::kAdmit) {
    world_.traffic().Reply(call, PeerReply::kNotAdmitted);
    return Forget(exchange);
  }
  Admitted(exchange);
  world_.traffic().Reply(call, PeerReply::kAdmitted);
  if (!call.request->post) return ToApplication(exchange);
  exchange.where = Exchange::Where::kBody;
}

void SimGate::PeerBody(const PeerCall& call) {
  Exchange* exchange = FindFrom(call);
  if (exchange == nullptr || exchange->where != Exchange::Where::kBody) return;
  if (!MayPass()) return End(*exchange, Said::kShut);
  ToApplication(*exchange);
}

void SimGate::PeerGone(const PeerCall& call) {
  if (Exchange* exchange = FindFrom(call)) Forget(*exchange);
}

// ---- ends ----

// A GET goes to a peer whole: one that was there may have been executed.
bool SimGate::MayHaveBeenDone(const Exchange& exchange) {
  return exchange.ticket.admitted() || (exchange.attempt > 0 && !exchange.request->post) ||
         (exchange.where == Exchange::Where::kPeer && exchange.admitted);
}

void SimGate::End(Exchange& exchange, Said kind) {
  if (kind == Said::kRefused && MayHaveBeenDone(exchange)) kind = Said::kShut;
  if (world_.tracing()) {
    static constexpr const char* kSaid[] = {"done", "refused", "cut"};
    world_.Trace(Name(process_), "gate " + options().name + " ends request " +
                                     std::to_string(exchange.request->id) + ": " +
                                     kSaid[static_cast<size_t>(kind)]);
  }
  if (exchange.caller) {
    world_.traffic().Reply(*exchange.caller,
                           kind == Said::kDone ? PeerReply::kDone : PeerReply::kShut);
  } else {
    world_.traffic().Answer(*exchange.request, kind);
  }
  if (exchange.where == Exchange::Where::kPeer && kind == Said::kDone) {
    exchange.where = Exchange::Where::kHeld;  // nothing is left at the peer
  }
  Forget(exchange);
}

void SimGate::Forget(Exchange& exchange) {
  if (exchange.where == Exchange::Where::kPeer) {
    if (exchange.probe) PeerProbeDropped(exchange.generation);
    world_.traffic().Gone(exchange.address, CallOf(exchange));
  }
  if (exchange.ticket.admitted()) {
    world_.Tell(&Checker::WorkEnded, {process_, world_.now(), *exchange.request, index_});
    Finished(exchange.ticket);
  }
  exchanges_.erase(exchange.number);
  ConnectionEnded();
}

void SimGate::Dies() {
  while (!exchanges_.empty()) {
    Exchange& exchange = *exchanges_.begin()->second;
    if (exchange.caller) {
      world_.traffic().Reply(*exchange.caller, PeerReply::kReset);
    } else {
      const bool begun = MayHaveBeenDone(exchange);
      world_.traffic().Answer(*exchange.request, begun ? Said::kShut : Said::kRefused);
    }
    Forget(exchange);
  }
}

uint64_t SimGate::forwarding() const {
  uint64_t count = 0;
  for (const auto& [number, exchange] : exchanges_) {
    if (exchange->where == Exchange::Where::kPeer) ++count;
  }
  return count;
}

void SimGate::OnAccepted(int, std::string) { CHECK(false, "no sockets here"); }
void SimGate::OnPeerAccepted(int, std::string) { CHECK(false, "no sockets here"); }

}  // namespace leasehold::simulation

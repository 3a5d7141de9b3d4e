#include "gate/tcp_gate.h"

#include <utility>

#include "base/check.h"
#include "lease/events.h"
#include "loop/stream.h"

namespace leasehold::gate {
namespace {

using lease::Valve;

// At most one log line a second about an upstream that cannot be reached, or about a sidecar that
// is refused; counters have them all.
constexpr base::Duration kTroubleLogInterval = base::Duration::Seconds(1);

}  // namespace

TcpGate::TcpGate(const Options& options, Host host)
    : GateFrame(options, std::move(host), "tcp"),
      key_(this->host().peer_secret, this->host().lease, options.name, this->host().process_id),
      upstream_failures_(this->host().metrics.AddCounter(
          "leasehold_gate_upstream_failures_total",
          "Connections given up because the upstream could not be reached in time.",
          {{"gate", options.name}, {"lease", this->host().lease}})),
      forwarded_(this->host().metrics.AddCounter(
          "leasehold_gate_forwarded_total",
          "Requests or connections that the holder's gate took from this one.",
          {{"gate", options.name}, {"lease", this->host().lease}})),
      upstream_log_(kTroubleLogInterval),
      refused_log_(kTroubleLogInterval),
      leave_timer_(this->host().loop, [this] { CutLeaving(); }),
      look_timer_(this->host().loop, [this] { LookAtPeers(); }) {}

TcpGate::~TcpGate() {
  Cut([](const TcpConnection&) { return true; });
}

base::Status TcpGate::Start() {
  base::Status peers = ListenForPeers();
  if (!peers.ok()) return peers;
  return ListensOnlyWhileOpen() ? base::Status{} : Listen();
}

base::Status TcpGate::OnValve(const ValveChange& change) {
  switch (change.valve) {
    case Valve::kOpen:
      // Who was offered elsewhere is served here, in its turn.
      WithdrawOffers();
      return Listen();
    case Valve::kHolding: return {};  // who is connected stays, who comes is held
    case Valve::kDraining:
      if (ListensOnlyWhileOpen() && !options().outbound) {
        StopListening();
      }
      return {};
    case Valve::kClosed:
      if (ListensOnlyWhileOpen()) {
        StopListening();
      }
      if (!change.lost || options().on_loss == OnLoss::kCut) {
        CutInFlight();
      }
      return {};
  }
  return {};
}

void TcpGate::OnAccepted(int fd, std::string peer) { Place(Add({fd, std::move(peer), {}, false})); }

TcpConnection& TcpGate::Add(TcpConnection::Client client) {
  TcpConnection& connection =
      connections_.emplace_back(*this, host().loop, options(), std::move(client));
  connection.place = std::prev(connections_.end());
  return connection;
}

void TcpGate::Place(TcpConnection& connection) {
  Ticket ticket;
  switch (Admit(ticket).verdict) {
    case Verdict::kAdmit: connection.Begin(std::move(ticket)); return;
    case Verdict::kForward: Forward(connection, TakeProbe()); return;
    case Verdict::kHold:
      if (!HoldAgain(connection)) {
        RemoveWithReset(connection);
      }
      return;
    case Verdict::kRefuse: break;
  }
  if (options().standby == StandbyPolicy::kClose) {
    Remove(connection);
  } else {
    // The listener was still open, the permit was not: as if nobody had listened.
    RemoveWithReset(connection);
  }
}

void TcpGate::Serve(HoldEntry& entry, Ticket ticket) {
  static_cast<TcpConnection&>(entry).Begin(std::move(ticket));
}

void TcpGate::Refuse(HoldEntry& entry, Refusal /*reason*/) {
  RemoveWithReset(static_cast<TcpConnection&>(entry));
}

void TcpGate::CutTunnels() { CutInFlight(); }

void TcpGate::CutInFlight() {
  const uint64_t cut = Cut([](const TcpConnection& connection) { return connection.in_flight(); });
  if (cut > 0) {
    host().log.Info("gate.cut", "open connections were cut",
                    {{"gate", options().name},
                     {"connections", cut},
                     {"state", lease::ValveName(core().valve())},
                     {"reason", last_change().reason}});
  }
}

uint64_t TcpGate::Cut(const std::function<bool(const TcpConnection&)>& which) {
  uint64_t cut = 0;
  for (auto it = connections_.begin(); it != connections_.end();) {
    TcpConnection& connection = *it++;
    if (which(connection)) {
      RemoveWithReset(connection);
      ++cut;
    }
  }
  return cut;
}

void TcpGate::OnOver(TcpConnection& connection, TcpConnection::End end, const base::Status& why) {
  if (end == TcpConnection::End::kNoUpstream) {
    upstream_failures_.Add();
    uint64_t suppressed = 0;
    if (upstream_log_.Allow(loop::Loop::Now(), &suppressed)) {
      host().log.Warn("gate.upstream", "a connection was given up: the upstream did not answer",
                      {{"gate", options().name},
                       {"upstream", options().upstream.ToString()},
                       {"client", connection.client()},
                       {"error", why.error().message},
                       {"suppressed", suppressed}});
    }
  } else if (end == TcpConnection::End::kSidecar) {
    if (connection.offered()) DoubtOffer(connection);
    connection.SayRefused();
    WarnOfPeer("a sidecar took the clients' address of this gate for its peer listener",
               connection.client(), "the holder's advertise must name its peer_listen");
  }
  Remove(connection);
}

void TcpGate::RemoveWithReset(TcpConnection& connection) {
  connection.ResetOnClose();
  Remove(connection);
}

void TcpGate::Remove(TcpConnection& connection) {
  const loop::RelayStats stats = connection.stats();
  past_.a_to_b += stats.a_to_b;
  past_.b_to_a += stats.b_to_a;
  if (connection.offered()) EndOffer(connection);
  if (!connection.forwarded_at().is_never()) --carried_;
  Ticket ticket = std::move(connection.ticket());
  connections_.erase(connection.place);  // leaves the hold queue too, if it waits there
  Finished(ticket);
  ConnectionEnded();
}

uint64_t TcpGate::bytes_to_upstream() const {
  uint64_t sum = past_.a_to_b;
  for (const TcpConnection& connection : connections_) {
    sum += connection.stats().a_to_b;
  }
  return sum;
}

uint64_t TcpGate::bytes_to_downstream() const {
  uint64_t sum = past_.b_to_a;
  for (const TcpConnection& connection : connections_) {
    sum += connection.stats().b_to_a;
  }
  return sum;
}

std::unique_ptr<Gate> MakeTcpGate(const Options& options, Host host) {
  CHECK(options.type == Type::kTcp, "the options are another gate's");
  return std::make_unique<TcpGate>(options, std::move(host));
}

}  // namespace leasehold::gate

// The tcp gate (DESIGN 4): any protocol, byte for byte, half-close kept, inbound or outbound.
// A connection is the unit of work: admitted when it is accepted, in flight until it is over, and a
// tunnel in a drain. What is refused or cut is reset, not ended in order: a peer of an unknown
// protocol must not take a missing end for the end.

#include <list>
#include <utility>

#include "base/check.h"
#include "gate/gate_frame.h"
#include "gate/tcp_connection.h"
#include "lease/events.h"
#include "loop/stream.h"

namespace leasehold::gate {
namespace {

using lease::Valve;

// At most one log line a second about an upstream that cannot be reached; the counter has them all.
constexpr base::Duration kUpstreamLogInterval = base::Duration::Seconds(1);

class TcpGate final : public GateFrame, public TcpConnection::Owner {
 public:
  TcpGate(const Options& options, Host host)
      : GateFrame(options, std::move(host), "tcp"),
        upstream_failures_(this->host().metrics.AddCounter(
            "leasehold_gate_upstream_failures_total",
            "Connections given up because the upstream could not be reached in time.",
            {{"gate", options.name}, {"lease", this->host().lease}})),
        upstream_log_(kUpstreamLogInterval) {}
  // The process ends: what is left, held or carried, is reset like everything that is cut.
  ~TcpGate() override {
    while (!connections_.empty()) RemoveWithReset(connections_.front());
  }

  base::Status Start() override;

 protected:
  base::Status OnValve(const ValveChange& change) override;
  void OnAccepted(int fd, std::string peer) override;
  void Serve(HoldEntry& entry, Ticket ticket) override;
  void Refuse(HoldEntry& entry, Refusal reason) override;
  void Forward(HoldEntry& entry, bool probe) override;
  void OnPeerAccepted(int fd, std::string peer) override;
  void OnNewPeer() override;
  void OnLeave() override;
  uint64_t forwarding() const override { return 0; }
  void CutTunnels() override;
  uint64_t connections() const override { return connections_.size(); }
  uint64_t bytes_to_upstream() const override;
  uint64_t bytes_to_downstream() const override;

 private:
  bool MayPassChunk() override { return MayPass(); }
  void OnOver(TcpConnection& connection, TcpConnection::End end, const base::Status& why) override;

  // With this policy a standby does not listen, so that connects fail and load balancers notice.
  bool ListensOnlyWhileOpen() const {
    return options().standby != StandbyPolicy::kHold && options().standby != StandbyPolicy::kClose;
  }
  void CutInFlight();
  void RemoveWithReset(TcpConnection& connection);
  void Remove(TcpConnection& connection);

  std::list<TcpConnection> connections_;  // held and in flight
  loop::RelayStats past_;                 // of connections that are over
  observe::Counter& upstream_failures_;
  observe::RateLimit upstream_log_;
};

base::Status TcpGate::Start() { return ListensOnlyWhileOpen() ? base::Status{} : Listen(); }

base::Status TcpGate::OnValve(const ValveChange& change) {
  switch (change.valve) {
    case Valve::kOpen: return Listen();
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

void TcpGate::OnAccepted(int fd, std::string /*peer*/) {
  TcpConnection& connection = connections_.emplace_back(*this, host().loop, options(), fd);
  connection.place = std::prev(connections_.end());
  Ticket ticket;
  switch (Admit(ticket).verdict) {
    case Verdict::kAdmit: connection.Begin(std::move(ticket)); return;
    case Verdict::kHold:
      if (!Hold(connection)) {
        RemoveWithReset(connection);
      }
      return;
    case Verdict::kForward:
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

void TcpGate::Forward(HoldEntry& entry, bool /*probe*/) {
  RemoveWithReset(static_cast<TcpConnection&>(entry));
}
void TcpGate::OnPeerAccepted(int fd, std::string peer) {
  loop::AdoptSocket(host().loop, fd, std::move(peer)).reset();
}
void TcpGate::OnNewPeer() {}
void TcpGate::OnLeave() {}

void TcpGate::CutTunnels() { CutInFlight(); }

void TcpGate::CutInFlight() {
  uint64_t cut = 0;
  for (auto it = connections_.begin(); it != connections_.end();) {
    TcpConnection& connection = *it++;
    if (connection.in_flight()) {
      RemoveWithReset(connection);
      ++cut;
    }
  }
  if (cut > 0) {
    host().log.Info("gate.cut", "open connections were cut",
                    {{"gate", options().name},
                     {"connections", cut},
                     {"state", lease::ValveName(core().valve())},
                     {"reason", last_change().reason}});
  }
}

void TcpGate::OnOver(TcpConnection& connection, TcpConnection::End end, const base::Status& why) {
  if (end == TcpConnection::End::kNoUpstream) {
    upstream_failures_.Add();
    uint64_t suppressed = 0;
    if (upstream_log_.Allow(loop::Loop::Now(), &suppressed)) {
      host().log.Warn("gate.upstream", "a connection was given up: the upstream did not answer",
                      {{"gate", options().name},
                       {"upstream", options().upstream.ToString()},
                       {"error", why.error().message},
                       {"suppressed", suppressed}});
    }
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
  Ticket ticket = std::move(connection.ticket());
  connections_.erase(connection.place);  // leaves the hold queue too, if it waits there
  Finished(ticket);
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

}  // namespace

std::unique_ptr<Gate> MakeTcpGate(const Options& options, Host host) {
  CHECK(options.type == Type::kTcp, "the options are another gate's");
  return std::make_unique<TcpGate>(options, std::move(host));
}

}  // namespace leasehold::gate

// The tcp gate and other sidecars: connections offered to the holder's gate, and those that arrive
// from a standby.

#include <utility>

#include "gate/tcp_gate.h"

namespace leasehold::gate {

// ---- to the holder's gate ----

void TcpGate::Forward(HoldEntry& entry, bool probe) {
  auto& connection = static_cast<TcpConnection&>(entry);
  const PeerRoute& route = core().route();
  ++offered_;
  connection.ForwardTo(
      {route.peer().address, key_.HelloTo(route.peer().process_id), route.generation(), probe});
}

void TcpGate::OnVerdict(TcpConnection& connection, const TcpForwardAsk& ask, PeerVerdict verdict,
                        const std::string& why) {
  --offered_;
  if (verdict == PeerVerdict::kAdmitted) {
    ++carried_;
    forwarded_.Add();
    WatchPeers();
    if (leaving()) CutLeaving();  // it has its own time from now on
    PeerAdmitted(ask.generation);
    return;
  }
  PeerDidNotAdmit(ask.generation, why);
  if (verdict == PeerVerdict::kRefused) {
    WarnOfPeer("the holder's gate refuses what is forwarded; the client was reset",
               ask.to.ToString(), why);
    RemoveWithReset(connection);
    return;
  }
  // The gate may have opened meanwhile, or the route lead elsewhere.
  Place(connection);
}

TcpForwardAsk TcpGate::EndOffer(TcpConnection& connection) {
  --offered_;
  TcpForwardAsk ask = connection.Withdraw();
  if (ask.probe) PeerProbeDropped(ask.generation);
  return ask;
}

void TcpGate::DoubtOffer(TcpConnection& connection) {
  --offered_;
  PeerDidNotAdmit(connection.Withdraw().generation, "what was offered there came from a sidecar");
}

void TcpGate::WithdrawOffers() {
  if (offered_ == 0) return;
  for (auto it = connections_.begin(); it != connections_.end();) {
    TcpConnection& connection = *it++;
    if (!connection.offered()) continue;
    EndOffer(connection);
    if (!HoldAgain(connection)) RemoveWithReset(connection);
  }
}

// Whoever has admitted them by now has not said so, and got nothing of them.
void TcpGate::OnNewPeer() { WithdrawOffers(); }

// ---- from a standby ----

void TcpGate::OnPeerAccepted(int fd, std::string peer) {
  TcpArrival& arrival = arrivals_.emplace_back(*this, host().loop, fd, std::move(peer));
  arrival.place = std::prev(arrivals_.end());
}

void TcpGate::OnArrival(TcpArrival& arrival, TcpArrival::End end, std::string_view why) {
  switch (end) {
    case TcpArrival::End::kHeader: Judge(arrival); break;
    case TcpArrival::End::kStranger:
      arrival.Say(PeerVerdict::kRefused);
      WarnOfPeer("a connection at the peer listener was refused", arrival.sidecar(), why);
      break;
    case TcpArrival::End::kSilent:
      WarnOfPeer("a connection at the peer listener was closed", arrival.sidecar(),
                 "no whole header came within 3 s");
      break;
    case TcpArrival::End::kLeft: break;  // a load balancer's probe, or a client that left there
  }
  RemoveArrival(arrival);
}

void TcpGate::Judge(TcpArrival& arrival) {
  bool say = false;
  const PeerCheck check = key_.Check(arrival.header().hello, &say);
  if (check == PeerCheck::kOtherProcess) return arrival.Say(PeerVerdict::kNotAdmitted);
  if (check != PeerCheck::kWelcome) {
    arrival.Say(PeerVerdict::kRefused);
    return WarnOfPeer("a connection at the peer listener was refused", arrival.sidecar(),
                      PeerCheckSentence(check));
  }
  Ticket ticket;
  if (AdmitFromPeer(ticket).verdict != Verdict::kAdmit) {
    return arrival.Say(PeerVerdict::kNotAdmitted);
  }
  Admitted(arrival, std::move(ticket));
}

void TcpGate::Admitted(TcpArrival& arrival, Ticket ticket) {
  arrival.Say(PeerVerdict::kAdmitted);
  const int fd = arrival.Detach();
  if (fd < 0) return Finished(ticket);
  std::string client = arrival.Client();
  if (host().log.Enabled(observe::LogLevel::kDebug)) {
    host().log.Debug("gate.from_peer", "a connection came through another sidecar",
                     {{"gate", options().name}, {"client", client}, {"by", arrival.sidecar()}});
  }
  Add({fd, std::move(client), arrival.TakeRest(), true}).Begin(std::move(ticket));
  WatchPeers();
}

void TcpGate::RemoveArrival(TcpArrival& arrival) {
  arrivals_.erase(arrival.place);
  ConnectionEnded();
}

// ---- on either side ----

void TcpGate::WatchPeers() {
  if (!look_timer_.armed()) look_timer_.StartAfter(kPeerLookPeriod);
}

void TcpGate::LookAtPeers() {
  const uint64_t dead =
      Cut([](const TcpConnection& connection) { return connection.PeerLooksDead(); });
  if (dead > 0) {
    host().log.Warn("gate.peer_died", "another sidecar no longer answers; its connections were cut",
                    {{"gate", options().name}, {"connections", dead}});
  }
  for (const TcpConnection& connection : connections_) {
    if (connection.with_peer()) return WatchPeers();
  }
}

void TcpGate::WarnOfPeer(std::string_view message, std::string_view where, std::string_view why) {
  uint64_t suppressed = 0;
  if (!refused_log_.Allow(loop::Loop::Now(), &suppressed)) return;
  host().log.Warn(
      "gate.peer_refused", message,
      {{"gate", options().name}, {"peer", where}, {"error", why}, {"suppressed", suppressed}});
}

// ---- the process is going away ----

void TcpGate::OnLeave() {
  leave_at_ = loop::Loop::Now();
  CutLeaving();
}

base::MonoTime TcpGate::LeaveEnd(const TcpConnection& connection) const {
  const base::MonoTime until = core().leave_until();
  if (connection.forwarded_at().is_never()) return until;
  return base::Min(base::Max(leave_at_, connection.forwarded_at()) + host().drain_tunnels, until);
}

// Cuts what has had its time, and comes back for the next.
void TcpGate::CutLeaving() {
  const base::MonoTime now = loop::Loop::Now();
  const uint64_t cut = Cut([&](const TcpConnection& connection) {
    return !connection.held() && LeaveEnd(connection) <= now;
  });
  if (cut > 0) {
    host().log.Info("gate.cut", "open connections were cut",
                    {{"gate", options().name}, {"connections", cut}, {"reason", "shutdown"}});
  }
  while (!arrivals_.empty() && core().leave_until() <= now) RemoveArrival(arrivals_.front());
  base::MonoTime next = arrivals_.empty() ? base::MonoTime::Never() : core().leave_until();
  for (const TcpConnection& connection : connections_) {
    // What is held is refused when its time is over, like all that waits.
    if (!connection.held()) next = base::Min(next, LeaveEnd(connection));
  }
  leave_timer_.StartAt(next);
}

}  // namespace leasehold::gate

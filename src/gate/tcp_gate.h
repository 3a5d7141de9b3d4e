// TcpGate (DESIGN 4): any protocol, byte for byte, half-close kept, inbound or outbound. A
// connection is the unit of work: admitted when it is accepted, in flight until it is over, and a
// tunnel in a drain. What is refused or cut is reset, not ended in order: a peer of an unknown
// protocol must not take a missing end for the end. Made by MakeTcpGate (gate.h); this header is
// for the gate's own files: tcp_gate.cc has the valve and the connections of clients,
// tcp_gate_peer.cc what passes between sidecars.
//
// Invariants: a connection that came through the peer listener is admitted or sent back at once,
// never held and never forwarded; one that was offered to the holder's gate and not admitted there
// is held again, whole, and served, offered again or refused like any held one; one that is carried
// there holds no ticket, asks no permit of ours, and is not cut by our valve.
#pragma once

#include <functional>
#include <list>
#include <string>
#include <string_view>

#include "gate/gate_frame.h"
#include "gate/peer_hello.h"
#include "gate/tcp_arrival.h"
#include "gate/tcp_connection.h"
#include "loop/timer.h"
#include "observe/log.h"
#include "observe/metrics.h"

namespace leasehold::gate {

class TcpGate final : public GateFrame, public TcpConnection::Owner, public TcpArrival::Owner {
 public:
  TcpGate(const Options& options, Host host);
  // The process ends: what is left, held or carried, is reset like everything that is cut.
  ~TcpGate() override;

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
  uint64_t forwarding() const override { return offered_ + carried_; }
  void CutTunnels() override;
  uint64_t connections() const override { return connections_.size() + arrivals_.size(); }
  uint64_t bytes_to_upstream() const override;
  uint64_t bytes_to_downstream() const override;

 private:
  // ---- clients ----
  bool MayPassChunk() override { return MayPass(); }
  void OnOver(TcpConnection& connection, TcpConnection::End end, const base::Status& why) override;
  // With this policy a standby does not listen, so that connects fail and load balancers notice.
  bool ListensOnlyWhileOpen() const {
    return options().standby == StandbyPolicy::kRefuse ||
           options().standby == StandbyPolicy::kReject;
  }
  TcpConnection& Add(TcpConnection::Client client);
  // Serves, forwards, holds or refuses it, as the gate is now.
  void Place(TcpConnection& connection);
  void CutInFlight();
  // Resets those that `which` says; how many.
  uint64_t Cut(const std::function<bool(const TcpConnection&)>& which);
  void RemoveWithReset(TcpConnection& connection);
  void Remove(TcpConnection& connection);

  // ---- other sidecars ----
  void OnVerdict(TcpConnection& connection, const TcpForwardAsk& ask, PeerVerdict verdict,
                 const std::string& why) override;
  void OnArrival(TcpArrival& arrival, TcpArrival::End end, std::string_view why) override;
  void Judge(TcpArrival& arrival);
  void Admitted(TcpArrival& arrival, Ticket ticket);
  void RemoveArrival(TcpArrival& arrival);
  // Takes back what was offered and has no verdict: nothing of it was sent.
  void WithdrawOffers();
  TcpForwardAsk EndOffer(TcpConnection& connection);
  // The same for what turned out to be no client: two that take each other for the holder are not
  // to hand it round before they see what it is.
  void DoubtOffer(TcpConnection& connection);
  // Looks again and again, while there are any, whether the sidecars at the other end live.
  void WatchPeers();
  void LookAtPeers();
  // When a leaving gate is done with this forwarded connection.
  base::MonoTime LeaveEnd(const TcpConnection& connection) const;
  void CutLeaving();
  // One of us, or no one of us, is where it should not be.
  void WarnOfPeer(std::string_view message, std::string_view where, std::string_view why);

  std::list<TcpConnection> connections_;  // held, in flight, offered and carried
  std::list<TcpArrival> arrivals_;        // at the peer listener, without a verdict
  uint64_t offered_ = 0;                  // to the holder's gate, without a verdict
  uint64_t carried_ = 0;                  // by it
  loop::RelayStats past_;                 // of connections that are over
  PeerKey key_;
  observe::Counter& upstream_failures_;
  observe::Counter& forwarded_;
  observe::RateLimit upstream_log_;
  observe::RateLimit refused_log_;
  base::MonoTime leave_at_ = base::MonoTime::Never();
  loop::Timer leave_timer_;
  loop::Timer look_timer_;
};

}  // namespace leasehold::gate

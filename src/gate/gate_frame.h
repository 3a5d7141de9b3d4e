// GateFrame: the talking side that every gate shares around its GateCore: the listener and its
// limit, the valve's order of work, the timers of held requests and of tunnels in a drain, telling
// the host, and the common metrics. A protocol's gate derives from it and says what serving,
// refusing and cutting mean there. Not a protocol, not a policy: decisions are GateCore's.
//
// For a gate that forwards it also keeps the peer listener, the pause between probes of the
// holder's gate, and what is said of it in logs and metrics.
//
// Invariant: the host's callbacks are posted, never called from inside a gate's own work, so that
// a SetValve they cause finds the gate at rest.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "gate/gate.h"
#include "gate/gate_core.h"
#include "loop/listener.h"
#include "loop/loop.h"
#include "loop/timer.h"
#include "observe/log.h"
#include "observe/metrics.h"

namespace leasehold::gate {

class GateFrame : public Gate {
 public:
  ~GateFrame() override;
  GateFrame(const GateFrame&) = delete;
  GateFrame& operator=(const GateFrame&) = delete;

  // In this order: the core's valve, OnValve (listening, cutting), held work served or refused,
  // timers, the host told. If OnValve fails to open, the gate is closed again.
  base::Status SetValve(const ValveChange& change) final;
  bool empty() const final { return core_.empty(); }
  GateStatus status() const final;
  const Options& options() const final { return options_; }
  std::string advertised() const final;
  void SetPeer(const Peer& peer) final;
  void Leave(base::MonoTime until) final;
  bool gone() const final { return leaving_ && connections() == 0; }

 protected:
  GateFrame(const Options& options, Host host, std::string_view type);

  // ---- what a protocol's gate does ----

  // The valve has changed to change.valve. kClosed: cut what may not go on (what is left after a
  // drain; after a loss unless on_loss = "finish"). Only kOpen may fail.
  virtual base::Status OnValve(const ValveChange& change) = 0;
  // A connection below max_connections. The callee owns `fd`.
  virtual void OnAccepted(int fd, std::string peer) = 0;
  // One above it, already counted. Closed, unless a gate has something to say first. The callee
  // owns `fd`.
  virtual void OnOverLimit(int fd, std::string peer);
  // A held entry is admitted: start its work, of which `ticket` is the count.
  virtual void Serve(HoldEntry& entry, Ticket ticket) = 0;
  // A held entry has waited in vain. Already counted.
  virtual void Refuse(HoldEntry& entry, Refusal reason) = 0;
  // A held entry goes to core().route().peer(), as a probe or not. Its verdict must follow.
  virtual void Forward(HoldEntry& entry, bool probe) = 0;
  // A connection at the peer listener, below max_connections. The callee owns `fd`.
  virtual void OnPeerAccepted(int fd, std::string peer) = 0;
  // The route leads to another peer (or to none): kept connections to the old one are of no use.
  virtual void OnNewPeer() = 0;
  // Leave() was called: the listener is closed. Close what is idle, tell the others.
  virtual void OnLeave() = 0;
  virtual uint64_t forwarding() const = 0;
  // drain_tunnels is over (a part of the drain): close tunnels. Not called for outbound gates,
  // whose connections go on until the release. A tunnel that wants to begin later in the same
  // drain is the gate's to refuse: core().tunnels_end() has passed.
  virtual void CutTunnels() = 0;
  // False: nothing of this gate is a tunnel; a drain waits for all that is in flight.
  virtual bool has_tunnels() const { return true; }
  virtual std::string upstream_name() const { return options_.upstream.ToString(); }
  // Of clients and of other sidecars.
  virtual uint64_t connections() const = 0;
  virtual uint64_t bytes_to_upstream() const = 0;
  virtual uint64_t bytes_to_downstream() const = 0;

  // ---- what it may use ----

  // Opens the listener unless it is open. The port that "0" became is kept for the next time.
  base::Status Listen();
  void StopListening() { listener_.reset(); }
  bool listening() const { return listener_ != nullptr; }
  // The peer listener, if one is configured: bound once, for as long as the gate lives.
  base::Status ListenForPeers();
  bool leaving() const { return leaving_; }

  // GateCore's questions with a fresh clock reading; an expired permit is told to the host.
  Decision Admit(Ticket& ticket);
  bool MayPass();
  Decision AdmitFromPeer(Ticket& ticket);
  // Queues and sees to the time-out. False: full (counted).
  [[nodiscard]] bool Hold(HoldEntry& entry);
  // The same in its old place, with the deadline it was first held with (or, never held, a new
  // one).
  [[nodiscard]] bool HoldAgain(HoldEntry& entry);
  // For work with the verdict kForward: must it go as a probe? Notes that one goes.
  bool TakeProbe();
  // What became of something forwarded under this generation of the route. `why` is for the log.
  void PeerAdmitted(uint64_t generation);
  void PeerDidNotAdmit(uint64_t generation, std::string_view why);
  void PeerProbeDropped(uint64_t generation);
  // After a connection has ended: tells the host if a leaving gate is gone now.
  void ConnectionEnded();
  // After work has finished: tells the host if the drain is empty now.
  void Finished(Ticket& ticket);

  GateCore& core() { return core_; }
  const GateCore& core() const { return core_; }
  const Host& host() const { return host_; }
  const std::string& type() const { return type_; }
  // The last word from app: reason and state for refusals' bodies.
  const ValveChange& last_change() const { return change_; }

 private:
  void Accept(int fd, std::string peer);
  void AcceptPeer(int fd, std::string peer);
  void AcceptTrouble(const base::Error& error);
  void ServeHeld();
  void ForwardHeld();
  void RefuseHeld();
  void PostEmpty();
  void ArmTimers();
  void TunnelsEnd();
  void TellHost();
  void Collect(observe::Samples& samples) const;

  const Options options_;
  const Host host_;
  const std::string type_;
  const observe::Labels labels_;
  base::Address listen_address_;  // with the real port once it was bound
  bool leaving_ = false;
  GateCore core_;
  ValveChange change_;
  std::unique_ptr<loop::Listener> listener_;
  std::unique_ptr<loop::Listener> peer_listener_;
  loop::Timer hold_timer_;
  loop::Timer tunnels_timer_;
  loop::Timer peer_timer_;
  observe::Counter& accepted_;
  observe::Counter& not_admitted_;
  observe::RateLimit peer_log_;
  // Outlived by what was posted or given to the metrics: those look first whether it is still
  // there.
  std::shared_ptr<GateFrame*> self_;
};

}  // namespace leasehold::gate

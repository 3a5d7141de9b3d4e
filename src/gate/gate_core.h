// GateCore: what every gate must get right, without I/O and without a clock: who is admitted, held
// or refused, how many are in flight, when a drain is over. Owned by one gate, which does the
// talking to sockets. Not here: protocols, timers, and the lease; the permit belongs to the engine
// and is asked anew at every decision, with the `now` given, which must be a fresh
// loop::Loop::Now().
//
// Forwarding (standby = "forward"): while the gate is closed, work goes to the holder's gate when
// the route (peer_route.h) lets it, and is held when not. What is forwarded is the other instance's
// work: it has no Ticket, and needs no permit of ours.
//
// Invariants: kAdmit is said only while the gate's valve is open (or draining, for an outbound
// gate) AND the permit allows it at `now`; every Ticket counts once until it is finished or
// destroyed; the empty edge is reported once per drain; nothing here allocates.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/time.h"
#include "gate/admission.h"
#include "gate/hold_queue.h"
#include "gate/options.h"
#include "gate/peer_route.h"
#include "lease/permit.h"

namespace leasehold::gate {

class GateCore {
 public:
  explicit GateCore(const Options& options);
  ~GateCore();
  GateCore(const GateCore&) = delete;
  GateCore& operator=(const GateCore&) = delete;

  // ---- the valve ----

  // `drain_end` and `drain_tunnels` matter for kDraining only. Draining again with another end
  // joins the drain under way. Look at the queue afterwards (NextToServe, NextToRefuse), and at
  // TakeBecameEmpty().
  void SetValve(lease::Valve valve, base::MonoTime now,
                base::MonoTime drain_end = base::MonoTime::Never(),
                base::Duration drain_tunnels = base::Duration::Zero());
  lease::Valve valve() const { return valve_; }
  // Of the drain under way, Never() otherwise: when all that is left is shut, and when tunnels are.
  base::MonoTime drain_end() const { return drain_end_; }
  base::MonoTime tunnels_end() const { return tunnels_end_; }

  // ---- admission ----

  // For new work at `now`. kAdmit arms `ticket`. kRefuse is counted. For kHold call Hold() next.
  // kForward: send it to route().peer(), as a probe if route().MayGo() says so.
  Decision Admit(base::MonoTime now, const lease::Permit& permit, Ticket& ticket);
  // For work that another sidecar sent to the peer listener: admitted or refused, never held and
  // never forwarded again, so that no record can make a loop.
  Decision AdmitFromPeer(base::MonoTime now, const lease::Permit& permit, Ticket& ticket);
  // May work already admitted pass another chunk at `now`? Always, if on_loss = "finish".
  bool MayPass(base::MonoTime now, const lease::Permit& permit);
  // A gate's own refusals (kMaxConnections, say) are counted here too.
  void CountRefusal(Refusal reason) { ++refusals_[static_cast<size_t>(reason)]; }
  uint64_t refusals(Refusal reason) const { return refusals_[static_cast<size_t>(reason)]; }

  // ---- held ----

  // Queues `entry` until `now` + hold_timeout. False: the queue is full, counted as kHoldFull.
  [[nodiscard]] bool Hold(HoldEntry& entry, base::MonoTime now);
  // The same with the deadline the entry was first held with, in its old place.
  [[nodiscard]] bool HoldAgain(HoldEntry& entry);
  // Takes the oldest held entry out of the queue and admits it: nullptr when none waits or none may
  // be admitted. Call it in SetValve until nullptr, so that nobody new overtakes.
  HoldEntry* NextToServe(base::MonoTime now, const lease::Permit& permit, Ticket& ticket);
  // Takes out the oldest held entry that may be forwarded now; *probe: as a probe. nullptr when
  // none waits or none may go. Call it after a change of the valve or the route, until nullptr.
  HoldEntry* NextToForward(base::MonoTime now, const lease::Permit& permit, bool* probe);
  // Takes out an entry whose wait is over, or that this gate no longer holds in its present state,
  // counted and with the reason: nullptr when there is none. Call it at next_hold_deadline(), and
  // after a change of the valve, until nullptr.
  HoldEntry* NextToRefuse(base::MonoTime now, Refusal* reason);
  base::MonoTime next_hold_deadline() const;
  // When NextToForward may say yes without any change: Never() unless something held waits for the
  // end of a pause between two probes.
  base::MonoTime next_probe_at() const;
  uint32_t held() const { return queue_.size(); }

  // ---- forwarding ----

  PeerRoute& route() { return route_; }
  const PeerRoute& route() const { return route_; }
  // The process is going away: what is held waits no longer than `until` for the next holder.
  void Leave(base::MonoTime until) { leave_until_ = until; }
  base::MonoTime leave_until() const { return leave_until_; }  // Never(): it is not

  // ---- in flight ----

  uint64_t in_flight() const { return in_flight_; }
  // Draining, and nothing is left to wait for.
  bool empty() const;
  // True once per drain: when it has become empty(), be it at once (an outbound gate, which admits
  // on: once each time). Ask after SetValve, after a Ticket finished, after StopWaitingForTunnels.
  bool TakeBecameEmpty();
  // For an outbound tcp gate at tunnels_end(): what is open goes on until the release, but the
  // drain waits no longer for it.
  void StopWaitingForTunnels();
  // True once per valve change: Admit or MayPass saw the permit over although the valve was not
  // closed, so that Host::on_expired must be called. Ask after each of them that did not say yes.
  bool TakeSawExpired();

 private:
  friend class Ticket;
  // What the gate's valve and the permit allow together at `now`: the narrower of the two.
  lease::Valve Effective(base::MonoTime now, const lease::Permit& permit);
  bool HoldsWhile(lease::Valve effective) const;
  bool AdmitsWhile(lease::Valve effective) const;
  // Why work that finds the gate so is refused; counted.
  Decision RefuseWhile(lease::Valve effective);
  void Arm(Ticket& ticket);
  void Finished();

  const bool outbound_;
  const bool hold_policy_;  // standby = "hold" or "forward"
  const bool forward_policy_;
  const bool finish_on_loss_;
  const base::Duration hold_timeout_;
  lease::Valve valve_ = lease::Valve::kClosed;
  base::MonoTime drain_end_ = base::MonoTime::Never();
  base::MonoTime tunnels_end_ = base::MonoTime::Never();
  uint64_t in_flight_ = 0;
  bool waiting_for_tunnels_ = true;
  bool empty_reported_ = false;
  bool saw_expired_ = false;
  bool expired_reported_ = false;
  base::MonoTime leave_until_ = base::MonoTime::Never();
  HoldQueue queue_;
  PeerRoute route_;
  std::array<uint64_t, kRefusalCount> refusals_{};
};

}  // namespace leasehold::gate

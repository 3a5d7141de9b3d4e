#include "gate/gate_core.h"

#include "base/check.h"

namespace leasehold::gate {

using lease::Valve;

GateCore::GateCore(const Options& options)
    : outbound_(options.outbound),
      hold_policy_(options.standby == StandbyPolicy::kHold || options.forwards()),
      forward_policy_(options.forwards()),
      finish_on_loss_(options.on_loss == OnLoss::kFinish),
      hold_timeout_(options.hold_timeout),
      queue_(options.max_held) {}

GateCore::~GateCore() {
  CHECK(in_flight_ == 0, "a gate's tickets must be finished before its core");
}

void GateCore::SetValve(Valve valve, base::MonoTime now, base::MonoTime drain_end,
                        base::Duration drain_tunnels) {
  const bool joins = valve == Valve::kDraining && valve_ == Valve::kDraining;
  valve_ = valve;
  saw_expired_ = false;
  expired_reported_ = false;
  if (valve != Valve::kDraining) {
    drain_end_ = base::MonoTime::Never();
    tunnels_end_ = base::MonoTime::Never();
    return;
  }
  drain_end_ = drain_end;
  const base::MonoTime start = joins ? tunnels_end_ : now + drain_tunnels;
  tunnels_end_ = base::Min(start, drain_end);
  if (!joins) {
    waiting_for_tunnels_ = true;
    empty_reported_ = false;
  }
}

Valve GateCore::Effective(base::MonoTime now, const lease::Permit& permit) {
  if (valve_ == Valve::kClosed) {
    return Valve::kClosed;
  }
  if (!permit.MayAct(now)) {
    saw_expired_ = true;
    return Valve::kClosed;
  }
  // The engine speaks to several gates in turn, so that its word may be ahead of this gate's.
  if (valve_ == Valve::kDraining || permit.valve() == Valve::kDraining) {
    return Valve::kDraining;
  }
  if (valve_ == Valve::kHolding || permit.valve() == Valve::kHolding) {
    return Valve::kHolding;
  }
  return Valve::kOpen;
}

bool GateCore::AdmitsWhile(Valve effective) const {
  return effective == Valve::kOpen || (outbound_ && effective == Valve::kDraining);
}

bool GateCore::HoldsWhile(Valve effective) const {
  // While a renewal is being confirmed everything is held, whatever the standby policy
  // (DESIGN 2.2).
  return effective == Valve::kHolding || (hold_policy_ && !AdmitsWhile(effective));
}

Decision GateCore::Admit(base::MonoTime now, const lease::Permit& permit, Ticket& ticket) {
  const Valve effective = Effective(now, permit);
  if (AdmitsWhile(effective)) {
    Arm(ticket);
    return {Verdict::kAdmit, Refusal::kClosed};
  }
  if (forward_policy_ && effective == Valve::kClosed && queue_.front() == nullptr &&
      route_.MayGo(now) != PeerRoute::Go::kNobody) {
    return {Verdict::kForward, Refusal::kClosed};
  }
  if (HoldsWhile(effective)) {
    return {Verdict::kHold, Refusal::kClosed};
  }
  return RefuseWhile(effective);
}

Decision GateCore::AdmitFromPeer(base::MonoTime now, const lease::Permit& permit, Ticket& ticket) {
  const Valve effective = Effective(now, permit);
  if (effective != Valve::kOpen) return RefuseWhile(effective);
  Arm(ticket);
  return {Verdict::kAdmit, Refusal::kClosed};
}

Decision GateCore::RefuseWhile(Valve effective) {
  Refusal reason = Refusal::kClosed;
  if (effective == Valve::kDraining) {
    reason = Refusal::kDraining;
  } else if (valve_ != Valve::kClosed) {
    reason = Refusal::kExpired;
  }
  CountRefusal(reason);
  return {Verdict::kRefuse, reason};
}

bool GateCore::MayPass(base::MonoTime now, const lease::Permit& permit) {
  if (permit.MayAct(now)) {
    return true;
  }
  if (valve_ != Valve::kClosed) {
    saw_expired_ = true;
  }
  return finish_on_loss_;
}

bool GateCore::Hold(HoldEntry& entry, base::MonoTime now) {
  if (!queue_.Push(entry, now + hold_timeout_)) {
    CountRefusal(Refusal::kHoldFull);
    return false;
  }
  return true;
}

bool GateCore::HoldAgain(HoldEntry& entry) {
  if (!queue_.Push(entry, entry.hold_deadline())) {
    CountRefusal(Refusal::kHoldFull);
    return false;
  }
  return true;
}

HoldEntry* GateCore::NextToServe(base::MonoTime now, const lease::Permit& permit, Ticket& ticket) {
  if (queue_.front() == nullptr || !AdmitsWhile(Effective(now, permit))) {
    return nullptr;
  }
  Arm(ticket);
  return queue_.Pop();
}

HoldEntry* GateCore::NextToForward(base::MonoTime now, const lease::Permit& permit, bool* probe) {
  if (!forward_policy_ || queue_.front() == nullptr || Effective(now, permit) != Valve::kClosed) {
    return nullptr;
  }
  const PeerRoute::Go go = route_.MayGo(now);
  if (go == PeerRoute::Go::kNobody) return nullptr;
  *probe = go == PeerRoute::Go::kProbe;
  return queue_.Pop();
}

base::MonoTime GateCore::next_hold_deadline() const {
  return queue_.size() == 0 ? base::MonoTime::Never()
                            : base::Min(queue_.next_deadline(), leave_until_);
}

base::MonoTime GateCore::next_probe_at() const {
  const bool waits = forward_policy_ && valve_ == Valve::kClosed && queue_.size() > 0;
  return waits ? route_.retry_at() : base::MonoTime::Never();
}

HoldEntry* GateCore::NextToRefuse(base::MonoTime now, Refusal* reason) {
  HoldEntry* entry = queue_.front();
  if (entry == nullptr) {
    return nullptr;
  }
  if (entry->hold_deadline() <= now) {
    *reason = Refusal::kHoldTimeout;
  } else if (leave_until_ <= now) {
    *reason = Refusal::kLeaving;
  } else if (!HoldsWhile(valve_) && !AdmitsWhile(valve_)) {
    *reason = valve_ == Valve::kDraining ? Refusal::kDraining : Refusal::kClosed;
  } else {
    return nullptr;
  }
  CountRefusal(*reason);
  return queue_.Pop();
}

bool GateCore::empty() const {
  return valve_ == Valve::kDraining && (in_flight_ == 0 || !waiting_for_tunnels_);
}

bool GateCore::TakeBecameEmpty() {
  if (!empty() || empty_reported_) {
    return false;
  }
  empty_reported_ = true;
  return true;
}

void GateCore::StopWaitingForTunnels() { waiting_for_tunnels_ = false; }

bool GateCore::TakeSawExpired() {
  if (!saw_expired_ || expired_reported_) {
    return false;
  }
  expired_reported_ = true;
  return true;
}

void GateCore::Arm(Ticket& ticket) {
  CHECK(!ticket.admitted(), "a ticket admits one piece of work");
  ticket.core_ = this;
  ++in_flight_;
  if (waiting_for_tunnels_) {
    empty_reported_ = false;  // an outbound gate in a drain: empty no longer, and again later
  }
}

void GateCore::Finished() {
  CHECK(in_flight_ > 0, "more work finished than was admitted");
  --in_flight_;
}

}  // namespace leasehold::gate

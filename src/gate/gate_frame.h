// GateFrame: the talking side that every gate shares around its GateCore: the listener and its
// limit, the valve's order of work, the timers of held requests and of tunnels in a drain, telling
// the host, and the common metrics. A protocol's gate derives from it and says what serving,
// refusing and cutting mean there. Not a protocol, not a policy: decisions are GateCore's.
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
  // drain_tunnels is over (a part of the drain): close tunnels. Not called for outbound gates,
  // whose connections go on until the release. A tunnel that wants to begin later in the same
  // drain is the gate's to refuse: core().tunnels_end() has passed.
  virtual void CutTunnels() = 0;
  virtual uint64_t connections() const = 0;
  virtual uint64_t bytes_to_upstream() const = 0;
  virtual uint64_t bytes_to_downstream() const = 0;

  // ---- what it may use ----

  // Opens the listener unless it is open. The port that "0" became is kept for the next time.
  base::Status Listen();
  void StopListening() { listener_.reset(); }
  bool listening() const { return listener_ != nullptr; }

  // GateCore's questions with a fresh clock reading; an expired permit is told to the host.
  Decision Admit(Ticket& ticket);
  bool MayPass();
  // Queues and sees to the time-out. False: full (counted).
  [[nodiscard]] bool Hold(HoldEntry& entry);
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
  void AcceptTrouble(const base::Error& error);
  void ServeHeld();
  void RefuseHeld();
  void ArmTimers();
  void TunnelsEnd();
  void TellHost();
  void Collect(observe::Samples& samples) const;

  const Options options_;
  const Host host_;
  const std::string type_;
  const observe::Labels labels_;
  base::Address listen_address_;  // with the real port once it was bound
  GateCore core_;
  ValveChange change_;
  std::unique_ptr<loop::Listener> listener_;
  loop::Timer hold_timer_;
  loop::Timer tunnels_timer_;
  observe::Counter& accepted_;
  // Outlived by what was posted or given to the metrics: those look first whether it is still
  // there.
  std::shared_ptr<GateFrame*> self_;
};

}  // namespace leasehold::gate

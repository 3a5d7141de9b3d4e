// Gate: the valve on one protocol's traffic, as app drives it. One gate per file; all share
// gate_core.h. Invariant: a gate passes nothing unless Permit::MayAdmit / MayAct says so with a
// fresh clock reading at every admission, forwarded request and chunk. SetValve only makes it
// prompt; the permit makes it safe.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/result.h"
#include "base/time.h"
#include "gate/options.h"
#include "gate/peer.h"
#include "lease/permit.h"
#include "loop/loop.h"
#include "observe/log.h"
#include "observe/metrics.h"

namespace leasehold::gate {

// What a gate borrows. All outlive it.
struct Host {
  loop::Loop& loop;
  observe::Log& log;
  observe::Metrics& metrics;
  const lease::Permit& permit;
  std::string lease;
  std::string node_id;
  std::string process_id;
  base::Duration drain_tunnels;
  // A gate saw the permit expired at an admission or a chunk before anyone told it: the driver
  // looks at once.
  std::function<void()> on_expired;
  // In flight became zero while draining (or was zero when draining began). Called from the loop,
  // never inside SetValve.
  std::function<void()> on_empty;
  // Counts what was forwarded under one token, over all gates of the lease (Lease-Sequence). Null:
  // the gate counts for itself. Its owner sets it to 0 when a term begins.
  uint64_t* sequence = nullptr;
  // The lease's state now, a word of DESIGN 2.4, for problem bodies. Null: the gate tells its
  // valve.
  std::function<std::string_view()> lease_state = nullptr;
  // The holder's gate did not admit what was forwarded, or could not be reached: the record may
  // have changed since it was read. Posted, like on_empty.
  std::function<void()> on_peer_doubt = nullptr;
  // The content of peer_secret_file; empty: none.
  std::string peer_secret = {};
  // The longest a drain may take: what a gate asks of its upstream must fit into it.
  base::Duration step_down_grace = base::Duration::Zero();
};

struct ValveChange {
  lease::Valve valve = lease::Valve::kClosed;
  bool lost = false;  // kClosed: cut at once; otherwise what is left after a drain is shut (http:
                      // 503 where no byte was sent)
  base::MonoTime drain_end;  // kDraining
  std::string reason;        // for refusals' bodies and logs
};

struct GateStatus {
  std::string name;
  std::string type;    // "http", "tcp"
  std::string listen;  // as bound; "" while not listening
  std::string upstream;
  std::string state;  // "closed", "holding", "open", "draining"
  uint64_t connections = 0;
  uint64_t in_flight = 0;
  uint64_t held = 0;
  uint64_t forwarding = 0;  // requests or connections that are at the holder's gate
  std::string peer_listen;  // as bound; "" none
  std::string peer;         // the holder's gate, where we forward to; "" unknown
};

class Gate {
 public:
  virtual ~Gate() = default;
  // Binds what must listen on a standby too. An error names the address and the system's reason.
  virtual base::Status Start() = 0;
  // kOpen may have to bind (tcp refuse): an error means the lease cannot be served here (engine:
  // StartFailed).
  virtual base::Status SetValve(const ValveChange& change) = 0;
  // Draining and nothing admitted is unfinished.
  virtual bool empty() const = 0;
  virtual GateStatus status() const = 0;
  virtual const Options& options() const = 0;

  // ---- what a drain ends with (a command that runs under the lease; others need none of it) ----

  // Others are waited for first; it is asked for empty() after it was told OthersEmpty().
  virtual bool ends_last() const { return false; }
  // A drain, and all other gates are empty and every listener has said drained. Told again and
  // again while that is so.
  virtual void OthersEmpty() {}
  // The permit's end has moved: with every renewal. Not told when a permit is cut short: that is
  // kClosed.
  virtual void OnPermit(base::MonoTime /*expiry*/) {}

  // ---- forwarding (gates that do not forward need none of it) ----

  // What our lease record says for others to forward to this gate; empty: nothing. After Start().
  virtual std::string advertised() const { return {}; }
  // The holder's gate, whenever what the record says of it changed.
  virtual void SetPeer(const Peer& /*peer*/) {}
  // The process is going away, and this gate's lease is released or was not held: take nobody new,
  // tell clients, let what is forwarded finish and send what is held to the next holder, for no
  // longer than until. Host::on_empty is called when gone().
  virtual void Leave(base::MonoTime /*until*/) {}
  virtual bool gone() const { return true; }
};

std::unique_ptr<Gate> MakeTcpGate(const Options& options, Host host);
std::unique_ptr<Gate> MakeHttpGate(const Options& options, Host host);

}  // namespace leasehold::gate

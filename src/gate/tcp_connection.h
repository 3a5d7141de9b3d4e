// TcpConnection: one downstream connection of a tcp gate through its life: held or waiting for the
// upstream (parked, nothing read), then relayed byte for byte. Owned by the gate. Invariant: `over`
// is reported once at most, from the loop, and the owner destroys the connection in it.
#pragma once

#include <functional>
#include <list>
#include <memory>
#include <string>

#include "base/result.h"
#include "gate/gate_core.h"
#include "gate/options.h"
#include "loop/connect.h"
#include "loop/loop.h"
#include "loop/parked_socket.h"
#include "loop/relay.h"

namespace leasehold::gate {

class TcpConnection : public HoldEntry {
 public:
  // How it ended, for logs and metrics.
  enum class End {
    kDone,         // both sides ended in order
    kClientLeft,   // before anything was carried
    kNoUpstream,   // the upstream could not be reached, or not in time
    kNotAdmitted,  // the permit ran out while the upstream was being reached
    kBroken,       // reset, idle for too long, or the permit ran out while bytes moved
  };
  class Owner {
   public:
    virtual ~Owner() = default;
    // May the next chunk pass? With a fresh clock.
    virtual bool MayPassChunk() = 0;
    virtual void OnOver(TcpConnection& connection, End end, const base::Status& why) = 0;
  };

  TcpConnection(Owner& owner, loop::Loop& loop, const Options& options, int fd);

  // It is admitted: reach the upstream and relay.
  void Begin(Ticket ticket);
  bool in_flight() const { return ticket_.admitted(); }
  Ticket& ticket() { return ticket_; }
  // Destruction resets both sides. Bytes are missing then, and an orderly end would hide it.
  void ResetOnClose();
  loop::RelayStats stats() const;

  std::list<TcpConnection>::iterator place;  // in the owner's list

 private:
  void Connected(base::Result<std::unique_ptr<loop::Stream>> upstream);

  Owner& owner_;
  loop::Loop& loop_;
  const Options& options_;
  Ticket ticket_;
  std::unique_ptr<loop::ParkedSocket> parked_;  // until the relay has the descriptor
  std::unique_ptr<loop::Connecting> connecting_;
  std::unique_ptr<loop::Relay> relay_;
};

}  // namespace leasehold::gate

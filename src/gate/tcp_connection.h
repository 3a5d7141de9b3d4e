// TcpConnection: one downstream connection of a tcp gate through its life: held, waiting for the
// upstream, or being offered to the holder's gate (parked, nothing read), then relayed byte for
// byte to either. Owned by the gate. Invariant: `over` is reported once at most, from the loop, and
// the owner destroys the connection in it; nothing of the client's is sent to a peer that has not
// admitted it.
#pragma once

#include <functional>
#include <list>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/time.h"
#include "gate/gate_core.h"
#include "gate/options.h"
#include "gate/tcp_forward.h"
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
    kSidecar,      // no client, but another sidecar that took this listener for the peer listener
  };
  class Owner {
   public:
    virtual ~Owner() = default;
    // May the next chunk pass? With a fresh clock.
    virtual bool MayPassChunk() = 0;
    virtual void OnOver(TcpConnection& connection, End end, const base::Status& why) = 0;
    // What became of ForwardTo. Admitted: its bytes flow. Otherwise it is as it was before, and the
    // owner says what comes next.
    virtual void OnVerdict(TcpConnection& connection, const TcpForwardAsk& ask, PeerVerdict verdict,
                           const std::string& why) = 0;
  };
  struct Client {
    int fd = -1;
    std::string name;         // for logs
    std::string first;        // what was read of it already
    bool by_sidecar = false;  // it came through the peer listener: its header is behind us
  };

  TcpConnection(Owner& owner, loop::Loop& loop, const Options& options, Client client);

  // It is admitted: reach the upstream and relay.
  void Begin(Ticket ticket);
  bool in_flight() const { return ticket_.admitted(); }
  Ticket& ticket() { return ticket_; }

  // It is the holder's: offer it there, and relay once it is admitted.
  void ForwardTo(TcpForwardAsk ask);
  // Offered, and no verdict yet. Withdraw() ends that; the question it was is returned.
  bool offered() const { return forward_ != nullptr; }
  TcpForwardAsk Withdraw();
  // At the holder's gate since then; Never(): not there.
  base::MonoTime forwarded_at() const { return forwarded_at_; }

  // Between us and another sidecar, on either side of it.
  bool with_peer() const { return by_sidecar_ || !forwarded_at_.is_never(); }
  // Has that sidecar, or its machine, stopped answering?
  bool PeerLooksDead() const;

  const std::string& client() const { return client_; }
  // Destruction resets both sides. Bytes are missing then, and an orderly end would hide it.
  void ResetOnClose();
  // Tells a sidecar that took us for a peer listener that we are none. Only destruction remains.
  void SayRefused();
  loop::RelayStats stats() const;

  std::list<TcpConnection>::iterator place;  // in the owner's list

 private:
  void Connected(base::Result<std::unique_ptr<loop::Stream>> upstream);
  void Answered(const TcpForwardAnswer& answer);
  void Carry(int other_fd, std::string_view first_for_client, std::function<bool()> may_pass);
  bool IsClient(std::string_view first_bytes);

  Owner& owner_;
  loop::Loop& loop_;
  const Options& options_;
  const std::string client_;
  std::string first_;
  Ticket ticket_;
  // A gate with a peer listener looks whether a sidecar took the wrong one.
  bool look_at_first_;
  const bool by_sidecar_;
  bool sidecar_ = false;
  TcpForwardAsk ask_;
  base::MonoTime forwarded_at_ = base::MonoTime::Never();
  std::unique_ptr<loop::ParkedSocket> parked_;  // until the relay has the descriptor
  int fd_;                                      // its number; owned by parked_ or relay_
  int peer_fd_ = -1;                            // the holder's gate; owned by relay_
  std::unique_ptr<loop::Connecting> connecting_;
  std::unique_ptr<TcpForward> forward_;
  std::unique_ptr<loop::Relay> relay_;
};

}  // namespace leasehold::gate

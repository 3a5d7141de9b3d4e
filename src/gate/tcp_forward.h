// TcpForward: asks the holder's gate to take one client's connection: connects to its peer
// listener, says whose connection it is, and waits for the verdict, all within kPeerTimeout. Owned
// by the TcpConnection that is to be forwarded, which keeps the client's bytes in the kernel
// meanwhile; destroying it withdraws the question. Invariant: `done` is called once, from the loop,
// and may destroy this object.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "base/address.h"
#include "base/result.h"
#include "gate/tcp_peer.h"
#include "loop/connect.h"
#include "loop/loop.h"
#include "loop/stream.h"
#include "loop/timer.h"

namespace leasehold::gate {

// What is asked of whom.
struct TcpForwardAsk {
  base::Address to;
  std::string hello;
  uint64_t generation = 0;  // of the route: whom the verdict is about
  bool probe = false;
};

struct TcpForwardAnswer {
  // kNotAdmitted also when nobody answered.
  PeerVerdict verdict = PeerVerdict::kNotAdmitted;
  std::string why;  // a sentence, for logs
  // Of kAdmitted: the connection to the peer, as a descriptor to be taken, and what came behind
  // the verdict.
  int fd = -1;
  std::string first;
};

class TcpForward final : public loop::StreamListener {
 public:
  using Done = std::function<void(const TcpForwardAnswer&)>;

  // `header`: PeerHeader(). The smaller of `connect_timeout` and kPeerTimeout bounds the connect.
  TcpForward(loop::Loop& loop, const base::Address& to, std::string header,
             base::Duration connect_timeout, Done done);

  void OnData(std::span<const char> bytes) override;
  void OnEnd() override;
  void OnDrained() override {}
  void OnClosed(const base::Error& error) override;

 private:
  void Connected(base::Result<std::unique_ptr<loop::Stream>> stream);
  void Finish(PeerVerdict verdict, std::string why);

  const std::string header_;
  Done done_;
  std::string received_;
  std::unique_ptr<loop::Stream> stream_;
  std::unique_ptr<loop::Connecting> connecting_;
  loop::Timer deadline_;
};

}  // namespace leasehold::gate

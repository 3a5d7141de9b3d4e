// TcpArrival: a connection at a tcp gate's peer listener until its verdict: reads exactly one
// header, however small its pieces, within kPeerTimeout and kProxyHeaderBytesMax. Owned by the
// gate, which judges. Invariant: `OnArrival` is called once at most, from the loop, and the owner
// destroys the arrival in it.
#pragma once

#include <list>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "gate/tcp_peer.h"
#include "loop/loop.h"
#include "loop/stream.h"
#include "loop/timer.h"
#include "proto/proxy_protocol.h"

namespace leasehold::gate {

class TcpArrival final : public loop::StreamListener {
 public:
  enum class End {
    kHeader,    // header() is whole
    kStranger,  // what came is no header
    kSilent,    // no whole header in time
    kLeft,      // it ended or broke before its header was whole
  };
  class Owner {
   public:
    virtual ~Owner() = default;
    // `why`: of kStranger, a sentence.
    virtual void OnArrival(TcpArrival& arrival, End end, std::string_view why) = 0;
  };

  TcpArrival(Owner& owner, loop::Loop& loop, int fd, std::string sidecar);

  // Of kHeader; valid as long as this object.
  const proto::ProxyHeader& header() const { return header_; }
  // The client that the header names: "10.0.0.7:51234", or "unix" where it names none.
  std::string Client() const;
  const std::string& sidecar() const { return stream_->peer(); }
  void Say(PeerVerdict verdict) { stream_->Write(VerdictBytes(verdict)); }
  // After the verdict "admitted": the client's connection, and what of it was read already.
  // Negative: it broke meanwhile.
  int Detach();
  std::string TakeRest() { return received_.substr(header_bytes_); }

  std::list<TcpArrival>::iterator place;  // in the owner's list

  void OnData(std::span<const char> bytes) override;
  void OnEnd() override { owner_.OnArrival(*this, End::kLeft, {}); }
  void OnDrained() override {}
  void OnClosed(const base::Error& /*error*/) override { owner_.OnArrival(*this, End::kLeft, {}); }

 private:
  Owner& owner_;
  std::string received_;  // one read past the header at most
  proto::ProxyHeader header_;
  size_t header_bytes_ = 0;
  std::unique_ptr<loop::Stream> stream_;
  loop::Timer deadline_;
};

}  // namespace leasehold::gate

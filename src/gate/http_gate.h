// HttpGate: the inbound HTTP/1 reverse proxy (DESIGN 4). It owns the connections of clients and of
// other sidecars (Downstream), the pools of connections to the application and to the holder's
// gate, and the tunnels; admission and its counting are GateFrame's. One coarse sweep timer serves
// all time-outs: connections carry deadlines, none has a timer of its own. Invariant: nothing is
// admitted and no byte goes either way between client and application without a fresh look at the
// permit; what goes to the holder's gate needs none of ours, because it is looked at there.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "gate/gate_frame.h"
#include "gate/http_downstream.h"
#include "gate/http_upstream.h"
#include "gate/peer_hello.h"
#include "loop/relay.h"

namespace leasehold::gate {

class HttpGate final : public GateFrame {
 public:
  HttpGate(const Options& options, Host host);
  ~HttpGate() override;

  base::Status Start() override;

 private:
  friend class Downstream;  // one machine in two parts: the connection and what all share

  // How long the holder's gate may be silent, while it connects and before it answers.
  static constexpr base::Duration kPeerPatience = base::Duration::Seconds(3);
  // Keep-alive probes between sidecars: a dead host is noticed three of these after it was last
  // heard of.
  static constexpr base::Duration kProbePeriod = base::Duration::Seconds(1);
  // Kept connections to it; it keeps them longer (http_ends.cc).
  static constexpr base::Duration kPeerIdle = base::Duration::Seconds(10);

  struct Tunnel {
    Ticket ticket;
    bool forwarded = false;  // has no ticket: its work is the holder's
    int peer_fd = -1;        // the relay's, of the side where another sidecar is
    std::unique_ptr<loop::Relay> relay;
  };

  // ---- GateFrame ----
  base::Status OnValve(const ValveChange& change) override;
  void OnAccepted(int fd, std::string peer) override;
  void OnOverLimit(int fd, std::string peer) override;
  void Serve(HoldEntry& entry, Ticket ticket) override;
  void Refuse(HoldEntry& entry, Refusal reason) override;
  void Forward(HoldEntry& entry, bool probe) override;
  void OnPeerAccepted(int fd, std::string peer) override;
  void OnNewPeer() override;
  void OnLeave() override;
  uint64_t forwarding() const override;
  void CutTunnels() override;
  uint64_t connections() const override { return downstreams_.size() + tunnels_.size(); }
  uint64_t bytes_to_upstream() const override;
  uint64_t bytes_to_downstream() const override;

  // ---- for Downstream ----
  // Does the gate admit now? Otherwise answers carry Connection: close.
  bool open() const;
  // The fields that this term stamps on requests; cheap while the token stays.
  std::string_view lease_fields();
  uint64_t NextSequence() { return ++*(host().sequence != nullptr ? host().sequence : &sequence_); }
  void CountAnswer(int status, base::Duration latency);
  void CountCut() { answers_[0]->Add(); }
  void CountForwarded() { forwarded_total_->Add(); }
  void NoteUpstreamTrouble(std::string_view what);
  void NotePeerTrouble(std::string_view what);
  void NotePeerRefused(std::string_view from, std::string_view why);
  // Why a tunnel may not begin now; nothing: it may.
  std::optional<Refusal> RefusesTunnel(bool forwarded) const;
  void Bury(Downstream& downstream);
  enum class TunnelKind : uint8_t { kPlain, kForwarded, kFromPeer };
  struct TunnelStart {
    TunnelKind kind = TunnelKind::kPlain;
    Ticket ticket;  // none of what is forwarded
    int client_fd = -1;
    int application_fd = -1;  // or of the holder's gate
    std::string_view to_application;
    std::string_view to_client;
  };
  void StartTunnel(TunnelStart start);
  proto::http1::Limits request_limits(Origin origin) const;

  void Adopt(int fd, std::string peer, Origin origin, bool over_limit);
  void TunnelDone(Tunnel& tunnel, const loop::RelayStats& stats);
  enum class Which : uint8_t { kAdmitted, kForwarded, kAll };
  void CloseTunnels(Which which, bool reset);
  size_t CloseTunnelsIf(const std::function<bool(const Tunnel&)>& condition, bool reset);
  bool SweepTunnels(base::MonoTime now);
  void Sweep();
  void ArmSweep();

  UpstreamPool pool_;
  UpstreamPool peer_pool_;
  PeerKey peer_key_;
  std::vector<std::unique_ptr<Downstream>> downstreams_;
  std::vector<std::unique_ptr<Downstream>> buried_;  // closed inside their own callbacks
  std::vector<std::unique_ptr<Tunnel>> tunnels_;
  std::vector<std::unique_ptr<Tunnel>> buried_tunnels_;
  loop::Timer sweep_timer_;
  const base::Duration sweep_interval_;
  base::MonoTime sweep_due_;
  base::MonoTime tunnels_look_at_;
  base::MonoTime forwarded_tunnels_end_ = base::MonoTime::Never();  // of a gate that leaves
  uint64_t forwarding_ = 0;                                         // tunnels not counted

  std::string lease_fields_;
  uint64_t lease_fields_token_ = 0;
  uint64_t sequence_ = 0;
  const std::string default_host_;

  // Scratch, used within one callback: heads, bodies of problems, ends of chunked bodies.
  std::string request_head_;
  std::string response_head_;
  std::string scratch_;

  std::array<observe::Counter*, 6> answers_{};  // by status class; [0]: cut
  observe::Counter& retries_;
  observe::Counter* forwarded_total_ = nullptr;  // of a gate that forwards
  observe::Histogram& latency_;
  uint64_t bytes_up_ = 0;
  uint64_t bytes_down_ = 0;
  uint64_t tunnel_bytes_up_ = 0;  // of tunnels that are over
  uint64_t tunnel_bytes_down_ = 0;
  observe::RateLimit trouble_limit_;
  observe::RateLimit peer_trouble_limit_;
  observe::RateLimit peer_refused_limit_;
  std::shared_ptr<HttpGate*> self_;  // for posted work
};

}  // namespace leasehold::gate

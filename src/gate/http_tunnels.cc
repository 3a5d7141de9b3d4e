// The tunnels of an http gate: upgraded connections, relayed byte for byte. A tunnel between two
// sidecars is watched for the death of the other's host: while nothing is sent by the keep-alive
// probes its socket came with, while something is by looking whether it is acknowledged.
#include <algorithm>
#include <utility>

#include "base/check.h"
#include "gate/http_gate.h"
#include "loop/socket_facts.h"

namespace leasehold::gate {

using lease::Valve;
using loop::Loop;

std::optional<Refusal> HttpGate::RefusesTunnel(bool forwarded) const {
  const base::MonoTime now = Loop::Now();
  if (forwarded) {
    return now >= forwarded_tunnels_end_ ? std::optional(Refusal::kLeaving) : std::nullopt;
  }
  const bool draining = core().valve() == Valve::kDraining && now >= core().tunnels_end();
  return draining ? std::optional(Refusal::kDraining) : std::nullopt;
}

void HttpGate::StartTunnel(TunnelStart start) {
  auto tunnel = std::make_unique<Tunnel>();
  Tunnel* raw = tunnel.get();
  const bool forwarded = start.kind == TunnelKind::kForwarded;
  tunnel->ticket = std::move(start.ticket);
  tunnel->forwarded = forwarded;
  if (forwarded) tunnel->peer_fd = start.application_fd;
  if (start.kind == TunnelKind::kFromPeer) tunnel->peer_fd = start.client_fd;
  loop::RelayOptions relay_options;
  relay_options.buffer_bytes = options().buffer_bytes;
  relay_options.idle_timeout = options().tunnel_idle_timeout;
  tunnel->relay = loop::Relay::Start(
      host().loop, start.client_fd, start.application_fd, start.to_application, start.to_client,
      relay_options, [this, forwarded] { return forwarded || MayPass(); },
      [this, raw](const base::Status&, const loop::RelayStats& stats) { TunnelDone(*raw, stats); });
  tunnels_.push_back(std::move(tunnel));
  if (tunnels_.back()->peer_fd >= 0) ArmSweep();
}

void HttpGate::TunnelDone(Tunnel& tunnel, const loop::RelayStats& stats) {
  tunnel_bytes_up_ += stats.a_to_b;
  tunnel_bytes_down_ += stats.b_to_a;
  Finished(tunnel.ticket);
  const auto it = std::find_if(tunnels_.begin(), tunnels_.end(),
                               [&](const auto& one) { return one.get() == &tunnel; });
  CHECK(it != tunnels_.end(), "a tunnel is in its gate's table");
  buried_tunnels_.push_back(std::move(*it));
  tunnels_.erase(it);
  ConnectionEnded();
  if (buried_tunnels_.size() > 1) return;  // posted already
  host().loop.Post([weak = std::weak_ptr<HttpGate*>(self_)] {
    if (auto self = weak.lock()) (*self)->buried_tunnels_.clear();
  });
}

void HttpGate::CutTunnels() { CloseTunnels(Which::kAdmitted, false); }

void HttpGate::CloseTunnels(Which which, bool reset) {
  CloseTunnelsIf(
      [which](const Tunnel& tunnel) {
        return which == Which::kAll || tunnel.forwarded == (which == Which::kForwarded);
      },
      reset);
}

size_t HttpGate::CloseTunnelsIf(const std::function<bool(const Tunnel&)>& condition, bool reset) {
  const auto first =
      std::stable_partition(tunnels_.begin(), tunnels_.end(),
                            [&condition](const auto& tunnel) { return !condition(*tunnel); });
  const auto count = static_cast<size_t>(tunnels_.end() - first);
  if (count == 0) return 0;
  for (auto it = first; it != tunnels_.end(); ++it) {
    Tunnel& tunnel = **it;
    if (reset) tunnel.relay->ResetOnClose();
    const loop::RelayStats stats = tunnel.relay->stats();
    tunnel_bytes_up_ += stats.a_to_b;
    tunnel_bytes_down_ += stats.b_to_a;
    Finished(tunnel.ticket);
  }
  tunnels_.erase(first, tunnels_.end());
  ConnectionEnded();
  return count;
}

// True: there are some to look at again.
bool HttpGate::SweepTunnels(base::MonoTime now) {
  if (now >= forwarded_tunnels_end_) CloseTunnels(Which::kForwarded, false);
  const bool any = std::any_of(tunnels_.begin(), tunnels_.end(),
                               [](const auto& tunnel) { return tunnel->peer_fd >= 0; });
  if (!any || now < tunnels_look_at_) return any;
  tunnels_look_at_ = now + kProbePeriod / 2;
  const size_t dead = CloseTunnelsIf(
      [](const Tunnel& tunnel) {
        return tunnel.peer_fd >= 0 && loop::LooksDead(tunnel.peer_fd, kPeerPatience);
      },
      true);
  if (dead > 0) {
    host().log.Warn("gate.peer_died", "another sidecar no longer answers; its tunnels were cut",
                    {{"gate", options().name}, {"tunnels", dead}});
  }
  return true;
}

}  // namespace leasehold::gate

#include "gate/http_gate.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "gate/http_headers.h"

namespace leasehold::gate {

using lease::Valve;
using loop::Loop;

namespace {

// Connections over max_connections that are being told so; more are closed without a word.
constexpr size_t kOverLimitMax = 64;
// One line about the application's troubles in this time.
constexpr base::Duration kTroubleInterval = base::Duration::Seconds(1);

// A quarter of the shortest time-out: none is late by more than that. At most a second, for idle
// cost; between sidecars, whose signs of life are a matter of three seconds, a quarter of one.
base::Duration SweepInterval(const Options& options) {
  const bool peers = options.forwards() || !options.peer_listen.empty();
  base::Duration shortest = base::Duration::Seconds(peers ? 1 : 4);
  for (const base::Duration d : {options.head_timeout, options.idle_timeout, options.body_timeout,
                                 options.response_timeout, options.upstream_idle_timeout}) {
    shortest = base::Min(shortest, d);
  }
  return base::Max(shortest / 4, base::Duration::Millis(10));
}

proto::http1::Limits AnswerLimits(const Options& options) {
  proto::http1::Limits limits;
  limits.head_bytes_max = options.head_bytes_max;
  return limits;
}

std::string DefaultHost(const base::Address& upstream) {
  return upstream.kind == base::Address::Kind::kUnix ? "localhost" : upstream.ToString();
}

// A sweep later than this says that the loop was stalled (a stopped process, a starved machine).
constexpr base::Duration kStall = base::Duration::Seconds(1);

constexpr std::string_view kRequestsHelp = "Requests answered by a gate, by class of status.";

}  // namespace

HttpGate::HttpGate(const Options& options, Host host_in)
    : GateFrame(options, std::move(host_in), "http"),
      pool_(host().loop, AnswerLimits(options), options.upstream_idle_timeout,
            options.upstream_idle_max),
      peer_pool_(host().loop, WithPeerRoom(AnswerLimits(options)), kPeerIdle,
                 options.upstream_idle_max),
      peer_key_(host().peer_secret, host().lease, options.name, host().process_id),
      sweep_timer_(host().loop, [this] { Sweep(); }),
      sweep_interval_(SweepInterval(options)),
      default_host_(DefaultHost(options.upstream)),
      retries_(
          host().metrics.AddCounter("leasehold_gate_retries_total",
                                    "Requests sent again because a kept connection had just ended.",
                                    {{"gate", options.name}, {"lease", host().lease}})),
      latency_(host().metrics.AddHistogram(
          "leasehold_gate_request_seconds", "From a request's head to its answer's last byte.",
          {{"gate", options.name}, {"lease", host().lease}}, observe::LatencyBounds())),
      trouble_limit_(kTroubleInterval),
      peer_trouble_limit_(kTroubleInterval),
      peer_refused_limit_(kTroubleInterval),
      self_(std::make_shared<HttpGate*>(this)) {
  if (options.forwards()) {
    forwarded_total_ = &host().metrics.AddCounter(
        "leasehold_gate_forwarded_total", "Requests that the holder's gate answered.",
        {{"gate", options.name}, {"lease", host().lease}});
  }
  constexpr std::array<const char*, 6> kClasses = {"cut", "1xx", "2xx", "3xx", "4xx", "5xx"};
  for (size_t i = 0; i < kClasses.size(); ++i) {
    answers_[i] = &host().metrics.AddCounter(
        "leasehold_gate_requests_total", std::string(kRequestsHelp),
        {{"gate", options.name}, {"lease", host().lease}, {"status", kClasses[i]}});
  }
}

HttpGate::~HttpGate() {
  while (!downstreams_.empty()) downstreams_.back()->EndWithGate();
  CloseTunnels(Which::kAll, true);
}

base::Status HttpGate::Start() {
  const base::Status status = ListenForPeers();
  return status.ok() ? Listen() : status;
}

// ---- the valve ----

base::Status HttpGate::OnValve(const ValveChange& change) {
  if (change.valve != Valve::kDraining && change.valve != Valve::kClosed) return {};
  const bool closed = change.valve == Valve::kClosed;
  const bool cut = closed && !(change.lost && options().on_loss == OnLoss::kFinish);
  // From the back: a connection that closes moves the last one into its place.
  for (size_t i = downstreams_.size(); i-- > 0;)
    downstreams_[i]->OnShut(closed && change.lost, cut);
  if (cut) CloseTunnels(Which::kAdmitted, change.lost);
  if (closed) pool_.DropIdle();
  return {};
}

bool HttpGate::open() const {
  return core().valve() == Valve::kOpen || core().valve() == Valve::kHolding;
}

void HttpGate::Serve(HoldEntry& entry, Ticket ticket) {
  static_cast<Downstream&>(entry).Serve(std::move(ticket));
}

void HttpGate::Refuse(HoldEntry& entry, Refusal reason) {
  static_cast<Downstream&>(entry).RefuseHeld(reason);
}

void HttpGate::Forward(HoldEntry& entry, bool probe) {
  static_cast<Downstream&>(entry).Forward(probe);
}

void HttpGate::OnNewPeer() { peer_pool_.Retire(); }

void HttpGate::OnLeave() {
  forwarded_tunnels_end_ = Loop::Now() + host().drain_tunnels;
  for (size_t i = downstreams_.size(); i-- > 0;) downstreams_[i]->OnLeave();
  if (!tunnels_.empty()) ArmSweep();
}

uint64_t HttpGate::forwarding() const {
  return forwarding_ +
         static_cast<uint64_t>(std::count_if(tunnels_.begin(), tunnels_.end(),
                                             [](const auto& tunnel) { return tunnel->forwarded; }));
}

// ---- connections ----

void HttpGate::OnAccepted(int fd, std::string peer) {
  Adopt(fd, std::move(peer), Origin::kClient, false);
}

void HttpGate::OnPeerAccepted(int fd, std::string peer) {
  Adopt(fd, std::move(peer), Origin::kPeer, false);
}

void HttpGate::OnOverLimit(int fd, std::string peer) {
  if (connections() < options().max_connections + kOverLimitMax) {
    Adopt(fd, std::move(peer), Origin::kClient, true);
  } else {
    loop::AdoptSocket(host().loop, fd, std::move(peer)).reset();
  }
}

void HttpGate::Adopt(int fd, std::string peer, Origin origin, bool over_limit) {
  downstreams_.push_back(std::make_unique<Downstream>(
      *this, loop::AdoptSocket(host().loop, fd, std::move(peer)), origin));
  Downstream& downstream = *downstreams_.back();
  downstream.index_ = downstreams_.size() - 1;
  ArmSweep();
  if (over_limit) {
    downstream.RefuseConnection();
  } else {
    downstream.Start();
  }
}

// The object is on the call stack more often than not: it is destroyed on the next turn.
void HttpGate::Bury(Downstream& downstream) {
  const size_t index = downstream.index_;
  CHECK(index < downstreams_.size() && downstreams_[index].get() == &downstream,
        "a connection is in its gate's table");
  buried_.push_back(std::move(downstreams_[index]));
  if (index + 1 != downstreams_.size()) {
    downstreams_[index] = std::move(downstreams_.back());
    downstreams_[index]->index_ = index;
  }
  downstreams_.pop_back();
  ConnectionEnded();
  if (buried_.size() > 1) return;  // posted already
  host().loop.Post([weak = std::weak_ptr<HttpGate*>(self_)] {
    if (auto self = weak.lock()) (*self)->buried_.clear();
  });
}

void HttpGate::ArmSweep() {
  if (sweep_timer_.armed()) return;
  sweep_due_ = Loop::Now() + sweep_interval_;
  sweep_timer_.StartAt(sweep_due_);
}

void HttpGate::Sweep() {
  const base::MonoTime now = host().loop.CachedNow();
  // After a stall of the loop the signs of life of others wait unread: they are looked for first.
  const bool stalled = now - sweep_due_ >= kStall;
  for (size_t i = downstreams_.size(); i-- > 0;) downstreams_[i]->OnSweep(now, stalled);
  pool_.Sweep(now);
  peer_pool_.Sweep(now);
  const bool tunnels_due = SweepTunnels(now);
  if (!downstreams_.empty() || pool_.size() > 0 || peer_pool_.size() > 0 || tunnels_due) {
    ArmSweep();
  }
}

// ---- what connections share ----

std::string_view HttpGate::lease_fields() {
  const uint64_t token = host().permit.token();
  if (token != lease_fields_token_ || lease_fields_.empty()) {
    lease_fields_token_ = token;
    sequence_ = 0;
    lease_fields_ = LeaseFields(token, host().node_id, host().process_id, host().lease);
  }
  return lease_fields_;
}

void HttpGate::CountAnswer(int status, base::Duration latency) {
  answers_[static_cast<size_t>(std::min(status / 100, 5))]->Add();
  latency_.Observe(latency.seconds());
}

void HttpGate::NotePeerTrouble(std::string_view what) {
  uint64_t suppressed = 0;
  if (!peer_trouble_limit_.Allow(Loop::Now(), &suppressed)) return;
  host().log.Warn("gate.peer", "the holder's gate failed a forwarded request",
                  {{"gate", options().name},
                   {"peer", core().route().peer().address.ToString()},
                   {"error", what},
                   {"suppressed", suppressed}});
}

void HttpGate::NotePeerRefused(std::string_view from, std::string_view why) {
  uint64_t suppressed = 0;
  if (!peer_refused_limit_.Allow(Loop::Now(), &suppressed)) return;
  host().log.Warn(
      "gate.peer_refused", "refused what another sidecar forwarded",
      {{"gate", options().name}, {"from", from}, {"error", why}, {"suppressed", suppressed}});
}

void HttpGate::NoteUpstreamTrouble(std::string_view what) {
  uint64_t suppressed = 0;
  if (!trouble_limit_.Allow(Loop::Now(), &suppressed)) return;
  host().log.Warn("gate.upstream", "the application failed a request",
                  {{"gate", options().name},
                   {"upstream", options().upstream.ToString()},
                   {"error", what},
                   {"suppressed", suppressed}});
}

proto::http1::Limits HttpGate::request_limits(Origin origin) const {
  proto::http1::Limits limits;
  limits.head_bytes_max = options().head_bytes_max;
  limits.target_bytes_max = options().target_bytes_max;
  limits.body_bytes_max = options().body_bytes_max;
  return origin == Origin::kPeer ? WithPeerRoom(limits) : limits;
}

uint64_t HttpGate::bytes_to_upstream() const {
  uint64_t bytes = bytes_up_ + tunnel_bytes_up_;
  for (const auto& tunnel : tunnels_) bytes += tunnel->relay->stats().a_to_b;
  return bytes;
}

uint64_t HttpGate::bytes_to_downstream() const {
  uint64_t bytes = bytes_down_ + tunnel_bytes_down_;
  for (const auto& tunnel : tunnels_) bytes += tunnel->relay->stats().b_to_a;
  return bytes;
}

std::unique_ptr<Gate> MakeHttpGate(const Options& options, Host host) {
  return std::make_unique<HttpGate>(options, std::move(host));
}

}  // namespace leasehold::gate

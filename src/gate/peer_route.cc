#include "gate/peer_route.h"

namespace leasehold::gate {

bool PeerRoute::Set(const Peer& peer) {
  if (peer == peer_) return false;
  const bool same_gate = peer.address == peer_.address && peer.process_id == peer_.process_id &&
                         peer.token == peer_.token;
  peer_ = peer;
  if (same_gate) return false;  // it began, or called off, a step-down
  ++generation_;
  state_ = State::kDoubtful;
  pause_ = kRetryMin;
  retry_at_ = base::MonoTime();
  return true;
}

PeerRoute::Go PeerRoute::MayGo(base::MonoTime now) const {
  if (!known() || peer_.draining || state_ == State::kProbing) return Go::kNobody;
  if (state_ == State::kProven) return Go::kAll;
  return now >= retry_at_ ? Go::kProbe : Go::kNobody;
}

base::MonoTime PeerRoute::retry_at() const {
  const bool pausing = known() && !peer_.draining && state_ == State::kDoubtful;
  return pausing ? retry_at_ : base::MonoTime::Never();
}

void PeerRoute::ProbeSent() { state_ = State::kProbing; }

void PeerRoute::ProbeDropped(uint64_t generation, base::MonoTime now) {
  if (generation != generation_ || state_ != State::kProbing) return;
  Pause(now);
}

bool PeerRoute::Admitted(uint64_t generation) {
  if (generation != generation_ || state_ == State::kProven) return false;
  state_ = State::kProven;
  pause_ = kRetryMin;
  return true;
}

bool PeerRoute::NotAdmitted(uint64_t generation, base::MonoTime now) {
  if (generation != generation_ || state_ == State::kDoubtful) return false;
  ++generation_;
  Pause(now);
  return true;
}

void PeerRoute::Pause(base::MonoTime now) {
  state_ = State::kDoubtful;
  retry_at_ = now + pause_;
  pause_ = base::Min(pause_ * 2, kRetryMax);
}

}  // namespace leasehold::gate

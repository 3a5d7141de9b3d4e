// An exchange that goes to the holder's gate: admission, signs of life, and what to do when the
// peer does not admit, fails or is silent. Relaying is the same as with an application
// (http_exchange.cc). A request without a safe method never travels complete before the peer has
// admitted it: its body, or the end of an empty one, follows the admission, and the peer passes
// nothing on before that. So whatever happens earlier, it was not executed and may be sent again.
// With Expect: 100-continue its head goes on at the admission, and that is the border.
#include <utility>

#include "gate/http_downstream.h"
#include "gate/http_gate.h"
#include "gate/peer_hello.h"

namespace leasehold::gate {
namespace {

// An admission ends the wait for one, and what is safe to repeat is sent again when its peer dies
// under it. Two may do so, the holder and its successor; at the third it is the request that
// ends them, or a peer that is not what it says, and nobody is asked again.
constexpr uint8_t kLostAdmissionsMax = 3;

}  // namespace

void Downstream::Forward(bool probe) {
  StartForward(probe);
  if (state_ == State::kActive) ResumeInput();
}

void Downstream::StartForward(bool probe) {
  exchange_.forwarded = true;
  BeginWait(gate_.host().loop.CachedNow() + gate_.options().hold_timeout);
  ++gate_.forwarding_;
  exchange_.probe = probe;
  exchange_.peer_admitted = exchange_.retried = false;
  exchange_.route_generation = gate_.core().route().generation();
  exchange_.pool_generation = gate_.peer_pool_.generation();
  exchange_.commit_due = RequestHasBody() || !parser_.head().idempotent;
  exchange_.say = probe || exchange_.commit_due;
  if (Rewrite() == BodyRewrite::kChunked) exchange_.upgrade = false;  // it has a body now
  if (Upstream* upstream = gate_.peer_pool_.Take(*this)) {
    Attach(*upstream);
  } else {
    Connect();
  }
}

// Whatever the end was: the count, and a probe that learnt nothing.
void Downstream::EndForward() {
  if (!exchange_.forwarded) return;
  exchange_.forwarded = exchange_.commit_due = false;
  --gate_.forwarding_;
  exchange_.sign_at = base::MonoTime::Never();
  if (std::exchange(exchange_.probe, false)) gate_.PeerProbeDropped(exchange_.route_generation);
}

BodyRewrite Downstream::Rewrite() const {
  if (exchange_.emptied) return BodyRewrite::kEmpty;
  const bool end_apart = exchange_.forwarded && !RequestHasBody() && !parser_.head().idempotent;
  return end_apart ? BodyRewrite::kChunked : BodyRewrite::kKeep;
}

// The peer broke off or is silent. Was nothing of it executed, or does a second time do no harm?
bool Downstream::MayBeSentAgain() const {
  return !exchange_.body_begun && (!exchange_.head_passed || parser_.head().idempotent);
}

void Downstream::OnPeerConnected(base::Result<std::unique_ptr<loop::Stream>> result) {
  if (!result.ok()) {
    exchange_.probe = false;
    gate_.PeerDidNotAdmit(exchange_.route_generation, result.error().message);
    return RouteAgain();
  }
  if (exchange_.pool_generation != gate_.peer_pool_.generation()) return RouteAgain();
  std::unique_ptr<loop::Stream> stream = std::move(result).value();
  stream->SetKeepAlive(HttpGate::kProbePeriod);
  Attach(*gate_.peer_pool_.Add(std::move(stream), *this));
  ResumeInput();
}

void Downstream::ExpectSign() {
  exchange_.sign_at = gate_.host().loop.CachedNow() + HttpGate::kPeerPatience;
}

// ---- what the peer says ----

bool Downstream::OnPeerHead() {
  const proto::http1::ResponseHead& head = upstream_->parser().head();
  if (head.lease_peers != 1) {
    gate_.PeerDidNotAdmit(exchange_.route_generation, "what answers there is not a peer listener");
    AnswerPeerRefused();
    return false;
  }
  if (head.lease_peer == kPeerAnswer) {
    OnPeerAdmission();
    return true;
  }
  if (head.status == 199 && head.lease_peer == kPeerAdmitted) {
    exchange_.interim = true;
    const Upstream* const upstream = upstream_;
    OnPeerAdmission();
    if (exchange_.commit_due) {
      exchange_.commit_due = false;
      exchange_.head_passed = exchange_.awaiting_continue;
      if (exchange_.awaiting_continue) SetDeadline(kContinueWait);  // from here on, not before
      ResumeInput();                                                // the body, or its end
    }
    return upstream_ == upstream;
  }
  if (head.lease_peer == kPeerNotAdmitted) {
    PeerDidNotAdmit();
  } else {
    gate_.NotePeerTrouble(kPeerRefusesUs);
    // Alive and sure of itself: nobody need wait for that.
    gate_.PeerAdmitted(exchange_.route_generation);
    AnswerPeerRefused();
  }
  return false;
}

void Downstream::OnPeerAdmission() {
  ForgetDeadline();
  exchange_.probe = false;
  exchange_.peer_admitted = true;
  ExpectSign();
  gate_.PeerAdmitted(exchange_.route_generation);
}

void Downstream::PeerDidNotAdmit() {
  exchange_.probe = false;
  gate_.PeerDidNotAdmit(exchange_.route_generation, "it does not admit");
  if (!exchange_.body_begun) return RouteAgain();
  Answer(503, "peer_not_admitted",
         "The holder lost the lease before it had passed the request on; nothing was done.");
}

// It broke off. What it may have executed is not sent again.
void Downstream::PeerFailed(const char* what) {
  if (exchange_.answer_begun) {
    gate_.NotePeerTrouble(what);
    return Cut();
  }
  // A kept connection that the peer was just closing says nothing about the peer.
  const bool just_ended = upstream_->reused() && !upstream_->answered();
  const bool same_peer = exchange_.pool_generation == gate_.peer_pool_.generation();
  if (just_ended && same_peer && !exchange_.retried && !exchange_.body_begun) {
    exchange_.retried = true;
    exchange_.sign_at = base::MonoTime::Never();
    gate_.retries_.Add();
    LeaveUpstream(false);
    return Connect();
  }
  exchange_.probe = false;
  gate_.PeerDidNotAdmit(exchange_.route_generation, what);
  if (MayBeSentAgain()) return RouteAgain();
  gate_.NotePeerTrouble(what);
  AnswerPeerFailed();
}

void Downstream::AnswerPeerFailed() {
  Answer(502, "peer_failed", "The holder's gate broke off before it had answered.");
}

void Downstream::PeerSilent() {
  constexpr std::string_view kSilent = "it gave no sign of life in time";
  exchange_.probe = false;
  gate_.PeerDidNotAdmit(exchange_.route_generation, kSilent);
  if (MayBeSentAgain()) return RouteAgain();
  PeerTooLate();
}

void Downstream::PeerTooLate() {
  gate_.NotePeerTrouble("no answer in time");
  Answer(504, "peer_timeout", "The holder's gate did not answer in time.");
}

// Another attempt would end the same way, so the client is told at once.
void Downstream::AnswerPeerRefused() {
  exchange_.probe = false;
  Answer(502, "peer_refused",
         "The holder's gate cannot be reached through the address it advertises: advertise must "
         "name its peer_listen, and all sidecars of a gate need the same peer_secret_file.");
}

// ---- again ----

void Downstream::RouteAgain() {
  if (std::exchange(exchange_.peer_admitted, false) &&
      ++exchange_.lost_admissions >= kLostAdmissionsMax) {
    return AnswerPeerFailed();
  }
  connecting_.reset();
  LeaveUpstream(false);
  EndForward();
  gate_.Finished(ticket_);
  exchange_.commit_due = exchange_.retried = exchange_.interim = exchange_.head_due = false;
  exchange_.head_passed = false;
  deadline_ = base::MonoTime::Never();
  state_ = State::kHeld;
  // In the middle of reading, what was read is first to be put aside; the change of the valve that
  // made it so wakes the queue.
  Decision decision;
  decision.verdict = Verdict::kHold;
  if (!in_input_) decision = gate_.Admit(ticket_);
  if (decision.verdict == Verdict::kAdmit) return Serve(std::move(ticket_));
  if (decision.verdict == Verdict::kRefuse) return AnswerRefusal(decision.refusal);
  if (hold_deadline() <= loop::Loop::Now()) {
    gate_.core().CountRefusal(Refusal::kHoldTimeout);
    return AnswerRefusal(Refusal::kHoldTimeout);
  }
  if (decision.verdict == Verdict::kForward) return Forward(gate_.TakeProbe());
  if (!gate_.HoldAgain(*this)) AnswerRefusal(Refusal::kHoldFull);
}

}  // namespace leasehold::gate

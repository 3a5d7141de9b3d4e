// The ends of a connection: time-outs, shutting, cutting, lingering.
#include <utility>

#include "gate/http_downstream.h"
#include "gate/http_gate.h"

namespace leasehold::gate {
namespace {

// After the last answer the client's further bytes are read and thrown away for this long, because
// a close with unread bytes resets the connection and may destroy the answer before it is read.
constexpr base::Duration kLinger = base::Duration::Seconds(2);
constexpr size_t kLingerBytesMax =
    size_t{8} * 1024 * 1024;  // an upload that does not look at its answer
// Of connections from other sidecars. Six times what their pools keep idle connections for.
constexpr base::Duration kPeerIdleMin = base::Duration::Seconds(60);

}  // namespace

// ---- ends ----

void Downstream::Close() {
  if (state_ == State::kClosed) return;
  state_ = State::kClosed;
  LeaveQueue();
  connecting_.reset();
  // An upstream that is still here is in the middle of an exchange that nobody waits for. Closed in
  // order, what its socket has not sent yet would go on when nothing is in flight any more.
  LeaveUpstream(true);
  EndForward();
  gate_.Finished(ticket_);
  stream_.reset();
  gate_.Bury(*this);
}

void Downstream::Cut() {
  if (state_ == State::kClosed) return;
  stream_->ResetOnClose();
  if ((ticket_.admitted() || exchange_.forwarded) && !exchange_.counted) gate_.CountCut();
  LeaveUpstream(true);
  Close();
}

void Downstream::EndWithGate() {
  if (state_ == State::kHeld) {
    AnswerRefusal(gate_.leaving() ? Refusal::kLeaving : Refusal::kClosed);
  } else if (exchange_.forwarded && (exchange_.answer_begun || exchange_.body_begun)) {
    Cut();
  } else if (exchange_.forwarded) {
    AnswerRefusal(Refusal::kLeaving);
  } else {
    OnShut(false, true);
  }
  Close();
}

void Downstream::BeginLinger() {
  if (client_ended_) return Close();
  state_ = State::kLingering;
  linger_bytes_ = 0;
  pending_.clear();
  stream_->ShutdownWrite();
  stream_->StartReading();
  SetDeadline(kLinger);
}

void Downstream::OnShut(bool lost, bool cut) {
  if (exchange_.forwarded) return;  // another instance's work
  switch (state_) {
    case State::kIdle:
      // Who can be forwarded or held needs no other place; a sidecar closes by itself.
      if (!from_peer_ && !gate_.options().forwards()) CloseIdle(lost);
      return;
    case State::kConnecting:
      if (!cut) return;
      return exchange_.retried ? AnswerRefusal(lost ? Refusal::kClosed : Refusal::kDraining)
                               : RefuseUnsent(lost ? Refusal::kClosed : Refusal::kDraining);
    case State::kActive:
      if (!cut) return;
      if (exchange_.head_due && !exchange_.retried) return RefuseUnsent(Refusal::kDraining);
      if (lost || exchange_.answer_begun) return Cut();
      // In order would let the kernel pass on, after the release, what it has not sent yet.
      LeaveUpstream(true);
      return AnswerRefusal(Refusal::kDraining);
    case State::kFlushing:
      if (cut) Cut();
      return;
    case State::kHeld:  // GateFrame's
    case State::kLingering:
    case State::kClosed: return;
  }
}

void Downstream::OnLeave() {
  if (state_ == State::kIdle) CloseIdle(false);
}

void Downstream::CloseIdle(bool at_once) {
  if (parser_.in_head()) return;  // answered by what the gate then is
  const bool hot = gate_.host().loop.CachedNow() - last_active_ < kHotWindow;
  if (at_once || !hot) return BeginLinger();
  SetDeadline(kHotWindow);
}

bool Downstream::Stays() const {
  if (gate_.leaving()) return false;
  if (from_peer_) return true;
  if (gate_.options().forwards()) return gate_.core().valve() != lease::Valve::kDraining;
  return gate_.open();
}

base::Duration Downstream::IdleTimeout() const {
  if (!Stays()) return kHotWindow;
  return from_peer_ ? PeerIdleTimeout() : gate_.options().idle_timeout;
}

// Longer than the other side keeps it (HttpGate::kPeerIdle): whoever may send must be the one who
// closes, or a request meets the closing on its way.
base::Duration Downstream::PeerIdleTimeout() const {
  return base::Max(gate_.options().idle_timeout, kPeerIdleMin);
}

// ---- time ----

void Downstream::SetDeadline(base::Duration d) { deadline_ = gate_.host().loop.CachedNow() + d; }

void Downstream::OnSweep(base::MonoTime now, bool stalled) {
  if (state_ == State::kLingering && linger_bytes_ > kLingerBytesMax) return Cut();
  if (now >= exchange_.sign_at && !(stalled && exchange_.forwarded)) {
    exchange_.sign_at = base::MonoTime::Never();
    return exchange_.forwarded ? PeerSilent() : SayAdmitted();
  }
  if (now < deadline_) return;
  deadline_ = base::MonoTime::Never();
  OnDeadline();
}

void Downstream::OnDeadline() {
  switch (state_) {
    case State::kIdle:
      if (!parser_.in_head()) return BeginLinger();
      return Answer(408, "head_timeout", "The request head did not arrive in time.");
    case State::kActive: return OnActiveDeadline();
    case State::kFlushing: return OnStalled();
    case State::kLingering: return Close();
    case State::kHeld:        // GateFrame's
    case State::kConnecting:  // loop::Connect's
    case State::kClosed: return;
  }
}

// The client takes no bytes. Some progress since the last look is enough.
void Downstream::OnStalled() {
  if (stream_->queued() >= stalled_bytes_) return Cut();
  stalled_bytes_ = stream_->queued();
  SetDeadline(gate_.options().body_timeout);
}

void Downstream::OnActiveDeadline() {
  if (exchange_.forwarded && exchange_.commit_due) {  // sign_at decides
    return SetDeadline(gate_.options().response_timeout);
  }
  if (exchange_.awaiting_continue && !exchange_.answer_begun) {
    exchange_.awaiting_continue = false;
    SetDeadline(gate_.options().body_timeout);
    return ResumeInput();
  }
  if (!upstream_->stream().reading()) return OnStalled();
  if (exchange_.answer_begun) return Cut();
  const bool application_slow =
      exchange_.request_done || upstream_->stream().queued() > gate_.options().buffer_bytes;
  if (application_slow) {
    if (exchange_.forwarded) return PeerTooLate();
    gate_.NoteUpstreamTrouble("no answer within response_timeout");
    return Answer(504, "upstream_timeout", "The application did not answer in time.");
  }
  Answer(408, "body_timeout", "The request body did not arrive in time.");
}

}  // namespace leasehold::gate

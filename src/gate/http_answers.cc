// Answers the gate gives by itself, time-outs, and the ends of a client connection.
#include <utility>

#include "gate/http_downstream.h"
#include "gate/http_gate.h"
#include "gate/http_problem.h"

namespace leasehold::gate {
namespace {

// After the last answer the client's further bytes are read and thrown away for this long, because
// a close with unread bytes resets the connection and may destroy the answer before it is read.
constexpr base::Duration kLinger = base::Duration::Seconds(2);
constexpr size_t kLingerBytesMax =
    size_t{8} * 1024 * 1024;  // an upload that does not look at its answer

struct RefusalText {
  std::string_view type;
  std::string_view detail;
};

RefusalText TextOf(Refusal reason) {
  switch (reason) {
    case Refusal::kClosed: return {"not_holding", "The lease is not held here."};
    case Refusal::kDraining:
      return {"draining", "The holder is stepping down and admits nothing new."};
    case Refusal::kExpired: return {"expired", "The lease ran out; it is being looked for again."};
    case Refusal::kHoldFull:
      return {"hold_full", "As many requests as allowed are waiting for the lease already."};
    case Refusal::kHoldTimeout: return {"hold_timeout", "The lease did not come in time."};
    case Refusal::kMaxConnections:
      return {"max_connections", "As many connections as allowed are open already."};
    case Refusal::kLeaving:
      return {"leaving", "This instance is going away, and no other took the lease in time."};
  }
  return {"refused", "The request was refused."};
}

std::string_view ParseErrorType(int status) {
  switch (status) {
    case 413: return "body_too_large";
    case 414: return "target_too_long";
    case 417: return "expectation_failed";
    case 431: return "head_too_large";
    case 501: return "not_implemented";
    case 505: return "version_not_supported";
    default: return "bad_request";
  }
}

}  // namespace

std::string_view Downstream::lease_state() const {
  if (gate_.host().lease_state) return gate_.host().lease_state();
  return gate_.open() ? "active" : "standby";
}

void Downstream::AnswerRefusal(Refusal reason) {
  const RefusalText text = TextOf(reason);
  Answer(503, text.type, text.detail);
}

void Downstream::AnswerParseError() {
  const proto::http1::ParseError error = parser_.error();
  if (answer_begun_) return Cut();
  Answer(error.status, ParseErrorType(error.status), error.message);
}

// The permit was over before the request, though admitted, was sent (then it is refused), or while
// it is being sent (then both sides are cut).
void Downstream::RefuseExpired() {
  if (!head_due_ || retried_) return Cut();
  gate_.core().CountRefusal(Refusal::kExpired);
  AnswerRefusal(Refusal::kExpired);
}

bool Downstream::RequestArrivedWhole() {
  if (!has_head_) return false;
  if (!request_done_ && !RequestHasBody()) {
    request_done_ = parser_.Next({}).event == proto::http1::Event::kComplete;
  }
  return request_done_;
}

void Downstream::Answer(int status, std::string_view type, std::string_view detail) {
  const bool whole = RequestArrivedWhole();
  LeaveQueue();
  connecting_.reset();
  LeaveUpstream(false);
  // Whoever is refused should connect anew, which may lead to the holder; after a failure of the
  // application alone there is no better place.
  close_after_ = !(whole && parser_.head().keep_alive && gate_.open() && status != 503) ||
                 (client_ended_ && pending_.empty());
  Problem problem;
  problem.status = status_ = status;
  problem.type = type;
  problem.detail = detail;
  problem.lease = gate_.host().lease;
  problem.state = lease_state();
  problem.close = close_after_;
  problem.head_only = has_head_ && parser_.head().is_head;
  problem.keep_alive_10 = has_head_ && parser_.head().version_minor == 0 && !close_after_;
  gate_.response_head_.clear();
  AppendProblem(gate_.response_head_, gate_.scratch_, problem);
  gate_.bytes_down_ += gate_.response_head_.size();
  stream_->Write(gate_.response_head_);
  answer_begun_ = true;
  if (!has_head_) started_ = gate_.host().loop.CachedNow();
  AnswerSent();
}

void Downstream::RefuseConnection() { AnswerRefusal(Refusal::kMaxConnections); }

void Downstream::RefuseHeld(Refusal reason) { AnswerRefusal(reason); }

// ---- ends ----

void Downstream::Close() {
  if (state_ == State::kClosed) return;
  state_ = State::kClosed;
  LeaveQueue();
  connecting_.reset();
  LeaveUpstream(false);
  gate_.Finished(ticket_);
  stream_.reset();
  gate_.Bury(*this);
}

void Downstream::Cut() {
  if (state_ == State::kClosed) return;
  stream_->ResetOnClose();
  if (ticket_.admitted() && !counted_) gate_.CountCut();
  LeaveUpstream(true);
  Close();
}

void Downstream::EndWithGate() {
  if (state_ == State::kHeld) {
    AnswerRefusal(Refusal::kClosed);
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
  switch (state_) {
    case State::kIdle:
      if (parser_.in_head()) return;  // answered by what the gate then is
      if (lost || gate_.host().loop.CachedNow() - last_active_ >= kHotWindow) return BeginLinger();
      return SetDeadline(kHotWindow);
    case State::kConnecting:
      if (cut) AnswerRefusal(lost ? Refusal::kClosed : Refusal::kDraining);
      return;
    case State::kActive:
      if (!cut) return;
      if (lost || answer_begun_) return Cut();
      return AnswerRefusal(Refusal::kDraining);
    case State::kFlushing:
      if (cut) Cut();
      return;
    case State::kHeld:  // GateFrame's
    case State::kLingering:
    case State::kClosed: return;
  }
}

// ---- time ----

void Downstream::SetDeadline(base::Duration d) { deadline_ = gate_.host().loop.CachedNow() + d; }

void Downstream::OnSweep(base::MonoTime now) {
  if (state_ == State::kLingering && linger_bytes_ > kLingerBytesMax) return Cut();
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
  if (awaiting_continue_ && !answer_begun_) {
    awaiting_continue_ = false;
    SetDeadline(gate_.options().body_timeout);
    return ResumeInput();
  }
  if (!upstream_->stream().reading()) return OnStalled();
  if (answer_begun_) return Cut();
  const bool application_slow =
      request_done_ || upstream_->stream().queued() > gate_.options().buffer_bytes;
  if (application_slow) {
    gate_.NoteUpstreamTrouble("no answer within response_timeout");
    return Answer(504, "upstream_timeout", "The application did not answer in time.");
  }
  Answer(408, "body_timeout", "The request body did not arrive in time.");
}

}  // namespace leasehold::gate

// The application's side of an exchange: getting a connection, relaying the answer, ending it.
#include <utility>

#include "gate/http_downstream.h"
#include "gate/http_gate.h"
#include "gate/http_headers.h"
#include "gate/http_outgoing.h"
#include "gate/peer_hello.h"

namespace leasehold::gate {

using proto::http1::Event;
using proto::http1::Framing;
using proto::http1::ResponseHead;

// ---- a connection ----

void Downstream::StartExchange() {
  if (Upstream* upstream = gate_.pool_.Take(*this)) {
    Attach(*upstream);
  } else {
    Connect();
  }
}

void Downstream::Connect() {
  state_ = State::kConnecting;
  deadline_ = base::MonoTime::Never();  // connecting has its own
  loop::ConnectOptions options;
  options.timeout = gate_.options().connect_timeout;
  if (forwarded_) options.timeout = base::Min(options.timeout, HttpGate::kPeerPatience);
  const base::Address& address =
      forwarded_ ? gate_.core().route().peer().address : gate_.options().upstream;
  connecting_ = loop::Connect(gate_.host().loop, address, options,
                              [this](base::Result<std::unique_ptr<loop::Stream>> result) {
                                OnConnected(std::move(result));
                              });
}

void Downstream::OnConnected(base::Result<std::unique_ptr<loop::Stream>> result) {
  connecting_.reset();
  if (forwarded_) return OnPeerConnected(std::move(result));
  if (!result.ok()) {
    const bool late = result.error().code == base::ErrorCode::kTimeout;
    gate_.NoteUpstreamTrouble(result.error().message);
    return Answer(late ? 504 : 502, late ? "upstream_timeout" : "upstream_unreachable",
                  late ? "The application did not accept the connection in time."
                       : "The application cannot be reached.");
  }
  Attach(*gate_.pool_.Add(std::move(result).value(), *this));
  ResumeInput();
}

void Downstream::Attach(Upstream& upstream) {
  upstream_ = &upstream;
  upstream.parser().ExpectAnswerToHead(parser_.head().is_head);
  head_due_ = true;
  state_ = State::kActive;
}

void Downstream::LeaveUpstream(bool reset) {
  if (upstream_ == nullptr) return;
  Upstream& upstream = *std::exchange(upstream_, nullptr);
  upstream.pool().Drop(upstream, reset);
}

// ---- the answer ----

void Downstream::OnUpstreamData(std::string_view bytes) {
  if (!MayRelay()) return Cut();
  if (head_due_) return UpstreamFailed("it spoke before it was asked");
  upstream_->NoteAnswered();
  Outgoing out(*stream_, gate_.bytes_down_);
  proto::http1::ResponseParser& parser = upstream_->parser();
  for (;;) {
    const proto::http1::Step step = parser.Next(bytes);
    bytes.remove_prefix(step.consumed);
    switch (step.event) {
      case Event::kNeedMore: out.Flush(); return AfterResponseBytes();
      case Event::kHead:
        if (!OnResponseHead(out, bytes)) return;
        break;
      case Event::kBody: out.AddBody(step.body, chunk_answer_); break;
      case Event::kComplete:
        if (!interim_) return FinishResponse(out, bytes.empty());
        interim_ = false;
        break;
      case Event::kError: out.Flush(); return UpstreamFailed(parser.error().message);
    }
  }
}

// False: this exchange does not go on here.
bool Downstream::OnResponseHead(Outgoing& out, std::string_view rest) {
  const ResponseHead& head = upstream_->parser().head();
  if (forwarded_) {
    if (!OnPeerHead()) return false;
    if (interim_) return true;  // a 199, which is not the application's
  }
  if (head.status == 101) {
    if (upgrade_ && head.upgrade && !awaiting_continue_) {
      BeginTunnel(rest);
    } else {
      UpstreamFailed("it switched protocols although nobody asked for that");
    }
    return false;
  }
  if (head.interim()) return RelayInterim(out);
  RelayFinal(out);
  return true;
}

bool Downstream::RelayInterim(Outgoing& out) {
  interim_ = true;
  const ResponseHead& head = upstream_->parser().head();
  if (parser_.head().version_minor == 1) {  // HTTP/1.0 knows no interim answers
    gate_.response_head_.clear();
    AnswerContext context;
    if (from_peer_) context.peer_mark = kPeerAnswer;
    AppendResponseHead(gate_.response_head_, head, context);
    out.AddHead(gate_.response_head_);
    out.Flush();
  }
  if (head.status != 100 || !awaiting_continue_) return true;
  awaiting_continue_ = false;
  SetDeadline(gate_.options().body_timeout);
  if (!pending_.empty()) ResumeInput();
  return upstream_ != nullptr;
}

void Downstream::RelayFinal(Outgoing& out) {
  const ResponseHead& head = upstream_->parser().head();
  const proto::http1::RequestHead& request = parser_.head();
  const bool unsized = head.framing == Framing::kChunked || head.framing == Framing::kUntilClose;
  chunk_answer_ = unsized && request.version_minor == 1;
  close_after_ = !request.keep_alive || !request_done_ || !Stays() ||
                 (client_ended_ && pending_.empty()) || (unsized && !chunk_answer_);
  status_ = head.status;
  AnswerContext context;
  context.chunked = chunk_answer_;
  context.close = close_after_;
  context.keep_alive_10 = request.version_minor == 0 && !close_after_;
  if (from_peer_) context.peer_mark = kPeerAnswer;
  gate_.response_head_.clear();
  AppendResponseHead(gate_.response_head_, head, context);
  out.AddHead(gate_.response_head_);
  answer_begun_ = true;
  sign_at_ = base::MonoTime::Never();
}

void Downstream::AfterResponseBytes() {
  if (stream_->queued() > gate_.options().buffer_bytes) {
    upstream_->stream().StopReading();
    stalled_bytes_ = stream_->queued();
    SetDeadline(gate_.options().body_timeout);
  } else if (answer_begun_) {
    SetDeadline(gate_.options().response_timeout);
  }
}

void Downstream::FinishResponse(Outgoing& out, bool clean) {
  const ResponseHead& head = upstream_->parser().head();
  if (chunk_answer_) {
    gate_.scratch_.clear();
    AppendChunkedEnd(gate_.scratch_, upstream_->parser().trailers(), false);
    out.AddChunkedEnd(gate_.scratch_);
  }
  out.Flush();
  if (clean && head.keep_alive && request_done_ && upstream_->stream().queued() == 0) {
    Upstream& upstream = *std::exchange(upstream_, nullptr);
    upstream.pool().Keep(upstream);
  } else {
    LeaveUpstream(false);
  }
  AnswerSent();
}

void Downstream::OnUpstreamEnd() {
  if (upstream_->parser().Finish().event != Event::kComplete) {
    return UpstreamFailed("it ended the connection before its answer was complete");
  }
  if (!MayRelay()) return Cut();
  Outgoing out(*stream_, gate_.bytes_down_);
  FinishResponse(out, false);
}

void Downstream::OnUpstreamBroken() {
  if (!MayRelay()) return Cut();  // perhaps by us: MaySendUpstream said no
  UpstreamFailed("it reset the connection");
}

bool Downstream::MaySendUpstream() { return MayRelay(); }

void Downstream::OnUpstreamDrained() {
  if (state_ == State::kActive && !request_done_ && !awaiting_continue_) ResumeInput();
}

// A connection that was kept may be closed by the application just as we use it. Only then, only
// once, and only if a second sending cannot do a second time what the first may have done.
bool Downstream::MayRetry() const {
  return upstream_->reused() && !upstream_->answered() && !retried_ && !body_begun_ &&
         (parser_.head().idempotent || head_due_);
}

void Downstream::UpstreamFailed(const char* what) {
  if (forwarded_) return PeerFailed(what);
  if (MayRetry()) {
    retried_ = true;
    gate_.retries_.Add();
    LeaveUpstream(false);
    return Connect();
  }
  gate_.NoteUpstreamTrouble(what);
  if (answer_begun_) return Cut();
  Answer(502, "upstream_failed", "The application broke off before it had answered.");
}

// ---- tunnels ----

void Downstream::BeginTunnel(std::string_view rest) {
  const std::optional<Refusal> refusal = gate_.RefusesTunnel(forwarded_);
  if (refusal) {
    gate_.core().CountRefusal(*refusal);
    return AnswerRefusal(*refusal);
  }
  // Only a client that read nothing of interim answers, or an application that switched before it
  // had read the request, can leave something queued here.
  if (stream_->queued() > 0 || upstream_->stream().queued() > 0) return Cut();
  AnswerContext context;
  context.upgrade = true;
  if (from_peer_) context.peer_mark = kPeerAnswer;
  std::string to_client;
  AppendResponseHead(to_client, upstream_->parser().head(), context);
  to_client += rest;
  status_ = 101;
  gate_.CountAnswer(status_, gate_.host().loop.CachedNow() - started_);
  Upstream& upstream = *std::exchange(upstream_, nullptr);
  std::unique_ptr<loop::Stream> application = upstream.pool().TakeStream(upstream);
  HttpGate::TunnelStart start;
  if (forwarded_) start.kind = HttpGate::TunnelKind::kForwarded;
  if (from_peer_) start.kind = HttpGate::TunnelKind::kFromPeer;
  start.ticket = std::move(ticket_);
  start.client_fd = stream_->Detach();
  start.application_fd = application->Detach();
  start.to_application = pending_;
  start.to_client = to_client;
  if (forwarded_) gate_.CountForwarded();
  gate_.StartTunnel(std::move(start));
  Close();
}

// ---- the end ----

// The answer is complete; its last bytes may still be queued.
void Downstream::AnswerSent() {
  if (!counted_) gate_.CountAnswer(status_, gate_.host().loop.CachedNow() - started_);
  counted_ = true;
  if (forwarded_) gate_.CountForwarded();
  if (stream_->queued() == 0) return FinishExchange();
  state_ = State::kFlushing;
  stalled_bytes_ = stream_->queued();
  SetDeadline(gate_.options().body_timeout);
}

void Downstream::FinishExchange() {
  gate_.Finished(ticket_);
  EndForward();
  has_head_ = counted_ = false;
  last_active_ = gate_.host().loop.CachedNow();
  if (close_after_ || (client_ended_ && pending_.empty())) return BeginLinger();
  state_ = State::kIdle;
  SetDeadline(IdleTimeout());
  if (!in_input_ && !pending_.empty()) ResumeInput();
}

}  // namespace leasehold::gate

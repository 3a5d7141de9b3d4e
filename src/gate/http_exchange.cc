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
  if (exchange_.forwarded) options.timeout = base::Min(options.timeout, HttpGate::kPeerPatience);
  const base::Address& address =
      exchange_.forwarded ? gate_.core().route().peer().address : gate_.options().upstream;
  connecting_ = loop::Connect(gate_.host().loop, address, options,
                              [this](base::Result<std::unique_ptr<loop::Stream>> result) {
                                OnConnected(std::move(result));
                              });
}

void Downstream::OnConnected(base::Result<std::unique_ptr<loop::Stream>> result) {
  connecting_.reset();
  if (exchange_.forwarded) return OnPeerConnected(std::move(result));
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
  exchange_.head_due = true;
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
  if (exchange_.head_due) return UpstreamFailed("it spoke before it was asked");
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
      case Event::kBody: out.AddBody(step.body, exchange_.chunk_answer); break;
      case Event::kComplete:
        if (!exchange_.interim) return FinishResponse(out, bytes.empty());
        exchange_.interim = false;
        break;
      case Event::kError: out.Flush(); return UpstreamFailed(parser.error().message);
    }
  }
}

// False: this exchange does not go on here.
bool Downstream::OnResponseHead(Outgoing& out, std::string_view rest) {
  const ResponseHead& head = upstream_->parser().head();
  if (exchange_.forwarded) {
    if (!OnPeerHead()) return false;
    if (exchange_.interim) return true;  // a 199, which is not the application's
  }
  if (head.status == 101) {
    if (exchange_.upgrade && head.upgrade && !exchange_.awaiting_continue) {
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
  exchange_.interim = true;
  const ResponseHead& head = upstream_->parser().head();
  if (parser_.head().version_minor == 1) {  // HTTP/1.0 knows no interim answers
    gate_.response_head_.clear();
    AnswerContext context;
    if (from_peer_) context.peer_mark = kPeerAnswer;
    AppendResponseHead(gate_.response_head_, head, context);
    out.AddHead(gate_.response_head_);
    out.Flush();
  }
  if (head.status != 100 || !exchange_.awaiting_continue) return true;
  exchange_.awaiting_continue = false;
  SetDeadline(gate_.options().body_timeout);
  if (!pending_.empty()) ResumeInput();
  return upstream_ != nullptr;
}

void Downstream::RelayFinal(Outgoing& out) {
  const ResponseHead& head = upstream_->parser().head();
  const proto::http1::RequestHead& request = parser_.head();
  const bool unsized = head.framing == Framing::kChunked || head.framing == Framing::kUntilClose;
  exchange_.chunk_answer = unsized && request.version_minor == 1;
  exchange_.close_after = !request.keep_alive || !exchange_.request_done || !Stays() ||
                          (client_ended_ && pending_.empty()) ||
                          (unsized && !exchange_.chunk_answer);
  exchange_.status = head.status;
  AnswerContext context;
  context.chunked = exchange_.chunk_answer;
  context.close = exchange_.close_after;
  context.keep_alive_10 = request.version_minor == 0 && !exchange_.close_after;
  if (from_peer_) context.peer_mark = kPeerAnswer;
  gate_.response_head_.clear();
  AppendResponseHead(gate_.response_head_, head, context);
  out.AddHead(gate_.response_head_);
  exchange_.answer_begun = true;
  exchange_.sign_at = base::MonoTime::Never();
}

void Downstream::AfterResponseBytes() {
  if (stream_->queued() > gate_.options().buffer_bytes) {
    upstream_->stream().StopReading();
    stalled_bytes_ = stream_->queued();
    SetDeadline(gate_.options().body_timeout);
  } else if (exchange_.answer_begun) {
    SetDeadline(gate_.options().response_timeout);
  }
}

void Downstream::FinishResponse(Outgoing& out, bool clean) {
  const ResponseHead& head = upstream_->parser().head();
  if (exchange_.chunk_answer) {
    gate_.scratch_.clear();
    AppendChunkedEnd(gate_.scratch_, upstream_->parser().trailers(), false);
    out.AddChunkedEnd(gate_.scratch_);
  }
  out.Flush();
  if (clean && head.keep_alive && exchange_.request_done && upstream_->stream().queued() == 0) {
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
  if (state_ == State::kActive && !exchange_.request_done && !exchange_.awaiting_continue)
    ResumeInput();
}

// A connection that was kept may be closed by the application just as we use it. Only then, only
// once, and only if a second sending cannot do a second time what the first may have done.
bool Downstream::MayRetry() const {
  return upstream_->reused() && !upstream_->answered() && !exchange_.retried &&
         !exchange_.body_begun && (parser_.head().idempotent || exchange_.head_due);
}

void Downstream::UpstreamFailed(const char* what) {
  if (exchange_.forwarded) return PeerFailed(what);
  if (MayRetry()) {
    exchange_.retried = true;
    gate_.retries_.Add();
    LeaveUpstream(false);
    return Connect();
  }
  gate_.NoteUpstreamTrouble(what);
  if (exchange_.answer_begun) return Cut();
  Answer(502, "upstream_failed", "The application broke off before it had answered.");
}

// ---- tunnels ----

void Downstream::BeginTunnel(std::string_view rest) {
  const std::optional<Refusal> refusal = gate_.RefusesTunnel(exchange_.forwarded);
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
  exchange_.status = 101;
  gate_.CountAnswer(exchange_.status, gate_.host().loop.CachedNow() - exchange_.started);
  Upstream& upstream = *std::exchange(upstream_, nullptr);
  std::unique_ptr<loop::Stream> application = upstream.pool().TakeStream(upstream);
  HttpGate::TunnelStart start;
  if (exchange_.forwarded) start.kind = HttpGate::TunnelKind::kForwarded;
  if (from_peer_) start.kind = HttpGate::TunnelKind::kFromPeer;
  start.ticket = std::move(ticket_);
  start.client_fd = stream_->Detach();
  start.application_fd = application->Detach();
  start.to_application = pending_;
  start.to_client = to_client;
  if (exchange_.forwarded) gate_.CountForwarded();
  gate_.StartTunnel(std::move(start));
  Close();
}

// ---- the end ----

// The answer is complete; its last bytes may still be queued.
void Downstream::AnswerSent() {
  if (!exchange_.counted)
    gate_.CountAnswer(exchange_.status, gate_.host().loop.CachedNow() - exchange_.started);
  exchange_.counted = true;
  if (exchange_.forwarded) gate_.CountForwarded();
  if (stream_->queued() == 0) return FinishExchange();
  state_ = State::kFlushing;
  stalled_bytes_ = stream_->queued();
  SetDeadline(gate_.options().body_timeout);
}

void Downstream::FinishExchange() {
  gate_.Finished(ticket_);
  EndForward();
  const bool close = exchange_.close_after;
  exchange_ = {};  // what is wrong from here on is not wrong with the answer that is out
  last_active_ = gate_.host().loop.CachedNow();
  if (close || (client_ended_ && pending_.empty())) return BeginLinger();
  state_ = State::kIdle;
  SetDeadline(IdleTimeout());
  if (!in_input_ && !pending_.empty()) ResumeInput();
}

}  // namespace leasehold::gate

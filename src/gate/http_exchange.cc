// The application's side of an exchange: getting a connection, relaying the answer, ending it.
#include <utility>

#include "gate/http_downstream.h"
#include "gate/http_gate.h"
#include "gate/http_headers.h"
#include "gate/http_outgoing.h"

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
  connecting_ = loop::Connect(gate_.host().loop, gate_.options().upstream, options,
                              [this](base::Result<std::unique_ptr<loop::Stream>> result) {
                                OnConnected(std::move(result));
                              });
}

void Downstream::OnConnected(base::Result<std::unique_ptr<loop::Stream>> result) {
  connecting_.reset();
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
  gate_.pool_.Drop(*std::exchange(upstream_, nullptr), reset);
}

// ---- the answer ----

void Downstream::OnUpstreamData(std::string_view bytes) {
  if (!gate_.MayPass()) return Cut();
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
    AppendResponseHead(gate_.response_head_, head, {});
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
  close_after_ = !request.keep_alive || !request_done_ || !gate_.open() ||
                 (client_ended_ && pending_.empty()) || (unsized && !chunk_answer_);
  status_ = head.status;
  AnswerContext context;
  context.chunked = chunk_answer_;
  context.close = close_after_;
  context.keep_alive_10 = request.version_minor == 0 && !close_after_;
  gate_.response_head_.clear();
  AppendResponseHead(gate_.response_head_, head, context);
  out.AddHead(gate_.response_head_);
  answer_begun_ = true;
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
    gate_.pool_.Keep(*std::exchange(upstream_, nullptr));
  } else {
    LeaveUpstream(false);
  }
  AnswerSent();
}

void Downstream::OnUpstreamEnd() {
  if (upstream_->parser().Finish().event != Event::kComplete) {
    return UpstreamFailed("it ended the connection before its answer was complete");
  }
  if (!gate_.MayPass()) return Cut();
  Outgoing out(*stream_, gate_.bytes_down_);
  FinishResponse(out, false);
}

void Downstream::OnUpstreamBroken() {
  if (!gate_.MayPass()) return Cut();  // perhaps by us: MaySendUpstream said no
  UpstreamFailed("it reset the connection");
}

bool Downstream::MaySendUpstream() { return gate_.MayPass(); }

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
  const GateCore& core = gate_.core();
  if (core.valve() == lease::Valve::kDraining && loop::Loop::Now() >= core.tunnels_end()) {
    gate_.core().CountRefusal(Refusal::kDraining);
    return AnswerRefusal(Refusal::kDraining);
  }
  // Only a client that read nothing of interim answers, or an application that switched before it
  // had read the request, can leave something queued here.
  if (stream_->queued() > 0 || upstream_->stream().queued() > 0) return Cut();
  AnswerContext context;
  context.upgrade = true;
  std::string to_client;
  AppendResponseHead(to_client, upstream_->parser().head(), context);
  to_client += rest;
  status_ = 101;
  gate_.CountAnswer(status_, gate_.host().loop.CachedNow() - started_);
  std::unique_ptr<loop::Stream> application =
      gate_.pool_.TakeStream(*std::exchange(upstream_, nullptr));
  const int application_fd = application->Detach();
  const int client_fd = stream_->Detach();
  gate_.StartTunnel(std::move(ticket_), client_fd, application_fd, pending_, to_client);
  Close();
}

// ---- the end ----

// The answer is complete; its last bytes may still be queued.
void Downstream::AnswerSent() {
  gate_.CountAnswer(status_, gate_.host().loop.CachedNow() - started_);
  counted_ = true;
  if (stream_->queued() == 0) return FinishExchange();
  state_ = State::kFlushing;
  stalled_bytes_ = stream_->queued();
  SetDeadline(gate_.options().body_timeout);
}

void Downstream::FinishExchange() {
  gate_.Finished(ticket_);
  has_head_ = false;
  last_active_ = gate_.host().loop.CachedNow();
  if (close_after_ || (client_ended_ && pending_.empty())) return BeginLinger();
  state_ = State::kIdle;
  SetDeadline(gate_.open() ? gate_.options().idle_timeout : kHotWindow);
  if (!in_input_ && !pending_.empty()) ResumeInput();
}

}  // namespace leasehold::gate

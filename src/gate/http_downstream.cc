// A client connection: its bytes, its requests, their way to the application.
#include "gate/http_downstream.h"

#include <utility>

#include "base/text.h"
#include "gate/http_gate.h"
#include "gate/http_headers.h"
#include "gate/http_outgoing.h"

namespace leasehold::gate {

using proto::http1::Event;
using proto::http1::Framing;

namespace {

// Bytes of later requests (or of a body that must wait) kept while an exchange is under way.
// Reading goes on up to here so that a client's leaving is noticed; one read more may come on top.
constexpr size_t kPendingBytesMax = size_t{16} * 1024;

}  // namespace

Downstream::Downstream(HttpGate& gate, std::unique_ptr<loop::Stream> stream, Origin origin)
    : gate_(gate),
      stream_(std::move(stream)),
      parser_(gate.request_limits(origin)),
      client_(stream_->peer_host()),
      from_peer_(origin == Origin::kPeer) {
  stream_->SetListener(this);
}

Downstream::~Downstream() = default;

void Downstream::Start() {
  last_active_ = gate_.host().loop.CachedNow();
  const Options& options = gate_.options();
  if (from_peer_) stream_->SetKeepAlive(HttpGate::kProbePeriod);
  SetDeadline(gate_.leaving() ? kHotWindow : from_peer_ ? PeerIdleTimeout() : options.idle_timeout);
  stream_->StartReading();
}

// ---- the client ----

void Downstream::OnData(std::span<const char> bytes) {
  const std::string_view input(bytes.data(), bytes.size());
  if (state_ == State::kLingering) {
    linger_bytes_ += input.size();
    return;  // OnSweep ends it
  }
  // A client that sends its body without a "100 Continue" has waited long enough.
  if (exchange_.awaiting_continue && !exchange_.answer_begun &&
      gate_.host().loop.CachedNow() >= deadline_) {
    exchange_.awaiting_continue = false;
    SetDeadline(gate_.options().body_timeout);
    Stash(input);
    return ResumeInput();
  }
  if (!pending_.empty() || !WantsInput()) {
    Stash(input);
  } else {
    HandleInput(input);
  }
  UpdateReading();
}

void Downstream::OnEnd() {
  client_ended_ = true;
  switch (state_) {
    // A client that stops sending while it waits for the lease has given up (one that only closed
    // its sending half cannot be told apart; an answer to a request that is being served it gets).
    case State::kHeld:
    case State::kIdle:
    case State::kLingering: return Close();
    case State::kConnecting:
    case State::kActive:
      if (!exchange_.request_done && RequestHasBody() && pending_.empty()) Close();
      return;
    case State::kFlushing:
    case State::kClosed: return;
  }
}

// Answers of our own need no permit (nothing else is left when the valve is closed, save what
// on_loss = "finish" lets go on); what the application said does, also when it had to wait.
bool Downstream::MayFlush() {
  if (!ticket_.admitted() || gate_.core().valve() == lease::Valve::kClosed) return true;
  if (gate_.MayPass()) return true;
  stream_->ResetOnClose();  // what was sent of it must not look complete
  return false;
}

void Downstream::OnDrained() {
  if (state_ == State::kFlushing) {
    FinishExchange();
  } else if (state_ == State::kActive && upstream_ != nullptr && !upstream_->stream().reading()) {
    upstream_->stream().StartReading();
    SetDeadline(gate_.options().response_timeout);
  }
}

void Downstream::OnClosed(const base::Error&) { Close(); }

// ---- the request ----

bool Downstream::RequestHasBody() const { return parser_.head().framing != Framing::kNone; }

bool Downstream::MayRelay() { return exchange_.forwarded || gate_.MayPass(); }

bool Downstream::WantsInput() const {
  if (state_ == State::kIdle) return true;
  return state_ == State::kActive && !exchange_.request_done && !exchange_.awaiting_continue &&
         !(exchange_.forwarded && exchange_.commit_due) &&
         upstream_->stream().queued() <= gate_.options().buffer_bytes;
}

void Downstream::Stash(std::string_view rest) { pending_.append(rest); }

void Downstream::ResumeInput() {
  std::string input;
  input.swap(pending_);
  HandleInput(input);
  if (pending_.empty() && input.capacity() <= kPendingBytesMax) {
    input.clear();
    pending_.swap(input);
  }
  UpdateReading();
}

void Downstream::UpdateReading() {
  if (state_ == State::kClosed) return;
  const bool want = state_ == State::kLingering || pending_.size() < kPendingBytesMax;
  if (want == stream_->reading()) return;
  if (want) {
    stream_->StartReading();
  } else {
    stream_->StopReading();
  }
}

// Parses as far as it may, and sends on what it finds in as few system calls as it can: head and
// first piece of body leave together.
void Downstream::HandleInput(std::string_view input) {
  in_input_ = true;
  while (state_ == State::kActive || state_ == State::kIdle) {
    if (state_ == State::kActive) {
      RelayRequest(input);
      break;
    }
    const proto::http1::Step step = parser_.Next(input);
    input.remove_prefix(step.consumed);
    if (step.event == Event::kNeedMore) {
      OnInputPaused();
      break;
    }
    if (step.event == Event::kError) {
      AnswerParseError();
    } else if (step.event == Event::kHead) {
      OnRequestHead();
    }
  }
  in_input_ = false;
  if (state_ != State::kClosed && state_ != State::kLingering && !input.empty()) Stash(input);
}

// Moves what there is of the request to the upstream.
void Downstream::RelayRequest(std::string_view& input) {
  if (!MayRelay()) return RefuseExpired();
  Outgoing out(upstream_->stream(), gate_.bytes_up_);
  if (exchange_.head_due && (exchange_.forwarded || !exchange_.commit_due))
    AddRequestHead(out, Rewrite());
  const bool chunked = parser_.head().framing == Framing::kChunked;
  Event event = Event::kNeedMore;
  bool wants = WantsInput();
  while (wants) {
    const proto::http1::Step step = parser_.Next(input);
    input.remove_prefix(step.consumed);
    event = step.event;
    if (event != Event::kBody) break;
    if (exchange_.head_due) AddRequestHead(out, BodyRewrite::kKeep);
    exchange_.body_begun = true;
    out.AddBody(step.body, chunked);
    wants = WantsInput();
  }
  if (wants && event == Event::kComplete) AddRequestEnd(out);
  out.Flush();
  if (!wants) {
    if (!exchange_.request_done && !exchange_.awaiting_continue)
      SetDeadline(gate_.options().response_timeout);
    return;
  }
  switch (event) {
    case Event::kComplete: return OnRequestComplete();
    case Event::kError: return AnswerParseError();
    default: return OnInputPaused();
  }
}

void Downstream::OnInputPaused() {
  const Options& options = gate_.options();
  if (client_ended_) return Close();  // nothing will complete what has begun
  if (state_ == State::kIdle) {
    if (parser_.in_head()) {
      // From its first byte: a head that dribbles in does not move its own deadline.
      if (!head_timed_) SetDeadline(options.head_timeout);
      head_timed_ = true;
    }
    return;
  }
  if (!exchange_.answer_begun) {
    SetDeadline(options.body_timeout);
  } else if (upstream_->stream().reading()) {
    // The answer began early: a client that goes on sending keeps the exchange alive as much as an
    // application that goes on answering. (Not a client that takes nothing: OnStalled's.)
    SetDeadline(options.response_timeout);
  }
}

void Downstream::StartRequest() {
  exchange_ = {};
  exchange_.has_head = true;
  exchange_.started = gate_.host().loop.CachedNow();
  head_timed_ = false;
  deadline_ = base::MonoTime::Never();
  ForgetDeadline();
}

void Downstream::OnRequestHead() {
  StartRequest();
  const proto::http1::RequestHead& head = parser_.head();
  exchange_.awaiting_continue = head.expect_continue && RequestHasBody();
  // Not h2c: requests inside such a tunnel would pass unseen, with whatever Lease-* they claim.
  exchange_.upgrade = head.upgrade && !RequestHasBody() &&
                      base::ToLower(head.Find("upgrade")).find("h2c") == std::string::npos;
  if (from_peer_) return OnPeerRequest();
  if (head.lease_peers > 0) return RefuseLoop();
  const Decision decision = gate_.Admit(ticket_);
  if (decision.verdict == Verdict::kAdmit) return StartExchange();
  if (decision.verdict == Verdict::kRefuse) return AnswerRefusal(decision.refusal);
  if (decision.verdict == Verdict::kForward) return StartForward(gate_.TakeProbe());
  if (gate_.Hold(*this)) {
    state_ = State::kHeld;
  } else {
    AnswerRefusal(Refusal::kHoldFull);
  }
}

void Downstream::Serve(Ticket ticket) {
  ticket_ = std::move(ticket);
  StartExchange();
  if (state_ == State::kActive) ResumeInput();
}

void Downstream::OnRequestComplete() {
  exchange_.request_done = true;
  if (!exchange_.answer_begun) SetDeadline(gate_.options().response_timeout);
}

void Downstream::AddRequestHead(Outgoing& out, BodyRewrite body) {
  const proto::http1::RequestHead& head = parser_.head();
  ForwardContext context;
  if (!from_peer_) context.client = client_;
  context.body = body;
  if (exchange_.forwarded) {
    context.peer_hello = gate_.peer_key_.HelloTo(gate_.core().route().peer().process_id);
    context.say = exchange_.say;
    ExpectSign();
  } else {
    exchange_.commit_due = false;
    context.lease_fields = gate_.lease_fields();
    if (exchange_.sequence == 0)
      exchange_.sequence = gate_.NextSequence();  // a retry keeps its number
    context.sequence = exchange_.sequence;
  }
  context.default_host = gate_.default_host_;
  context.upgrade = exchange_.upgrade;
  gate_.request_head_.clear();
  AppendRequestHead(gate_.request_head_, head, context);
  out.AddHead(gate_.request_head_);
  exchange_.head_due = false;
  SetDeadline(exchange_.awaiting_continue ? kContinueWait : gate_.options().response_timeout);
}

void Downstream::AddRequestEnd(Outgoing& out) {
  const bool chunked = parser_.head().framing == Framing::kChunked;
  if (from_peer_ && exchange_.head_due) {  // nothing but this end has followed the head
    exchange_.emptied = chunked && parser_.trailers().empty();
    AddRequestHead(out, Rewrite());
    if (exchange_.emptied) return;
  }
  if (!chunked && Rewrite() != BodyRewrite::kChunked) return;
  exchange_.body_begun = true;
  gate_.scratch_.clear();
  AppendChunkedEnd(gate_.scratch_, parser_.trailers(), true);
  out.AddChunkedEnd(gate_.scratch_);
}

}  // namespace leasehold::gate

#include "gate/sqs_connection.h"

#include <array>
#include <utility>

#include "proto/http1_write.h"

namespace leasehold::gate {
namespace {

namespace http1 = proto::http1;
using http1::Event;

// Bytes of later requests kept while one is being answered. Reading goes on up to here so that a
// client's leaving is noticed; one read more may come on top.
constexpr size_t kPendingBytesMax = size_t{16} * 1024;
// After the last answer the client's further bytes are read and thrown away for this long, because
// a close with unread bytes resets the connection and may destroy the answer before it is read.
constexpr base::Duration kLinger = base::Duration::Seconds(2);
// A body that is too large, from a client that does not look at the answer.
constexpr size_t kLingerBytesMax = size_t{64} * 1024 * 1024;

http1::Limits RequestLimits(const Options& options) {
  http1::Limits limits;
  limits.head_bytes_max = options.head_bytes_max;
  limits.target_bytes_max = options.target_bytes_max;
  limits.body_bytes_max = options.body_bytes_max;
  return limits;
}

}  // namespace

SqsConnection::SqsConnection(SqsServer& server, loop::Loop& loop, const Options& options,
                             std::unique_ptr<loop::Stream> stream)
    : server_(server),
      loop_(loop),
      options_(options),
      stream_(std::move(stream)),
      parser_(RequestLimits(options)) {
  stream_->SetListener(this);
}

void SqsConnection::Start() {
  SetDeadline(options_.idle_timeout);
  stream_->StartReading();
}

// ---- the client ----

void SqsConnection::OnData(std::span<const char> bytes) {
  const std::string_view input(bytes.data(), bytes.size());
  server_.CountBytes(input.size(), 0);
  if (state_ == State::kLingering) {
    linger_bytes_ += input.size();
    if (linger_bytes_ > kLingerBytesMax) Cut();
    return;
  }
  if (state_ == State::kReading && pending_.empty()) {
    HandleInput(input);
  } else {
    pending_.append(input);
  }
  UpdateReading();
}

void SqsConnection::OnEnd() {
  client_ended_ = true;
  switch (state_) {
    case State::kAnswering:
      if (server_.LeftBy(*this)) Close();
      return;
    case State::kReading:
    case State::kLingering: return Close();
    case State::kFlushing:
    case State::kClosed: return;
  }
}

bool SqsConnection::MayFlush() {
  if (!gated_ || server_.MayFlush()) return true;
  stream_->ResetOnClose();  // what was sent of it must not look complete
  return false;
}

void SqsConnection::OnDrained() {
  if (state_ != State::kFlushing) return;
  AnswerSent();
  if (state_ == State::kReading) ResumeInput();
}

void SqsConnection::OnClosed(const base::Error&) { Close(); }

// ---- the request ----

void SqsConnection::HandleInput(std::string_view input) {
  in_input_ = true;
  while (state_ == State::kReading) {
    const http1::Step step = parser_.Next(input);
    input.remove_prefix(step.consumed);
    if (step.event == Event::kNeedMore) {
      OnPaused();
      break;
    }
    switch (step.event) {
      case Event::kHead: OnHead(); break;
      case Event::kBody: OnBody(step.body); break;
      case Event::kComplete: OnComplete(); break;
      case Event::kError: Bad(parser_.error().status, parser_.error().message); break;
      case Event::kNeedMore: break;
    }
  }
  in_input_ = false;
  if (state_ == State::kAnswering || state_ == State::kFlushing) pending_.append(input);
}

void SqsConnection::ResumeInput() {
  std::string input;
  input.swap(pending_);
  HandleInput(input);
  UpdateReading();
}

void SqsConnection::OnHead() {
  has_head_ = true;
  head_timed_ = false;
  const http1::RequestHead& head = parser_.head();
  if (head.framing == http1::Framing::kNone) return;
  SetDeadline(options_.body_timeout);
  // What is announced too large was refused before this.
  if (head.expect_continue) stream_->Write("HTTP/1.1 100 Continue\r\n\r\n");
}

void SqsConnection::OnBody(std::string_view piece) {
  if (!server_.TakeRoom(piece.size())) {
    return Bad(503, "all requests together are larger than this gate has memory for");
  }
  room_ += piece.size();
  body_.append(piece);
}

void SqsConnection::OnComplete() {
  state_ = State::kAnswering;
  deadline_ = base::MonoTime::Never();
  server_.OnRequest(*this);
}

// Everything there is was parsed.
void SqsConnection::OnPaused() {
  if (client_ended_) return Close();  // nothing will complete what has begun
  if (has_head_) return SetDeadline(options_.body_timeout);
  if (!parser_.in_head()) return;
  // From its first byte: a head that dribbles in does not move its own deadline.
  if (!head_timed_) SetDeadline(options_.head_timeout);
  head_timed_ = true;
}

void SqsConnection::Bad(int status, std::string_view message) {
  state_ = State::kAnswering;
  server_.OnBadRequest(*this, status, message);
}

void SqsConnection::UpdateReading() {
  if (state_ == State::kClosed) return;
  const bool want = state_ == State::kLingering || pending_.size() < kPendingBytesMax;
  if (want == stream_->reading()) return;
  if (want) {
    stream_->StartReading();
  } else {
    stream_->StopReading();
  }
}

// ---- the answer ----

void SqsConnection::Answer(const proto::sqs::Answer& answer, bool gated, bool close) {
  if (state_ != State::kAnswering) return;
  const bool nothing_follows = client_ended_ && pending_.empty();
  close_after_ =
      close || end_after_answer_ || nothing_follows || !has_head_ || !parser_.head().keep_alive;
  gated_ = gated;
  std::string head;
  http1::AppendStatusLine(head, answer.status, http1::ReasonPhrase(answer.status));
  if (!answer.content_type.empty()) {
    http1::AppendHeader(head, "Content-Type", answer.content_type);
  }
  for (const auto& [name, value] : answer.headers) http1::AppendHeader(head, name, value);
  http1::AppendHeader(head, "Content-Length", uint64_t{answer.body.size()});
  if (close_after_) {
    http1::AppendHeader(head, "Connection", "close");
  } else if (parser_.head().version_minor == 0) {
    http1::AppendHeader(head, "Connection", "keep-alive");
  }
  head += http1::kCrlf;
  const bool head_only = has_head_ && parser_.head().is_head;
  const std::array<std::string_view, 2> pieces = {
      head, head_only ? std::string_view() : std::string_view(answer.body)};
  server_.CountBytes(0, pieces[0].size() + pieces[1].size());
  state_ = State::kFlushing;
  stream_->Writev(std::span(pieces.data(), pieces[1].empty() ? 1U : 2U));
  if (stream_->queued() > 0) {
    stalled_bytes_ = stream_->queued();
    return SetDeadline(options_.body_timeout);
  }
  AnswerSent();
  if (state_ == State::kReading && !in_input_) ResumeInput();
}

// Its last byte is with the kernel.
void SqsConnection::AnswerSent() {
  ReleaseRoom();
  gated_ = false;
  delivering.clear();
  if (close_after_) return BeginLinger();
  state_ = State::kReading;
  has_head_ = false;
  SetDeadline(options_.idle_timeout);
}

void SqsConnection::ReleaseRoom() {
  server_.GiveRoom(std::exchange(room_, 0));
  body_ = {};
}

// ---- ends ----

void SqsConnection::BeginLinger() {
  if (client_ended_) return Close();
  state_ = State::kLingering;
  pending_.clear();
  stream_->ShutdownWrite();
  stream_->StartReading();
  SetDeadline(kLinger);
}

void SqsConnection::EndAfterAnswer() {
  end_after_answer_ = true;
  if (state_ == State::kFlushing) close_after_ = true;
  if (state_ == State::kReading && !has_head_ && !parser_.in_head()) BeginLinger();
}

void SqsConnection::Cut() {
  if (state_ == State::kClosed) return;
  stream_->ResetOnClose();
  Close();
}

void SqsConnection::Close() {
  if (state_ == State::kClosed) return;
  const bool answered = state_ != State::kFlushing;
  state_ = State::kClosed;
  ReleaseRoom();
  stream_.reset();
  server_.OnClosing(*this, answered);
}

void SqsConnection::OnSweep(base::MonoTime now) {
  if (now < deadline_) return;
  deadline_ = base::MonoTime::Never();
  switch (state_) {
    case State::kReading:
      if (has_head_) return Bad(408, "the request's body did not arrive in time");
      if (parser_.in_head()) return Bad(408, "the request's head did not arrive in time");
      return BeginLinger();
    case State::kFlushing:
      // Some progress since the last look is enough.
      if (stream_->queued() >= stalled_bytes_) return Cut();
      stalled_bytes_ = stream_->queued();
      return SetDeadline(options_.body_timeout);
    case State::kLingering: return Close();
    case State::kAnswering:
    case State::kClosed: return;
  }
}

}  // namespace leasehold::gate

#include "admin/http_connection.h"

#include <array>
#include <cstdio>
#include <string_view>
#include <utility>

#include "admin/problem.h"
#include "base/text.h"
#include "proto/http1_write.h"

namespace leasehold::admin {
namespace {

namespace http1 = proto::http1;

// Pipelined input kept while a request is handled; beyond it the peer waits in the kernel. One read
// (64 KiB, loop::Loop::scratch) more can arrive on top.
constexpr size_t kInputBytesMax = size_t{16} * 1024;
// Answers waiting to be read before further pipelined requests are looked at.
constexpr size_t kOutputBytesMax = size_t{64} * 1024;
// Pipelined requests handled in one turn of the loop: a scrape costs about a millisecond, and
// a burst of them must not hold up a renewal or a gate.
constexpr int kServedPerTurnMax = 4;
// Thrown away after the last answer, so that its reader is not cut by a reset; more is an abuse.
constexpr uint64_t kDiscardBytesMax = uint64_t{256} * 1024;

http1::Limits ParserLimits(const HttpServerOptions& options) {
  http1::Limits limits;
  limits.head_bytes_max = options.head_bytes_max;
  limits.target_bytes_max = options.target_bytes_max;
  limits.body_bytes_max = options.body_bytes_max;
  return limits;
}

std::string_view ProblemCode(int status) {
  switch (status) {
    case 408: return "timeout";
    case 413: return "body_too_large";
    case 414: return "target_too_long";
    case 417: return "expectation_failed";
    case 431: return "head_too_large";
    case 501: return "not_implemented";
    case 505: return "version_not_supported";
    default: return "bad_request";
  }
}

// Tells an absent header from an empty one, which Find() does not.
std::optional<std::string> FindHeader(const http1::RequestHead& head, std::string_view name) {
  for (const http1::Header& header : head.headers) {
    if (base::EqualsIgnoreCase(header.name, name)) return std::string(header.value);
  }
  return std::nullopt;
}

}  // namespace

HttpConnection::HttpConnection(const Owner& owner, std::unique_ptr<loop::Stream> stream)
    : owner_(owner),
      stream_(std::move(stream)),
      parser_(ParserLimits(owner.options)),
      timer_(owner.loop, [this] { OnTimer(); }) {}

// Whoever closes it, its source is told.
HttpConnection::~HttpConnection() { EndSource(); }

void HttpConnection::Start() {
  stream_->SetListener(this);
  stream_->StartReading();
  Enter(Phase::kIdle);
  timer_.StartAfter(owner_.options.head_timeout);  // a new connection has a request to make
}

void HttpConnection::Enter(Phase phase) {
  if (phase_ == Phase::kOver) return;
  phase_ = phase;
  const HttpServerOptions& options = owner_.options;
  switch (phase) {
    case Phase::kIdle:
      timer_.StartAfter(stream_->queued() > 0 ? options.write_timeout : options.idle_timeout);
      break;
    case Phase::kHead: timer_.StartAfter(options.head_timeout); break;
    case Phase::kBody: timer_.StartAfter(options.body_timeout); break;
    case Phase::kBlocked: timer_.StartAfter(options.write_timeout); break;
    case Phase::kLingering:
      timer_.StartAfter(stream_->queued() > 0 ? options.write_timeout : options.linger_timeout);
      break;
    case Phase::kHandling:
    case Phase::kStreaming:
    case Phase::kOver: timer_.Stop(); break;
  }
}

void HttpConnection::OnData(std::span<const char> bytes) {
  const auto self = shared_from_this();
  if (phase_ == Phase::kLingering || phase_ == Phase::kStreaming) {
    discarded_bytes_ += bytes.size();
    if (discarded_bytes_ > kDiscardBytesMax) Over();
    return;
  }
  input_.append(bytes.data(), bytes.size());
  Process();
}

void HttpConnection::OnEnd() {
  const auto self = shared_from_this();
  ended_ = true;
  if (phase_ == Phase::kStreaming) return EndBody();
  if (phase_ == Phase::kLingering) {
    if (stream_->queued() == 0) Over();
    return;
  }
  Process();
}

void HttpConnection::OnDrained() {
  const auto self = shared_from_this();
  if (phase_ == Phase::kStreaming) {
    const auto source = source_;  // it may end inside
    source->Drained();
  } else if (phase_ == Phase::kLingering) {
    if (ended_) {
      Over();
    } else {
      Enter(Phase::kLingering);
    }
  } else if (phase_ == Phase::kBlocked || phase_ == Phase::kIdle) {
    Enter(Phase::kIdle);
    Process();
  }
}

void HttpConnection::OnClosed(const base::Error& /*error*/) {
  const auto self = shared_from_this();
  Over();
}

void HttpConnection::Process() {
  if (processing_) return;  // an answer from inside the handler: the loop below goes on
  processing_ = true;
  starved_ = false;
  while (!starved_ && !yielding_ &&
         (phase_ == Phase::kIdle || phase_ == Phase::kHead || phase_ == Phase::kBody)) {
    ParseNext();
  }
  processing_ = false;
  if (phase_ == Phase::kOver) return;
  // Asked for more, and there is no more: the peer has said all it had to say.
  if (ended_ && starved_) {
    keep_alive_ = false;
    stream_->ShutdownWrite();
    Enter(Phase::kLingering);
    if (stream_->queued() == 0) Over();
    return;
  }
  UpdateReading();
}

void HttpConnection::ParseNext() {
  const http1::Step step = parser_.Next(input_);
  switch (step.event) {
    case http1::Event::kHead: TakeHead(); break;
    case http1::Event::kBody: request_.body.append(step.body); break;
    case http1::Event::kComplete:
    case http1::Event::kError: break;  // below, when what was consumed is off the input
    case http1::Event::kNeedMore: starved_ = true; break;
  }
  input_.erase(0, step.consumed);
  if (step.event == http1::Event::kComplete) {
    Dispatch();
  } else if (step.event == http1::Event::kError) {
    Fail(parser_.error().status, parser_.error().message);
  } else if (starved_ && phase_ == Phase::kIdle && parser_.in_head()) {
    Enter(Phase::kHead);
  }
}

void HttpConnection::TakeHead() {
  const http1::RequestHead& head = parser_.head();
  request_ = HttpRequest();
  request_.method = head.method;
  request_.target = head.target;
  request_.host = FindHeader(head, "Host");
  request_.origin = FindHeader(head, "Origin");
  request_.authorization = FindHeader(head, "Authorization");
  request_.last_event_id = FindHeader(head, "Last-Event-ID");
  request_.peer = stream_->peer();
  keep_alive_ = head.keep_alive;
  head_only_ = head.is_head;
  http_1_0_ = head.version_minor == 0;
  if (head.expect_continue && head.framing != http1::Framing::kNone) {
    stream_->Write("HTTP/1.1 100 Continue\r\n\r\n");
  }
  Enter(Phase::kBody);
}

void HttpConnection::Dispatch() {
  Enter(Phase::kHandling);
  if (++served_in_turn_ >= kServedPerTurnMax && !yielding_) Yield();
  const uint64_t exchange = ++exchange_;
  owner_.handler(request_, [weak = weak_from_this(), exchange](const HttpAnswer& answer) {
    if (const auto self = weak.lock()) self->Answer(exchange, answer);
  });
}

void HttpConnection::Yield() {
  yielding_ = true;
  owner_.loop.Post([weak = weak_from_this()] {
    const auto self = weak.lock();
    if (self == nullptr) return;
    self->yielding_ = false;
    self->served_in_turn_ = 0;
    self->Process();
  });
}

void HttpConnection::Answer(uint64_t exchange, const HttpAnswer& answer) {
  if (phase_ != Phase::kHandling || exchange != exchange_) return;
  Write(answer);
  if (answer.source != nullptr && !head_only_) return BeginStream(answer.source);
  AfterAnswer();
  Process();
}

void HttpConnection::Write(const HttpAnswer& answer) {
  std::string head;
  http1::AppendStatusLine(head, answer.status, http1::ReasonPhrase(answer.status));
  http1::AppendHeader(head, "Content-Type", answer.content_type);
  const std::string_view body = answer.fixed_body.empty() ? answer.body : answer.fixed_body;
  if (answer.source == nullptr) {
    http1::AppendHeader(head, "Content-Length", uint64_t{body.size()});
  } else {
    if (!http_1_0_) http1::AppendHeader(head, "Transfer-Encoding", "chunked");
    if (!head_only_) keep_alive_ = false;
  }
  // Every answer is the state of this moment, for whom it was asked and nobody else.
  http1::AppendHeader(head, "Cache-Control", "no-store");
  http1::AppendHeader(head, "X-Content-Type-Options", "nosniff");
  for (const auto& [name, value] : answer.headers) http1::AppendHeader(head, name, value);
  if (!keep_alive_) {
    http1::AppendHeader(head, "Connection", "close");
  } else if (http_1_0_) {
    http1::AppendHeader(head, "Connection", "keep-alive");
  }
  head += http1::kCrlf;
  const std::array<std::string_view, 2> pieces = {head, head_only_ ? std::string_view() : body};
  stream_->Writev(pieces);
}

void HttpConnection::AfterAnswer() {
  request_ = HttpRequest();
  if (!keep_alive_) {
    stream_->ShutdownWrite();
    input_.clear();
    Enter(Phase::kLingering);
    if (ended_ && stream_->queued() == 0) Over();
    if (phase_ == Phase::kLingering && !stream_->reading()) stream_->StartReading();
    return;
  }
  Enter(stream_->queued() > kOutputBytesMax ? Phase::kBlocked : Phase::kIdle);
  owner_.on_served(*this);
}

// ---- a streamed body ----

void HttpConnection::BeginStream(const std::shared_ptr<HttpBodySource>& source) {
  request_ = HttpRequest();
  input_ = std::string();
  Enter(Phase::kStreaming);
  stream_->SetUserTimeout(owner_.options.stream_user_timeout);
  source_ = source;
  owner_.on_streaming(*this, true);
  source->Open(*this);
  if (ended_ && phase_ == Phase::kStreaming) EndBody();
}

void HttpConnection::WriteBody(std::string_view bytes) {
  if (phase_ != Phase::kStreaming || bytes.empty()) return;
  if (http_1_0_) return stream_->Write(bytes);
  std::array<char, 24> size{};
  const int length = std::snprintf(size.data(), size.size(), "%zx\r\n", bytes.size());
  const std::array<std::string_view, 3> pieces = {
      std::string_view(size.data(), static_cast<size_t>(length)), bytes, http1::kCrlf};
  stream_->Writev(pieces);
}

size_t HttpConnection::queued() const { return stream_ == nullptr ? 0 : stream_->queued(); }

void HttpConnection::EndBody() {
  if (phase_ != Phase::kStreaming) return;
  const auto self = shared_from_this();
  if (!http_1_0_) stream_->Write("0\r\n\r\n");
  Enter(Phase::kLingering);  // nothing is written after this, whoever is told
  EndSource();
  owner_.on_streaming(*this, false);
  AfterAnswer();
}

void HttpConnection::Cut() {
  if (phase_ != Phase::kStreaming) return;
  const auto self = shared_from_this();
  stream_->ResetOnClose();
  Over();
}

void HttpConnection::EndSource() {
  if (const auto source = std::exchange(source_, nullptr)) source->Closed();
}

void HttpConnection::Fail(int status, const char* why) {
  keep_alive_ = false;
  head_only_ = false;
  Write(ProblemAnswer(status, ProblemCode(status), why));
  AfterAnswer();
}

void HttpConnection::OnTimer() {
  const auto self = shared_from_this();
  switch (phase_) {
    case Phase::kHead: return Fail(408, "the request head did not arrive in time");
    case Phase::kBody: return Fail(408, "the request body did not arrive in time");
    case Phase::kBlocked:
    case Phase::kLingering: stream_->ResetOnClose(); return Over();
    default: return Over();
  }
}

void HttpConnection::Over() {
  if (phase_ == Phase::kOver) return;
  Enter(Phase::kOver);
  stream_.reset();
  EndSource();
  owner_.on_over(*this);
}

void HttpConnection::UpdateReading() {
  // A burst is over: an idle connection should be small again.
  if (input_.empty() && input_.capacity() > kInputBytesMax) input_.shrink_to_fit();
  const bool wanted = phase_ == Phase::kLingering || phase_ == Phase::kStreaming || ended_ ||
                      input_.size() <= kInputBytesMax;
  if (wanted == stream_->reading()) return;
  if (wanted) {
    stream_->StartReading();
  } else {
    stream_->StopReading();
  }
}

}  // namespace leasehold::admin

#include "moves/app_connection.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <utility>

#include "proto/http1_write.h"

namespace leasehold::moves {

using proto::http1::AppendHeader;
using proto::http1::Event;

namespace {

constexpr size_t kDownloadPieces = 60;  // of 3 s: one each 50 ms

}  // namespace

AppConnection::AppConnection(AppServer& server, std::unique_ptr<loop::Stream> stream, int fd)
    : server_(server),
      stream_(std::move(stream)),
      fd_(fd),
      parser_({}),
      timer_(server.loop(), [this] {
        if (path_ == "/download") return SendPiece();
        Answer();
      }) {
  stream_->SetListener(this);
  stream_->StartReading();
}

void AppConnection::OnData(std::span<const char> bytes) {
  const std::string_view input(bytes.data(), bytes.size());
  if (state_ == State::kTunnel) return stream_->Write(input);
  if (state_ == State::kWorking) {
    rest_.append(input);
    return;
  }
  Parse(input);
}

void AppConnection::OnEnd() { End(); }
void AppConnection::OnClosed(const base::Error&) { End(); }

void AppConnection::End() {
  if (std::exchange(state_, State::kEnded) == State::kEnded) return;
  timer_.Stop();
  stream_->StopReading();
  server_.Bury(this);
}

void AppConnection::Parse(std::string_view input) {
  while (state_ == State::kReading) {
    const proto::http1::Step step = parser_.Next(input);
    input.remove_prefix(step.consumed);
    switch (step.event) {
      case Event::kNeedMore: return;
      case Event::kHead: OnHead(); break;
      case Event::kBody: body_.Take(step.body); break;
      case Event::kComplete: OnComplete(); break;
      case Event::kError: return End();
    }
  }
  if (state_ == State::kWorking) rest_.append(input);
  if (state_ == State::kTunnel && !input.empty()) stream_->Write(input);
}

void AppConnection::OnHead() {
  const proto::http1::RequestHead& head = parser_.head();
  path_ = head.target.substr(0, head.target.find('?'));
  stamp_.id = QueryNumber(head.target, "id", 0);
  expected_ = QueryNumber(head.target, "body", 0);
  answer_ = std::min<uint64_t>(QueryNumber(head.target, "answer", 0), kBodyMax);
  answer_chunked_ = QueryNumber(head.target, "chunked", 0) != 0;
  delay_ms_ = QueryNumber(head.target, "ms", 0);
  head_only_ = head.is_head;
  keep_alive_ = head.keep_alive;
  body_.Begin(stamp_.id);
  token_ = head.Find("Lease-Fencing-Token");
  if (token_.empty()) token_ = "0";
  sequence_ = head.Find("Lease-Sequence");
  if (sequence_.empty()) sequence_ = "0";
  const std::string_view holder = head.Find("Lease-Holder");  // <node id>/<process id>
  process_ = holder.substr(std::min(holder.rfind('/') + 1, holder.size()));
  if (process_.empty()) process_ = "-";
  stamp_.token = token_;
  stamp_.sequence = sequence_;
  stamp_.process = process_;
  stamp_.arrived = ArrivedAt(fd_);
  if (path_ == "/execute") server_.Log('B', stamp_);
}

void AppConnection::OnComplete() {
  if (path_ == "/ws") return BeginTunnel();
  state_ = State::kWorking;
  if (path_ == "/download") return BeginDownload();
  if (delay_ms_ == 0) return Answer();
  timer_.StartAfter(base::Duration::Millis(static_cast<int64_t>(delay_ms_)));
}

void AppConnection::Answer() {
  if (path_ == "/execute") {
    AnswerExecuted();
  } else {
    const std::string& unready = server_.options().unready;
    const bool ready = unready.empty() || access(unready.c_str(), F_OK) != 0;
    Write(ready ? 200 : 503, server_.name().size(), false, server_.name());
  }
  Resume();
}

void AppConnection::AnswerExecuted() {
  constexpr int kConflict = 409;  // what a resource says to a former holder
  stamp_.arrived = ArrivedAt(fd_);
  const bool right = body_.Is(expected_);
  if (!server_.Execute(stamp_, right)) return Write(kConflict, 0, false);
  Write(right ? 200 : 500, answer_, answer_chunked_, BodyOf(stamp_.id, 0, answer_));
}

void AppConnection::BeginDownload() {
  server_.Log('E', stamp_);
  sent_ = 0;
  answer_ = std::min<uint64_t>(QueryNumber(parser_.head().target, "bytes", 0), kBodyMax);
  Write(200, answer_, false);
  SendPiece();
}

void AppConnection::SendPiece() {
  const size_t piece = std::min(answer_ - sent_, answer_ / kDownloadPieces + 1);
  stream_->Write(BodyOf(stamp_.id, sent_, piece));
  sent_ += piece;
  if (sent_ == answer_) return Resume();
  timer_.StartAfter(base::Duration::Millis(static_cast<int64_t>(delay_ms_)) / kDownloadPieces);
}

void AppConnection::BeginTunnel() {
  state_ = State::kTunnel;
  stream_->Write(
      "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n");
}

void AppConnection::Write(int status, size_t length, bool chunked, std::string_view more) {
  head_.clear();
  proto::http1::AppendStatusLine(head_, status, proto::http1::ReasonPhrase(status));
  AppendHeader(head_, "App-Name", server_.name());
  AppendHeader(head_, "App-Id", stamp_.id);
  AppendHeader(head_, "App-Token", token_);
  if (!keep_alive_) AppendHeader(head_, "Connection", "close");
  if (head_only_) more = {};
  if (!chunked) {
    AppendHeader(head_, "Content-Length", length);
    head_ += proto::http1::kCrlf;
    const std::array<std::string_view, 2> pieces = {head_, more};
    return stream_->Writev(pieces);
  }
  AppendHeader(head_, "Transfer-Encoding", "chunked");
  head_ += proto::http1::kCrlf;
  char size[20];
  const int digits = std::snprintf(size, sizeof size, "%zx\r\n", more.size());
  const std::string_view begin(size, more.empty() ? 0 : static_cast<size_t>(digits));
  const std::array<std::string_view, 4> pieces = {head_, begin, more,
                                                  more.empty() ? "0\r\n\r\n" : "\r\n0\r\n\r\n"};
  stream_->Writev(pieces);
}

void AppConnection::Resume() {
  if (!keep_alive_) return stream_->ShutdownWrite();  // and nothing more, until the peer ends it
  state_ = State::kReading;
  if (rest_.empty()) return;
  const std::string input = std::exchange(rest_, {});
  Parse(input);
}

}  // namespace leasehold::moves

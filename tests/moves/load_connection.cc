#include "moves/load_connection.h"

#include <array>
#include <cstdio>
#include <utility>

#include "proto/http1_write.h"

namespace leasehold::moves {

using proto::http1::AppendHeader;
using proto::http1::Event;

namespace {

// A chunked body goes in pieces of about a third.
constexpr size_t kChunks = 3;

// Enough of a problem's body to have its type.
constexpr size_t kProblemBytes = 256;

// "/hold_full" of {"type":"urn:leasehold:problem:hold_full",...}; nothing of another's answer.
std::string ProblemType(std::string_view body) {
  constexpr std::string_view kBefore = "\"urn:leasehold:problem:";
  const size_t at = body.find(kBefore);
  if (at == std::string_view::npos) return "";
  const std::string_view rest = body.substr(at + kBefore.size());
  return "/" + std::string(rest.substr(0, rest.find('"')));
}

std::string_view ChunkSize(std::array<char, 20>& line, size_t size) {
  const int length = std::snprintf(line.data(), line.size(), "%zx\r\n", size);
  return {line.data(), static_cast<size_t>(length)};
}

}  // namespace

LoadConnection::LoadConnection(Load& load, size_t target, Sent* request)
    : load_(load), target_(target), request_(request), parser_({}) {
  loop::ConnectOptions options;
  options.timeout = load.options().timeout;
  connecting_ = loop::Connect(load.loop(), load.options().targets[target], options,
                              [this](auto result) { OnConnected(std::move(result)); });
}

void LoadConnection::OnConnected(base::Result<std::unique_ptr<loop::Stream>> result) {
  connecting_.reset();
  if (!result.ok()) {
    ended_ = true;
    return load_.Refused(this, std::exchange(request_, nullptr));
  }
  stream_ = std::move(result).value();
  stream_->SetListener(this);
  stream_->StartReading();
  WriteRequest();
}

void LoadConnection::Send(Sent* request) {
  request_ = request;
  WriteRequest();
}

void LoadConnection::WriteRequest() {
  request_->sent = loop::Loop::Now().nanos();
  work_ = WorkOf(request_->id);
  head_ = work_.post ? "POST " : "GET ";
  AppendTarget(head_, work_);
  head_ += " HTTP/1.1\r\nHost: moves\r\n";
  const std::string_view body = BodyOf(work_.id, 0, work_.body);
  if (work_.post && !work_.chunked) AppendHeader(head_, "Content-Length", work_.body);
  if (work_.chunked) AppendHeader(head_, "Transfer-Encoding", "chunked");
  head_ += proto::http1::kCrlf;
  if (!work_.chunked) {
    const std::array<std::string_view, 2> pieces = {head_, body};
    return stream_->Writev(pieces);
  }
  stream_->Write(head_);
  for (size_t from = 0; from < body.size();) {
    const std::string_view chunk = body.substr(from, body.size() / kChunks + 1);
    std::array<char, 20> line;
    const std::array<std::string_view, 3> pieces = {ChunkSize(line, chunk.size()), chunk, "\r\n"};
    stream_->Writev(pieces);
    from += chunk.size();
  }
  stream_->Write("0\r\n\r\n");
}

void LoadConnection::OnData(std::span<const char> bytes) {
  Parse(std::string_view(bytes.data(), bytes.size()));
}

void LoadConnection::Parse(std::string_view input) {
  while (!ended_) {
    const proto::http1::Step step = parser_.Next(input);
    input.remove_prefix(step.consumed);
    switch (step.event) {
      case Event::kNeedMore: return;
      case Event::kHead: OnHead(); break;
      case Event::kBody: OnBody(step.body); break;
      case Event::kComplete:
        if (!parser_.head().interim()) OnComplete();
        break;
      case Event::kError: return Fail("wrong_answer");
    }
  }
}

void LoadConnection::OnHead() {
  if (parser_.head().interim()) return;
  if (request_ == nullptr) return Fail("unasked");
  body_.Begin(request_->id);
  problem_.clear();
  request_->app = parser_.head().Find("App-Name");
  request_->token = parser_.head().Find("App-Token");
}

void LoadConnection::OnBody(std::string_view piece) {
  if (parser_.head().status == 200) return body_.Take(piece);
  if (problem_.size() < kProblemBytes) problem_.append(piece);
}

void LoadConnection::OnComplete() {
  Sent* request = std::exchange(request_, nullptr);
  const proto::http1::ResponseHead& head = parser_.head();
  const bool keep = head.keep_alive;
  std::string result = "ok";
  if (head.status != 200) {
    result = "status_" + std::to_string(head.status) + ProblemType(problem_);
  } else if (head.Find("App-Id") != std::to_string(request->id) || !body_.Is(work_.answer)) {
    result = "wrong_answer";
  }
  load_.Done(request, result);
  if (!keep) return End();
  load_.Idle(this, target_);
}

void LoadConnection::OnEnd() {
  if (request_ != nullptr) return Fail(parser_.idle() ? "closed" : "cut");
  End();
}

void LoadConnection::OnClosed(const base::Error&) {
  if (request_ != nullptr) return Fail("reset");
  End();
}

void LoadConnection::OnSweep(base::MonoTime now) {
  if (request_ == nullptr) return;
  if (now.nanos() - request_->scheduled > load_.options().timeout.nanos()) Fail("timeout");
}

void LoadConnection::Fail(std::string_view result) {
  Sent* request = std::exchange(request_, nullptr);
  if (request == nullptr) {
    std::fprintf(stderr, "gate %zu: %.*s answer\n", target_, static_cast<int>(result.size()),
                 result.data());
  } else {
    load_.Done(request, result);
  }
  End();
}

void LoadConnection::End() {
  if (std::exchange(ended_, true)) return;
  connecting_.reset();
  if (stream_ != nullptr) stream_->StopReading();
  load_.Bury(this, target_);
}

}  // namespace leasehold::moves

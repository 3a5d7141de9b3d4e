#include "client/http_call.h"

#include <array>
#include <span>
#include <string_view>

#include "base/text.h"
#include "client/http_exchange.h"
#include "loop/connect.h"
#include "loop/stream.h"
#include "loop/timer.h"

namespace leasehold::client {
namespace {

using base::Error;
using base::ErrorCode;

class HttpCallImpl final : public HttpCall, private loop::StreamListener {
 public:
  HttpCallImpl(loop::Loop& loop, const HttpRequest& request, HttpStreaming streaming,
               std::function<void(base::Result<HttpResponse>)> done)
      : name_(CallName(request, request.address)),
        timeout_(request.timeout),
        streaming_(std::move(streaming)),
        done_(std::move(done)),
        deadline_(loop, [this] { OnDeadline(); }) {
    if (base::Status status = CheckRequest(request); !status.ok()) {
      refused_ = status.error();
      deadline_.StartAfter(base::Duration::Zero());  // said later, from the loop
      return;
    }
    reader_.Expect(request);
    head_ = WriteHead(request, request.address, false);
    body_ = request.body;
    const base::MonoTime now = loop::Loop::Now();
    const base::MonoTime end = request.started.value_or(now) + timeout_;
    deadline_.StartAt(end);
    loop::ConnectOptions options;
    options.timeout = base::Max(end - now, base::Duration::Zero());
    connecting_ = loop::Connect(loop, request.address, options,
                                [this](base::Result<std::unique_ptr<loop::Stream>> stream) {
                                  OnConnected(std::move(stream));
                                });
  }

 private:
  using Progress = AnswerReader::Progress;

  void OnConnected(base::Result<std::unique_ptr<loop::Stream>> stream) {
    if (!stream.ok()) {
      Finish(Fail(stream.error().code, stream.error().message));
      return;
    }
    stream_ = std::move(stream).value();
    stream_->SetListener(this);
    stream_->StartReading();
    const std::array<std::string_view, 2> pieces = {head_, body_};
    stream_->Writev(pieces);
    head_.clear();
    body_.clear();
  }

  void OnDeadline() {
    if (refused_.has_value()) {
      Finish(Fail(refused_->code, refused_->message));
      return;
    }
    Finish(Fail(ErrorCode::kTimeout,
                streams_ ? "nothing came for " + base::FormatDuration(streaming_.silence_max)
                         : "no complete answer within " + base::FormatDuration(timeout_)));
  }

  // loop::StreamListener
  void OnData(std::span<const char> bytes) override {
    std::string_view input(bytes.data(), bytes.size());
    if (streams_) deadline_.StartAfter(streaming_.silence_max);
    while (true) {
      switch (reader_.Next(input)) {
        case Progress::kMore: return;
        case Progress::kHead: OnHead(); break;
        case Progress::kBody: streaming_.on_body(reader_.piece()); break;
        case Progress::kComplete: return Finish(std::move(reader_.response()));
        case Progress::kFailed: return FinishFailed();
      }
    }
  }
  void OnEnd() override {
    if (reader_.Finish() == Progress::kComplete) return Finish(std::move(reader_.response()));
    FinishFailed();
  }
  void OnDrained() override {}
  void OnClosed(const Error& error) override { Finish(Fail(error.code, error.message)); }

  void OnHead() {
    const int status = reader_.response().status;
    if (!streaming_.on_body || status < 200 || status >= 300) return;
    streams_ = true;
    reader_.HandOn();
    deadline_.StartAfter(streaming_.silence_max);
    streaming_.on_head(reader_.response());
  }

  void FinishFailed() { Finish(Fail(reader_.error().code, reader_.error().message)); }

  Error Fail(ErrorCode code, const std::string& why) const {
    return Error{code, name_ + ": " + why};
  }

  // The last thing this object does: `done` may destroy it.
  void Finish(base::Result<HttpResponse> result) {
    deadline_.Stop();
    connecting_.reset();
    stream_.reset();
    const auto done = std::move(done_);
    done(std::move(result));
  }

  const std::string name_;  // for errors: "GET 127.0.0.1:8000/healthz"
  const base::Duration timeout_;
  const HttpStreaming streaming_;
  std::function<void(base::Result<HttpResponse>)> done_;
  std::string head_;
  std::string body_;
  std::optional<Error> refused_;
  AnswerReader reader_;
  bool streams_ = false;  // the head of an answer whose body is handed on has arrived
  loop::Timer deadline_;  // of the whole call; once it streams, of the next piece
  std::unique_ptr<loop::Connecting> connecting_;
  std::unique_ptr<loop::Stream> stream_;
};

}  // namespace

std::unique_ptr<HttpCall> StartHttpCall(loop::Loop& loop, const HttpRequest& request,
                                        std::function<void(base::Result<HttpResponse>)> done) {
  return std::make_unique<HttpCallImpl>(loop, request, HttpStreaming{}, std::move(done));
}

std::unique_ptr<HttpCall> StartHttpStream(loop::Loop& loop, const HttpRequest& request,
                                          HttpStreaming streaming,
                                          std::function<void(base::Result<HttpResponse>)> done) {
  return std::make_unique<HttpCallImpl>(loop, request, std::move(streaming), std::move(done));
}

}  // namespace leasehold::client

#include "client/http_call.h"

#include <span>
#include <string_view>

#include "base/text.h"
#include "loop/connect.h"
#include "loop/stream.h"
#include "loop/timer.h"
#include "proto/http1.h"
#include "proto/http1_write.h"

namespace leasehold::client {
namespace {

namespace http1 = proto::http1;
using base::Error;
using base::ErrorCode;

bool IsTokenByte(char c) {
  return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
         std::string_view("!#$%&'*+-.^_`|~").find(c) != std::string_view::npos;
}

bool IsToken(std::string_view text) {
  for (const char c : text) {
    if (!IsTokenByte(c)) {
      return false;
    }
  }
  return !text.empty();
}

// Visible ASCII and, where allowed, blanks: nothing that could end the line it stands in.
bool IsLineText(std::string_view text, bool blanks) {
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    const bool blank = c == ' ' || c == '\t';
    if (blank ? !blanks : byte <= ' ' || byte >= 0x7f) {
      return false;
    }
  }
  return true;
}

base::Status CheckRequest(const HttpRequest& request) {
  if (!IsToken(request.method)) {
    return Error{ErrorCode::kInvalid, "\"" + base::Printable(request.method) +
                                          "\" is not an HTTP method; GET or POST would be"};
  }
  if (request.target.empty() || !IsLineText(request.target, false)) {
    return Error{ErrorCode::kInvalid,
                 "\"" + base::Printable(request.target) +
                     "\" is not an HTTP request target; blanks and control bytes are written %XX"};
  }
  if (!IsLineText(request.host_header, false)) {
    return Error{ErrorCode::kInvalid, "\"" + base::Printable(request.host_header) +
                                          "\" cannot be a Host header; it has blanks or controls"};
  }
  for (const auto& [name, value] : request.headers) {
    // The value may be a secret (a token from a file with a line break at its end): not repeated.
    if (!IsToken(name) || !IsLineText(value, true)) {
      return Error{ErrorCode::kInvalid, "header \"" + base::Printable(name) +
                                            "\" has a line break or another byte headers cannot "
                                            "have in its name or value"};
    }
  }
  return {};
}

std::string Serialize(const HttpRequest& request) {
  std::string host = request.host_header;
  if (host.empty()) {
    host = request.address.kind == base::Address::Kind::kUnix ? "localhost"
                                                              : request.address.ToString();
  }
  std::string out;
  http1::AppendRequestLine(out, request.method, request.target);
  http1::AppendHeader(out, "Host", host);
  http1::AppendHeader(out, "User-Agent", "leasehold/" LEASEHOLD_VERSION);
  http1::AppendHeader(out, "Connection", "close");
  for (const auto& [name, value] : request.headers) {
    http1::AppendHeader(out, name, value);
  }
  if (!request.body.empty() || request.method == "POST" || request.method == "PUT") {
    http1::AppendHeader(out, "Content-Length", static_cast<uint64_t>(request.body.size()));
  }
  out += http1::kCrlf;
  out += request.body;
  return out;
}

class HttpCallImpl final : public HttpCall, private loop::StreamListener {
 public:
  HttpCallImpl(loop::Loop& loop, const HttpRequest& request, HttpStreaming streaming,
               std::function<void(base::Result<HttpResponse>)> done)
      : name_(request.method + " " + request.address.ToString() + base::Printable(request.target)),
        head_is_enough_(request.head_is_enough),
        body_bytes_max_(request.body_bytes_max),
        timeout_(request.timeout),
        streaming_(std::move(streaming)),
        done_(std::move(done)),
        parser_(http1::Limits{}),
        deadline_(loop, [this] { OnDeadline(); }) {
    parser_.ExpectAnswerToHead(request.method == "HEAD");
    if (base::Status status = CheckRequest(request); !status.ok()) {
      refused_ = status.error();
      deadline_.StartAfter(base::Duration::Zero());  // said later, from the loop
      return;
    }
    request_ = Serialize(request);
    deadline_.StartAfter(timeout_);
    loop::ConnectOptions options;
    options.timeout = timeout_;
    connecting_ = loop::Connect(loop, request.address, options,
                                [this](base::Result<std::unique_ptr<loop::Stream>> stream) {
                                  OnConnected(std::move(stream));
                                });
  }

 private:
  void OnConnected(base::Result<std::unique_ptr<loop::Stream>> stream) {
    if (!stream.ok()) {
      Finish(Fail(stream.error().code, stream.error().message));
      return;
    }
    stream_ = std::move(stream).value();
    stream_->SetListener(this);
    stream_->StartReading();
    stream_->Write(request_);
    request_.clear();
  }

  void OnDeadline() {
    if (refused_.has_value()) {
      Finish(Fail(refused_->code, refused_->message));
      return;
    }
    Finish(Fail(ErrorCode::kTimeout,
                streams() ? "nothing came for " + base::FormatDuration(streaming_.silence_max)
                          : "no complete answer within " + base::FormatDuration(timeout_)));
  }

  // loop::StreamListener
  void OnData(std::span<const char> bytes) override {
    std::string_view input(bytes.data(), bytes.size());
    if (streams()) deadline_.StartAfter(streaming_.silence_max);
    while (true) {
      const http1::Step step = parser_.Next(input);
      input.remove_prefix(step.consumed);
      if (step.event == http1::Event::kNeedMore) {
        return;
      }
      if (Advance(step)) {
        return;
      }
    }
  }
  void OnEnd() override {
    const http1::Step step = parser_.Finish();
    if (step.event == http1::Event::kComplete) {
      Advance(step);
      return;
    }
    Finish(Fail(ErrorCode::kClosed, parser_.idle() ? "the connection ended without an answer"
                                                   : "the connection ended inside the answer"));
  }
  void OnDrained() override {}
  void OnClosed(const Error& error) override { Finish(Fail(error.code, error.message)); }

  // True when the call is over, and this object perhaps destroyed.
  bool Advance(const http1::Step& step) {
    switch (step.event) {
      case http1::Event::kHead: return OnHead();
      case http1::Event::kBody:
        if (streams()) {
          streaming_.on_body(step.body);
          return false;
        }
        if (response_.body.size() + step.body.size() > body_bytes_max_) {
          Finish(Fail(ErrorCode::kLimit,
                      "the answer's body is longer than " + base::FormatSize(body_bytes_max_)));
          return true;
        }
        response_.body += step.body;
        return false;
      case http1::Event::kComplete:
        if (response_.status == 0) {
          return false;  // of a 1xx
        }
        Finish(std::move(response_));
        return true;
      case http1::Event::kError:
        Finish(Fail(ErrorCode::kUnavailable,
                    std::string("the answer is not HTTP/1: ") + parser_.error().message));
        return true;
      case http1::Event::kNeedMore: return false;
    }
    return false;
  }

  bool OnHead() {
    const http1::ResponseHead& head = parser_.head();
    if (head.interim()) {
      return false;
    }
    response_.status = head.status;
    for (const http1::Header& header : head.headers) {
      response_.headers.emplace_back(header.name, header.value);
    }
    if (!head_is_enough_ && head.status != 101) {
      if (streams()) {
        deadline_.StartAfter(streaming_.silence_max);
        streaming_.on_head(response_);
      }
      return false;
    }
    Finish(std::move(response_));
    return true;
  }

  // The head of an answer whose body is handed on has arrived.
  bool streams() const {
    return streaming_.on_body && response_.status >= 200 && response_.status < 300;
  }

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
  const bool head_is_enough_;
  const size_t body_bytes_max_;
  const base::Duration timeout_;
  const HttpStreaming streaming_;
  std::function<void(base::Result<HttpResponse>)> done_;
  std::string request_;
  std::optional<Error> refused_;
  http1::ResponseParser parser_;
  HttpResponse response_;
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

#include "sqs_upstream.h"

#include <array>
#include <cstdio>
#include <ctime>
#include <utility>

#include "proto/http1_write.h"
#include "sqs_signature.h"

namespace leasehold::bench {

using proto::http1::AppendHeader;
using proto::http1::Event;

namespace {

// Often enough that a proxy which signs wrongly is found within a hundredth of a second.
constexpr uint64_t kCheckEvery = 64;
constexpr uint64_t kBodyBytesMax = uint64_t{2} << 20;  // twice what SQS takes

}  // namespace

SqsUpstream::SqsUpstream(loop::Loop& loop, Key key) : loop_(loop), key_(std::move(key)) {}
SqsUpstream::~SqsUpstream() = default;

base::Result<uint16_t> SqsUpstream::Listen(bool signed_only) {
  base::Address address;
  address.host = "127.0.0.1";
  auto opened = loop::Listener::Open(
      loop_, address, {},
      [this, signed_only](int fd, std::string peer) {
        connections_.push_back(std::make_unique<SqsConnection>(
            *this, loop::AdoptSocket(loop_, fd, std::move(peer)), signed_only));
      },
      [](const base::Error& error) { std::fprintf(stderr, "%s\n", error.message.c_str()); });
  if (!opened.ok()) return opened.error();
  listeners_.push_back(std::move(opened).value());
  return listeners_.back()->bound().port;
}

Answer SqsUpstream::Reply(const proto::http1::RequestHead& head, std::string_view body,
                          bool signed_only) {
  if (head.origin == "/counts") {
    counts_ = answers_.Counts(checked_);
    return {200, {}, counts_};
  }
  if (signed_only) {
    if (head.Find("Authorization").empty()) {
      return answers_.Refusal(403, "MissingAuthenticationToken", "the request is not signed");
    }
    if (signed_++ % kCheckEvery == 0) {
      const std::string wrong = WrongSignature(head, body, key_.id, key_.secret);
      if (!wrong.empty()) return answers_.Refusal(403, "SignatureDoesNotMatch", wrong);
      ++checked_;
    }
  }
  return answers_.Of(head.Find("X-Amz-Target"), body);
}

const std::string& SqsUpstream::Date() {
  const int64_t seconds = loop::Loop::WallNow().unix_ms / 1000;
  if (seconds != date_seconds_) {
    date_seconds_ = seconds;
    const time_t as_time = seconds;
    tm parts{};
    gmtime_r(&as_time, &parts);
    char text[40];
    date_.assign(text, std::strftime(text, sizeof text, "%a, %d %b %Y %H:%M:%S GMT", &parts));
  }
  return date_;
}

// Later, from the loop: whoever asks to be buried is still on the stack.
void SqsUpstream::Bury(SqsConnection* connection) {
  loop_.Post([this, connection] {
    std::erase_if(connections_,
                  [connection](const auto& each) { return each.get() == connection; });
  });
}

SqsConnection::SqsConnection(SqsUpstream& upstream, std::unique_ptr<loop::Stream> stream,
                             bool signed_only)
    : upstream_(upstream),
      signed_only_(signed_only),
      stream_(std::move(stream)),
      parser_({.body_bytes_max = kBodyBytesMax}) {
  stream_->SetListener(this);
  stream_->StartReading();
}

void SqsConnection::OnData(std::span<const char> bytes) {
  std::string_view input(bytes.data(), bytes.size());
  while (!ended_) {
    const proto::http1::Step step = parser_.Next(input);
    input.remove_prefix(step.consumed);
    switch (step.event) {
      case Event::kNeedMore: return;
      case Event::kHead: body_.clear(); break;
      case Event::kBody: body_.append(step.body); break;
      case Event::kComplete: OnComplete(); break;
      case Event::kError: return End();
    }
  }
}

void SqsConnection::OnComplete() {
  const Answer answer = upstream_.Reply(parser_.head(), body_, signed_only_);
  head_.clear();
  proto::http1::AppendStatusLine(head_, answer.status, proto::http1::ReasonPhrase(answer.status));
  AppendHeader(head_, "x-amzn-RequestId", "00000000-0000-4000-8000-000000000000");
  AppendHeader(head_, "Date", upstream_.Date());
  AppendHeader(head_, "Content-Type", "application/x-amz-json-1.0");
  if (!answer.error.empty()) {
    AppendHeader(head_, "x-amzn-query-error", std::string(answer.error) + ";Sender");
  }
  AppendHeader(head_, "Content-Length", answer.body.size());
  head_ += proto::http1::kCrlf;
  const std::array<std::string_view, 2> pieces = {head_, answer.body};
  stream_->Writev(pieces);
  if (!parser_.head().keep_alive) {
    stream_->ShutdownWrite();
    End();
  }
}

void SqsConnection::End() {
  if (std::exchange(ended_, true)) return;
  stream_->StopReading();
  upstream_.Bury(this);
}

}  // namespace leasehold::bench

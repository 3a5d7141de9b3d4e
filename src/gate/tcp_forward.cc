#include "gate/tcp_forward.h"

#include <utility>

#include "gate/peer_hello.h"

namespace leasehold::gate {
namespace {

constexpr std::string_view kSilent = "it did not answer within 3 s";
constexpr std::string_view kNoVerdict = "it closed the connection without a verdict";
constexpr std::string_view kTooLong = "the record's process id is too long to be one";
constexpr std::string_view kNotNow = "it does not serve now";
constexpr std::string_view kStranger =
    "what answers there is no peer listener of a tcp gate; the holder's advertise must name its "
    "peer_listen";

}  // namespace

TcpForward::TcpForward(loop::Loop& loop, const base::Address& to, std::string header,
                       base::Duration connect_timeout, Done done)
    : header_(std::move(header)),
      done_(std::move(done)),
      deadline_(loop, [this] { Finish(PeerVerdict::kNotAdmitted, std::string(kSilent)); }) {
  loop::ConnectOptions options;
  options.timeout = base::Min(connect_timeout, kPeerTimeout);
  connecting_ = loop::Connect(
      loop, to, options,
      [this](base::Result<std::unique_ptr<loop::Stream>> stream) { Connected(std::move(stream)); });
  deadline_.StartAfter(kPeerTimeout);
}

void TcpForward::Connected(base::Result<std::unique_ptr<loop::Stream>> stream) {
  if (!stream.ok()) return Finish(PeerVerdict::kNotAdmitted, stream.error().message);
  if (header_.empty()) return Finish(PeerVerdict::kNotAdmitted, std::string(kTooLong));
  stream_ = std::move(stream).value();
  stream_->SetListener(this);
  stream_->SetKeepAlive(kPeerProbePeriod);
  stream_->Write(header_);
  stream_->StartReading();
}

void TcpForward::OnData(std::span<const char> bytes) {
  received_.append(bytes.data(), bytes.size());
  PeerVerdict verdict = PeerVerdict::kRefused;
  switch (ReadVerdict(received_, &verdict)) {
    case VerdictRead::kMore: return;
    case VerdictRead::kBad: return Finish(PeerVerdict::kRefused, std::string(kStranger));
    case VerdictRead::kDone: break;
  }
  switch (verdict) {
    case PeerVerdict::kNotAdmitted: return Finish(verdict, std::string(kNotNow));
    case PeerVerdict::kRefused: return Finish(verdict, std::string(kPeerRefusesUs));
    case PeerVerdict::kAdmitted: break;
  }
  // Who answers before it can have read the header did not judge it.
  if (stream_->queued() > 0) return Finish(PeerVerdict::kRefused, std::string(kStranger));
  Finish(verdict, {});
}

void TcpForward::OnEnd() { Finish(PeerVerdict::kNotAdmitted, std::string(kNoVerdict)); }

void TcpForward::OnClosed(const base::Error& error) {
  Finish(PeerVerdict::kNotAdmitted, error.message);
}

void TcpForward::Finish(PeerVerdict verdict, std::string why) {
  deadline_.Stop();
  TcpForwardAnswer answer;
  answer.verdict = verdict;
  answer.why = std::move(why);
  if (verdict == PeerVerdict::kAdmitted) {
    answer.first = received_.substr(kVerdictBytes);
    answer.fd = stream_->Detach();
  }
  const Done done = std::move(done_);
  done(answer);
}

}  // namespace leasehold::gate

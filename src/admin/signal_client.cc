#include "admin/signal_client.h"

#include <array>
#include <utility>

#include "base/json_writer.h"

namespace leasehold::admin {

std::string SignalErrorLine(std::string_view code, std::string_view message) {
  std::string out;
  base::JsonWriter json(out);
  json.BeginObject().Member("event", "error").Member("code", code).Member("message", message);
  json.EndObject();
  return out;
}

SignalClient::SignalClient(loop::Loop& loop, const Owner& owner,
                           std::unique_ptr<loop::Stream> stream)
    : owner_(owner),
      uid_(stream->peer_uid()),
      stream_(std::move(stream)),
      flush_timer_(loop, [this] { Close("it did not read what was left after its last byte"); }) {}

void SignalClient::Start() {
  stream_->SetListener(this);
  stream_->StartReading();
}

void SignalClient::Send(std::string_view line) {
  if (stream_ == nullptr) return;
  const std::array<std::string_view, 2> pieces = {line, "\n"};
  stream_->Writev(pieces);
  if (stream_->queued() > kQueueBytesMax) Close("it reads too slowly");
}

void SignalClient::Close(std::string_view why) {
  if (stream_ == nullptr) return;
  const auto self = shared_from_this();
  const std::string kept(why);  // may belong to the stream
  stream_.reset();
  flush_timer_.Stop();
  owner_.on_gone(*this, kept);
}

void SignalClient::Unregister() {
  name_.clear();
  all_leases_ = false;
  leases_.clear();
  drained_.clear();
}

bool SignalClient::HasDrained(const std::string& lease, uint64_t token) const {
  const auto at = drained_.find(lease);
  return at != drained_.end() && at->second == token;
}

void SignalClient::EndPending() {
  --pending_;
  FinishIfEnded();
}

void SignalClient::OnData(std::span<const char> bytes) {
  const auto self = shared_from_this();
  input_.append(bytes.data(), bytes.size());
  TakeLines();
}

void SignalClient::TakeLines() {
  size_t start = 0;
  while (stream_ != nullptr) {
    const size_t end = input_.find('\n', start);
    const size_t length = (end == std::string::npos ? input_.size() : end) - start;
    if (length > kLineBytesMax) {
      Send(SignalErrorLine("line_too_long", "a line is longer than " +
                                                std::to_string(kLineBytesMax) +
                                                " bytes; the connection is closed"));
      return Close("it sent a line that is too long");
    }
    if (end == std::string::npos) break;
    std::string_view line(input_.data() + start, length);
    if (line.ends_with('\r')) line.remove_suffix(1);
    start = end + 1;
    if (!line.empty()) owner_.on_line(*this, line);
  }
  input_.erase(0, start);
}

void SignalClient::OnEnd() {
  const auto self = shared_from_this();
  ended_ = true;
  owner_.on_ended(*this);
  FinishIfEnded();
}

void SignalClient::FinishIfEnded() {
  if (stream_ == nullptr || !ended_ || pending_ > 0) return;
  if (stream_->queued() == 0) return Close("");
  flush_timer_.StartAfter(kFlushTimeout);
}

void SignalClient::OnDrained() {
  const auto self = shared_from_this();
  FinishIfEnded();
}

void SignalClient::OnClosed(const base::Error& error) {
  const auto self = shared_from_this();
  Close(error.message);
}

}  // namespace leasehold::admin

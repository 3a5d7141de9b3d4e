#include "moves/app_lines.h"

#include <utility>

#include "base/text.h"

namespace leasehold::moves {

AppLines::AppLines(AppServer& server, std::unique_ptr<loop::Stream> stream, int fd)
    : server_(server), stream_(std::move(stream)), fd_(fd) {
  stream_->SetListener(this);
  stream_->StartReading();
}

void AppLines::OnData(std::span<const char> bytes) {
  rest_.append(bytes.data(), bytes.size());
  size_t end = 0;
  while (!ended_ && (end = rest_.find('\n')) != std::string::npos) {
    const std::string line = rest_.substr(0, end);
    rest_.erase(0, end + 1);
    Line(line);
  }
  if (rest_.size() > kLineMax) End();
}

void AppLines::Line(const std::string& line) {
  const auto number = base::ParseUint64(line);
  if (!number.ok()) return End();
  Stamp stamp;
  stamp.id = *number;
  stamp.arrived = ArrivedAt(fd_);
  server_.Log('T', stamp);
  stream_->Write(server_.name() + " " + line + "\n");
}

void AppLines::OnEnd() {
  if (!ended_) stream_->ShutdownWrite();
  End();
}

void AppLines::OnClosed(const base::Error&) { End(); }

void AppLines::End() {
  if (std::exchange(ended_, true)) return;
  stream_->StopReading();
  server_.Bury(this);
}

}  // namespace leasehold::moves

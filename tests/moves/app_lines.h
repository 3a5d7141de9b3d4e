// AppLines: one connection of the raw TCP side of moves_app. A line holds a number; it is logged
// and answered with "<name> <number>". Raw TCP carries no token: whose term it was is for the log's
// reader to say, by the time. Owned by AppServer; it buries itself when the peer is gone.
// Invariant: a line is logged before a byte of its answer is sent.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "loop/stream.h"
#include "moves/app_server.h"

namespace leasehold::moves {

class AppLines final : private loop::StreamListener {
 public:
  AppLines(AppServer& server, std::unique_ptr<loop::Stream> stream, int fd);

 private:
  void OnData(std::span<const char> bytes) override;
  void OnEnd() override;
  void OnDrained() override {}
  void OnClosed(const base::Error& error) override;
  void Line(const std::string& line);
  void End();

  // Of an unfinished line; a number has twenty digits.
  static constexpr size_t kLineMax = 64;

  AppServer& server_;
  std::unique_ptr<loop::Stream> stream_;
  const int fd_;
  std::string rest_;
  bool ended_ = false;
};

}  // namespace leasehold::moves

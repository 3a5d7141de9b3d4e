// AppConnection: one connection to AppServer and the request it is at. Owned by the server; it
// buries itself when the peer is gone. Invariant: while a request is being worked at, nothing more
// is read.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "loop/stream.h"
#include "loop/timer.h"
#include "moves/app_server.h"
#include "moves/work.h"
#include "proto/http1.h"

namespace leasehold::moves {

class AppConnection final : private loop::StreamListener {
 public:
  AppConnection(AppServer& server, std::unique_ptr<loop::Stream> stream, int fd);

 private:
  void OnData(std::span<const char> bytes) override;
  void OnEnd() override;
  void OnDrained() override {}
  void OnClosed(const base::Error& error) override;

  void Parse(std::string_view input);
  void OnHead();
  void OnComplete();
  void Answer();
  void AnswerExecuted();
  void SendPiece();
  void BeginDownload();
  void BeginTunnel();
  void Write(int status, size_t length, bool chunked, std::string_view more = {});
  void Resume();
  void End();

  enum class State { kReading, kWorking, kTunnel, kEnded };

  AppServer& server_;
  std::unique_ptr<loop::Stream> stream_;
  const int fd_;  // the stream's
  proto::http1::RequestParser parser_;
  loop::Timer timer_;  // the end of a request's work, or the next piece of a download
  State state_ = State::kReading;
  std::string rest_;  // read beyond the request that is worked at

  // The request.
  std::string path_;
  Stamp stamp_;
  size_t answer_ = 0;
  size_t expected_ = 0;
  bool answer_chunked_ = false;
  uint64_t delay_ms_ = 0;
  bool head_only_ = false;
  bool keep_alive_ = true;
  BodyCheck body_;
  std::string token_;
  std::string sequence_;
  std::string process_;
  size_t sent_ = 0;  // of a download
  std::string head_;
};

}  // namespace leasehold::moves

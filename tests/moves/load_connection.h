// LoadConnection: one client connection of Load, to one gate, with the one request it carries at a
// time. Owned by Load; it reports the request's end, then offers itself as idle or buries itself.
// Invariant: a request given to it ends by exactly one call of Load::Done or Load::Refused.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "loop/connect.h"
#include "loop/stream.h"
#include "moves/load.h"
#include "proto/http1.h"

namespace leasehold::moves {

class LoadConnection final : private loop::StreamListener {
 public:
  LoadConnection(Load& load, size_t target, Sent* request);

  void Send(Sent* request);
  // Ends a request that has waited too long.
  void OnSweep(base::MonoTime now);
  bool idle() const { return request_ == nullptr && !ended_; }
  size_t target() const { return target_; }
  void End();

 private:
  void OnConnected(base::Result<std::unique_ptr<loop::Stream>> result);
  void OnData(std::span<const char> bytes) override;
  void OnEnd() override;
  void OnDrained() override {}
  void OnClosed(const base::Error& error) override;

  void WriteRequest();
  void Parse(std::string_view input);
  void OnHead();
  void OnBody(std::string_view piece);
  void OnComplete();
  void Fail(std::string_view result);

  Load& load_;
  const size_t target_;
  Sent* request_;
  Work work_;
  std::unique_ptr<loop::Connecting> connecting_;
  std::unique_ptr<loop::Stream> stream_;
  proto::http1::ResponseParser parser_;
  bool ended_ = false;
  BodyCheck body_;
  std::string problem_;  // the beginning of an answer that is not 200
  std::string head_;
};

}  // namespace leasehold::moves

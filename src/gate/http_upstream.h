// Upstream: one connection to the application, or to the holder's gate, and UpstreamPool: those
// that wait for their next request. An Upstream belongs to the pool for its whole life; a
// Downstream borrows it for one exchange and gives it back. The pools are owned by their gate.
// Invariants: a pooled connection has sent nothing that nobody asked for, and has not ended: either
// is noticed, because it stays watched, and closes it; none from before Retire() is used again.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "base/time.h"
#include "loop/loop.h"
#include "loop/stream.h"
#include "proto/http1.h"

namespace leasehold::gate {

class UpstreamPool;

// Who is served by an upstream connection; called from the loop.
class UpstreamUser {
 public:
  virtual void OnUpstreamData(std::string_view bytes) = 0;
  virtual void OnUpstreamEnd() = 0;      // in order
  virtual void OnUpstreamBroken() = 0;   // reset
  virtual void OnUpstreamDrained() = 0;  // its write queue is empty again
  virtual bool MaySendUpstream() = 0;    // may queued bytes still go to the application?

 protected:
  ~UpstreamUser() = default;
};

class Upstream final : public loop::StreamListener {
 public:
  Upstream(UpstreamPool& pool, std::unique_ptr<loop::Stream> stream,
           const proto::http1::Limits& limits);

  UpstreamPool& pool() { return pool_; }
  loop::Stream& stream() { return *stream_; }
  proto::http1::ResponseParser& parser() { return parser_; }
  // It has served an exchange before: the application may be closing it this very moment.
  bool reused() const { return reused_; }
  // Something of the present exchange's answer has arrived.
  bool answered() const { return answered_; }
  void NoteAnswered() { answered_ = true; }

 private:
  friend class UpstreamPool;
  void OnData(std::span<const char> bytes) override;
  void OnEnd() override;
  bool MayFlush() override { return user_ == nullptr || user_->MaySendUpstream(); }
  void OnDrained() override;
  void OnClosed(const base::Error& error) override;

  UpstreamPool& pool_;
  std::unique_ptr<loop::Stream> stream_;  // null: closed, waiting to be buried
  proto::http1::ResponseParser parser_;
  UpstreamUser* user_ = nullptr;  // null: idle in the pool
  bool reused_ = false;
  bool answered_ = false;
  size_t index_ = 0;         // in the pool's table of all
  uint64_t generation_ = 0;  // the pool's when it was made
  base::MonoTime idle_until_;
};

class UpstreamPool {
 public:
  // `limits`: of answers' heads.
  UpstreamPool(loop::Loop& loop, const proto::http1::Limits& limits, base::Duration idle_timeout,
               size_t idle_max);
  ~UpstreamPool();
  UpstreamPool(const UpstreamPool&) = delete;
  UpstreamPool& operator=(const UpstreamPool&) = delete;

  // The connection used last, for `user`; nullptr if none is idle.
  Upstream* Take(UpstreamUser& user);
  // A new connection, for `user`.
  Upstream* Add(std::unique_ptr<loop::Stream> stream, UpstreamUser& user);
  // The exchange is over in order: keep the connection, or close it if enough are kept.
  void Keep(Upstream& upstream);
  // Close it now; with RST if `reset`.
  void Drop(Upstream& upstream, bool reset);
  // Takes the stream out, for a tunnel; the rest is dropped.
  std::unique_ptr<loop::Stream> TakeStream(Upstream& upstream);
  void DropIdle();  // all that are idle
  // They lead to a peer that is no longer asked: idle ones are closed now, others after their
  // exchange.
  void Retire();
  uint64_t generation() const { return generation_; }  // rises with Retire()
  void Sweep(base::MonoTime now);                      // those idle for too long
  size_t idle() const { return idle_.size(); }
  size_t size() const { return all_.size(); }

 private:
  friend class Upstream;
  void IdleEnded(Upstream& upstream);
  void Bury(Upstream& upstream);

  loop::Loop& loop_;
  const proto::http1::Limits limits_;
  const base::Duration idle_timeout_;
  const size_t idle_max_;
  uint64_t generation_ = 0;
  std::vector<std::unique_ptr<Upstream>> all_;
  std::vector<Upstream*> idle_;                    // the last one was used last
  std::vector<std::unique_ptr<Upstream>> buried_;  // closed inside their own callbacks
  std::shared_ptr<UpstreamPool*> self_;            // for posted work
};

}  // namespace leasehold::gate

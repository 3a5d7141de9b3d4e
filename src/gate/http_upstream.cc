#include "gate/http_upstream.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace leasehold::gate {

Upstream::Upstream(UpstreamPool& pool, std::unique_ptr<loop::Stream> stream,
                   const proto::http1::Limits& limits)
    : pool_(pool), stream_(std::move(stream)), parser_(limits) {
  stream_->SetListener(this);
  stream_->StartReading();
}

void Upstream::OnData(std::span<const char> bytes) {
  if (user_ == nullptr) return pool_.IdleEnded(*this);  // an answer to nothing
  user_->OnUpstreamData({bytes.data(), bytes.size()});
}

void Upstream::OnEnd() {
  if (user_ == nullptr) return pool_.IdleEnded(*this);
  user_->OnUpstreamEnd();
}

void Upstream::OnDrained() {
  if (user_ != nullptr) user_->OnUpstreamDrained();
}

void Upstream::OnClosed(const base::Error&) {
  if (user_ == nullptr) return pool_.IdleEnded(*this);
  user_->OnUpstreamBroken();
}

UpstreamPool::UpstreamPool(loop::Loop& loop, const proto::http1::Limits& limits,
                           base::Duration idle_timeout, size_t idle_max)
    : loop_(loop),
      limits_(limits),
      idle_timeout_(idle_timeout),
      idle_max_(idle_max),
      self_(std::make_shared<UpstreamPool*>(this)) {}

UpstreamPool::~UpstreamPool() = default;

Upstream* UpstreamPool::Take(UpstreamUser& user) {
  if (idle_.empty()) return nullptr;
  Upstream* upstream = idle_.back();
  idle_.pop_back();
  upstream->user_ = &user;
  upstream->reused_ = true;
  upstream->answered_ = false;
  return upstream;
}

Upstream* UpstreamPool::Add(std::unique_ptr<loop::Stream> stream, UpstreamUser& user) {
  all_.push_back(std::make_unique<Upstream>(*this, std::move(stream), limits_));
  Upstream* upstream = all_.back().get();
  upstream->index_ = all_.size() - 1;
  upstream->user_ = &user;
  upstream->generation_ = generation_;
  return upstream;
}

void UpstreamPool::Keep(Upstream& upstream) {
  if (idle_.size() >= idle_max_ || upstream.generation_ != generation_) {
    return Drop(upstream, false);
  }
  upstream.user_ = nullptr;
  upstream.idle_until_ = loop_.CachedNow() + idle_timeout_;
  upstream.stream_->StartReading();
  idle_.push_back(&upstream);
}

void UpstreamPool::Drop(Upstream& upstream, bool reset) {
  if (upstream.stream_ == nullptr) return;
  if (reset) upstream.stream_->ResetOnClose();
  upstream.stream_.reset();
  Bury(upstream);
}

std::unique_ptr<loop::Stream> UpstreamPool::TakeStream(Upstream& upstream) {
  std::unique_ptr<loop::Stream> stream = std::move(upstream.stream_);
  Bury(upstream);
  return stream;
}

void UpstreamPool::IdleEnded(Upstream& upstream) {
  idle_.erase(std::find(idle_.begin(), idle_.end(), &upstream));
  Drop(upstream, false);
}

void UpstreamPool::DropIdle() {
  for (Upstream* upstream : idle_) Drop(*upstream, false);
  idle_.clear();
}

void UpstreamPool::Retire() {
  ++generation_;
  DropIdle();
}

void UpstreamPool::Sweep(base::MonoTime now) {
  // Oldest first: what was given back earlier waits nearer to the front.
  const auto first_kept = std::find_if(idle_.begin(), idle_.end(), [now](const Upstream* upstream) {
    return upstream->idle_until_ > now;
  });
  for (auto it = idle_.begin(); it != first_kept; ++it) Drop(**it, false);
  idle_.erase(idle_.begin(), first_kept);
}

// The object may be on the call stack: it is destroyed on the next turn.
void UpstreamPool::Bury(Upstream& upstream) {
  upstream.user_ = nullptr;
  const size_t index = upstream.index_;
  CHECK(index < all_.size() && all_[index].get() == &upstream,
        "an upstream is in the pool's table");
  buried_.push_back(std::move(all_[index]));
  if (index + 1 != all_.size()) {
    all_[index] = std::move(all_.back());
    all_[index]->index_ = index;
  }
  all_.pop_back();
  if (buried_.size() > 1) return;  // posted already
  loop_.Post([weak = std::weak_ptr<UpstreamPool*>(self_)] {
    if (auto self = weak.lock()) (*self)->buried_.clear();
  });
}

}  // namespace leasehold::gate

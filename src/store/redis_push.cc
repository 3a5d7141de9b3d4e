#include "store/redis_push.h"

#include <utility>
#include <vector>

#include "loop/lifetime.h"

namespace leasehold::store {
namespace {

using Kind = WatchEvent::Kind;

std::string Command(std::string_view name, std::string_view argument) {
  std::vector<std::string_view> words = {name};
  if (!argument.empty()) words.push_back(argument);
  return proto::FormatRespCommand(words);
}

}  // namespace

RedisPush::RedisPush(loop::Loop& loop, const RedisTarget& target, const RedisTuning& tuning,
                     Trouble trouble)
    : tuning_(tuning),
      server_(target.name),
      trouble_(std::move(trouble)),
      link_(loop, target, tuning, {}, *this),
      timer_(loop, [this] { OnTimer(); }) {}

RedisPush::~RedisPush() { loop::CallGuard::MarkGone(gone_); }

void RedisPush::Watch(const std::string& channel, LeaseStore::WatchCallback hint) {
  const bool first = watchers_.empty();
  const bool added = watchers_.emplace(channel, Watcher{std::move(hint)}).second;
  CHECK(added, "a lease has one watcher");
  if (link_.up()) return Subscribe(channel);
  if (first && !link_.started()) link_.Start();
}

void RedisPush::Reconnect() {
  if (!link_.up()) return;
  link_.Drop();
  OnDown({});
}

void RedisPush::Close() {
  link_.Stop();
  timer_.Stop();
  watchers_.clear();
}

void RedisPush::Subscribe(const std::string& channel) {
  link_.Send(Command("SUBSCRIBE", channel));
  Expect();
}

void RedisPush::Expect() {
  if (!answer_due_.is_never()) return;
  answer_due_ = loop::Loop::Now() + tuning_.ping_timeout;
  timer_.StartAt(answer_due_);
}

// ---- the link ----

std::optional<RedisFailure> RedisPush::OnGreeting(size_t, const proto::Reply&) {
  return std::nullopt;  // there is no greeting of our own
}

void RedisPush::OnUp() {
  heard_ = loop::Loop::Now();
  answer_due_ = base::MonoTime::Never();
  for (const auto& [channel, watcher] : watchers_) Subscribe(channel);
}

// ["subscribe", channel, count], ["message", channel, payload], ["pong", ""], or an error.
void RedisPush::OnReply(const proto::Reply& reply) {
  heard_ = loop::Loop::Now();
  answer_due_ = base::MonoTime::Never();
  timer_.StartAfter(tuning_.ping_interval);
  if (reply.is_error()) return OnRefused(reply.text());
  const std::vector<proto::Reply>& parts = reply.elements();
  if (parts.size() != 3) return;
  if (parts[0].text() == "subscribe") return OnConfirmed(parts[1].text());
  if (parts[0].text() == "message") OnMessage(parts[1].text(), parts[2].text());
}

void RedisPush::OnDown(const RedisFailure&) {
  timer_.Stop();
  TellDown();
}

void RedisPush::OnTimer() {
  const base::MonoTime now = loop::Loop::Now();
  if (now >= answer_due_) {
    link_.Drop();
    return OnDown({});
  }
  if (now - heard_ < tuning_.ping_interval) return timer_.StartAt(heard_ + tuning_.ping_interval);
  link_.Send(Command("PING", ""));
  Expect();
}

// ---- hints ----

void RedisPush::OnConfirmed(const std::string& channel) {
  const auto found = watchers_.find(channel);
  if (found == watchers_.end()) return;
  found->second.confirmed = true;
  loop::CallGuard guard(gone_);
  if (std::exchange(in_trouble_, false)) trouble_(nullptr);
  if (guard.gone()) return;
  const LeaseStore::WatchCallback hint = found->second.hint;  // survives a Close in the first call
  hint({Kind::kPushUp});
  if (guard.gone() || !watchers_.contains(channel)) return;
  hint({Kind::kChangedHands});  // what happened before the subscription was not seen
}

void RedisPush::OnMessage(const std::string& channel, const std::string& message) {
  const auto found = watchers_.find(channel);
  if (found == watchers_.end()) return;
  const LeaseStore::WatchCallback hint = found->second.hint;
  hint({message == "beat" ? Kind::kBeat : Kind::kChangedHands});
}

void RedisPush::OnRefused(const std::string& error) {
  const RedisFailure failure = ClassifyRedisError(server_, error);
  link_.Drop(failure.refused() ? tuning_.refused_subscribe_pause : base::Duration::Zero());
  timer_.Stop();
  loop::CallGuard guard(gone_);
  TellDown();
  if (guard.gone() || !failure.refused()) return;
  if (!std::exchange(in_trouble_, true)) trouble_(&failure);
}

void RedisPush::TellDown() {
  std::vector<LeaseStore::WatchCallback> told;
  for (auto& [channel, watcher] : watchers_) {
    if (std::exchange(watcher.confirmed, false)) told.push_back(watcher.hint);
  }
  loop::CallGuard guard(gone_);
  for (const LeaseStore::WatchCallback& hint : told) {
    hint({Kind::kPushDown});
    if (guard.gone()) return;
  }
}

}  // namespace leasehold::store

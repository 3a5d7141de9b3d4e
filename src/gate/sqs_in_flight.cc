#include "gate/sqs_in_flight.h"

#include <algorithm>
#include <cstring>
#include <tuple>

#include "crypto/digest.h"

namespace leasehold::gate {

using base::MonoTime;

SqsInFlight::Key SqsInFlight::KeyOf(std::string_view queue, std::string_view handle) {
  std::string text;
  text.reserve(queue.size() + 1 + handle.size());
  text.append(queue).append(1, '\n').append(handle);  // no URL has a line break
  const crypto::Digest256 digest = crypto::Sha256(text);
  Key key;
  std::memcpy(&key.high, digest.data(), sizeof key.high);
  std::memcpy(&key.low, digest.data() + sizeof key.high, sizeof key.low);
  return key;
}

SqsInFlight::Message* SqsInFlight::Find(const Key& key) {
  const auto found = messages_.find(key);
  return found == messages_.end() ? nullptr : &found->second;
}

void SqsInFlight::Add(std::string_view queue, std::string_view handle, MonoTime visible_at,
                      Ticket ticket) {
  const Key key = KeyOf(queue, handle);
  ForgetFormer(key);
  if (Message* known = Find(key)) {
    order_.erase({known->visible_at, key});
    known->visible_at = visible_at;
    order_.emplace(visible_at, key);
    return;
  }
  Message message;
  message.place = {std::string(queue), std::string(handle)};
  message.visible_at = visible_at;
  message.ticket = std::move(ticket);
  messages_.emplace(key, std::move(message));
  order_.emplace(visible_at, key);
}

bool SqsInFlight::Contains(std::string_view queue, std::string_view handle) const {
  return messages_.contains(KeyOf(queue, handle));
}

bool SqsInFlight::IsFormer(std::string_view queue, std::string_view handle, MonoTime now) const {
  const Key key = KeyOf(queue, handle);
  if (const auto found = messages_.find(key); found != messages_.end()) return found->second.given;
  const auto found = former_.find(key);
  return found != former_.end() && now < found->second;
}

void SqsInFlight::BeginAcknowledge(std::string_view queue, std::string_view handle) {
  if (Message* message = Find(KeyOf(queue, handle))) ++message->unanswered;
}

void SqsInFlight::AcknowledgeFailed(std::string_view queue, std::string_view handle) {
  Message* message = Find(KeyOf(queue, handle));
  if (message != nullptr && message->unanswered > 0) --message->unanswered;
}

void SqsInFlight::Gone(std::string_view queue, std::string_view handle) {
  Remove(KeyOf(queue, handle));
}

void SqsInFlight::Extended(std::string_view queue, std::string_view handle, MonoTime visible_at) {
  const Key key = KeyOf(queue, handle);
  Message* message = Find(key);
  if (message == nullptr) return;
  if (message->unanswered > 0) --message->unanswered;
  order_.erase({message->visible_at, key});
  message->visible_at = visible_at;
  order_.emplace(visible_at, key);
}

void SqsInFlight::Expire(MonoTime now) {
  while (!order_.empty() && order_.begin()->first <= now) Remove(Key(order_.begin()->second));
  while (!former_order_.empty() && former_order_.begin()->first <= now) {
    ForgetFormer(Key(former_order_.begin()->second));
  }
}

MonoTime SqsInFlight::NextExpiry() const {
  MonoTime next = MonoTime::Never();
  if (!order_.empty()) next = order_.begin()->first;
  if (!former_order_.empty()) next = base::Min(next, former_order_.begin()->first);
  return next;
}

std::vector<SqsInFlight::Place> SqsInFlight::TakeToGiveBack() {
  std::vector<Place> taken;
  for (auto& [key, message] : messages_) {
    if (message.given || message.unanswered > 0) continue;
    message.given = true;
    taken.push_back(message.place);
  }
  std::sort(taken.begin(), taken.end(), [](const Place& a, const Place& b) {
    return std::tie(a.queue, a.handle) < std::tie(b.queue, b.handle);
  });
  return taken;
}

void SqsInFlight::GivenBack(std::string_view queue, std::string_view handle) {
  const Key key = KeyOf(queue, handle);
  Message* message = Find(key);
  if (message == nullptr) return;
  const MonoTime until = message->visible_at;
  Remove(key);
  MakeFormer(key, until);
}

size_t SqsInFlight::EndTerm() {
  const size_t count = messages_.size();
  for (const auto& [visible_at, key] : order_) MakeFormer(key, visible_at);
  order_.clear();
  messages_.clear();
  return count;
}

void SqsInFlight::Remove(const Key& key) {
  const auto found = messages_.find(key);
  if (found == messages_.end()) return;
  order_.erase({found->second.visible_at, key});
  messages_.erase(found);
}

void SqsInFlight::MakeFormer(const Key& key, MonoTime until) {
  ForgetFormer(key);
  former_.emplace(key, until);
  former_order_.emplace(until, key);
  if (former_.size() > former_max_) ForgetFormer(Key(former_order_.begin()->second));
}

void SqsInFlight::ForgetFormer(const Key& key) {
  const auto found = former_.find(key);
  if (found == former_.end()) return;
  former_order_.erase({found->second, key});
  former_.erase(found);
}

}  // namespace leasehold::gate

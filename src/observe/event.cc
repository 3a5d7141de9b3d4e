#include "observe/event.h"

#include "base/json_writer.h"
#include "base/text.h"

namespace leasehold::observe {

std::string EventId(std::string_view process_id, uint64_t id) {
  return std::string(process_id) + "." + std::to_string(id);
}

std::string EventJson(const Event& event) { return EventJson(event, ""); }

std::string EventJson(const Event& event, std::string_view process_id) {
  std::string out;
  base::JsonWriter json(out);
  json.BeginObject().Member("event", event.name).Key("id").Uint(event.id);
  if (!process_id.empty()) json.Member("event_id", EventId(process_id, event.id));
  json.Member("at", base::FormatWallTime(event.at));
  json.Member("lease", event.lease).Key("token").Token(event.token);
  json.Key("holder").BeginObject().Member("node_id", event.holder_node_id);
  json.Member("process_id", event.holder_process_id).EndObject();
  json.Member("reason", event.reason);
  if (event.name == "lease.draining" || event.grace > base::Duration::Zero()) {
    json.Key("grace_ms").Int(event.grace.millis());
  }
  if (!event.gate.empty()) json.Member("gate", event.gate);
  if (!event.detail.empty()) json.Member("detail", event.detail);
  json.EndObject();
  return out;
}

EventBus::EventBus(size_t history_max) : history_max_(history_max) {}

void EventBus::Publish(Event event) {
  event.id = next_id_++;
  waiting_.push_back(std::move(event));
  if (telling_) return;
  telling_ = true;
  while (!waiting_.empty()) {
    const Event now = std::move(waiting_.front());
    waiting_.pop_front();
    history_.push_back(now);
    if (history_.size() > history_max_) history_.pop_front();
    const uint64_t first_later =
        next_subscription_;  // who subscribes meanwhile starts with the next
    for (auto& [id, subscriber] : subscribers_) {
      if (id != 0 && id < first_later) subscriber(now);
    }
  }
  telling_ = false;
  std::erase_if(subscribers_, [](const auto& entry) { return entry.first == 0; });
}

const Event* EventBus::Find(uint64_t id) const {
  if (history_.empty() || id < history_.front().id || id > history_.back().id) return nullptr;
  return &history_[static_cast<size_t>(id - history_.front().id)];
}

uint64_t EventBus::Subscribe(Subscriber subscriber) {
  subscribers_.emplace_back(next_subscription_, std::move(subscriber));
  return next_subscription_++;
}

void EventBus::Unsubscribe(uint64_t subscription) {
  for (auto entry = subscribers_.begin(); entry != subscribers_.end(); ++entry) {
    if (entry->first != subscription || subscription == 0) continue;
    entry->first = 0;
    if (!telling_) subscribers_.erase(entry);
    return;
  }
}

}  // namespace leasehold::observe

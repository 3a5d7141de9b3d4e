// Event and EventBus: what happened, told once to everyone who listens (log, signal socket, event
// stream, audit). Names and reasons are the closed lists of lease/events.h plus gate.* and app.*;
// words of DESIGN 2.4. Owned by app. Invariant: every subscriber sees every event once, in the
// order of the ids, also when a subscriber publishes, subscribes or unsubscribes from inside its
// call.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <string>
#include <string_view>
#include <utility>

#include "base/time.h"

namespace leasehold::observe {

struct Event {
  uint64_t id = 0;    // rises by one per process, given by the bus
  std::string name;   // "lease.acquired", "gate.opened", ...
  std::string lease;  // may be empty (store.*)
  uint64_t token = 0;
  std::string holder_node_id;
  std::string holder_process_id;
  std::string reason;    // "" if none
  base::WallTime at;     // for people
  base::Duration grace;  // lease.draining: what listeners can count on; zero elsewhere
  std::string gate;      // gate.*: which
  std::string detail;    // a sentence, may be empty
};

// {"event":"lease.acquired","id":7,"at":"...","lease":"orders","token":"12",
//  "holder":{"node_id":"...","process_id":"..."},"reason":""}: one line, no newline. Members that
// only some events have follow where set: grace_ms (lease.draining: always), gate, detail.
std::string EventJson(const Event& event);
// The same with "event_id": ids begin at 1 in every process, so one that is to be right beyond a
// restart names the process too: "<process id>.<id>".
std::string EventJson(const Event& event, std::string_view process_id);
std::string EventId(std::string_view process_id, uint64_t id);

class EventBus {
 public:
  using Subscriber = std::function<void(const Event&)>;
  explicit EventBus(size_t history_max = 1024);
  EventBus(const EventBus&) = delete;
  EventBus& operator=(const EventBus&) = delete;
  // Gives the event its id, keeps it in the bounded history, calls subscribers in order of
  // subscription. From inside a subscriber: takes its turn after the event being told.
  void Publish(Event event);
  uint64_t Subscribe(Subscriber subscriber);
  void Unsubscribe(uint64_t subscription);  // safe inside a subscriber
  // What was told last, oldest first; ids without a gap. Inside a subscriber it ends with the event
  // being told.
  const std::deque<Event>& history() const { return history_; }
  // A told event that is still kept; nullptr: not told yet, or not kept any more.
  const Event* Find(uint64_t id) const;
  uint64_t first_kept() const { return history_.empty() ? last_told() + 1 : history_.front().id; }
  uint64_t last_told() const { return history_.empty() ? 0 : history_.back().id; }

 private:
  size_t history_max_;
  uint64_t next_id_ = 1;
  uint64_t next_subscription_ = 1;
  bool telling_ = false;
  std::deque<Event> history_;
  std::deque<Event> waiting_;  // published while another event was being told
  // A list: a subscriber stays where it is while it runs, whatever it adds. One that is gone keeps
  // its place (id 0) until the telling is over.
  std::list<std::pair<uint64_t, Subscriber>> subscribers_;
};

}  // namespace leasehold::observe

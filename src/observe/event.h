// Event and EventBus: what happened, told once to everyone who listens (log, signal socket, event
// stream, audit). Names and reasons are the closed lists of lease/events.h plus gate.* and app.*;
// words of DESIGN 2.4.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

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
  base::Duration grace;  // lease.draining: how long the drain may take; zero elsewhere
  std::string gate;      // gate.*: which
  std::string detail;    // a sentence, may be empty
};

// {"event":"lease.acquired","id":7,"lease":"orders","token":"12",...}: one line, no newline.
std::string EventJson(const Event& event);

class EventBus {
 public:
  using Subscriber = std::function<void(const Event&)>;
  explicit EventBus(size_t history_max = 1024);
  // Gives the event its id, keeps it in the bounded history, calls subscribers in order of
  // subscription.
  void Publish(Event event);
  uint64_t Subscribe(Subscriber subscriber);
  void Unsubscribe(uint64_t subscription);  // safe inside a subscriber
  const std::deque<Event>& history() const { return history_; }

 private:
  size_t history_max_;
  uint64_t next_id_ = 1;
  uint64_t next_subscription_ = 1;
  std::deque<Event> history_;
  std::vector<std::pair<uint64_t, Subscriber>> subscribers_;
};

}  // namespace leasehold::observe

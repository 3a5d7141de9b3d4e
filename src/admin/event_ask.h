// EventAsk: what a reader of /v1/events wants, out of the request: from where, which events, for
// how long. Not the stream itself (event_stream.h). Invariant: the header Last-Event-ID wins over
// the query, because a browser that reconnects sends the header and repeats the query it began
// with.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "admin/target.h"
#include "base/result.h"
#include "observe/event.h"

namespace leasehold::admin {

struct EventAsk {
  enum class From {
    kNow,    // a hello with every lease's state, then what happens
    kStart,  // what is kept, then what happens
    kAfter,  // the same from after one event on
  };
  From from = From::kNow;
  std::string after;                // kAfter: as the client gave it; may be of another process
  bool follow = true;               // false: end when what is kept is sent
  std::string lease;                // empty: of all leases and of none
  std::vector<std::string> events;  // names, or prefixes such as "lease."; empty: all

  bool Wants(const observe::Event& event) const;
};

// ?lease=, ?event= (repeatable), ?since= ("start" or an id), ?last_event_id=, ?follow=, and the
// header. The error names parameter, value and what would be right.
base::Result<EventAsk> ReadEventAsk(const Target& target,
                                    const std::optional<std::string>& last_event_id);

// "<process id>.<id>", as observe::EventId writes it.
struct EventPosition {
  std::string process_id;
  uint64_t id = 0;
};
std::optional<EventPosition> ParseEventId(std::string_view text);

}  // namespace leasehold::admin

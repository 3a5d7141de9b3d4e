// EventStreams: all readers of /v1/events: lets them in up to a limit, tells them what happens,
// keeps quiet ones alive, ends them in order when the API stops. Owned by ApiServer. Invariants: at
// most streams_max at a time; nobody who does not read costs more than his queue, or anybody's
// time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "admin/control.h"
#include "admin/event_ask.h"
#include "admin/event_stream.h"
#include "admin/http_message.h"
#include "base/time.h"
#include "loop/loop.h"
#include "loop/timer.h"
#include "observe/event.h"
#include "observe/log.h"

namespace leasehold::admin {

struct EventStreamOptions {
  // Readers are tools and dashboards beside one pod: a handful. 32 times the queue is 1 MiB.
  uint32_t streams_max = 32;
  size_t queue_bytes_max = size_t{32} * 1024;  // some 80 events, beside the kernel's own buffers
  // As WHATWG HTML 9.2.7 advises: proxies drop what is quiet for longer.
  base::Duration heartbeat = base::Duration::Seconds(15);
};

class EventStreams {
 public:
  EventStreams(loop::Loop& loop, const Control& control, observe::EventBus& events,
               observe::Log& log, const EventStreamOptions& options = {});
  ~EventStreams();
  EventStreams(const EventStreams&) = delete;
  EventStreams& operator=(const EventStreams&) = delete;

  // The answer that becomes a stream; 503 when there are streams_max already.
  HttpAnswer Answer(EventAsk ask);
  void EndAll();
  size_t count() const { return streams_.size(); }

 private:
  void Opened(std::shared_ptr<EventStream> stream);
  void Closed(EventStream& stream, std::string_view why);
  void Beat();

  loop::Loop& loop_;
  observe::EventBus& events_;
  observe::Log& log_;
  const EventStreamOptions options_;
  EventStream::Owner owner_;
  observe::RateLimit full_limit_;
  observe::RateLimit dropped_limit_;
  uint64_t subscription_;
  loop::Timer beat_;
  std::vector<std::shared_ptr<EventStream>> streams_;
};

}  // namespace leasehold::admin

#include "admin/event_streams.h"

#include <algorithm>
#include <string>
#include <utility>

#include "admin/problem.h"

namespace leasehold::admin {
namespace {

// One line a minute about a condition that lasts: enough to be found, too little to fill a disk.
constexpr base::Duration kLogInterval = base::Duration::Seconds(60);

}  // namespace

EventStreams::EventStreams(loop::Loop& loop, const Control& control, observe::EventBus& events,
                           observe::Log& log, const EventStreamOptions& options)
    : loop_(loop),
      events_(events),
      log_(log),
      options_(options),
      owner_{
          .control = control,
          .events = events,
          .queue_bytes_max = options.queue_bytes_max,
          .on_open = [this](std::shared_ptr<EventStream> stream) { Opened(std::move(stream)); },
          .on_closed = [this](EventStream& stream, std::string_view why) { Closed(stream, why); }},
      full_limit_(kLogInterval),
      dropped_limit_(kLogInterval),
      subscription_(events.Subscribe([this](const observe::Event& /*event*/) {
        if (streams_.empty()) return;
        const auto snapshot = streams_;  // a slow one leaves while it is told
        for (const auto& stream : snapshot) stream->Pump();
      })),
      beat_(loop, [this] { Beat(); }) {}

EventStreams::~EventStreams() { events_.Unsubscribe(subscription_); }

HttpAnswer EventStreams::Answer(EventAsk ask) {
  if (streams_.size() >= options_.streams_max) {
    uint64_t suppressed = 0;
    if (full_limit_.Allow(loop_.CachedNow(), &suppressed)) {
      log_.Warn("events.refused", "a reader of /v1/events was turned away: there are too many",
                {{"streams_max", options_.streams_max}, {"suppressed", suppressed}});
    }
    HttpAnswer answer =
        ProblemAnswer(503, "limit",
                      std::to_string(options_.streams_max) +
                          " clients read /v1/events already; end one, or ask later");
    answer.headers.emplace_back("Retry-After", "5");
    return answer;
  }
  HttpAnswer answer;
  answer.content_type = "text/event-stream";
  answer.source = std::make_shared<EventStream>(owner_, std::move(ask));
  return answer;
}

void EventStreams::Opened(std::shared_ptr<EventStream> stream) {
  streams_.push_back(std::move(stream));
  if (!beat_.armed()) beat_.StartAfter(options_.heartbeat);
}

void EventStreams::Closed(EventStream& stream, std::string_view why) {
  std::erase_if(streams_, [&](const auto& entry) { return entry.get() == &stream; });
  if (streams_.empty()) beat_.Stop();
  uint64_t suppressed = 0;
  if (why.empty() || !dropped_limit_.Allow(loop_.CachedNow(), &suppressed)) return;
  log_.Warn("events.dropped", "a reader of /v1/events was cut: " + std::string(why),
            {{"suppressed", suppressed}});
}

void EventStreams::Beat() {
  beat_.StartAfter(options_.heartbeat);
  const auto snapshot = streams_;
  for (const auto& stream : snapshot) stream->Beat();
}

void EventStreams::EndAll() {
  const auto snapshot = streams_;
  for (const auto& stream : snapshot) stream->End();
}

}  // namespace leasehold::admin

// EventStream: one reader of /v1/events (server-sent events, WHATWG HTML 9.2): its filter and its
// place in the bus's history. The history is its queue, shared by all readers; of what its
// connection has not taken yet there are at most queue_bytes_max and one write more. Owned by
// EventStreams and by its connection together. Invariants: each event that it wants is written
// once, in the order of the ids; a reader that the history has overtaken is cut, never waited for.
//
// Ids are "<process id>.<id>". A reader without one is greeted by `hello` with every lease's state.
// One whose place cannot be found again (another process, an id that is not kept any more) is told
// by a first event `missed` what it missed, and then gets everything that is kept.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "admin/control.h"
#include "admin/event_ask.h"
#include "admin/http_message.h"
#include "observe/event.h"

namespace leasehold::admin {

class EventStream final : public HttpBodySource, public std::enable_shared_from_this<EventStream> {
 public:
  struct Owner {
    const Control& control;
    const observe::EventBus& events;
    size_t queue_bytes_max;
    std::function<void(std::shared_ptr<EventStream>)> on_open;
    // `why` is empty when it left, or ended, in order. May be inside one of its calls.
    std::function<void(EventStream&, std::string_view why)> on_closed;
  };
  EventStream(const Owner& owner, EventAsk ask);

  void Open(HttpSink& sink) override;
  void Drained() override;
  void Closed() override;

  void Pump();  // writes what there is for it; nothing once it is over
  // Shows a quiet reader that we live and us whether it does. Of a filtered stream it moves the
  // reader's place on. A reader that has not caught up since the last but one is cut.
  void Beat();
  void End();  // in order, after what was written

 private:
  void Greet();
  std::string Hello() const;
  std::string Missed(std::string_view why, uint64_t first_missed, std::string_view detail);
  std::string PlaceAfter();
  void CutFor(std::string_view why);
  std::string Id(uint64_t id) const;

  const Owner& owner_;
  const EventAsk ask_;
  std::string process_id_;
  HttpSink* sink_ = nullptr;  // null: not open yet, or over
  uint64_t next_ = 0;         // the id looked at next
  uint64_t told_ = 0;         // the reader's place: the id it was sent last
  uint64_t end_after_ = 0;    // without follow: the last id that is sent
  int stalled_beats_ = 0;
  std::string why_;  // it is cut
};

}  // namespace leasehold::admin

#include "admin/event_stream.h"

#include <utility>

#include "admin/views_json.h"
#include "base/json_writer.h"
#include "base/text.h"
#include "loop/loop.h"

namespace leasehold::admin {
namespace {

// How long a browser waits before it connects again: a restarted sidecar is back within this.
constexpr std::string_view kRetryBlock = "retry: 1000\n\n";
// Events put together for one write: a replay of the whole history is some hundred KiB.
constexpr size_t kWriteBytesAim = size_t{8} * 1024;
// An id from a client, repeated to it; ours are 33 bytes and a number.
constexpr size_t kGivenIdShownMax = 128;

// `data` is one line of JSON.
void AppendBlock(std::string& out, std::string_view id, std::string_view event,
                 std::string_view data) {
  out.append("id: ").append(id).append("\nevent: ").append(event);
  out.append("\ndata: ").append(data).append("\n\n");
}

}  // namespace

EventStream::EventStream(const Owner& owner, EventAsk ask) : owner_(owner), ask_(std::move(ask)) {}

std::string EventStream::Id(uint64_t id) const { return observe::EventId(process_id_, id); }

void EventStream::Open(HttpSink& sink) {
  sink_ = &sink;
  process_id_ = owner_.control.node().process_id;
  end_after_ = owner_.events.last_told();
  owner_.on_open(shared_from_this());
  Greet();
  Pump();
}

void EventStream::Greet() {
  std::string out(kRetryBlock);
  switch (ask_.from) {
    case EventAsk::From::kNow:
      next_ = owner_.events.last_told() + 1;
      AppendBlock(out, Id(next_ - 1), "hello", Hello());
      break;
    case EventAsk::From::kStart:
      next_ = owner_.events.first_kept();
      if (next_ > 1) {
        AppendBlock(out, Id(next_ - 1), "missed",
                    Missed("history_exceeded", 1, "older events are not kept any more"));
      }
      break;
    case EventAsk::From::kAfter: out += PlaceAfter(); break;
  }
  told_ = next_ - 1;
  sink_->WriteBody(out);
}

// Sets next_; the block that tells what was missed, if anything was.
std::string EventStream::PlaceAfter() {
  const uint64_t first_kept = owner_.events.first_kept();
  const std::optional<EventPosition> place = ParseEventId(ask_.after);
  next_ = first_kept;
  std::string data;
  if (!place || (place->process_id == process_id_ && place->id > owner_.events.last_told())) {
    data = Missed("unknown_id", 1, "this process gave no event that id; all that is kept follows");
  } else if (place->process_id != process_id_) {
    data = Missed("process_changed", 1,
                  "that id is of another process, whose last events this one does not know; all "
                  "that is kept of this process follows");
  } else if (place->id + 1 < first_kept) {
    data = Missed("history_exceeded", place->id + 1,
                  "the events between are not kept any more; all that is kept follows");
  } else {
    next_ = place->id + 1;
    return "";
  }
  std::string out;
  AppendBlock(out, Id(first_kept - 1), "missed", data);
  return out;
}

std::string EventStream::Hello() const {
  std::string out;
  base::JsonWriter json(out);
  json.BeginObject().Member("event", "hello").Member("event_id", Id(next_ - 1));
  json.Member("at", base::FormatWallTime(loop::Loop::WallNow()));
  WriteHello(json, owner_.control, ask_.lease, loop::Loop::Now());
  json.EndObject();
  return out;
}

// Of this process `first_missed` up to what is kept were missed; null when that is nothing.
std::string EventStream::Missed(std::string_view why, uint64_t first_missed,
                                std::string_view detail) {
  const uint64_t last_missed = owner_.events.first_kept() - 1;
  std::string out;
  base::JsonWriter json(out);
  json.BeginObject().Member("event", "missed").Member("event_id", Id(last_missed));
  json.Member("at", base::FormatWallTime(loop::Loop::WallNow())).Member("why", why);
  json.Key("last_event_id");
  if (ask_.after.empty()) {
    json.Null();
  } else {
    json.String(base::Printable(ask_.after, kGivenIdShownMax));
  }
  json.Member("process_id", process_id_);
  const bool any = first_missed <= last_missed;
  json.Key("first_missed_id");
  any ? json.Uint(first_missed) : json.Null();
  json.Key("last_missed_id");
  any ? json.Uint(last_missed) : json.Null();
  json.Member("detail", detail).EndObject();
  return out;
}

void EventStream::Pump() {
  if (sink_ == nullptr) return;
  if (next_ < owner_.events.first_kept()) {
    return CutFor("it reads too slowly: what it needs next is not kept any more");
  }
  std::string out;
  while (sink_->queued() + out.size() < owner_.queue_bytes_max) {
    if (!ask_.follow && next_ > end_after_) break;
    const observe::Event* event = owner_.events.Find(next_);
    if (event == nullptr) break;
    ++next_;
    if (!ask_.Wants(*event)) continue;
    told_ = event->id;
    AppendBlock(out, Id(event->id), event->name, observe::EventJson(*event, process_id_));
    if (out.size() < kWriteBytesAim) continue;
    sink_->WriteBody(out);
    out.clear();
  }
  sink_->WriteBody(out);
  if (!ask_.follow && next_ > end_after_) End();
}

void EventStream::Drained() {
  stalled_beats_ = 0;
  Pump();
}

void EventStream::Beat() {
  if (sink_ == nullptr) return;
  if (sink_->queued() > 0) {
    if (++stalled_beats_ >= 2) CutFor("it has stopped reading");
    return;
  }
  stalled_beats_ = 0;
  // An id without data is no event, but from there on the reader resumes.
  std::string out = ":\n";
  if (told_ + 1 < next_) {
    told_ = next_ - 1;
    out.append("id: ").append(Id(told_)).append("\n");
  }
  sink_->WriteBody(out += "\n");
}

void EventStream::End() {
  if (sink_ != nullptr) sink_->EndBody();
}

void EventStream::CutFor(std::string_view why) {
  why_ = why;
  sink_->Cut();
}

void EventStream::Closed() {
  sink_ = nullptr;
  owner_.on_closed(*this, why_);
}

}  // namespace leasehold::admin

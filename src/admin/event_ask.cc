#include "admin/event_ask.h"

#include <algorithm>

#include "base/text.h"

namespace leasehold::admin {
namespace {

// "lease.acquired" or "lease.": small letters, one dot after the first word.
bool IsNameOrPrefix(std::string_view text) {
  const size_t dot = text.find('.');
  if (dot == 0 || dot == std::string_view::npos) return false;
  return std::all_of(text.begin(), text.end(), [&text, dot](const char& c) {
    return (c >= 'a' && c <= 'z') || c == '_' || static_cast<size_t>(&c - text.data()) == dot;
  });
}

base::Error Wrong(std::string_view key, const std::string& value, std::string_view right) {
  return {base::ErrorCode::kInvalid, std::string(key) + "=\"" + base::Printable(value) +
                                         "\" is not possible; give " + std::string(right)};
}

}  // namespace

bool EventAsk::Wants(const observe::Event& event) const {
  if (!lease.empty() && event.lease != lease) return false;
  return events.empty() || std::ranges::any_of(events, [&](const std::string& wanted) {
           return wanted.ends_with('.') ? event.name.starts_with(wanted) : event.name == wanted;
         });
}

std::optional<EventPosition> ParseEventId(std::string_view text) {
  const size_t dot = text.rfind('.');
  if (dot == 0 || dot == std::string_view::npos) return std::nullopt;
  const auto id = base::ParseUint64(text.substr(dot + 1));
  if (!id.ok()) return std::nullopt;
  return EventPosition{std::string(text.substr(0, dot)), *id};
}

base::Result<EventAsk> ReadEventAsk(const Target& target,
                                    const std::optional<std::string>& last_event_id) {
  EventAsk ask;
  ask.lease = target.One("lease").value_or("");
  for (std::string& event : target.All("event")) {
    if (!IsNameOrPrefix(event)) {
      return Wrong("event", event,
                   "the name of an event such as lease.acquired, or a prefix such as lease.");
    }
    ask.events.push_back(std::move(event));
  }
  const std::string follow = target.One("follow").value_or("true");
  if (follow != "true" && follow != "false") return Wrong("follow", follow, "true or false");
  ask.follow = follow == "true";
  const std::optional<std::string> since = target.One("since");
  const std::optional<std::string> after = target.One("last_event_id");
  if (since && after) {
    return base::Error{base::ErrorCode::kInvalid,
                       "since and last_event_id say the same; give one of them"};
  }
  for (const auto& [key, value] : {std::pair("since", since), std::pair("last_event_id", after)}) {
    if (!value) continue;
    if (key == std::string_view("since") && value == "start") {
      ask.from = EventAsk::From::kStart;
    } else if (ParseEventId(*value)) {
      ask.from = EventAsk::From::kAfter;
      ask.after = *value;
    } else {
      return Wrong(key, *value,
                   "the event_id of an event, \"<process id>.<number>\", or since=start");
    }
  }
  if (last_event_id && !last_event_id->empty()) {
    ask.from = EventAsk::From::kAfter;
    ask.after = *last_event_id;
  }
  return ask;
}

}  // namespace leasehold::admin

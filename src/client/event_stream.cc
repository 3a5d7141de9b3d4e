#include "client/event_stream.h"

#include <utility>

namespace leasehold::client {
namespace {

constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";

}  // namespace

base::Status EventStreamParser::Feed(std::string_view bytes) {
  while (!bytes.empty()) {
    if (std::exchange(after_cr_, false) && bytes.front() == '\n') {
      bytes.remove_prefix(1);
      continue;
    }
    const size_t end = bytes.find_first_of("\r\n");
    line_ += bytes.substr(0, end);
    if (line_.size() > line_bytes_max_) {
      return base::Error{base::ErrorCode::kLimit, "a line of the event stream is longer than " +
                                                      std::to_string(line_bytes_max_) + " bytes"};
    }
    if (end == std::string_view::npos) return {};
    after_cr_ = bytes[end] == '\r';
    bytes.remove_prefix(end + 1);
    if (base::Status taken = TakeLine(); !taken.ok()) return taken;
  }
  return {};
}

base::Status EventStreamParser::TakeLine() {
  std::string line = std::exchange(line_, {});
  if (std::exchange(first_line_, false) && line.starts_with(kByteOrderMark)) {
    line.erase(0, kByteOrderMark.size());
  }
  if (line.empty()) {
    Dispatch();
    return {};
  }
  const size_t colon = line.find(':');
  const std::string_view field = std::string_view(line).substr(0, colon);
  std::string_view value =
      colon == std::string::npos ? std::string_view() : std::string_view(line).substr(colon + 1);
  if (value.starts_with(' ')) value.remove_prefix(1);
  if (field == "event") {
    name_ = value;
  } else if (field == "id" && value.find('\0') == std::string_view::npos) {
    id_ = value;
  } else if (field == "data") {
    if (data_.size() + value.size() >= line_bytes_max_) {
      return base::Error{base::ErrorCode::kLimit, "the data of an event is longer than " +
                                                      std::to_string(line_bytes_max_) + " bytes"};
    }
    if (std::exchange(has_data_, true)) data_ += '\n';
    data_ += value;
  }  // a comment (an empty field), "retry" and whatever else: nothing to us
  return {};
}

void EventStreamParser::Dispatch() {
  last_id_ = id_;
  ServerEvent event{name_.empty() ? "message" : std::exchange(name_, {}), std::exchange(data_, {})};
  name_.clear();
  if (std::exchange(has_data_, false)) on_event_(event);
}

}  // namespace leasehold::client

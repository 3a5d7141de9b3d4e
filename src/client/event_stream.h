// EventStreamParser: server-sent events (WHATWG HTML 9.2.6) out of the bytes of a stream, sans I/O.
// Not the connection (http_call.h). Takes LF, CR and CRLF, a byte order mark, comments, data of
// several lines. Invariants: a line is at most line_bytes_max, an event's data too, else Feed fails
// and only destruction remains; an event that is cut off by the end is not given.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace leasehold::client {

struct ServerEvent {
  std::string name;  // "message" if the stream names none
  std::string data;
};

class EventStreamParser {
 public:
  using OnEvent = std::function<void(const ServerEvent&)>;
  explicit EventStreamParser(size_t line_bytes_max, OnEvent on_event)
      : line_bytes_max_(line_bytes_max), on_event_(std::move(on_event)) {}

  // Calls on_event for each event that these bytes complete.
  base::Status Feed(std::string_view bytes);
  // From where to resume: the id in force when the last event, or block without data, ended.
  const std::string& last_id() const { return last_id_; }

 private:
  base::Status TakeLine();
  void Dispatch();

  const size_t line_bytes_max_;
  const OnEvent on_event_;
  std::string line_;
  std::string data_;
  std::string name_;
  std::string id_;
  std::string last_id_;
  bool has_data_ = false;
  bool after_cr_ = false;
  bool first_line_ = true;
};

}  // namespace leasehold::client

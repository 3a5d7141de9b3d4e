// HttpRequest and HttpAnswer: one exchange of the localhost API as plain values. Not a general HTTP
// message: only the headers that the API's rules look at are kept. Values are copies, because an
// answer may be due minutes after the connection's buffers have moved on. A body without a known
// end comes from an HttpBodySource, which writes to the connection's HttpSink.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace leasehold::admin {

struct HttpRequest {
  std::string method;
  std::string target;               // origin-form: path and query as sent
  std::optional<std::string> host;  // absent: HTTP/1.0 without one
  std::optional<std::string> origin;
  std::optional<std::string> authorization;
  std::optional<std::string> last_event_id;  // where a reader of /v1/events was
  std::string body;
  std::string peer;  // who asked, for the log
};

// Where a streamed body is written; a connection of the API. Writes go to the kernel at once, what
// it does not take is queued: its producer looks at queued() and stops above its own limit.
class HttpSink {
 public:
  virtual void WriteBody(std::string_view bytes) = 0;
  virtual size_t queued() const = 0;
  virtual void EndBody() = 0;  // in order, after what is queued; Closed() is called from inside
  virtual void Cut() = 0;      // at once, with a reset; Closed() is called from inside

 protected:
  ~HttpSink() = default;
};

// What produces a streamed body. Invariant: Closed() is called once after Open(), and the sink is
// not touched after it.
class HttpBodySource {
 public:
  virtual ~HttpBodySource() = default;
  virtual void Open(HttpSink& sink) = 0;  // the head is written; may write, end and cut at once
  virtual void Drained() = 0;             // the queue, which was not empty, is empty now
  virtual void Closed() = 0;              // ended, cut, or the client has left
};

struct HttpAnswer {
  int status = 200;
  std::string content_type = "application/json";
  std::string body;
  std::string_view fixed_body = {};  // instead of `body`: part of the program, not copied
  std::shared_ptr<HttpBodySource> source =
      {};  // instead of both; opened unless the request is a HEAD
  std::vector<std::pair<std::string, std::string>> headers;  // more of them: Allow, ...
};

// Gives the answer; the first call counts. Harmless when the client, or the server, is gone: work
// that was asked for goes on without anybody to tell. May be called from inside the handler.
using HttpReply = std::function<void(HttpAnswer)>;
using HttpHandler = std::function<void(const HttpRequest&, HttpReply)>;

}  // namespace leasehold::admin

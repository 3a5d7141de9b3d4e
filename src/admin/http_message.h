// HttpRequest and HttpAnswer: one exchange of the localhost API as plain values. Not a general HTTP
// message: only the headers that the API's rules look at are kept. Values are copies, because an
// answer may be due minutes after the connection's buffers have moved on.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace leasehold::admin {

struct HttpRequest {
  std::string method;
  std::string target;               // origin-form: path and query as sent
  std::optional<std::string> host;  // absent: HTTP/1.0 without one
  std::optional<std::string> origin;
  std::optional<std::string> authorization;
  std::string body;
  std::string peer;  // who asked, for the log
};

struct HttpAnswer {
  int status = 200;
  std::string content_type = "application/json";
  std::string body;
  std::vector<std::pair<std::string, std::string>> headers;  // more of them: Allow, ...
};

// Gives the answer; the first call counts. Harmless when the client, or the server, is gone: work
// that was asked for goes on without anybody to tell. May be called from inside the handler.
using HttpReply = std::function<void(HttpAnswer)>;
using HttpHandler = std::function<void(const HttpRequest&, HttpReply)>;

}  // namespace leasehold::admin

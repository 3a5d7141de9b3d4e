// HttpCall: one small HTTP/1.1 exchange with a deadline: connect, send, read a bounded answer,
// close. For the application check and the command line. Not a pooling client; gates have their own
// upstream connections. Of an answer that streams the body is handed on as it comes and nothing is
// kept. Invariants: `done` is called once, from the loop; what is kept is bounded.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/address.h"
#include "base/result.h"
#include "base/time.h"
#include "loop/loop.h"

namespace leasehold::client {

struct HttpRequest {
  std::string name;  // for messages, as "sqs at https://..."; empty: method, address and target
  std::string method = "GET";
  base::Address address;
  std::string host_header;  // empty: the address
  std::string target = "/";
  // Without Host, Connection, Content-Length and Transfer-Encoding, which the call writes itself.
  std::vector<std::pair<std::string, std::string>> headers;
  std::string body;
  base::Duration timeout = base::Duration::Seconds(5);
  // From when `timeout` counts, for a call that is part of a longer errand. nullopt: from now.
  std::optional<base::MonoTime> started;
  size_t body_bytes_max = 4 * 1024 * 1024;
  bool head_is_enough = false;  // done as soon as the status line and head are in
};

struct HttpResponse {
  int status = 0;
  std::vector<std::pair<std::string, std::string>> headers;
  std::string body;
};

// For an answer without end: `timeout` of the request is for its head.
struct HttpStreaming {
  std::function<void(const HttpResponse& head)> on_head;
  // A piece of the body, valid during the call, which must not destroy the HttpCall.
  std::function<void(std::string_view)> on_body;
  // Longest silence between two pieces; then it has failed with kTimeout.
  base::Duration silence_max = base::Duration::Seconds(60);
};

class HttpCall {
 public:
  virtual ~HttpCall() = default;  // cancels; `done` is not called
};

std::unique_ptr<HttpCall> StartHttpCall(loop::Loop& loop, const HttpRequest& request,
                                        std::function<void(base::Result<HttpResponse>)> done);
// The body of a 2xx answer goes to `streaming`; `done` gets its head when it has ended in order.
// Any other answer is read whole, as above.
std::unique_ptr<HttpCall> StartHttpStream(loop::Loop& loop, const HttpRequest& request,
                                          HttpStreaming streaming,
                                          std::function<void(base::Result<HttpResponse>)> done);

}  // namespace leasehold::client

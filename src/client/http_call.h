// HttpCall: one small HTTP/1.1 exchange with a deadline: connect, send, read a bounded answer,
// close. For the application check and the command line. Not a pooling client; gates have their own
// upstream connections.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/address.h"
#include "base/result.h"
#include "base/time.h"
#include "loop/loop.h"

namespace leasehold::client {

struct HttpRequest {
  std::string method = "GET";
  base::Address address;
  std::string host_header;  // empty: the address
  std::string target = "/";
  std::vector<std::pair<std::string, std::string>> headers;
  std::string body;
  base::Duration timeout = base::Duration::Seconds(5);
  size_t body_bytes_max = 4 * 1024 * 1024;
  bool head_is_enough = false;  // done as soon as the status line and head are in
};

struct HttpResponse {
  int status = 0;
  std::vector<std::pair<std::string, std::string>> headers;
  std::string body;
};

class HttpCall {
 public:
  virtual ~HttpCall() = default;  // cancels; `done` is not called
};

std::unique_ptr<HttpCall> StartHttpCall(loop::Loop& loop, const HttpRequest& request,
                                        std::function<void(base::Result<HttpResponse>)> done);

}  // namespace leasehold::client

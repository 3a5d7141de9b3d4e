// Service: signed calls to one AWS service at one endpoint, over kept connections. Owned by a store
// adapter, a gate, later the bridge; its credentials are shared. It repeats nothing (a conditional
// write must not be, and an SDK in front of us does its own): its user looks at the answer. What it
// sees to: signing by the service's own time (the Date header of its answers: an answer that
// refuses for a wrong clock corrects ours for the next call), credentials that the service refuses
// (the provider is told), and errors in words.
//
// Invariants: `done` is called once, later, from the loop, never after its call is destroyed. Only
// our own headers are signed and nothing that a hop may change. No secret in any error.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "aws/api_error.h"
#include "aws/credentials.h"
#include "aws/endpoint.h"
#include "base/result.h"
#include "base/time.h"
#include "loop/loop.h"
#include "observe/log.h"

namespace leasehold::aws {

struct Request {
  std::string method = "POST";
  std::string path = "/";
  std::string query;                                         // without "?"
  std::vector<std::pair<std::string, std::string>> headers;  // Content-Type, X-Amz-Target, ...
  std::string body;
  base::Duration timeout = base::Duration::Seconds(5);  // connecting and fetching credentials
                                                        // included
  size_t body_bytes_max = 4 * 1024 * 1024;              // of the answer
  bool idempotent = false;  // may be sent again if a kept connection turns out to be closed
};

// Whatever the service answered, also its errors.
struct Response {
  int status = 0;
  std::vector<std::pair<std::string, std::string>> headers;
  std::string body;
  std::optional<int64_t> server_unix_ms;  // its Date, if it gave one (whole seconds)
  // Set for a status of 400 and above, from headers and body, JSON or XML alike.
  std::optional<ApiError> error;
  std::string_view Header(std::string_view name) const;  // case-insensitive; empty: absent
};

class Call {
 public:
  virtual ~Call() = default;  // cancels and closes the connection; `done` is not called
};

struct ServiceLimits {
  base::Duration connect_timeout = base::Duration::Seconds(2);
  size_t idle_max = 16;
  size_t connections_max = 512;
};

class Service {
 public:
  Service(loop::Loop& loop, Endpoint endpoint, std::shared_ptr<CredentialsProvider> credentials,
          const ServiceLimits& limits, observe::Log& log);
  ~Service();  // cancels all calls
  Service(const Service&) = delete;
  Service& operator=(const Service&) = delete;

  // An Error is one where no answer came: kRefused (no credentials: nothing was sent), kTimeout,
  // kUnavailable (no connection, or no HTTP), kClosed (the connection ended first), kLimit; its
  // sentence names the service, the endpoint and, for credentials, where they were looked for.
  [[nodiscard]] std::unique_ptr<Call> Start(Request request,
                                            std::function<void(base::Result<Response>)> done);

  const Endpoint& endpoint() const;
  const CredentialsProvider& credentials() const;
  // The service's clock less ours, as last corrected. 0 until it had to be.
  base::Duration clock_skew() const;
  size_t connections() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace leasehold::aws

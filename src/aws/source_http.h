// HttpAsk: one question to an endpoint that gives credentials, asked again with back-off while it
// does not answer or says that the trouble is its own. The request is made anew for each attempt (a
// signature has a date). Owned by a source's fetch; a pool of connections may serve several asks in
// a row. Invariant: errors name method and endpoint, never a path, a header or a body.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "aws/endpoint.h"
#include "base/random.h"
#include "base/result.h"
#include "base/time.h"
#include "client/http_pool.h"
#include "loop/loop.h"
#include "loop/timer.h"

namespace leasehold::aws {

struct HttpPolicy {
  int attempts = 3;
  base::Duration timeout = base::Duration::Seconds(2);  // of each
  base::Duration pause = base::Duration::Millis(100);   // before the second; doubles, with jitter
};

std::unique_ptr<client::HttpPool> MakePool(loop::Loop& loop, const Endpoint& endpoint);

class HttpAsk {
 public:
  using Make = std::function<client::HttpRequest()>;
  using Again = std::function<bool(const client::HttpResponse&)>;
  using Done = std::function<void(base::Result<client::HttpResponse>)>;

  // `again`: is this answer one to ask again after? All borrowed things outlive the ask; `done` is
  // called once, later, and may destroy it. `name` is for errors: "EC2 instance metadata".
  HttpAsk(loop::Loop& loop, client::HttpPool& pool, base::Random& random, const HttpPolicy& policy,
          std::string name, Make make, Again again, Done done);
  HttpAsk(const HttpAsk&) = delete;
  HttpAsk& operator=(const HttpAsk&) = delete;

 private:
  void Start();
  void OnAnswer(base::Result<client::HttpResponse> answer);

  client::HttpPool& pool_;
  base::Random& random_;
  const HttpPolicy policy_;
  const std::string name_;
  const Make make_;
  const Again again_;
  Done done_;
  int attempt_ = 0;
  std::string target_;  // as errors of the pool have it
  std::unique_ptr<client::HttpCall> call_;
  loop::Timer pause_;
};

// Too many requests, or the server's own fault.
bool IsPassing(const client::HttpResponse& response);

}  // namespace leasehold::aws

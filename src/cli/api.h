// Api: the running sidecar's HTTP API as a command sees it: one call at a time, answered or failed
// when it returns. It runs the loop meanwhile, so it must not be used from inside a callback of it.
#pragma once

#include <string>
#include <string_view>

#include "base/address.h"
#include "base/result.h"
#include "base/time.h"
#include "cli/command_line.h"
#include "cli/console.h"
#include "loop/loop.h"
#include "proto/json.h"

namespace leasehold::cli {

struct ApiTarget {
  base::Address address;
  std::string token;  // empty: none is sent
};

// From --admin and --token-file, else from the configuration, else http://127.0.0.1:9090. The error
// is one of usage or configuration.
base::Result<ApiTarget> FindApi(const CommandLine& command);

struct ApiAnswer {
  int status = 0;
  std::string text;
  proto::Json body;  // null if the answer has none

  bool ok() const { return status >= 200 && status < 300; }
  // Of problem+json: "failed_precondition", ... and the sentence; of something else what can be
  // said.
  std::string problem() const;
  std::string detail() const;
};

class Api {
 public:
  Api(loop::Loop& loop, ApiTarget target) : loop_(loop), target_(std::move(target)) {}

  // An answer of any status is a value. Errors: kUnavailable (no connection), kClosed (ended
  // without a whole answer), kTimeout, kLimit; each says whom it asked.
  base::Result<ApiAnswer> Get(const std::string& path, base::Duration timeout = kGetTimeout);
  base::Result<ApiAnswer> Post(const std::string& path, const std::string& body,
                               base::Duration timeout);
  std::string name() const { return target_.address.ToString(); }

  // Local calls take milliseconds; a sidecar that stalls longer than this is as good as gone.
  static constexpr base::Duration kGetTimeout = base::Duration::Seconds(5);

 private:
  base::Result<ApiAnswer> Call(const std::string& method, const std::string& path,
                               const std::string& body, base::Duration timeout);
  loop::Loop& loop_;
  ApiTarget target_;
};

// `text` as it may stand in a path segment or a query, with %XX for what may not.
std::string EscapeUrl(std::string_view text);
// "/v1/leases/<name>" with what cannot stand in a path escaped.
std::string LeasePath(std::string_view lease);
// "{"a":1}" of an answer with a line end; what --json prints.
void PrintJson(Console& console, const ApiAnswer& answer);
// An answer that is not 2xx, told and turned into the exit code.
int FailWith(Console& console, bool json, const ApiAnswer& answer);
// A call that got no answer.
int FailWith(Console& console, bool json, const base::Error& error);
// The lease that is meant: as given, or the only one there is. On failure `exit_code` is set.
std::string ResolveLease(Api& api, const CommandLine& command, Console& console, int& exit_code);

}  // namespace leasehold::cli

// CheckSpec: what `app.check` says, taken apart: an http URL, a tcp address, or a command. A plain
// value; running it is app_check.cc's.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/address.h"
#include "base/result.h"

namespace leasehold::health {

struct CheckSpec {
  enum class Kind { kNone, kHttp, kTcp, kExec };
  Kind kind = Kind::kNone;
  base::Address address;          // kHttp, kTcp
  std::string target;             // kHttp: path and query, "/" at least
  std::vector<std::string> argv;  // kExec: at least one
};

// "" (kNone), "http://host:port/path", "tcp://host:port", "tcp://unix:/path", "exec:command args".
// A command is run without a shell: blanks part its words, '...' and "..." keep blanks in one word.
base::Result<CheckSpec> ParseCheckSpec(std::string_view text);

}  // namespace leasehold::health

// Config: `sidecar.conf` read, checked and turned into each room's own Options (DESIGN 8). All
// errors at once, each naming file, line, key, value and what would be right. The one door to
// toml++ is toml.cc. The option table (option_table.h) feeds the parser, the reference and the
// parity test.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "admin/options.h"
#include "gate/options.h"
#include "gate/process_options.h"
#include "health/options.h"
#include "lease/options.h"
#include "observe/options.h"
#include "store/options.h"

namespace leasehold::config {

struct NodeOptions {
  std::string id;         // never empty after Load: the host name if not given
  std::string state_dir;  // optional
};

struct Config {
  NodeOptions node;
  store::Options store;
  std::vector<lease::Options> leases;  // at least one
  std::vector<gate::Options> gates;
  gate::ProcessOptions exec;
  health::Options app;
  admin::AdminOptions admin;
  admin::SignalOptions signal;
  admin::HookOptions hooks;
  admin::AuditOptions audit;
  observe::LogOptions log;
};

struct Problem {
  std::string file;
  int line = 0;                  // 0: none
  std::string key;               // "lease.ttl"; empty: the file as a whole
  std::string value;             // as written, secrets masked; empty: none
  std::string message;           // what is wrong and what would be right
  std::string ToString() const;  // "sidecar.conf:12: lease.ttl = \"10x\": ..."
};

struct LoadResult {
  Config config;  // meaningful only if `errors` is empty
  std::vector<Problem> errors;
  std::vector<Problem> warnings;
};

// Reads `path`; environment through `getenv`. Secret files that cannot be read now are warnings:
// `check` may run elsewhere than `run`.
LoadResult LoadFile(const std::string& path);
// The same from text, with `environment` looked up by the given function (for tests and fuzzing).
LoadResult LoadText(std::string_view text, const std::string& file_name,
                    const std::function<const char*(const char*)>& environment);
// The configuration in force as JSON with secrets masked as "***".
std::string ToJson(const Config& config);
// What `check` prints: every derived value, per lease.
std::string DescribeTimings(const Config& config);
// Every option with type, default, range and a line of why: `check --reference`.
std::string DescribeOptions();
// The content of a *_file secret without its final line end. Errors name the file.
base::Result<std::string> ReadSecretFile(const std::string& path);

}  // namespace leasehold::config

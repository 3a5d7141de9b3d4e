// CommandLine: what was asked for, as plain values. command_line.cc is the one door to CLI11 and
// the one place that knows flags and help texts. Parsing touches nothing: no file, no network.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/time.h"

namespace leasehold::cli {

enum class Verb {
  kRun,
  kExec,
  kCheck,
  kStatus,
  kDescribe,
  kStepDown,
  kWait,
  kDrained,
  kEvents,
  kVersion
};

struct CommandLine {
  Verb verb = Verb::kVersion;
  bool json = false;

  std::vector<std::string> command;  // exec: what stands behind "--"; never empty there

  std::string config = "sidecar.conf";
  bool config_given = false;
  bool reference = false;  // check

  // Which running sidecar: the URL wins over the configuration's; neither: http://127.0.0.1:9090.
  std::string admin;
  std::string token_file;
  std::string socket;       // drained
  std::string client_name;  // drained: for whom it is said; empty: for nobody but this connection

  std::string lease;                            // empty: the only one there is
  std::optional<std::string> expected_node_id;  // step-down
  std::optional<uint64_t> expected_token;       // only together with expected_node_id
  bool wait_for_outcome = true;
  bool take_back = true;
  bool yes = false;
  std::string wait_for;  // wait: "active", "standby" or "draining"
  base::Duration timeout = base::Duration::Seconds(120);
  std::optional<uint64_t> token;  // drained

  std::vector<std::string> events;  // events: names or prefixes; empty: all
  std::string since;                // events: "start" or an event's id; empty: from now on
  bool follow = true;
};

struct ParsedCommandLine {
  std::optional<CommandLine> command;  // nullopt: print and end with `exit_code`
  int exit_code = 0;
  std::string out;  // help
  std::string err;  // what is wrong
};

// `arguments` without the program's name.
ParsedCommandLine ParseCommandLine(const std::vector<std::string>& arguments);

}  // namespace leasehold::cli

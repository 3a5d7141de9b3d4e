// exec: `run` with a command that runs only while the lease is held. What can be known before the
// lease is competed for is told here; the rest is app's (app/run.h) and gate's (process_gate.h).
#include <ostream>
#include <string>

#include "app/run.h"
#include "cli/commands.h"
#include "config/config.h"
#include "config/find_program.h"

namespace leasehold::cli {
namespace {

// What `check` cannot know, because it depends on there being a command. A sentence, or empty.
std::string Unfit(const config::Config& config) {
  if (config.exec.lease.empty()) {
    std::string names;
    for (const lease::Options& lease : config.leases) {
      names += (names.empty() ? "\"" : ", \"") + Shown(lease.name) + "\"";
    }
    return "exec.lease is missing; with several leases, say under [exec] which one the command "
           "runs "
           "under: lease = one of " +
           names;
  }
  for (const gate::Options& gate : config.gates) {
    if (gate.name == gate::kProcessGateName) {
      return "gate.name = \"" + gate.name +
             "\" is what the command is shown as; name the gate something else";
    }
  }
  return "";
}

}  // namespace

int ExecCommand(const CommandLine& command, Console& console) {
  config::LoadResult loaded = config::LoadFile(command.config);
  if (!TellProblems(loaded, console)) return kUsage;
  config::Config& config = loaded.config;
  if (const std::string wrong = Unfit(config); !wrong.empty()) {
    console.err << "error: " << command.config << ": " << wrong << "\n";
    return kUsage;
  }
  if (!config.app.check.empty()) {
    console.err << "warning: " << command.config
                << ": app.check: an application that is not ready does not compete; if it is the "
                   "command that is asked, it never starts\n";
  }
  const std::string& name = command.command[0];
  using State = config::FoundProgram::State;
  if (const config::FoundProgram found = config::FindProgram(name);
      found.state != State::kRunnable) {
    const bool absent = found.state == State::kAbsent;
    return Fail(console, false, absent ? kNotFound : kNotExecutable,
                absent ? "not_found" : "not_executable",
                "cannot run \"" + Shown(name) + "\": " + found.why +
                    "; give the path of an executable file, or a command found in PATH");
  }
  console.err.flush();
  config.exec.command = command.command;
  return app::Run(std::move(config));
}

}  // namespace leasehold::cli

// exec: `run` with a command that runs only while the lease is held. What can be known before the
// lease is competed for is told here; the rest is app's (app/run.h) and gate's (process_gate.h).
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <ostream>
#include <string>

#include "app/run.h"
#include "base/text.h"
#include "cli/commands.h"
#include "config/config.h"

namespace leasehold::cli {
namespace {

// Where execvp(3) looks when there is no PATH (glibc).
constexpr const char* kDefaultPath = "/bin:/usr/bin";

enum class Found { kYes, kNotExecutable, kNo };

Found Look(const std::string& path) {
  struct stat info {};
  if (stat(path.c_str(), &info) != 0) return Found::kNo;
  return S_ISREG(info.st_mode) && access(path.c_str(), X_OK) == 0 ? Found::kYes
                                                                  : Found::kNotExecutable;
}

// As execvp(3) will: a name with a slash is a path, another one is looked up in PATH.
Found Find(const std::string& command) {
  if (command.find('/') != std::string::npos) return Look(command);
  if (command.empty()) return Found::kNo;
  const char* path = std::getenv("PATH");
  Found best = Found::kNo;
  for (const std::string_view dir : base::Split(path == nullptr ? kDefaultPath : path, ':')) {
    const Found found = Look((dir.empty() ? "." : std::string(dir)) + "/" + command);
    if (found == Found::kYes) return found;
    if (found == Found::kNotExecutable) best = found;
  }
  return best;
}

// What `check` cannot know, because it depends on there being a command. A sentence, or empty.
std::string Unfit(const config::Config& config) {
  if (config.exec.lease.empty()) {
    return "exec.lease is missing; with several leases, say which one the command runs under";
  }
  for (const gate::Options& gate : config.gates) {
    if (gate.name == gate::kProcessGateName) {
      return "gate.name = \"" + gate.name +
             "\" is what the command is shown as; name the gate "
             "something else";
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
  switch (Find(name)) {
    case Found::kYes: break;
    case Found::kNotExecutable:
      return Fail(console, false, kNotExecutable, "not_executable",
                  "\"" + Shown(name) + "\" is not an executable file");
    case Found::kNo:
      return Fail(
          console, false, kNotFound, "not_found",
          "there is no command \"" + Shown(name) + "\"; give a path, or a name found in PATH");
  }
  console.err.flush();
  config.exec.command = command.command;
  return app::Run(std::move(config));
}

}  // namespace leasehold::cli

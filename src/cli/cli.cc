#include "cli/cli.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <iostream>

#include "base/text.h"
#include "cli/commands.h"

namespace leasehold::cli {
namespace {

bool AskOnTerminal(const std::string& question) {
  std::cerr << question << std::flush;
  std::string answer;
  if (!std::getline(std::cin, answer)) return false;
  const std::string word = base::ToLower(base::Trim(answer));
  return word == "y" || word == "yes";
}

// Whoever started us may have closed one of the three (`<&-`, some supervisors). Its number would
// go to the next file or socket opened, which would then be read as input or be sent the log.
// Opened the wrong way round, so that using it fails as it would if it were closed.
bool FillStandardStreams() {
  for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; ++fd) {
    if (fcntl(fd, F_GETFD) != -1) continue;
    if (open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) != fd) return false;
  }
  return true;
}

// The kernel tells the writer of a pipe without being asked for anything.
bool ReaderGone() {
  pollfd out{.fd = STDOUT_FILENO, .events = 0, .revents = 0};
  return poll(&out, 1, 0) == 1 && (out.revents & (POLLERR | POLLHUP | POLLNVAL)) != 0;
}

Console StandardConsole() {
  Console console{std::cout, std::cerr, false, {}};
  const char* no_color = std::getenv("NO_COLOR");  // https://no-color.org
  console.color = isatty(STDOUT_FILENO) == 1 && (no_color == nullptr || *no_color == '\0');
  if (isatty(STDIN_FILENO) == 1 && isatty(STDERR_FILENO) == 1) console.confirm = AskOnTerminal;
  console.reader_gone = ReaderGone;
  return console;
}

}  // namespace

int Dispatch(const CommandLine& command, loop::Loop& loop, Console& console) {
  switch (command.verb) {
    case Verb::kRun: return RunCommand(command, console);
    case Verb::kExec: return ExecCommand(command, console);
    case Verb::kCheck: return CheckCommand(command, console);
    case Verb::kVersion: return VersionCommand(command, console);
    case Verb::kStatus: return StatusCommand(command, loop, console);
    case Verb::kDescribe: return DescribeCommand(command, loop, console);
    case Verb::kStepDown: return StepDownCommand(command, loop, console);
    case Verb::kWait: return WaitCommand(command, loop, console);
    case Verb::kDrained: return DrainedCommand(command, loop, console);
    case Verb::kEvents: return EventsCommand(command, loop, console);
  }
  return kUsage;
}

int Main(int argc, const char* const* argv) {
  if (!FillStandardStreams()) {
    std::fputs(
        "leasehold: standard input, output or error is closed, and /dev/null cannot be opened in "
        "its place; start it with all three open\n",
        stderr);
    return kFailed;
  }
  const std::vector<std::string> arguments(argv + (argc > 0 ? 1 : 0), argv + argc);
  const ParsedCommandLine parsed = ParseCommandLine(arguments);
  Console console = StandardConsole();
  if (!parsed.command) {
    console.out << parsed.out << std::flush;
    console.err << parsed.err;
    return parsed.exit_code;
  }
  // These have a loop of their own and must not carry a second one; and `exec` forks before it.
  if (parsed.command->verb == Verb::kRun) return RunCommand(*parsed.command, console);
  if (parsed.command->verb == Verb::kExec) return ExecCommand(*parsed.command, console);
  loop::Loop loop;
  const int exit_code = Dispatch(*parsed.command, loop, console);
  console.out.flush();
  // Who has seen enough of the events ends by no longer reading.
  if (parsed.command->verb == Verb::kEvents && exit_code == kOk && ReaderGone()) return kOk;
  // A full disk or a closed pipe must not look like success.
  return console.out ? exit_code : (exit_code == kOk ? kFailed : exit_code);
}

}  // namespace leasehold::cli

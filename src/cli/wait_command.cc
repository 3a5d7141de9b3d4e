// wait: asks the sidecar again until a lease is in a state.
#include <ostream>

#include "base/text.h"
#include "cli/api.h"
#include "cli/commands.h"
#include "loop/timer.h"

namespace leasehold::cli {
namespace {

// Between two questions: short beside any TTL (500 ms at least), and 10 calls a second are nothing.
constexpr base::Duration kPause = base::Duration::Millis(100);

void Pause(loop::Loop& loop, base::Duration d) {
  bool over = false;
  loop::Timer timer(loop, [&] {
    over = true;
    loop.Stop();
  });
  timer.StartAfter(d);
  while (!over) loop.Run();
}

// Holding is part of being active: an answer from just past the expiry does not count.
bool Reached(const ApiAnswer& answer, const std::string& wanted) {
  if (answer.body.String("state") != wanted) return false;
  return wanted != "active" || answer.body.Bool("holding").value_or(true);
}

}  // namespace

int WaitCommand(const CommandLine& command, loop::Loop& loop, Console& console) {
  base::Result<ApiTarget> target = FindApi(command);
  if (!target) return FailWith(console, command.json, target.error());
  Api api(loop, *target);
  const base::MonoTime end = loop::Loop::Now() + command.timeout;
  std::string last = "no answer yet";
  std::string path = command.lease.empty() ? "" : LeasePath(command.lease);
  for (;;) {
    const base::Duration left = end - loop::Loop::Now();
    if (left <= base::Duration::Zero()) break;
    if (path.empty()) {
      // Which lease it is can only be asked once the sidecar answers.
      if (const auto probe = api.Get("/v1/leases", Min(left, Api::kGetTimeout)); probe) {
        int exit_code = kOk;
        const std::string lease = ResolveLease(api, command, console, exit_code);
        if (lease.empty()) return exit_code;
        path = LeasePath(lease);
        continue;
      } else {
        last = Shown(probe.error().message);
      }
    } else if (const auto answer = api.Get(path, Min(left, Api::kGetTimeout)); !answer) {
      last = Shown(answer.error().message);
    } else if (!answer->ok() && answer->status < 500) {
      return FailWith(console, command.json, *answer);
    } else if (Reached(*answer, command.wait_for)) {
      if (command.json) PrintJson(console, *answer);
      return kOk;
    } else {
      last = "it is " + Shown(answer->body.String("state").value_or("in no known state"));
    }
    Pause(loop, Min(kPause, Max(end - loop::Loop::Now(), base::Duration::Millis(1))));
  }
  return Fail(
      console, command.json, kTimedOut, "timeout",
      "not " + command.wait_for + " within " + base::FormatDuration(command.timeout) + ": " + last);
}

}  // namespace leasehold::cli

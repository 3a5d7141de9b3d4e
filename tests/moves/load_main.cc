// moves_load: the client of the move harness: a constant rate of requests over several gates, as a
// load balancer sends them, and a record of what became of each.
//
//   moves_load --targets HOST:PORT,... --rate N --first-id N --out FILE [--timeout SECONDS]
//
// Runs until SIGTERM; then nothing new is sent, what is under way is waited for, and FILE is
// written: a line per request, times in nanoseconds of the boot clock:
//
//   <id> <kind> <gate> <scheduled> <sent> <done> <result> <application> <token> <refused>
//
// result: "ok", "status_503/hold_full" (the status and the problem's type), "reset", "closed",
// "timeout", "refused", "wrong_answer". refused: how many gates had refused the connect before.
// Standard output gets a line a second for whoever waits.
#include <csignal>
#include <cstdio>
#include <string>
#include <string_view>

#include "base/text.h"
#include "loop/signals.h"
#include "moves/load.h"

namespace {

bool Parse(int argc, char** argv, leasehold::moves::LoadOptions* options) {
  namespace base = leasehold::base;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string_view key = argv[i];
    std::string_view value = argv[i + 1];
    const auto number = base::ParseUint64(value);
    if (key == "--targets") {
      while (!value.empty()) {
        const size_t end = value.find(',');
        const auto address = base::ParseAddress(value.substr(0, end));
        if (!address.ok()) return false;
        options->targets.push_back(*address);
        value.remove_prefix(end == std::string_view::npos ? value.size() : end + 1);
      }
    } else if (key == "--out") {
      options->out = value;
    } else if (!number.ok()) {
      return false;
    } else if (key == "--rate") {
      options->rate = *number;
    } else if (key == "--first-id") {
      options->first_id = *number;
    } else if (key == "--timeout") {
      options->timeout = base::Duration::Seconds(static_cast<int64_t>(*number));
    }
  }
  return !options->targets.empty() && options->rate > 0 && !options->out.empty();
}

}  // namespace

int main(int argc, char** argv) {
  leasehold::moves::LoadOptions options;
  if (!Parse(argc, argv, &options)) {
    std::fprintf(stderr,
                 "usage: moves_load --targets HOST:PORT,... --rate N --first-id N --out FILE "
                 "[--timeout SECONDS]\n");
    return 2;
  }
  leasehold::loop::Loop loop;
  int written = 1;
  {
    leasehold::moves::Load load(loop, options);
    auto signals = leasehold::loop::Signals::Watch(loop, {SIGTERM, SIGINT},
                                                   [&](int) { load.Finish([&] { loop.Stop(); }); });
    load.Start();
    loop.Run();
    written = load.WriteRecord() ? 0 : 1;
  }
  return written;
}

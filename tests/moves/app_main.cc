// moves_app: the application of the move harness. It does not know of leases; it writes down what
// reaches it.
//
//   moves_app --name a --log FILE [--port N] [--fence FILE] [--unready FILE] [--lines yes|PORT]
//
// Prints "port N" ("lines N" before it, with --lines) and serves until it is ended. --fence: what
// it executes goes to a resource behind a fence (fence.h), which all that name the file share.
// --unready: while the file is there it says that it is not ready. Every application of a run
// appends to the same log, one line in one write, so that the order of lines is the order in which
// things happened:
//
//   B <boot ns> <name> <id> <token> <sequence> <process> <arrived>  the head of the request is here
//   E ...   the request is whole and right, and is done
//   W ...   the same: whole, but not what belongs to its id
//   F ...   whole, and refused by the fence: not done; the answer is 409
//   T ...   a line over raw TCP
//
// process: the holder's, of Lease-Holder. arrived: when the kernel had the last of it (boot ns, to
// a kernel tick), which is the sidecar's doing; the first time is when this process came to write
// it down. A line is written before the first byte of the answer.
#include <cstdio>
#include <string>
#include <string_view>
#include <utility>

#include "base/text.h"
#include "moves/app_server.h"

namespace {

bool Parse(int argc, char** argv, leasehold::moves::AppOptions* options) {
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string_view key = argv[i];
    const std::string_view value = argv[i + 1];
    const auto number = leasehold::base::ParseUint64(value);
    const uint16_t port = number.ok() ? static_cast<uint16_t>(*number) : uint16_t{0};
    if (key == "--name") options->name = value;
    if (key == "--log") options->log = value;
    if (key == "--fence") options->fence = value;
    if (key == "--unready") options->unready = value;
    if (key == "--port") options->port = port;
    if (key == "--lines") {
      options->lines = true;
      options->lines_port = port;
    }
  }
  return !options->name.empty() && !options->log.empty();
}

// False, and said why: it cannot listen.
bool Told(const char* what, const leasehold::base::Result<uint16_t>& port) {
  if (!port.ok()) {
    std::fprintf(stderr, "moves_app: %s\n", port.error().message.c_str());
    return false;
  }
  std::printf("%s %d\n", what, static_cast<int>(*port));
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  leasehold::moves::AppOptions options;
  if (!Parse(argc, argv, &options)) {
    std::fprintf(stderr,
                 "usage: moves_app --name NAME --log FILE [--port N] [--fence FILE] "
                 "[--unready FILE] [--lines yes|PORT]\n");
    return 2;
  }
  const bool lines = options.lines;
  leasehold::loop::Loop loop;
  leasehold::moves::AppServer server(loop, std::move(options));
  if (lines && !Told("lines", server.ListenForLines())) return 1;
  if (!Told("port", server.Listen())) return 1;
  std::fflush(stdout);
  loop.Run();
  return 0;
}

// moves_app: the application of the move harness. It does not know of leases; it writes down what
// reaches it.
//
//   moves_app --name a --log FILE
//
// Prints "port N" and serves until it is ended. Every application of a run appends to the same log,
// one line in one write, so that the order of lines is the order in which things happened:
//
//   B <boot ns> <name> <id> <token> <sequence>   the head of the request is here
//   E <boot ns> <name> <id> <token> <sequence>   the request is whole and right, and is done
//   W ... the same: whole, but not what belongs to its id
//
// A line is written before the first byte of the answer.
#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <string>
#include <string_view>

#include "moves/app_server.h"

int main(int argc, char** argv) {
  std::string name, log;
  for (int i = 1; i + 1 < argc; i += 2) {
    if (std::string_view(argv[i]) == "--name") name = argv[i + 1];
    if (std::string_view(argv[i]) == "--log") log = argv[i + 1];
  }
  if (name.empty() || log.empty()) {
    std::fprintf(stderr, "usage: moves_app --name NAME --log FILE\n");
    return 2;
  }
  const int fd = open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (fd < 0) {
    std::perror(log.c_str());
    return 1;
  }
  leasehold::loop::Loop loop;
  leasehold::moves::AppServer server(loop, name, fd);
  const auto port = server.Listen();
  if (!port.ok()) {
    std::fprintf(stderr, "moves_app: %s\n", port.error().message.c_str());
    return 1;
  }
  std::printf("port %d\n", static_cast<int>(*port));
  std::fflush(stdout);
  loop.Run();
  return 0;
}

// sqs_upstream: the SQS that the bench puts behind the proxies (sqs_upstream.h).
//
//   sqs_upstream ACCESS_KEY_ID SECRET
//
// Prints "open PORT" (anybody may ask) and "signed PORT" (requests must be signed with that key),
// and serves until it is ended. The key is the bench's own, and of no use anywhere else.
#include <cstdio>

#include "loop/loop.h"
#include "sqs_upstream.h"

namespace {

bool Told(const char* what, const leasehold::base::Result<uint16_t>& port) {
  if (!port.ok()) {
    std::fprintf(stderr, "sqs_upstream: %s\n", port.error().message.c_str());
    return false;
  }
  std::printf("%s %d\n", what, static_cast<int>(*port));
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: sqs_upstream ACCESS_KEY_ID SECRET\n");
    return 2;
  }
  leasehold::loop::Loop loop;
  leasehold::bench::SqsUpstream upstream(loop, {.id = argv[1], .secret = argv[2]});
  if (!Told("open", upstream.Listen(false)) || !Told("signed", upstream.Listen(true))) return 1;
  std::fflush(stdout);
  loop.Run();
  return 0;
}

// The program `leasehold`. Everything it does is in cli.
#include <cstdio>
#include <cstdlib>

#include "cli/cli.h"

int main(int argc, char** argv) {
  const int exit_code = leasehold::cli::Main(argc, argv);
  // exit() would join libuv's workers, and one of them may sit in a name look-up or a dead disk for
  // minutes.
  std::fflush(nullptr);
  std::_Exit(exit_code);
}

#include "loop/watchdog.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <new>
#include <utility>

#include "base/check.h"
#include "loop/socket_address.h"
#include "loop/watchdog_process.h"
#include "loop/watchdog_words.h"

namespace leasehold::loop {
namespace {

constexpr const char* kCannot = "cannot start the watchdog of the command";

WatchdogShared* MapShared() {
  void* memory = mmap(nullptr, sizeof(WatchdogShared), PROT_READ | PROT_WRITE,
                      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  return memory == MAP_FAILED ? nullptr : new (memory) WatchdogShared;
}

void Unmap(WatchdogShared* shared) { munmap(shared, sizeof(WatchdogShared)); }

}  // namespace

Watchdog::Watchdog(WatchdogOptions options, int pid, int socket, WatchdogShared* shared)
    : options_(std::move(options)), pid_(pid), socket_(socket), shared_(shared) {}

base::Result<std::unique_ptr<Watchdog>> Watchdog::Fork(WatchdogOptions options) {
  CHECK(!options.argv.empty(), "a watchdog has a command to watch");
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) != 0) {
    return SystemError(kCannot, errno);
  }
  WatchdogShared* shared = MapShared();
  const int map_error = errno;
  // Blocked across the fork, so that no signal finds the watchdog before it is ready for it.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  sigprocmask(SIG_SETMASK, &all, &before);
  const int pid = shared == nullptr ? -1 : fork();
  const int error = shared == nullptr ? map_error : errno;
  if (pid == 0) {
    close(ends[0]);
    WatchdogProcess(options, ends[1], *shared, before).Run();
    std::_Exit(0);
  }
  sigprocmask(SIG_SETMASK, &before, nullptr);
  close(ends[1]);
  if (pid < 0) {
    close(ends[0]);
    if (shared != nullptr) Unmap(shared);
    return SystemError(kCannot, error);
  }
  return std::unique_ptr<Watchdog>(new Watchdog(std::move(options), pid, ends[0], shared));
}

Watchdog::~Watchdog() {
  close(socket_);
  Unmap(shared_);
  Reap();
}

void Watchdog::EndIt() {
  if (!status_) kill(pid_, SIGKILL);
}

bool Watchdog::Reap() {
  int status = 0;
  if (!status_ && waitpid(pid_, &status, WNOHANG) == pid_) status_ = status;
  return status_.has_value();
}

std::string Watchdog::HowItEnded() const {
  if (!status_) return "it closed its end";
  if (WIFSIGNALED(*status_)) return "it was ended by signal " + std::to_string(WTERMSIG(*status_));
  return "it ended with exit code " + std::to_string(WEXITSTATUS(*status_));
}

}  // namespace leasehold::loop

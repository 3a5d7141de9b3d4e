#include "loop/watchdog_process.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "loop/loop.h"
#include "loop/process_tree.h"

extern char** environ;

namespace leasehold::loop {
namespace {

using base::Duration;
using base::MonoTime;

// From one round of KILLs to the next, doubling: what was forked meanwhile is found soon, and a
// process that the kernel cannot end (a dead disk) does not keep a core busy.
constexpr Duration kKillPauseFirst = Duration::Millis(2);
constexpr Duration kKillPauseMax = Duration::Millis(500);

constexpr int kNotExecuted = 127;  // what a shell says of a command that could not be started

void CloseFd(int& fd) {
  if (fd >= 0) close(std::exchange(fd, -1));
}

void Drain(int fd) {
  std::array<char, 1024> ignored;
  while (read(fd, ignored.data(), ignored.size()) > 0) {
  }
}

}  // namespace

WatchdogProcess::WatchdogProcess(const WatchdogOptions& options, int socket, WatchdogShared& shared,
                                 const sigset_t& command_mask)
    : options_(options),
      shared_(shared),
      command_mask_(command_mask),
      own_pid_(getpid()),
      in_background_(isatty(STDIN_FILENO) == 1 && tcgetpgrp(STDIN_FILENO) != getpgrp()),
      socket_(socket) {}

void WatchdogProcess::Run() {
  setsid();
  prctl(PR_SET_NAME, "leasehold-guard");  // 15 bytes at most; not killed by the program's name
  // What loses its parent becomes our child, so that "no child" means "nothing is left".
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  if (!OpenDescriptors()) return;  // the sidecar sees our end
  while (socket_ >= 0 || alive()) {
    WaitForNews();
    if (socket_ >= 0) ReadOrders();
    ReadStartResult();
    Reap();
    Enforce();
  }
}

bool WatchdogProcess::OpenDescriptors() {
  sigset_t child;
  sigemptyset(&child);
  sigaddset(&child, SIGCHLD);
  signals_ = signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK);
  timer_ = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
  return signals_ >= 0 && timer_ >= 0;
}

void WatchdogProcess::WaitForNews() {
  const MonoTime deadline = NextDeadline();
  itimerspec at{};  // zero: disarmed
  if (!deadline.is_never()) {
    const int64_t ns = std::max<int64_t>(deadline.nanos(), 1);
    at.it_value.tv_sec = ns / 1000000000;
    at.it_value.tv_nsec = ns % 1000000000;
  }
  timerfd_settime(timer_, TFD_TIMER_ABSTIME, &at, nullptr);
  std::array<pollfd, 4> fds = {{{socket_, POLLIN, 0},
                                {signals_, POLLIN, 0},
                                {timer_, POLLIN, 0},
                                {start_result_, POLLIN, 0}}};  // negative ones are passed over
  poll(fds.data(), fds.size(), -1);
  Drain(signals_);
  Drain(timer_);
}

MonoTime WatchdogProcess::NextDeadline() const {
  if (!alive()) return MonoTime::Never();
  return killing_ ? next_kill_ : base::Min(kill_at_, LastMoment());
}

MonoTime WatchdogProcess::LastMoment() const {
  return MonoTime::FromNanos(shared_.expiry_ns.load()) - kKillBeforeExpiry;
}

// ---- the sidecar's orders ----

void WatchdogProcess::ReadOrders() {
  while (socket_ >= 0 && ReadOrder()) {
  }
}

// False when there is none.
bool WatchdogProcess::ReadOrder() {
  std::array<char, kOrderBytesMax> bytes;
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int) * kKeptDescriptorsMax)> control;
  iovec part{bytes.data(), bytes.size()};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  const ssize_t n = recvmsg(socket_, &message, MSG_CMSG_CLOEXEC);
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) return false;
  if (n < static_cast<ssize_t>(sizeof(WatchdogOrder))) {
    SidecarGone();
    return false;
  }
  for (cmsghdr* each = CMSG_FIRSTHDR(&message); each != nullptr;
       each = CMSG_NXTHDR(&message, each)) {
    if (each->cmsg_level != SOL_SOCKET || each->cmsg_type != SCM_RIGHTS) continue;
    std::vector<int> fds((each->cmsg_len - CMSG_LEN(0)) / sizeof(int));
    std::memcpy(fds.data(), CMSG_DATA(each), fds.size() * sizeof(int));
    KeepDescriptors(fds);
  }
  WatchdogOrder order;
  std::memcpy(&order, bytes.data(), sizeof order);
  Obey(order, std::string(bytes.data() + sizeof order, static_cast<size_t>(n) - sizeof order));
  return true;
}

void WatchdogProcess::KeepDescriptors(const std::vector<int>& fds) {
  kept_.insert(kept_.end(), fds.begin(), fds.end());
}

void WatchdogProcess::Obey(const WatchdogOrder& order, const std::string& environment) {
  switch (order.kind) {
    case WatchdogOrder::kStart: return StartCommand(environment);
    case WatchdogOrder::kTerminate: return Terminate(MonoTime::FromNanos(order.at_ns));
    case WatchdogOrder::kKill:
      if (alive()) BeginKilling(WatchdogReport::kKilled);
      return;
    case WatchdogOrder::kLook: return;  // Enforce does it, after every message
  }
}

void WatchdogProcess::SidecarGone() {
  CloseFd(socket_);
  if (!alive()) return;
  told_gone_ = !killing_;
  Terminate(Loop::Now() + options_.stop_timeout);
  if (told_gone_) {
    Say("exec.orphaned", "the sidecar is gone; its command is told to end, and killed in time");
  }
}

// ---- the command ----

void WatchdogProcess::StartCommand(const std::string& environment) {
  int error = 0;
  int ends[2] = {-1, -1};
  pollfd sidecar{socket_, 0, 0};
  if (alive()) error = EBUSY;
  if (error == 0 && Loop::Now() >= LastMoment()) error = ETIME;
  // A sidecar that died after it gave the order does not hold for long.
  if (error == 0 && poll(&sidecar, 1, 0) > 0 && (sidecar.revents & POLLHUP) != 0) error = EPIPE;
  if (error == 0 && pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) error = errno;
  const pid_t pid = error == 0 ? fork() : -1;
  if (pid == 0) BecomeCommand(environment, ends[1]);
  if (pid < 0 && error == 0) error = errno;
  CloseFd(ends[1]);
  if (error != 0) {
    CloseFd(ends[0]);
    if (!alive()) {
      for (int& fd : kept_) CloseFd(fd);
      kept_.clear();
    }
    return Report(WatchdogReport::kStartFailed, error);
  }
  setpgid(pid, pid);  // by both sides: whoever comes first
  command_ = pid;
  shared_.group.store(pid);
  start_result_ = ends[0];
  start_error_ = status_ = 0;
  exited_ = told_rest_ = killing_ = false;
  cause_ = WatchdogReport::kItself;
  kill_at_ = MonoTime::Never();
}

void WatchdogProcess::BecomeCommand(const std::string& environment, int failure) {
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != own_pid_) std::_Exit(kNotExecuted);  // it died before that
  for (const int fd : kept_) fcntl(fd, F_SETFD, 0);
  // Outside of the terminal's session no SIGTTIN would keep it from taking what is typed there.
  if (in_background_) {
    const int none = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (none >= 0) dup2(none, STDIN_FILENO);
  }
  std::vector<std::string> added;
  for (size_t at = 0; at < environment.size(); at += added.back().size() + 1) {
    added.emplace_back(environment.c_str() + at);
  }
  std::vector<char*> env;
  env.reserve(added.size());
  for (std::string& entry : added) env.push_back(entry.data());
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string name(*entry, std::strcspn(*entry, "="));
    const bool replaced = std::any_of(added.begin(), added.end(), [&](const std::string& text) {
      return text.starts_with(name + "=");
    });
    if (!replaced) env.push_back(*entry);
  }
  env.push_back(nullptr);
  std::vector<std::string> words = options_.argv;
  std::vector<char*> argv;
  argv.reserve(words.size() + 1);
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  sigprocmask(SIG_SETMASK, &command_mask_, nullptr);
  execvpe(argv[0], argv.data(), env.data());
  const int error = errno;
  (void)!write(failure, &error, sizeof error);
  std::_Exit(kNotExecuted);
}

void WatchdogProcess::ReadStartResult() {
  if (start_result_ < 0) return;
  int error = 0;
  const ssize_t n = read(start_result_, &error, sizeof error);
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
  CloseFd(start_result_);
  if (n == static_cast<ssize_t>(sizeof error)) {
    start_error_ = error;  // told when it is reaped
  } else {
    Report(WatchdogReport::kStarted, command_);
  }
}

void WatchdogProcess::Reap() {
  int status = 0;
  pid_t pid = 0;
  while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
    if (pid == command_ && !exited_) CommandExited(status);
  }
  const bool nothing_left = pid < 0 && errno == ECHILD;
  if (alive() && exited_) NoteGroup();
  if (alive() && exited_ && nothing_left) return AllEnded();
  if (alive() && exited_ && !killing_ && !std::exchange(told_rest_, true)) TerminateRest();
}

void WatchdogProcess::CommandExited(int status) {
  ReadStartResult();
  exited_ = true;
  status_ = status;
  NoteGroup();
  if (start_error_ == 0) Report(WatchdogReport::kExited, status);
}

void WatchdogProcess::AllEnded() {
  shared_.group.store(0);
  // Before the report: who is told may give the locks away.
  for (int& fd : kept_) CloseFd(fd);
  kept_.clear();
  CloseFd(start_result_);
  command_ = 0;
  if (start_error_ != 0) {
    Report(WatchdogReport::kStartFailed, start_error_);
  } else {
    Report(WatchdogReport::kEnded, status_);
  }
  if (told_gone_) Say("exec.ended", "nothing of the command is left");
}

// ---- ending it ----

// A stopped command is continued, or it could not act on the TERM.
void WatchdogProcess::Terminate(MonoTime kill_at) {
  if (!alive() || killing_) return;
  const bool first = cause_ == WatchdogReport::kItself && !exited_;
  kill_at_ = base::Min(kill_at_, kill_at);
  if (!first) return;
  cause_ = WatchdogReport::kTerminated;
  SignalGroup(SIGTERM);
  SignalGroup(SIGCONT);
}

// What a command left behind. In its group, an ordered TERM was told to it already, and some take a
// second one for impatience.
void WatchdogProcess::TerminateRest() {
  kill_at_ = base::Min(kill_at_, Loop::Now() + options_.stop_timeout);
  const pid_t group = shared_.group.load();
  for (const pid_t pid : DescendantsOf(own_pid_)) {
    if (cause_ == WatchdogReport::kItself || getpgid(pid) != group) kill(pid, SIGTERM);
  }
}

void WatchdogProcess::Enforce() {
  if (!alive()) return;
  const MonoTime now = Loop::Now();
  if (!killing_ && now >= LastMoment()) {
    // Zero comes with an ordered KILL whose order has not been read yet.
    const bool ordered = shared_.expiry_ns.load() == 0;
    BeginKilling(ordered ? WatchdogReport::kKilled : WatchdogReport::kExpired);
  }
  if (!killing_ && now >= kill_at_) BeginKilling(WatchdogReport::kKilled);
  if (!killing_ || now < next_kill_) return;
  SignalAll(SIGKILL);
  next_kill_ = now + kill_pause_;
  kill_pause_ = base::Min(kill_pause_ * 2, kKillPauseMax);
}

void WatchdogProcess::BeginKilling(WatchdogReport::Cause cause) {
  if (!std::exchange(killing_, true)) {
    if (!exited_) cause_ = cause;
    kill_pause_ = kKillPauseFirst;
  }
  SignalGroup(SIGKILL);  // the most at once; the rest is looked for by Enforce
  next_kill_ = MonoTime();
}

void WatchdogProcess::SignalGroup(int signal) {
  NoteGroup();
  const pid_t group = shared_.group.load();
  if (group > 0) kill(-group, signal);
}

void WatchdogProcess::SignalAll(int signal) {
  SignalGroup(signal);
  for (const pid_t pid : DescendantsOf(own_pid_)) kill(pid, signal);
}

// The command's number names its group only while somebody is in it.
void WatchdogProcess::NoteGroup() {
  const pid_t group = shared_.group.load();
  if (group > 0 && exited_ && kill(-group, 0) != 0 && errno == ESRCH) shared_.group.store(0);
}

// ---- telling ----

void WatchdogProcess::Report(WatchdogReport::Kind kind, int value) {
  if (socket_ < 0) return;
  const WatchdogReport report{kind, value, cause_};
  // A sidecar that is gone shows when its orders are read.
  (void)!send(socket_, &report, sizeof report, MSG_NOSIGNAL | MSG_DONTWAIT);
}

void WatchdogProcess::Say(std::string_view event, std::string_view message) {
  if (options_.say) options_.say(event, message);
}

}  // namespace leasehold::loop

#include "loop/guarded_child.h"

#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <uv.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/check.h"
#include "loop/lifetime.h"
#include "loop/poller.h"
#include "loop/process_tree.h"
#include "loop/timer.h"
#include "loop/watchdog_words.h"

namespace leasehold::loop {
namespace {

using base::Duration;
using base::MonoTime;

// A watchdog that lives answers within milliseconds; one that was stopped never does. Longer than
// the execution of a program from a slow disk takes, and a kernel needs to end a large process.
constexpr Duration kAnswerTimeout = Duration::Seconds(10);
// After its death: rounds of KILL to what is left, a few milliseconds apart for what forks.
constexpr int kKillRounds = 20;
constexpr Duration kKillPause = Duration::Millis(5);

std::string WhyNotStarted(const std::string& command, int error) {
  const std::string what = "cannot start \"" + command + "\": ";
  switch (error) {
    case ETIME: return what + "the permit was over before it could be started";
    case EPIPE: return what + "the sidecar is gone";
    case ENOENT:
      return what +
             "there is no such file, nor the interpreter that it names; give a path, or a "
             "command found in PATH";
    case EACCES: return what + "it is not executable by this user";
    default: return what + std::strerror(error);
  }
}

GuardedExit ToExit(const WatchdogReport& report) {
  GuardedExit exit;
  if (WIFSIGNALED(report.value)) {
    exit.signal = WTERMSIG(report.value);
  } else {
    exit.code = WEXITSTATUS(report.value);
  }
  switch (report.cause) {
    case WatchdogReport::kItself: exit.cause = GuardedExit::Cause::kItself; break;
    case WatchdogReport::kTerminated: exit.cause = GuardedExit::Cause::kTerminated; break;
    case WatchdogReport::kKilled: exit.cause = GuardedExit::Cause::kKilled; break;
    case WatchdogReport::kExpired: exit.cause = GuardedExit::Cause::kExpired; break;
  }
  return exit;
}

}  // namespace

class GuardedChild::Impl {
 public:
  Impl(Loop& loop, Watchdog& watchdog, Callbacks callbacks)
      : watchdog_(watchdog), callbacks_(std::move(callbacks)), timer_(loop, [this] { OnTimer(); }) {
    const int error = poller_.Open(loop, watchdog.socket(), this, [](void* self, int, int) {
      static_cast<Impl*>(self)->ReadReports();
    });
    CHECK(error == 0, "a fresh socket can be watched");
    poller_.Watch(UV_READABLE);
  }

  ~Impl() {
    CallGuard::MarkGone(gone_);
    Kill();
  }

  base::Status Start(const std::map<std::string, std::string>& env, const std::string& marker,
                     const std::vector<int>& keep_open, MonoTime expiry);

  void SetExpiry(MonoTime expiry) {
    if (killed_) return;
    // It wakes up at the end it knew and looks again: only an earlier one needs a word.
    if (watchdog_.shared().expiry_ns.exchange(expiry.nanos()) > expiry.nanos() && alive_) {
      Send({WatchdogOrder::kLook, 0}, "", {});
    }
  }

  void Terminate(MonoTime kill_at) {
    if (!alive_ || lost_) return;
    Send({WatchdogOrder::kTerminate, kill_at.nanos()}, "", {});
  }

  void Kill() {
    if (!alive_) return;
    killed_ = true;
    Send({WatchdogOrder::kKill, 0}, "", {});
    watchdog_.shared().expiry_ns.store(0);
    // The watchdog does it too; but one that is stopped or late is not waited for.
    KillGroup();
    if (!lost_) KillDescendants();
    if (!lost_ && !timer_.armed()) timer_.StartAfter(kAnswerTimeout);
  }

  bool alive() const { return alive_; }
  bool lost() const { return lost_; }
  int pid() const { return pid_; }

 private:
  bool Send(const WatchdogOrder& order, std::string_view text, const std::vector<int>& fds);
  void ReadReports();
  bool ReadReport();
  void OnReport(const WatchdogReport& report);
  void OnTimer();
  void Lose(const std::string& why);
  void KillRest();
  bool KillWhatIsLeft();

  void KillGroup() {
    const pid_t group = watchdog_.shared().group.load();
    if (group > 0) kill(-group, SIGKILL);
  }

  // Also who left the group: the watchdog adopts them, and is not reaped while it is not lost.
  void KillDescendants() {
    for (const pid_t pid : DescendantsOf(watchdog_.pid())) kill(pid, SIGKILL);
  }

  // Our own KILL may have come before the watchdog had read the order for it.
  GuardedExit Judge(const WatchdogReport& report) const {
    GuardedExit exit = ToExit(report);
    if (killed_ && exit.cause == GuardedExit::Cause::kItself) {
      exit.cause = GuardedExit::Cause::kKilled;
    }
    return exit;
  }

  void Ended() {
    alive_ = false;
    pid_ = 0;
    timer_.Stop();
  }

  Watchdog& watchdog_;
  const Callbacks callbacks_;
  Poller poller_;
  Timer timer_;  // the watchdog's answer; once it is lost: the next round of KILLs
  bool alive_ = false;
  bool lost_ = false;
  bool killed_ = false;  // since its start
  int pid_ = 0;
  std::string marker_;
  std::string lost_why_;
  int rounds_left_ = 0;
  bool* gone_ = nullptr;
};

base::Status GuardedChild::Impl::Start(const std::map<std::string, std::string>& env,
                                       const std::string& marker, const std::vector<int>& keep_open,
                                       MonoTime expiry) {
  CHECK(!alive_, "one command at a time");
  const std::string& command = watchdog_.options().argv[0];
  if (lost_) {
    return base::Error{base::ErrorCode::kClosed,
                       "cannot start \"" + command + "\": its watchdog is gone"};
  }
  std::string text;
  for (const auto& [name, value] : env) text.append(name).append("=").append(value).push_back('\0');
  if (sizeof(WatchdogOrder) + text.size() > kOrderBytesMax ||
      keep_open.size() > kKeptDescriptorsMax) {
    return base::Error{base::ErrorCode::kLimit,
                       "cannot start \"" + command + "\": what it is to be given is too much"};
  }
  killed_ = false;
  SetExpiry(expiry);
  if (!Send({WatchdogOrder::kStart, 0}, text, keep_open)) {
    return base::Error{base::ErrorCode::kUnavailable,
                       "cannot start \"" + command + "\": its watchdog does not listen"};
  }
  alive_ = true;
  const auto entry = env.find(marker);
  marker_ = entry == env.end() ? "" : entry->first + "=" + entry->second;
  timer_.StartAfter(kAnswerTimeout);
  return {};
}

// False if the watchdog is gone, or does not read: a timer or its socket says so soon.
bool GuardedChild::Impl::Send(const WatchdogOrder& order, std::string_view text,
                              const std::vector<int>& fds) {
  std::string bytes(reinterpret_cast<const char*>(&order), sizeof order);
  bytes.append(text);
  iovec part{bytes.data(), bytes.size()};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int) * kKeptDescriptorsMax)> control{};
  if (!fds.empty()) {
    const size_t size = fds.size() * sizeof(int);
    message.msg_control = control.data();
    message.msg_controllen = CMSG_SPACE(size);
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(size);
    std::memcpy(CMSG_DATA(header), fds.data(), size);
  }
  return sendmsg(watchdog_.socket(), &message, MSG_NOSIGNAL | MSG_DONTWAIT) ==
         static_cast<ssize_t>(bytes.size());
}

void GuardedChild::Impl::ReadReports() {
  const CallGuard guard(gone_);
  while (!guard.gone() && !lost_ && ReadReport()) {
  }
}

// False when there is none. May end with this object gone.
bool GuardedChild::Impl::ReadReport() {
  WatchdogReport report;
  const ssize_t n = recv(watchdog_.socket(), &report, sizeof report, 0);
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
    poller_.Watch(UV_READABLE);  // an error status had stopped it
    return false;
  }
  if (n != static_cast<ssize_t>(sizeof report)) {
    Lose("is gone");
    return false;
  }
  OnReport(report);
  return true;
}

void GuardedChild::Impl::OnReport(const WatchdogReport& report) {
  switch (report.kind) {
    case WatchdogReport::kStarted:
      pid_ = report.value;
      if (!killed_) timer_.Stop();  // else it waits for the end
      return callbacks_.on_started(pid_);
    case WatchdogReport::kStartFailed:
      Ended();
      return callbacks_.on_start_failed(WhyNotStarted(watchdog_.options().argv[0], report.value));
    case WatchdogReport::kExited: return callbacks_.on_exit(Judge(report));
    case WatchdogReport::kEnded: Ended(); return callbacks_.on_end(Judge(report));
  }
}

void GuardedChild::Impl::OnTimer() {
  if (lost_) return KillRest();
  watchdog_.EndIt();
  Lose("did not answer within " + std::to_string(kAnswerTimeout.millis() / 1000) +
       " s and was told to end");
}

void GuardedChild::Impl::Lose(const std::string& why) {
  lost_ = true;
  poller_.Close();
  KillGroup();
  lost_why_ = why;
  rounds_left_ = kKillRounds;
  timer_.StartAfter(Duration::Zero());
}

// The group and, by their environment, those who left it. The command itself died with its parent.
// The watchdog's own end is known a little after its socket's.
void GuardedChild::Impl::KillRest() {
  const bool ran = alive_;
  const bool left = ran && KillWhatIsLeft();
  if ((!watchdog_.Reap() || left) && --rounds_left_ > 0) return timer_.StartAfter(kKillPause);
  watchdog_.shared().group.store(0);
  Ended();
  std::string why = "the watchdog of the command " + lost_why_ + ": " + watchdog_.HowItEnded();
  if (ran) {
    why += left ? "; not all of the command has ended yet, although it was killed"
                : "; nothing of the command is left";
  }
  callbacks_.on_lost(why, ran);
}

// False when nothing was.
bool GuardedChild::Impl::KillWhatIsLeft() {
  KillGroup();
  const pid_t group = watchdog_.shared().group.load();
  std::vector<pid_t> left = group > 0 ? MembersOf(group) : std::vector<pid_t>();
  if (left.empty()) watchdog_.shared().group.store(0);  // its number is anybody's from now on
  if (!marker_.empty()) {
    for (const pid_t pid : WithEnvironment(marker_)) {
      kill(pid, SIGKILL);
      left.push_back(pid);
    }
  }
  return !left.empty();
}

GuardedChild::GuardedChild(Loop& loop, Watchdog& watchdog, Callbacks callbacks)
    : impl_(std::make_unique<Impl>(loop, watchdog, std::move(callbacks))) {}
GuardedChild::~GuardedChild() = default;

base::Status GuardedChild::Start(const std::map<std::string, std::string>& env,
                                 const std::string& marker, const std::vector<int>& keep_open,
                                 MonoTime expiry) {
  return impl_->Start(env, marker, keep_open, expiry);
}
void GuardedChild::SetExpiry(MonoTime expiry) { impl_->SetExpiry(expiry); }
void GuardedChild::Terminate(MonoTime kill_at) { impl_->Terminate(kill_at); }
void GuardedChild::Kill() { impl_->Kill(); }
bool GuardedChild::alive() const { return impl_->alive(); }
bool GuardedChild::lost() const { return impl_->lost(); }
int GuardedChild::pid() const { return impl_->pid(); }

}  // namespace leasehold::loop

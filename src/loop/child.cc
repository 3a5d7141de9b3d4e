#include "loop/child.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>
#include <uv.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <string_view>
#include <utility>

#include "loop/lifetime.h"
#include "loop/poller.h"
#include "loop/socket_address.h"
#include "loop/timer.h"

extern char** environ;

namespace leasehold::loop {
namespace {

constexpr size_t kReadBytes = 4096;
constexpr int kPipeReads = 64 * 1024 / kReadBytes;  // 64 KiB: a pipe's capacity, pipe(7)

class ChildImpl;

// libuv's side of a child: stays until the kernel reported its exit, also when the Child is gone,
// because nobody else would reap it.
struct Process {
  uv_process_t handle{};
  Loop* loop = nullptr;
  ChildImpl* child = nullptr;

  static void Close(Process* self) {
    uv_close(reinterpret_cast<uv_handle_t*>(&self->handle),
             [](uv_handle_t* closed) { delete static_cast<Process*>(closed->data); });
  }
  static void OnExit(uv_process_t* handle, int64_t code, int signal);
};

class ChildImpl final : public Child {
 public:
  ChildImpl(Loop& loop, const ChildOptions& options, std::function<void(const ChildExit&)> on_exit)
      : loop_(loop),
        output_bytes_max_(options.output_bytes_max),
        output_keep_last_(options.output_keep_last),
        on_exit_(std::move(on_exit)),
        timer_(loop, [this] { OnTimeout(); }) {}

  ~ChildImpl() override {
    CloseOutput();
    if (process_ == nullptr) return;
    process_->child = nullptr;
    Signal(SIGKILL);
  }

  base::Status Start(const ChildOptions& options);
  int pid() const override { return pid_; }

  void Signal(int signal) override {
    // Only while the child is not reaped: afterwards its number may be somebody else's.
    if (process_ != nullptr) kill(-pid_, signal);
  }

  void OnExit(int64_t code, int signal) {
    process_ = nullptr;
    timer_.Stop();
    // What a pipe can hold, and no more: a grandchild may still be writing, for ever.
    for (int reads = 0; reads < kPipeReads && ReadOutput(); ++reads) {
    }
    CloseOutput();
    exit_.code = signal == 0 ? static_cast<int>(code) : -1;
    exit_.signal = signal;
    const std::function<void(const ChildExit&)> on_exit = std::move(on_exit_);
    const ChildExit exit = std::move(exit_);
    on_exit(exit);  // may destroy this object
  }

 private:
  base::Status Spawn(const ChildOptions& options, int output);
  base::Status WatchOutput(int fd);

  void OnTimeout() {
    exit_.timed_out = true;
    Signal(SIGKILL);  // the exit is reported when the kernel has reaped it
  }

  // True while there may be more at once. What is over the limit is read and dropped, so that a
  // talkative child does not block.
  bool ReadOutput() {
    if (output_ < 0) return false;
    std::array<char, kReadBytes> buffer;
    const ssize_t n = read(output_, buffer.data(), buffer.size());
    if (n > 0) {
      Keep({buffer.data(), static_cast<size_t>(n)});
      return true;
    }
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) return false;
    CloseOutput();
    return false;
  }

  void Keep(std::string_view said) {
    std::string& output = exit_.output;
    if (!output_keep_last_) {
      output.append(said.substr(0, output_bytes_max_ - std::min(output_bytes_max_, output.size())));
      return;
    }
    output.append(said);
    if (output.size() > output_bytes_max_) output.erase(0, output.size() - output_bytes_max_);
  }

  void CloseOutput() {
    poller_.Close();
    if (output_ >= 0) close(std::exchange(output_, -1));
  }

  Loop& loop_;
  size_t output_bytes_max_;
  bool output_keep_last_;
  std::function<void(const ChildExit&)> on_exit_;
  Timer timer_;
  Poller poller_;
  ChildExit exit_;
  Process* process_ = nullptr;
  int pid_ = 0;
  int output_ = -1;  // our end of the pipe both outputs go into
};

void Process::OnExit(uv_process_t* handle, int64_t code, int signal) {
  auto* self = static_cast<Process*>(handle->data);
  self->loop->NoteWake();
  ChildImpl* child = self->child;
  Close(self);
  if (child != nullptr) child->OnExit(code, signal);
}

// Our environment with the additions, which win.
std::vector<std::string> Environment(const std::map<std::string, std::string>& added) {
  std::vector<std::string> result;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    if (!added.contains(text.substr(0, text.find('=')))) result.push_back(text);
  }
  for (const auto& [name, value] : added)
    result.push_back(std::string(name).append("=").append(value));
  return result;
}

std::vector<char*> Pointers(std::vector<std::string>& strings) {
  std::vector<char*> result;
  result.reserve(strings.size() + 1);
  for (std::string& string : strings) result.push_back(string.data());
  result.push_back(nullptr);
  return result;
}

base::Status ChildImpl::Start(const ChildOptions& options) {
  int fds[2];
  if (pipe2(fds, O_CLOEXEC) != 0) {
    return SystemError("cannot start \"" + options.argv[0] + "\"", errno);
  }
  base::Status status = WatchOutput(fds[0]);
  if (status.ok()) status = Spawn(options, fds[1]);
  close(fds[1]);
  if (status.ok() && options.timeout > base::Duration::Zero()) timer_.StartAfter(options.timeout);
  return status;
}

base::Status ChildImpl::WatchOutput(int fd) {
  output_ = fd;
  fcntl(fd, F_SETFL, O_NONBLOCK);
  const int error = poller_.Open(loop_, fd, this, [](void* self, int, int) {
    auto* child = static_cast<ChildImpl*>(self);
    if (!child->ReadOutput() || child->output_ < 0) return;
    child->poller_.Watch(UV_READABLE);  // an error status had stopped it
  });
  if (error != 0) return SystemError("cannot watch a child's output", -error);
  poller_.Watch(UV_READABLE);
  return {};
}

const char* Remedy(int error) {
  switch (error) {
    case ENOENT: return " (give a path, or a command found in PATH)";
    case EACCES: return " (make it executable for this user: chmod +x)";
    default: return "";
  }
}

base::Status ChildImpl::Spawn(const ChildOptions& options, int output) {
  std::vector<std::string> argv = options.argv;
  std::vector<std::string> env = Environment(options.env);
  std::vector<char*> argv_pointers = Pointers(argv);
  std::vector<char*> env_pointers = Pointers(env);
  uv_stdio_container_t stdio[3];
  stdio[0].flags = UV_IGNORE;  // /dev/null
  stdio[1].flags = UV_INHERIT_FD;
  stdio[1].data.fd = output;
  stdio[2] = options.stderr_dropped ? stdio[0] : stdio[1];
  uv_process_options_t spawn{};
  spawn.file = argv_pointers[0];
  spawn.args = argv_pointers.data();
  spawn.env = env_pointers.data();
  spawn.stdio = stdio;
  spawn.stdio_count = 3;
  spawn.flags = UV_PROCESS_DETACHED;  // a session and group of its own, so that one kill gets all
  spawn.exit_cb = &Process::OnExit;
  auto* process = new Process{{}, &loop_, this};
  process->handle.data = process;
  const int error = uv_spawn(loop_.raw(), &process->handle, &spawn);
  if (error != 0) {
    process->child = nullptr;
    Process::Close(process);
    return SystemError("cannot start \"" + options.argv[0] + "\"" + Remedy(-error), -error);
  }
  process_ = process;
  pid_ = uv_process_get_pid(&process->handle);
  return {};
}

}  // namespace

base::Result<std::unique_ptr<Child>> Child::Start(Loop& loop, const ChildOptions& options,
                                                  std::function<void(const ChildExit&)> on_exit) {
  if (options.argv.empty() || options.argv[0].empty()) {
    return base::Error{base::ErrorCode::kInvalid, "cannot start a command: it is empty"};
  }
  auto child = std::make_unique<ChildImpl>(loop, options, std::move(on_exit));
  const base::Status status = child->Start(options);
  if (!status) return status.error();
  return std::unique_ptr<Child>(std::move(child));
}

}  // namespace leasehold::loop

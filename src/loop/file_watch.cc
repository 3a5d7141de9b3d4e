#include "loop/file_watch.h"

#include <sys/inotify.h>
#include <unistd.h>
#include <uv.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "loop/lifetime.h"
#include "loop/poller.h"
#include "loop/socket_address.h"

namespace leasehold::loop {
namespace {

constexpr uint32_t kEvents = IN_CLOSE_WRITE | IN_MOVED_TO | IN_MOVED_FROM | IN_CREATE | IN_DELETE |
                             IN_DELETE_SELF | IN_MOVE_SELF | IN_ONLYDIR;
// Some dozen events a read; inotify(7) wants room for one of the longest names at least.
constexpr size_t kBufferBytes = 4096;

class FileWatchImpl final : public FileWatch {
 public:
  FileWatchImpl(int fd, Callback on_change) : fd_(fd), on_change_(std::move(on_change)) {}

  ~FileWatchImpl() override {
    CallGuard::MarkGone(gone_);
    poller_.Close();
    close(fd_);
  }

  int Watch(Loop& loop, const std::string& dir) {
    if (inotify_add_watch(fd_, dir.c_str(), kEvents) < 0) return errno;
    const int error = poller_.Open(
        loop, fd_, this, [](void* self, int, int) { static_cast<FileWatchImpl*>(self)->Read(); });
    if (error == 0) poller_.Watch(UV_READABLE);
    return -error;
  }

 private:
  void Read() {
    alignas(inotify_event) std::array<char, kBufferBytes> buffer;
    const ssize_t size = read(fd_, buffer.data(), buffer.size());
    if (size <= 0) return;  // EAGAIN or EINTR: the next turn asks again
    CallGuard guard(gone_);
    for (size_t at = 0; at < static_cast<size_t>(size);) {
      inotify_event event{};
      std::memcpy(&event, buffer.data() + at, sizeof(event));
      const char* name = event.len > 0 ? buffer.data() + at + sizeof(event) : "";
      at += sizeof(event) + event.len;
      if ((event.mask & IN_IGNORED) != 0) continue;  // follows IN_DELETE_SELF
      // Without a name: the queue overflowed or the directory itself went. Look at everything.
      on_change_(name, (event.mask & IN_CLOSE_WRITE) != 0);
      if (guard.gone()) return;
    }
  }

  int fd_;
  Callback on_change_;
  Poller poller_;
  bool* gone_ = nullptr;
};

}  // namespace

base::Result<std::unique_ptr<FileWatch>> FileWatch::Open(Loop& loop, const std::string& dir,
                                                         Callback on_change) {
  const int fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
  if (fd < 0) {
    return SystemError(
        "cannot watch \"" + dir + "\" (fs.inotify.max_user_instances may be too low)", errno);
  }
  auto watch = std::make_unique<FileWatchImpl>(fd, std::move(on_change));
  const int error_number = watch->Watch(loop, dir);
  if (error_number != 0)
    return SystemError("cannot watch the directory \"" + dir + "\"", error_number);
  return std::unique_ptr<FileWatch>(std::move(watch));
}

}  // namespace leasehold::loop

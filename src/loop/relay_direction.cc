#include "loop/relay_direction.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/check.h"

namespace leasehold::loop {
namespace {

// A pipe costs two descriptors and three system calls to make: worth it once four large chunks came
// without a small one, and given back after sixteen small ones. Where `buffer_bytes` is below the
// large size, the direction only ever copies: the owner wants little memory held.
constexpr int kLargeChunksToSplice = 4;
constexpr size_t kLargeChunkBytes = 32 * 1024;
constexpr int kSmallChunksToCopy = 16;
constexpr size_t kSmallChunkBytes = 16 * 1024;
// The largest an unprivileged process may ask for (fs.pipe-max-size default). Past the user's soft
// limit the kernel hands out pipes of two pages; under 64 KiB copying is the better way.
constexpr int kPipeBytes = 1024 * 1024;
constexpr int kPipeBytesMin = 64 * 1024;

bool WouldBlock(int error_number) { return error_number == EAGAIN || error_number == EWOULDBLOCK; }

template <typename Call>
ssize_t Retry(const Call& call) {
  ssize_t n = 0;
  do {
    n = call();
  } while (n < 0 && errno == EINTR);
  return n;
}

}  // namespace

RelayDirection::RelayDirection(Loop& loop, size_t chunk_bytes, std::string_view first,
                               std::function<bool(std::string_view)> look_at_first)
    : loop_(loop),
      chunk_bytes_(std::clamp<size_t>(chunk_bytes, 1, loop.scratch().size())),
      look_at_first_(std::move(look_at_first)),
      buffer_(first) {}

RelayDirection::Step RelayDirection::Move(int from, int to, const std::function<bool()>& may_pass) {
  CHECK(!pending(), "back-pressure: nothing is read before the last chunk is sent");
  return splicing() ? Splice(from, to, may_pass) : Copy(from, to, may_pass);
}

RelayDirection::Step RelayDirection::Copy(int from, int to, const std::function<bool()>& may_pass) {
  char* const scratch = loop_.scratch().data();
  const ssize_t n = Retry([&] { return recv(from, scratch, chunk_bytes_, 0); });
  if (n == 0) return Step::kEnded;
  if (n < 0) return WouldBlock(errno) ? Step::kNothing : Fail(Step::kReadFailed, errno);
  if (!may_pass()) return Step::kRefused;
  const std::string_view chunk(scratch, static_cast<size_t>(n));
  if (look_at_first_ != nullptr && !std::exchange(look_at_first_, nullptr)(chunk)) {
    return Step::kRefused;
  }
  size_t taken = 0;
  const Step step = Send(to, chunk, &taken);
  if (step == Step::kWriteFailed) return step;
  buffer_.assign(chunk.substr(taken));
  ChooseWay(chunk.size());
  return Step::kMoved;
}

RelayDirection::Step RelayDirection::Splice(int from, int to,
                                            const std::function<bool()>& may_pass) {
  const ssize_t n = Retry([&] {
    return splice(from, nullptr, pipe_[1], nullptr, pipe_capacity_,
                  SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
  });
  if (n == 0) return Step::kEnded;
  if (n < 0) return WouldBlock(errno) ? Step::kNothing : Fail(Step::kReadFailed, errno);
  pipe_bytes_ = static_cast<size_t>(n);
  if (!may_pass()) return Step::kRefused;
  const Step step = FlushPipe(to);
  if (step == Step::kWriteFailed) return step;
  ChooseWay(static_cast<size_t>(n));
  return Step::kMoved;
}

RelayDirection::Step RelayDirection::Flush(int to, const std::function<bool()>& may_pass) {
  if (!may_pass()) return Step::kRefused;
  if (pipe_bytes_ > 0) return FlushPipe(to);
  size_t taken = 0;
  const Step step = Send(to, std::string_view(buffer_).substr(buffer_head_), &taken);
  buffer_head_ += taken;
  if (buffer_head_ == buffer_.size()) Drop();
  return step;
}

RelayDirection::Step RelayDirection::FlushPipe(int to) {
  const ssize_t n = Retry([&] {
    return splice(pipe_[0], nullptr, to, nullptr, pipe_bytes_, SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
  });
  if (n < 0) return WouldBlock(errno) ? Step::kNothing : Fail(Step::kWriteFailed, errno);
  pipe_bytes_ -= static_cast<size_t>(n);
  sent_ += static_cast<uint64_t>(n);
  return Step::kMoved;
}

RelayDirection::Step RelayDirection::Send(int to, std::string_view bytes, size_t* taken) {
  const ssize_t n = Retry([&] { return send(to, bytes.data(), bytes.size(), MSG_NOSIGNAL); });
  if (n < 0) return WouldBlock(errno) ? Step::kNothing : Fail(Step::kWriteFailed, errno);
  *taken = static_cast<size_t>(n);
  sent_ += static_cast<uint64_t>(n);
  return Step::kMoved;
}

RelayDirection::Step RelayDirection::Fail(Step step, int error_number) {
  error_number_ = error_number;
  return step;
}

void RelayDirection::Drop() {
  buffer_.clear();
  buffer_.shrink_to_fit();  // a stalled peer is rare; thousands of quiet ones should hold nothing
  buffer_head_ = 0;
  if (pipe_bytes_ > 0) ClosePipe();
}

// Called after each chunk with its size.
void RelayDirection::ChooseWay(size_t chunk) {
  const bool small = chunk < kSmallChunkBytes;
  if (!small && chunk < kLargeChunkBytes) return;  // says nothing: the tail of a burst, mostly
  streak_ = small == splicing() ? streak_ + 1 : 0;
  if (splicing()) {
    if (streak_ >= kSmallChunksToCopy && pipe_bytes_ == 0) ClosePipe();
  } else if (streak_ >= kLargeChunksToSplice && !pipe_refused_) {
    OpenPipe();  // what is still in the buffer is flushed before the next chunk is moved
  }
}

void RelayDirection::OpenPipe() {
  streak_ = 0;
  int size = 0;
  if (pipe2(pipe_, O_CLOEXEC | O_NONBLOCK) == 0) {
    size = fcntl(pipe_[1], F_SETPIPE_SZ, kPipeBytes);
    if (size < 0) size = fcntl(pipe_[1], F_GETPIPE_SZ);
    if (size < kPipeBytesMin) ClosePipe();
  }
  pipe_refused_ = !splicing();
  pipe_capacity_ = static_cast<size_t>(std::max(size, 0));
}

void RelayDirection::ClosePipe() {
  for (int& end : pipe_) {
    if (end >= 0) close(end);
    end = -1;
  }
  pipe_bytes_ = 0;
  streak_ = 0;
}

}  // namespace leasehold::loop

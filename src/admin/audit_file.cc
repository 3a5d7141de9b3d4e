#include "admin/audit_file.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <system_error>
#include <utility>

#include "base/text.h"
#include "proto/json.h"

namespace leasehold::admin {
namespace {

constexpr mode_t kMode = 0640;  // who may read logs may read it; nobody else
// Of the file's end at the start: a hundred entries, and so the last of each of dozens of leases.
constexpr off_t kTailBytes = 64 * 1024;
// How long a pipe whose reader has stopped may take a line, on the worker.
constexpr int kPipePatienceMs = 1000;

std::string Reason(int error) { return std::generic_category().message(error); }

// Lines that a higher layer wrote, cut to whole ones.
std::string WholeLines(std::string text, bool from_start) {
  if (!from_start) text.erase(0, std::min(text.size(), text.find('\n')));
  const size_t end = text.rfind('\n');
  text.resize(end == std::string::npos ? 0 : end);
  return text;
}

}  // namespace

base::Result<std::shared_ptr<AuditFile>> AuditFile::Open(const std::string& name) {
  auto file = std::make_shared<AuditFile>(name);
  if (name == "stdout") {
    file->fd_ = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    if (file->fd_ >= 0) return file;
    return base::Error{
        base::ErrorCode::kUnavailable,
        "audit.file = \"stdout\": standard output is closed (" + Reason(errno) + ")"};
  }
  const int error = file->OpenPath();
  if (error == 0) return file;
  return base::Error{
      base::ErrorCode::kUnavailable,
      "audit.file = \"" + base::Printable(name) + "\" cannot be opened for appending (" +
          Reason(error) +
          "); give a file in a directory that exists and that this user may write, or \"stdout\""};
}

AuditFile::~AuditFile() {
  if (fd_ >= 0) close(fd_);
}

int AuditFile::OpenPath() {
  // O_NONBLOCK: a FIFO that nobody reads is refused at once. To a regular file it means nothing.
  const int fd =
      open(name_.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, kMode);
  if (fd < 0) return errno;
  struct stat status {};
  if (fstat(fd, &status) != 0) {
    const int error = errno;
    close(fd);
    return error;
  }
  if (fd_ >= 0) close(fd_);
  fd_ = fd;
  regular_ = S_ISREG(status.st_mode);
  device_ = status.st_dev;
  inode_ = status.st_ino;
  torn_ = false;
  return 0;
}

// The path names another file, or none: it was rotated away. What is open stays open until the new
// one is.
int AuditFile::ReopenIfMoved() {
  if (!regular_) return 0;
  struct stat status {};
  if (stat(name_.c_str(), &status) == 0 && status.st_dev == device_ && status.st_ino == inode_) {
    return 0;
  }
  return OpenPath();
}

AuditFile::Written AuditFile::Write(const std::vector<std::string>& lines) {
  Written written;
  // Not into a file that was moved away, where nobody would look for them.
  int given_up = ReopenIfMoved();
  for (const std::string& line : lines) {
    const int error = given_up != 0 ? given_up : WriteLine(line);
    if (error == 0) continue;
    // A reader that has stopped is waited for once, not once per line.
    if (error == EAGAIN) given_up = error;
    ++written.failed;
    written.error = Reason(error);
  }
  return written;
}

int AuditFile::WriteLine(const std::string& line) {
  const std::string bytes = torn_ ? "\n" + line : line;
  for (;;) {
    const ssize_t wrote = write(fd_, bytes.data(), bytes.size());
    if (wrote == static_cast<ssize_t>(bytes.size())) {
      torn_ = false;
      return 0;
    }
    if (wrote > 0) {
      // The disk became full in the middle, or a terminal took a part: the rest would follow
      // somebody else's line.
      torn_ = true;
      return ENOSPC;
    }
    if (errno == EINTR) continue;
    if (errno != EAGAIN) return errno;
    pollfd writable{fd_, POLLOUT, 0};
    if (poll(&writable, 1, kPipePatienceMs) <= 0) return EAGAIN;
  }
}

std::string AuditFile::Tail() const {
  if (!regular_) return "";
  const int fd = open(name_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return "";
  const off_t size = lseek(fd, 0, SEEK_END);
  const off_t start = std::max<off_t>(size - kTailBytes, 0);
  std::string text(static_cast<size_t>(std::max<off_t>(size - start, 0)), '\0');
  const ssize_t got = pread(fd, text.data(), text.size(), start);
  close(fd);
  text.resize(static_cast<size_t>(std::max<ssize_t>(got, 0)));
  return WholeLines(std::move(text), start == 0);
}

std::map<std::string, AuditedTerm> LastTerms(const std::string& lines, std::string_view node_id) {
  std::map<std::string, AuditedTerm> last;
  for (const std::string_view line : base::Split(lines, '\n')) {
    const base::Result<proto::Json> entry = proto::Json::Parse(line);
    if (!entry) continue;
    const std::optional<proto::Json> holder = entry->Find("holder");
    const std::optional<proto::Json> writer = entry->Find("recorded_by");
    const std::optional<std::string> lease = entry->String("lease");
    const std::optional<uint64_t> token = entry->Token("token");
    if (!holder || !writer || !lease || !token) continue;
    if (writer->String("node_id") != node_id || entry->String("record") == "lease_lost") continue;
    last[*lease] = {*token, holder->String("process_id").value_or("")};
  }
  return last;
}

}  // namespace leasehold::admin

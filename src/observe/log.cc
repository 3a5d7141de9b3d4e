#include "observe/log.h"

#include <poll.h>
#include <spdlog/details/null_mutex.h>
#include <spdlog/logger.h>
#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/base_sink.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "base/text.h"
#include "observe/log_line.h"

namespace leasehold::observe {
namespace {

// Writes each line with one system call and keeps nothing back, so that a kill -9 loses nothing
// that was written. A reader that stopped reading (a full pipe) costs lines, counted, and never
// stalls the loop: a stalled log collector must not cost a lease.
class LineSink final : public spdlog::sinks::base_sink<spdlog::details::null_mutex> {
 public:
  explicit LineSink(int fd) : fd_(fd) {}
  uint64_t dropped() const { return dropped_; }
  uint64_t TakeDropped() { return std::exchange(dropped_, 0); }
  bool Writable() const {
    pollfd poll_fd{fd_, POLLOUT, 0};
    // Anything but "would block now" counts as writable: a real error shows itself in write().
    return poll(&poll_fd, 1, 0) != 0;
  }

 protected:
  void sink_it_(const spdlog::details::log_msg& message) override {
    spdlog::memory_buf_t line;
    formatter_->format(message, line);
    if (!WriteAll(line.data(), line.size())) ++dropped_;
  }
  void flush_() override {}

 private:
  bool WriteAll(const char* data, size_t size) {
    while (size > 0) {
      if (!Writable()) return false;
      const ssize_t wrote = write(fd_, data, size);
      if (wrote < 0 && errno == EINTR) continue;
      if (wrote <= 0) return false;
      data += wrote;
      size -= static_cast<size_t>(wrote);
    }
    return true;
  }

  int fd_;
  uint64_t dropped_ = 0;
};

spdlog::level::level_enum ToSpdlog(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug: return spdlog::level::debug;
    case LogLevel::kInfo: return spdlog::level::info;
    case LogLevel::kWarn: return spdlog::level::warn;
    case LogLevel::kError: return spdlog::level::err;
  }
  return spdlog::level::err;
}

}  // namespace

struct Log::Impl {
  Impl(const LogOptions& log_options, int fd)
      : options(log_options), sink(std::make_shared<LineSink>(fd)), logger("leasehold", sink) {
    const char* pattern = options.format == LogFormat::kJson
                              ? "{\"ts\":\"%Y-%m-%dT%H:%M:%S.%eZ\",%v}"
                              : "ts=%Y-%m-%dT%H:%M:%S.%eZ %v";
    sink->set_formatter(
        std::make_unique<spdlog::pattern_formatter>(pattern, spdlog::pattern_time_type::utc, "\n"));
    logger.set_level(spdlog::level::trace);  // filtered by Enabled() before a line is built
  }

  void Put(LogLevel level, std::string_view event, std::string_view message, Fields fields) {
    const std::string body = LineBody(options.format, level, event, message, fields);
    logger.log(ToSpdlog(level), spdlog::string_view_t(body.data(), body.size()));
  }

  LogOptions options;
  std::shared_ptr<LineSink> sink;
  spdlog::logger logger;
};

Field::Field(std::string_view k, base::Duration v) : key(k), text(base::FormatDuration(v)) {}

Log::Log() = default;
Log::Log(const LogOptions& options) : impl_(std::make_unique<Impl>(options, STDERR_FILENO)) {}
Log::~Log() = default;

std::unique_ptr<Log> Log::Silent() { return std::unique_ptr<Log>(new Log()); }

std::unique_ptr<Log> Log::ToDescriptor(const LogOptions& options, int fd) {
  std::unique_ptr<Log> log(new Log());
  log->impl_ = std::make_unique<Impl>(options, fd);
  return log;
}

bool Log::Enabled(LogLevel level) const {
  return impl_ != nullptr && level >= impl_->options.level;
}

void Log::Write(LogLevel level, std::string_view event, std::string_view message, Fields fields) {
  if (!Enabled(level)) return;
  if (impl_->sink->dropped() > 0 && impl_->sink->Writable()) {
    impl_->Put(LogLevel::kWarn, "log.dropped",
               "log lines were lost because nobody read standard error",
               {{"lines", impl_->sink->TakeDropped()}});
  }
  impl_->Put(level, event, message, fields);
}

void Log::Info(std::string_view event, std::string_view message, Fields fields) {
  Write(LogLevel::kInfo, event, message, fields);
}
void Log::Warn(std::string_view event, std::string_view message, Fields fields) {
  Write(LogLevel::kWarn, event, message, fields);
}
void Log::Error(std::string_view event, std::string_view message, Fields fields) {
  Write(LogLevel::kError, event, message, fields);
}
void Log::Debug(std::string_view event, std::string_view message, Fields fields) {
  Write(LogLevel::kDebug, event, message, fields);
}

bool RateLimit::Allow(base::MonoTime now, uint64_t* suppressed) {
  if (now < next_) {
    ++swallowed_;
    return false;
  }
  next_ = now + interval_;
  *suppressed = std::exchange(swallowed_, 0);
  return true;
}

}  // namespace leasehold::observe

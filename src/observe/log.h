// Log: one line per state change, logfmt or JSON, to standard error. Never a payload, never a
// secret. The one door to spdlog is log.cc. A line: ts level event msg key=value... Owned by app,
// borrowed by every room. Invariants: one call is one line, whatever bytes it is given; a line is
// with the kernel when the call returns (kill -9 loses none); a reader of standard error that has
// stopped reading costs lines (counted, told later as log.dropped), never the loop's time.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>

#include "base/time.h"
#include "observe/options.h"

namespace leasehold::observe {

struct Field {
  Field(std::string_view k, std::string_view v) : key(k), text(v) {}
  Field(std::string_view k, const char* v) : key(k), text(v) {}
  Field(std::string_view k, const std::string& v) : key(k), text(v) {}
  Field(std::string_view k, uint64_t v) : key(k), text(std::to_string(v)), quoted(false) {}
  Field(std::string_view k, int64_t v) : key(k), text(std::to_string(v)), quoted(false) {}
  Field(std::string_view k, uint32_t v) : key(k), text(std::to_string(v)), quoted(false) {}
  Field(std::string_view k, int v) : key(k), text(std::to_string(v)), quoted(false) {}
  Field(std::string_view k, bool v) : key(k), text(v ? "true" : "false"), quoted(false) {}
  Field(std::string_view k, base::Duration v);  // "250ms"
  std::string_view key;
  std::string text;
  bool quoted = true;  // a JSON string rather than a number
};
using Fields = std::initializer_list<Field>;

class Log {
 public:
  explicit Log(const LogOptions& options);
  // A log that writes nowhere, for tests.
  static std::unique_ptr<Log> Silent();
  // The same to another descriptor, which is borrowed and must outlive the log.
  static std::unique_ptr<Log> ToDescriptor(const LogOptions& options, int fd);
  ~Log();

  // `event` is a dotted word ("lease.acquired", "gate.listen"); `message` one sentence for people.
  void Write(LogLevel level, std::string_view event, std::string_view message, Fields fields = {});
  void Info(std::string_view event, std::string_view message, Fields fields = {});
  void Warn(std::string_view event, std::string_view message, Fields fields = {});
  void Error(std::string_view event, std::string_view message, Fields fields = {});
  void Debug(std::string_view event, std::string_view message, Fields fields = {});
  bool Enabled(LogLevel level) const;

 private:
  Log();
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// At most one line per `interval` for a kind of trouble that may repeat without bound; counts what
// it swallowed.
class RateLimit {
 public:
  explicit RateLimit(base::Duration interval) : interval_(interval) {}
  // True if a line may be written now; `suppressed` gets how many were swallowed since the last
  // one.
  bool Allow(base::MonoTime now, uint64_t* suppressed);

 private:
  base::Duration interval_;
  base::MonoTime next_;
  uint64_t swallowed_ = 0;
};

}  // namespace leasehold::observe

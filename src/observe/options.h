// Options of the log, as `sidecar.conf` gives them.
#pragma once

namespace leasehold::observe {

enum class LogFormat { kLogfmt, kJson };
enum class LogLevel { kDebug, kInfo, kWarn, kError };

struct LogOptions {
  LogFormat format = LogFormat::kLogfmt;
  LogLevel level = LogLevel::kInfo;
};

}  // namespace leasehold::observe

// LogLine: the text of one log line without its time stamp, in logfmt or JSON. Not the writing of
// it (log.cc). Invariants: no field, whatever bytes it holds, can start a second line or a second
// field; a line with its stamp fits kLineBytesMax, so that a pipe takes it whole or not at all.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "observe/log.h"
#include "observe/options.h"

namespace leasehold::observe {

// PIPE_BUF of Linux (pipe(7)): a write up to this size into a pipe is never split nor interleaved
// with another process's, and does not block on a pipe that polls as writable.
inline constexpr size_t kLineBytesMax = 4096;
// What the stamp, the braces and the line end of either format take, with room to spare.
inline constexpr size_t kStampBytesMax = 64;

std::string_view LevelName(LogLevel level);  // "debug", "info", "warn", "error"

// `text` as a JSON string (logfmt readers take the same escapes) on one line for every reader:
// C1 controls, DEL and the Unicode line separators are escaped too, which JSON itself lets pass.
std::string QuoteOneLine(std::string_view text);

// logfmt: `level=info event=lease.acquired msg="..." lease=orders`; JSON: the same members without
// the outer braces. What does not fit is cut, and `cut=true` says so.
std::string LineBody(LogFormat format, LogLevel level, std::string_view event,
                     std::string_view message, Fields fields);

}  // namespace leasehold::observe

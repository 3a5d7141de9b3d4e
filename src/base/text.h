// Text forms used in configuration, logs and the API: durations ("10s", "250ms"), sizes ("64KiB"),
// decimal numbers, and RFC 3339 instants. Parsers are strict and say what would be right.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/time.h"

namespace leasehold::base {

// "<number><unit>" with unit ms, s, m or h; decimals allowed ("1.5s"); not negative; at most 24 h *
// 366.
Result<Duration> ParseDuration(std::string_view text);
// Shortest exact form of those: "250ms", "10s", "1.5s", "5m"; sub-millisecond spans as "0.250ms".
std::string FormatDuration(Duration d);

// "<integer><unit>" with unit B, KiB, MiB or GiB (no unit = bytes).
Result<uint64_t> ParseSize(std::string_view text);
std::string FormatSize(uint64_t bytes);

// Decimal, no sign, no blanks, no leading zeros (except "0" itself), fits 64 bits.
Result<uint64_t> ParseUint64(std::string_view text);

// "2026-11-30T14:41:55.123Z"
std::string FormatWallTime(WallTime t);

std::string_view Trim(std::string_view text);                   // blanks and tabs off both ends
bool EqualsIgnoreCase(std::string_view a, std::string_view b);  // ASCII
std::vector<std::string_view> Split(std::string_view text, char separator);
// A command's words as they are run without a shell: blanks and tabs part them, '...' and "..."
// keep blanks in one word (nothing is special inside). The error is the end of a sentence about the
// text: "the quote ' is not closed", "it names no command", "it has a zero byte".
Result<std::vector<std::string>> SplitCommand(std::string_view text);
std::string ToLower(std::string_view text);  // ASCII
// Printable form of untrusted bytes for messages: control and non-ASCII bytes as \xNN, cut at
// max_len with "...".
std::string Printable(std::string_view bytes, size_t max_len = 120);

}  // namespace leasehold::base

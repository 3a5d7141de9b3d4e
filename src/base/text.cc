#include "base/text.h"

#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <utility>

namespace leasehold::base {
namespace {

struct Unit {
  std::string_view name;
  int64_t scale;
};

// Units largest first, so that formatting takes the largest that divides.
constexpr std::array<Unit, 4> kTimeUnits = {
    {{"h", 3600LL * 1000000000}, {"m", 60LL * 1000000000}, {"s", 1000000000LL}, {"ms", 1000000LL}}};
constexpr std::array<Unit, 4> kSizeUnits = {
    {{"GiB", 1LL << 30}, {"MiB", 1LL << 20}, {"KiB", 1LL << 10}, {"B", 1}}};
constexpr double kLongestDurationNanos =
    366.0 * 24 * 3600 * 1e9;  // a year: nothing here waits longer

bool IsDigit(char c) { return c >= '0' && c <= '9'; }
char Lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

Error BadDuration(std::string_view text) {
  return {ErrorCode::kInvalid, "\"" + Printable(text) +
                                   "\" is not a duration; write a number and a unit, "
                                   "like \"250ms\", \"10s\", \"5m\" or \"1h\""};
}

Error BadSize(std::string_view text) {
  return {ErrorCode::kInvalid, "\"" + Printable(text) +
                                   "\" is not a size; write a whole number and a unit, "
                                   "like \"512B\", \"64KiB\", \"1MiB\""};
}

}  // namespace

Result<Duration> ParseDuration(std::string_view text) {
  size_t i = 0;
  while (i < text.size() && (IsDigit(text[i]) || text[i] == '.')) ++i;
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + i, number);
  if (i == 0 || error != std::errc() || end != text.data() + i || !IsDigit(text[0])) {
    return BadDuration(text);
  }
  for (const Unit& unit : kTimeUnits) {
    if (text.substr(i) != unit.name) continue;
    const double nanos = number * static_cast<double>(unit.scale);
    if (!(nanos <= kLongestDurationNanos)) {
      return Error{ErrorCode::kInvalid,
                   "\"" + Printable(text) + "\" is longer than a year (8784h is the most)"};
    }
    return Duration::Nanos(std::llround(nanos));
  }
  return BadDuration(text);
}

std::string FormatDuration(Duration d) {
  const int64_t nanos = d.nanos();
  if (nanos == 0) return "0s";
  if (nanos < 0) return "-" + FormatDuration(-d);
  for (const Unit& unit : kTimeUnits) {
    if (nanos % unit.scale == 0) return std::to_string(nanos / unit.scale) + std::string(unit.name);
  }
  char buffer[48];
  if (nanos >= 1000000000) {
    std::snprintf(buffer, sizeof buffer, "%.3fs", static_cast<double>(nanos) / 1e9);
  } else {
    std::snprintf(buffer, sizeof buffer, "%.3fms", static_cast<double>(nanos) / 1e6);
  }
  return buffer;
}

Result<uint64_t> ParseSize(std::string_view text) {
  size_t i = 0;
  while (i < text.size() && IsDigit(text[i])) ++i;
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + i, number);
  if (i == 0 || error != std::errc() || end != text.data() + i) return BadSize(text);
  const std::string_view suffix = text.substr(i).empty() ? "B" : text.substr(i);
  for (const Unit& unit : kSizeUnits) {
    if (suffix != unit.name) continue;
    if (number > (uint64_t{1} << 50) / static_cast<uint64_t>(unit.scale)) return BadSize(text);
    return number * static_cast<uint64_t>(unit.scale);
  }
  return BadSize(text);
}

std::string FormatSize(uint64_t bytes) {
  for (const Unit& unit : kSizeUnits) {
    const auto scale = static_cast<uint64_t>(unit.scale);
    if (bytes >= scale && bytes % scale == 0) {
      return std::to_string(bytes / scale) + std::string(unit.name);
    }
  }
  return std::to_string(bytes) + "B";
}

Result<uint64_t> ParseUint64(std::string_view text) {
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool leading_zero = text.size() > 1 && text[0] == '0';
  if (text.empty() || error != std::errc() || end != text.data() + text.size() || leading_zero) {
    return Error{
        ErrorCode::kInvalid,
        "\"" + Printable(text) + "\" is not a whole number from 0 to 18446744073709551615"};
  }
  return number;
}

std::string FormatWallTime(WallTime t) {
  std::time_t seconds = static_cast<std::time_t>(t.unix_ms / 1000);
  int64_t millis = t.unix_ms % 1000;
  if (millis < 0) {
    millis += 1000;
    --seconds;
  }
  std::tm parts{};
  gmtime_r(&seconds, &parts);
  char buffer[64];
  std::snprintf(buffer, sizeof buffer, "%04d-%02d-%02dT%02d:%02d:%02d.%03dZ", parts.tm_year + 1900,
                parts.tm_mon + 1, parts.tm_mday, parts.tm_hour, parts.tm_min, parts.tm_sec,
                static_cast<int>(millis));
  return buffer;
}

std::string_view Trim(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

bool EqualsIgnoreCase(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i) {
    if (Lower(a[i]) != Lower(b[i])) return false;
  }
  return true;
}

std::vector<std::string_view> Split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (size_t start = 0;;) {
    const size_t at = text.find(separator, start);
    if (at == std::string_view::npos) {
      parts.push_back(text.substr(start));
      return parts;
    }
    parts.push_back(text.substr(start, at - start));
    start = at + 1;
  }
}

Result<std::vector<std::string>> SplitCommand(std::string_view text) {
  if (text.find('\0') != std::string_view::npos) {
    return Error{ErrorCode::kInvalid, "it has a zero byte"};
  }
  std::vector<std::string> words;
  std::string word;
  bool in_word = false;
  char quote = '\0';
  for (const char c : text) {
    if (quote != '\0') {
      if (c == quote) {
        quote = '\0';
      } else {
        word += c;
      }
    } else if (c == '\'' || c == '"') {
      quote = c;
      in_word = true;
    } else if (c == ' ' || c == '\t') {
      if (in_word) words.push_back(std::exchange(word, {}));
      in_word = false;
    } else {
      word += c;
      in_word = true;
    }
  }
  if (quote != '\0') {
    return Error{ErrorCode::kInvalid, std::string("the quote ") + quote + " is not closed"};
  }
  if (in_word) words.push_back(std::move(word));
  if (words.empty() || words.front().empty()) {
    return Error{ErrorCode::kInvalid, "it names no command"};
  }
  return words;
}

std::string ToLower(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) c = Lower(c);
  return lower;
}

std::string Printable(std::string_view bytes, size_t max_len) {
  std::string out;
  for (const char c : bytes) {
    if (out.size() >= max_len) return out + "...";
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x20 && byte < 0x7f) {
      out += c;
    } else {
      char hex[8];
      std::snprintf(hex, sizeof hex, "\\x%02x", byte);
      out += hex;
    }
  }
  return out;
}

}  // namespace leasehold::base

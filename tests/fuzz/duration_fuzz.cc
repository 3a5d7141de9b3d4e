// The small texts of configuration and API: durations, sizes, whole numbers, addresses, instants,
// commands. Each input is read as all of them. Asserted: what is accepted is what an exact reading
// of the same digits gives, and stands for the same when it is written and read again; what is too
// large is refused, not wrapped; an error is one printable sentence.
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "base/address.h"
#include "base/text.h"
#include "fuzz/fuzz_target.h"

namespace leasehold::fuzz {
namespace {

using base::Duration;

constexpr int64_t kYearNanos = int64_t{366} * 24 * 3600 * 1000000000;
// A double has 53 bits: beyond 2^53 ns (104 days) it steps by 2 or 4.
constexpr int64_t kDoubleStepNanos = 4;

void CheckSentence(const base::Error& error) {
  CHECK(!error.message.empty(), "an error without a sentence");
  CHECK(error.message.size() < 512, "an error repeats its whole input");
  for (const char c : error.message) CHECK(c >= ' ' && c < 0x7f, "an error shows raw bytes");
}

// The exact value of "<digits>[.<digits>]<unit>" in nanoseconds; -1 for other text,
// kYearNanos + 1 for more than a year.
int64_t ExactNanos(std::string_view text) {
  const size_t whole_end = std::min(text.find_first_not_of("0123456789"), text.size());
  size_t end = whole_end;
  if (end < text.size() && text[end] == '.') {
    end = std::min(text.find_first_not_of("0123456789", end + 1), text.size());
  }
  const std::string_view unit = text.substr(end);
  const int64_t scale = unit == "ms"  ? int64_t{1000000}
                        : unit == "s" ? int64_t{1000000000}
                        : unit == "m" ? int64_t{60} * 1000000000
                        : unit == "h" ? int64_t{3600} * 1000000000
                                      : 0;
  if (whole_end == 0 || scale == 0) return -1;
  int64_t nanos = 0;
  for (const char c : text.substr(0, whole_end)) {
    nanos = nanos * 10 + (c - '0');
    if (nanos > kYearNanos / scale) return kYearNanos + 1;
  }
  nanos *= scale;
  if (end <= whole_end + 1) return nanos;
  long double fraction = 0;  // 64 bits: exact to a nanosecond of a year
  long double place = 1;
  for (const char c : text.substr(whole_end + 1, end - whole_end - 1)) {
    place /= 10;
    fraction += place * (c - '0');
  }
  nanos += std::llround(fraction * static_cast<long double>(scale));
  return nanos;
}

void CheckDuration(std::string_view text) {
  const base::Result<Duration> read = base::ParseDuration(text);
  const int64_t exact = ExactNanos(text);
  if (!read) {
    CheckSentence(read.error());
    // Beside what is too long only what is longer than any double ("0.00...1s") may be refused.
    CHECK(exact < 0 || exact > kYearNanos - kDoubleStepNanos || text.size() > 300,
          "a duration was refused");
    return;
  }
  const int64_t nanos = read->nanos();
  CHECK(exact >= 0, "what is no duration was taken for one");
  CHECK(nanos >= 0 && nanos <= kYearNanos, "a duration out of range");
  CHECK(std::abs(nanos - exact) <= kDoubleStepNanos, "a duration is not what its digits say");
  const base::Result<Duration> again = base::ParseDuration(base::FormatDuration(*read));
  CHECK(again.ok(), "a duration as we write it is not one");
  // Whole milliseconds come back exactly; what is finer is rounded: below a second to a
  // microsecond, above to a millisecond.
  const int64_t error = std::abs(again->nanos() - nanos);
  if (nanos % 1000000 == 0) CHECK(error == 0, "whole milliseconds do not come back");
  CHECK(error <= (nanos < 1000000000 ? 500 : 500000) + kDoubleStepNanos, "rounded too far");
  const base::Result<Duration> third = base::ParseDuration(base::FormatDuration(*again));
  CHECK(third.ok() && *third == *again, "written twice, a duration changes twice");
}

void CheckSize(std::string_view text) {
  const base::Result<uint64_t> read = base::ParseSize(text);
  if (!read) return CheckSentence(read.error());
  CHECK(*read <= uint64_t{1} << 50, "a size out of range");
  const base::Result<uint64_t> again = base::ParseSize(base::FormatSize(*read));
  CHECK(again.ok() && *again == *read, "a size does not come back");
  // The digits at the front, times a power of 1024 that is one of four.
  uint64_t digits = 0;
  for (const char c : text) {
    if (c < '0' || c > '9') break;
    CHECK(digits <= (uint64_t{1} << 50), "a size of too many digits was taken");
    digits = digits * 10 + static_cast<uint64_t>(c - '0');
  }
  const auto is = [&](int shift) { return digits << shift == *read && digits <= *read; };
  CHECK(is(0) || is(10) || is(20) || is(30), "a size is not what its digits say");
}

void CheckNumber(std::string_view text) {
  const base::Result<uint64_t> read = base::ParseUint64(text);
  if (!read) return CheckSentence(read.error());
  CHECK(std::to_string(*read) == text, "a number has more than one spelling");
}

void CheckAddress(std::string_view text) {
  const base::Result<base::Address> read = base::ParseAddress(text);
  if (!read) return CheckSentence(read.error());
  CHECK(!read->empty(), "an address of nothing");
  const bool is_unix = read->kind == base::Address::Kind::kUnix;
  CHECK(is_unix ? read->path.size() <= 107 && read->host.empty() : read->path.empty(),
        "an address of two kinds");
  CHECK(read->path.find('\0') == std::string::npos, "a path that the kernel would cut");
  const base::Result<base::Address> again = base::ParseAddress(read->ToString());
  CHECK(again.ok(), "an address as we write it is not one");
  CHECK(*again == *read, "an address leads elsewhere when it is written and read again");
  CHECK(again->ToString() == read->ToString(), "an address has two forms");
}

std::string Quoted(const std::string& word) {
  const char quote = word.find('"') == std::string::npos ? '"' : '\'';
  return quote + word + quote;
}

void CheckCommand(std::string_view text) {
  const base::Result<std::vector<std::string>> words = base::SplitCommand(text);
  if (!words) return;
  CHECK(!words->empty() && !words->front().empty(), "a command without a name");
  std::string quoted;
  size_t bytes = 0;
  for (const std::string& word : *words) {
    bytes += word.size();
    // '...' cannot hold ', nor "..." hold ": such a word is written in parts, which is not asked.
    if (word.find('"') != std::string::npos && word.find('\'') != std::string::npos) return;
    quoted += (quoted.empty() ? "" : " \t") + Quoted(word);
  }
  CHECK(bytes <= text.size(), "a command's words are longer than the command");
  const base::Result<std::vector<std::string>> again = base::SplitCommand(quoted);
  CHECK(again.ok() && *again == *words, "a command's words do not come back");
}

void CheckShown(std::string_view text) {
  const std::string shown = base::Printable(text, 60);
  CHECK(shown.size() <= 60 + 3 + 3, "a text that is shown is not cut");
  for (const char c : shown) CHECK(c >= ' ' && c < 0x7f, "a text is shown raw");
  const std::string instant =
      base::FormatWallTime(base::WallTime{static_cast<int64_t>(Hash(text))});
  CHECK(instant.ends_with('Z') && instant.find('T') != std::string::npos, "no instant");
  CHECK(base::Split(text, '.').size() ==
            1 + static_cast<size_t>(std::count(text.begin(), text.end(), '.')),
        "split in a wrong number of parts");
}

}  // namespace
}  // namespace leasehold::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace leasehold::fuzz;  // NOLINT(google-build-using-namespace): this file's own
  const std::string_view input = View(data, size);
  CheckDuration(input);
  CheckSize(input);
  CheckNumber(input);
  CheckAddress(input);
  CheckCommand(input);
  CheckShown(input);
  return 0;
}

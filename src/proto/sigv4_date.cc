// The dates of signatures and of HTTP, by arithmetic alone: no clock, no time zone, no locale.
#include <algorithm>
#include <array>
#include <cstdio>

#include "proto/sigv4.h"

namespace leasehold::proto::sigv4 {
namespace {

constexpr int64_t kSecondsOfDay = 86400;
constexpr int64_t kLastSecond = 253402300799;  // 9999-12-31T23:59:59Z: years have four digits

constexpr std::array<std::string_view, 12> kMonths = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                                      "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
// From the day of the epoch on, which was a Thursday.
constexpr std::array<std::string_view, 7> kWeekdays = {"Thu", "Fri", "Sat", "Sun",
                                                       "Mon", "Tue", "Wed"};

struct Civil {
  int64_t year = 1970;
  int64_t month = 1;
  int64_t day = 1;
  int64_t hour = 0;
  int64_t minute = 0;
  int64_t second = 0;
};

// Proleptic Gregorian. The year is counted from March, so that the leap day is its last one, and in
// eras of 400 years (146097 days), after which the calendar repeats; 719468 days lie between
// 0000-03-01 and 1970-01-01.
int64_t DaysFromCivil(int64_t year, int64_t month, int64_t day) {
  const int64_t y = month <= 2 ? year - 1 : year;  // never negative but for January of year 0
  const int64_t era = (y >= 0 ? y : y - 399) / 400;
  const int64_t year_of_era = y - era * 400;
  const int64_t month_from_march = (month + 9) % 12;
  const int64_t day_of_year = (153 * month_from_march + 2) / 5 + day - 1;
  const int64_t day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
  return era * 146097 + day_of_era - 719468;
}

// The inverse; `days` is not before the epoch.
Civil CivilFromDays(int64_t days) {
  const int64_t shifted = days + 719468;
  const int64_t era = shifted / 146097;
  const int64_t day_of_era = shifted - era * 146097;
  const int64_t year_of_era =
      (day_of_era - day_of_era / 1460 + day_of_era / 36524 - day_of_era / 146096) / 365;
  const int64_t day_of_year =
      day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
  const int64_t month_from_march = (5 * day_of_year + 2) / 153;
  Civil civil;
  civil.day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
  civil.month = month_from_march < 10 ? month_from_march + 3 : month_from_march - 9;
  civil.year = year_of_era + era * 400 + (civil.month <= 2 ? 1 : 0);
  return civil;
}

bool IsLeapYear(int64_t year) { return year % 4 == 0 && (year % 100 != 0 || year % 400 == 0); }

int64_t DaysOfMonth(int64_t year, int64_t month) {
  constexpr std::array<int64_t, 12> kDays = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
  return month == 2 && IsLeapYear(year) ? 29 : kDays[static_cast<size_t>(month - 1)];
}

// Nothing for what is no instant. A leap second (:60) is the first second of the next minute.
std::optional<int64_t> Seconds(const Civil& civil) {
  if (civil.month < 1 || civil.month > 12 || civil.day < 1 ||
      civil.day > DaysOfMonth(civil.year, civil.month) || civil.hour > 23 || civil.minute > 59 ||
      civil.second > 60) {
    return std::nullopt;
  }
  return DaysFromCivil(civil.year, civil.month, civil.day) * kSecondsOfDay + civil.hour * 3600 +
         civil.minute * 60 + civil.second;
}

// Takes texts apart from the left; once something is not as it must be, all that follows fails.
class Scanner {
 public:
  explicit Scanner(std::string_view text) : rest_(text) {}

  int64_t Digits(size_t count) {
    int64_t number = 0;
    if (rest_.size() < count) ok_ = false;
    for (size_t i = 0; ok_ && i < count; ++i) {
      if (rest_[i] < '0' || rest_[i] > '9') ok_ = false;
      number = number * 10 + (rest_[i] - '0');
    }
    if (ok_) rest_.remove_prefix(count);
    return ok_ ? number : 0;
  }

  void Literal(std::string_view literal) {
    ok_ = ok_ && rest_.starts_with(literal);
    if (ok_) rest_.remove_prefix(literal.size());
  }

  // The index of the word that stands next.
  template <size_t kCount>
  int64_t OneOf(const std::array<std::string_view, kCount>& words) {
    for (size_t i = 0; ok_ && i < kCount; ++i) {
      if (!rest_.starts_with(words[i])) continue;
      rest_.remove_prefix(words[i].size());
      return static_cast<int64_t>(i);
    }
    ok_ = false;
    return 0;
  }

  bool AtEnd() const { return ok_ && rest_.empty(); }

 private:
  std::string_view rest_;
  bool ok_ = true;
};

}  // namespace

std::string FormatAmzDate(int64_t unix_seconds) {
  // A clock so wrong that its year has not four digits is wrong in any case; the service says so.
  const int64_t seconds = std::clamp(unix_seconds, int64_t{0}, kLastSecond);
  const Civil civil = CivilFromDays(seconds / kSecondsOfDay);
  const int64_t of_day = seconds % kSecondsOfDay;
  char text[32];
  std::snprintf(text, sizeof text, "%04d%02d%02dT%02d%02d%02dZ", static_cast<int>(civil.year),
                static_cast<int>(civil.month), static_cast<int>(civil.day),
                static_cast<int>(of_day / 3600), static_cast<int>(of_day / 60 % 60),
                static_cast<int>(of_day % 60));
  return text;
}

std::optional<int64_t> ParseAmzDate(std::string_view text) {
  Scanner scanner(text);
  Civil civil;
  civil.year = scanner.Digits(4);
  civil.month = scanner.Digits(2);
  civil.day = scanner.Digits(2);
  scanner.Literal("T");
  civil.hour = scanner.Digits(2);
  civil.minute = scanner.Digits(2);
  civil.second = scanner.Digits(2);
  scanner.Literal("Z");
  return scanner.AtEnd() ? Seconds(civil) : std::nullopt;
}

std::optional<int64_t> ParseHttpDate(std::string_view text) {
  Scanner scanner(text);
  Civil civil;
  const int64_t weekday = scanner.OneOf(kWeekdays);
  scanner.Literal(", ");
  civil.day = scanner.Digits(2);
  scanner.Literal(" ");
  civil.month = scanner.OneOf(kMonths) + 1;
  scanner.Literal(" ");
  civil.year = scanner.Digits(4);
  scanner.Literal(" ");
  civil.hour = scanner.Digits(2);
  scanner.Literal(":");
  civil.minute = scanner.Digits(2);
  scanner.Literal(":");
  civil.second = scanner.Digits(2);
  scanner.Literal(" GMT");
  const std::optional<int64_t> seconds = scanner.AtEnd() ? Seconds(civil) : std::nullopt;
  if (!seconds) return std::nullopt;
  const int64_t days = DaysFromCivil(civil.year, civil.month, civil.day);
  if (((days % 7) + 7) % 7 != weekday) return std::nullopt;  // one of the two is wrong
  return seconds;
}

}  // namespace leasehold::proto::sigv4

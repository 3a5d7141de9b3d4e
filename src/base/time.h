// Typed time: Duration, MonoTime (CLOCK_BOOTTIME, counts suspends) and WallTime (for people only).
// Types only: nothing here reads a clock; loop/loop.h is the one room that does. The two clocks do
// not mix: there is no conversion between MonoTime and WallTime, so lease logic cannot compare wall
// clocks by accident.
#pragma once

#include <compare>
#include <cstdint>
#include <limits>

namespace leasehold::base {

// A signed span of time in nanoseconds. Arithmetic saturates nowhere: spans here are days at most.
class Duration {
 public:
  constexpr Duration() = default;
  static constexpr Duration Nanos(int64_t n) { return Duration(n); }
  static constexpr Duration Micros(int64_t n) { return Duration(n * 1000); }
  static constexpr Duration Millis(int64_t n) { return Duration(n * 1000000); }
  static constexpr Duration Seconds(int64_t n) { return Duration(n * 1000000000); }
  static constexpr Duration Zero() { return Duration(0); }
  static constexpr Duration Max() { return Duration(std::numeric_limits<int64_t>::max()); }

  constexpr int64_t nanos() const { return nanos_; }
  constexpr int64_t micros() const { return nanos_ / 1000; }
  constexpr int64_t millis() const { return nanos_ / 1000000; }
  constexpr double seconds() const { return static_cast<double>(nanos_) / 1e9; }
  // Whole milliseconds, rounded away from zero time left: for timers, which must never fire early.
  constexpr int64_t millis_ceil() const { return (nanos_ + 999999) / 1000000; }

  constexpr Duration operator+(Duration o) const { return Duration(nanos_ + o.nanos_); }
  constexpr Duration operator-(Duration o) const { return Duration(nanos_ - o.nanos_); }
  constexpr Duration operator-() const { return Duration(-nanos_); }
  constexpr Duration operator*(int64_t k) const { return Duration(nanos_ * k); }
  constexpr Duration operator/(int64_t k) const { return Duration(nanos_ / k); }
  // Scales by a ratio such as a drift bound (0.001); exact to a nanosecond for spans under 100
  // days.
  constexpr Duration Scaled(double factor) const {
    return Duration(static_cast<int64_t>(static_cast<double>(nanos_) * factor));
  }
  constexpr auto operator<=>(const Duration&) const = default;

 private:
  explicit constexpr Duration(int64_t n) : nanos_(n) {}
  int64_t nanos_ = 0;
};

constexpr Duration Min(Duration a, Duration b) { return a < b ? a : b; }
constexpr Duration Max(Duration a, Duration b) { return a < b ? b : a; }

// An instant on this machine's boot clock. Never leaves the machine, never compared with another
// machine's.
class MonoTime {
 public:
  constexpr MonoTime() = default;
  static constexpr MonoTime FromNanos(int64_t n) { return MonoTime(n); }
  static constexpr MonoTime Never() { return MonoTime(std::numeric_limits<int64_t>::max()); }
  constexpr int64_t nanos() const { return nanos_; }
  constexpr bool is_never() const { return *this == Never(); }

  // Never() + anything stays Never().
  constexpr MonoTime operator+(Duration d) const {
    return is_never() ? *this : MonoTime(nanos_ + d.nanos());
  }
  constexpr MonoTime operator-(Duration d) const {
    return is_never() ? *this : MonoTime(nanos_ - d.nanos());
  }
  constexpr Duration operator-(MonoTime o) const { return Duration::Nanos(nanos_ - o.nanos_); }
  constexpr auto operator<=>(const MonoTime&) const = default;

 private:
  explicit constexpr MonoTime(int64_t n) : nanos_(n) {}
  int64_t nanos_ = 0;
};

constexpr MonoTime Min(MonoTime a, MonoTime b) { return a < b ? a : b; }
constexpr MonoTime Max(MonoTime a, MonoTime b) { return a < b ? b : a; }

// Unix time in milliseconds. For people, certificates and signatures; never for lease logic.
struct WallTime {
  int64_t unix_ms = 0;
  constexpr auto operator<=>(const WallTime&) const = default;
};

}  // namespace leasehold::base

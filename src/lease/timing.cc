// The arithmetic of DESIGN 2.2, 2.3 and 2.6: what is derived from a lease's options, and which
// combinations cannot work.
#include <cmath>
#include <cstdio>
#include <string>
#include <utility>

#include "base/text.h"
#include "lease/options.h"
#include "lease/record.h"

namespace leasehold::lease {
namespace {

using base::Duration;
using base::FormatDuration;

constexpr Duration kTtlMin = Duration::Millis(kTtlMillisMin);
constexpr Duration kTtlMax = Duration::Millis(kTtlMillisMax);
constexpr size_t kNameBytesMax = 128;  // a file name (255) with prefix, version and suffix to spare
constexpr int kRenewFailsMax = 20;     // lease/options.h
constexpr double kDriftMax = 0.05;     // 50 times the worst crystal; beyond it a clock is broken
constexpr Duration kMarginFloor = Duration::Millis(20);     // DESIGN 2.2
constexpr Duration kMarginCeiling = Duration::Seconds(1);   // DESIGN 2.2, of the default only
constexpr Duration kCallTimeoutMax = Duration::Seconds(5);  // DESIGN 2.3: default and reserve
constexpr Duration kPollMin = Duration::Millis(250);        // DESIGN 2.6
constexpr Duration kPollMax = Duration::Seconds(5);         // DESIGN 2.6
constexpr Duration kHoldOff = Duration::Seconds(5);         // DESIGN 2.5
constexpr Duration kHoldOffRoom = Duration::Seconds(1);     // past what a standby needs, when slow
constexpr Duration kFrozenFloor = Duration::Millis(100);    // above any scheduling hiccup
constexpr Duration kSpanFloor = Duration::Millis(10);       // below it, timers are mostly overhead
constexpr Duration kBudgetFloor = Duration::Millis(30);     // three calls of kSpanFloor
constexpr Duration kGraceMax = Duration::Seconds(3600);  // an hour: a longer drain is a stuck one

// A limit as people may type it back: whole milliseconds on the allowed side.
std::string AtMost(Duration d) { return FormatDuration(Duration::Millis(d.millis())); }
std::string AtLeast(Duration d) { return FormatDuration(Duration::Millis(d.millis_ceil())); }

Duration MarginFloor(const Options& o) {
  return Max(kMarginFloor, o.ttl.Scaled(2 * o.max_clock_drift));
}

Duration Margin(const Options& o) {
  if (o.safety_margin) return *o.safety_margin;
  return Max(Min(o.ttl / 50, kMarginCeiling), MarginFloor(o));
}

Duration Budget(const Options& o) { return o.ttl * 3 / (int64_t{o.max_renew_fails} * 4); }

Duration CallTimeout(const Options& o) {
  if (o.renew_call_timeout) return *o.renew_call_timeout;
  return Min(kCallTimeoutMax, Min(o.ttl / 6, Budget(o) / 3));
}

// The longest wait that leaves room in a round for its 1/8 of jitter and one call.
Duration RenewIntervalMax(const Options& o) {
  return (Budget(o) - Min(CallTimeout(o), kCallTimeoutMax)) * 8 / 9;
}

Duration PollInterval(const Options& o) {
  if (o.poll_interval) return *o.poll_interval;
  return Max(kPollMin, Min(o.ttl / 10, kPollMax));
}

Duration HoldOffMin(const Options& o) { return PollInterval(o) + CallTimeout(o); }

Duration HoldOff(const Options& o) {
  if (o.step_down_hold_off) return *o.step_down_hold_off;
  return Max(kHoldOff, HoldOffMin(o) + kHoldOffRoom);
}

std::string Line(std::string_view option, const std::string& value, const std::string& sentence) {
  return std::string(option) + " = " + value + ": " + sentence;
}

class Checker {
 public:
  void Bad(std::string_view option, const std::string& value, const std::string& sentence) {
    errors_.push_back({base::ErrorCode::kInvalid, Line(option, value, sentence)});
  }
  void Bad(std::string_view option, Duration value, const std::string& sentence) {
    Bad(option, FormatDuration(value), sentence);
  }
  bool Within(std::string_view option, Duration value, Duration low, Duration high) {
    if (low <= value && value <= high) return true;
    Bad(option, value, "must be from " + AtLeast(low) + " to " + AtMost(high));
    return false;
  }
  std::vector<base::Error> Take() { return std::exchange(errors_, {}); }
  bool clean() const { return errors_.empty(); }

 private:
  std::vector<base::Error> errors_;
};

bool IsNameByte(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
         c == '_' || c == '-';
}

void CheckName(const Options& o, Checker& out) {
  bool good = !o.name.empty() && o.name.size() <= kNameBytesMax && o.name[0] != '.';
  for (const char c : o.name) good = good && IsNameByte(c);
  if (good) return;
  out.Bad("name", "\"" + base::Printable(o.name) + "\"",
          "must be 1 to 128 letters, digits, '.', '_' or '-', and not begin with '.'");
}

// What every derivation divides by or multiplies with. Without these right nothing else is judged.
void CheckBasics(const Options& o, Checker& out) {
  if (out.Within("ttl", o.ttl, kTtlMin, kTtlMax) && o.ttl.nanos() % 1000000 != 0) {
    out.Bad("ttl", o.ttl, "must be whole milliseconds, because the lease record keeps it so");
  }
  if (o.max_renew_fails < 1 || o.max_renew_fails > kRenewFailsMax) {
    out.Bad("max_renew_fails", std::to_string(o.max_renew_fails), "must be from 1 to 20");
  }
  if (!(o.max_clock_drift >= 0 && o.max_clock_drift <= kDriftMax)) {
    char value[32];
    std::snprintf(value, sizeof value, "%g", o.max_clock_drift);
    out.Bad("max_clock_drift", value, "must be from 0 to 0.05 (a ratio: 0.001 is 0.1 %)");
  }
  out.Within("step_down_grace", o.step_down_grace, Duration::Zero(), kGraceMax);
  out.Within("drain_tunnels", o.drain_tunnels, Duration::Zero(), kGraceMax);
}

void CheckMargin(const Options& o, Checker& out) {
  if (!o.safety_margin) return;
  const Duration floor = MarginFloor(o);
  const Duration ceiling = o.ttl / 8;
  if (*o.safety_margin < floor) {
    out.Bad("safety_margin", *o.safety_margin,
            "must be at least " + AtLeast(floor) +
                ": 20ms, and twice max_clock_drift over the ttl, or two clocks that differ in "
                "rate could show two holders");
  } else if (*o.safety_margin > ceiling) {
    out.Bad("safety_margin", *o.safety_margin,
            "must be at most " + AtMost(ceiling) +
                ", an eighth of the ttl, so that the forced drain at 7/8 of the ttl still has a "
                "permit to drain with");
  }
}

void CheckRenewal(const Options& o, Checker& out) {
  const Duration budget = Budget(o);
  if (budget < kBudgetFloor) {
    const int64_t fails_max = (o.ttl * 3).nanos() / (kBudgetFloor * 4).nanos();
    out.Bad("max_renew_fails", std::to_string(o.max_renew_fails),
            "with ttl = " + FormatDuration(o.ttl) + " a renewal round would last only " +
                FormatDuration(budget) + "; at most " + std::to_string(fails_max) +
                ", or a longer ttl");
    return;
  }
  if (o.renew_call_timeout &&
      !out.Within("renew_call_timeout", *o.renew_call_timeout, kSpanFloor, budget / 2)) {
    return;
  }
  if (!o.renew_interval) return;
  const Duration longest = RenewIntervalMax(o);
  if (*o.renew_interval < kSpanFloor) {
    out.Bad("renew_interval", *o.renew_interval,
            "must be from " + AtLeast(kSpanFloor) + " to " + AtMost(longest));
  } else if (*o.renew_interval > longest) {
    out.Bad("renew_interval", *o.renew_interval,
            "leaves no room for its jitter and one call of " + FormatDuration(CallTimeout(o)) +
                " in a round of " + FormatDuration(budget) + " (ttl x 3 / (max_renew_fails x 4)" +
                "); at most " + AtMost(longest) + ", or a longer ttl");
  }
}

void CheckStandby(const Options& o, Checker& out) {
  if (o.poll_interval && !out.Within("poll_interval", *o.poll_interval, kSpanFloor, o.ttl)) return;
  if (!o.step_down_hold_off) return;
  const Duration floor = HoldOffMin(o);
  if (*o.step_down_hold_off > kGraceMax) {
    out.Bad("step_down_hold_off", *o.step_down_hold_off,
            "must be at most " + FormatDuration(kGraceMax));
  } else if (*o.step_down_hold_off <= floor) {
    out.Bad("step_down_hold_off", *o.step_down_hold_off,
            "must exceed poll_interval + renew_call_timeout = " + AtLeast(floor) +
                ", or the lease is taken back before a standby could see it free");
  }
}

std::string Ratio(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f", value);
  return text;
}

}  // namespace

std::vector<base::Error> Validate(const Options& options) {
  Checker out;
  CheckName(options, out);
  Checker basics;
  CheckBasics(options, basics);
  const bool derivable = basics.clean();
  std::vector<base::Error> errors = out.Take();
  for (base::Error& error : basics.Take()) errors.push_back(std::move(error));
  if (!derivable) return errors;
  CheckMargin(options, out);
  CheckRenewal(options, out);
  CheckStandby(options, out);
  for (base::Error& error : out.Take()) errors.push_back(std::move(error));
  return errors;
}

std::vector<std::string> Warnings(const Options& o) {
  std::vector<std::string> warnings;
  const auto warn = [&](std::string_view option, const std::string& value,
                        const std::string& sentence) {
    warnings.push_back(Line(option, value, sentence));
  };
  const Timing t = Derive(o);
  if (o.ttl < Duration::Seconds(2)) {
    warn("ttl", FormatDuration(o.ttl),
         "a holder that the store or the host stalls for " + FormatDuration(t.ttl - t.margin) +
             " is cut off, and " + Ratio(1 / t.renew_interval.seconds()) +
             " renewals a second are written; 2s or more rides out ordinary stalls");
  }
  if (o.ttl > Duration::Seconds(120)) {
    warn("ttl", FormatDuration(o.ttl),
         "after a crash nobody serves for up to " + FormatDuration(t.Window(o.ttl)) +
             "; above 120s little is saved in store requests");
  }
  if (o.max_clock_drift == 0) {
    warn("max_clock_drift", "0", "no two clocks run at one rate; 0.001 allows for 0.1 %");
  }
  if (o.max_renew_fails == 1) {
    warn("max_renew_fails", "1", "one round without an answer already starts a step-down");
  }
  if (o.renew_call_timeout && *o.renew_call_timeout < Duration::Millis(50)) {
    warn("renew_call_timeout", FormatDuration(*o.renew_call_timeout),
         "an answer of the store slower than this counts as a failed renewal");
  }
  if (o.drain_tunnels != Options{}.drain_tunnels && o.drain_tunnels > o.step_down_grace) {
    warn("drain_tunnels", FormatDuration(o.drain_tunnels),
         "step_down_grace = " + FormatDuration(o.step_down_grace) + " ends tunnels sooner");
  }
  if (o.step_down_grace < Duration::Millis(100)) {
    warn("step_down_grace", FormatDuration(o.step_down_grace),
         "a step-down cuts what is in flight instead of waiting for it");
  }
  return warnings;
}

Timing Derive(const Options& o) {
  Timing t;
  t.ttl = o.ttl;
  t.margin = Margin(o);
  t.budget = Budget(o);
  t.call_timeout = CallTimeout(o);
  t.renew_interval = o.renew_interval ? *o.renew_interval : RenewIntervalMax(o);
  t.forced_drain_after = Max(o.ttl - t.margin - o.step_down_grace, o.ttl * 7 / 8);
  t.grace = o.step_down_grace;
  t.hold_off = HoldOff(o);
  t.poll_interval = PollInterval(o);
  t.frozen_after = Max(t.margin, kFrozenFloor);
  t.max_renew_fails = o.max_renew_fails;
  t.drift = o.max_clock_drift;
  return t;
}

}  // namespace leasehold::lease

// Options of one lease as configured, and Timing: every duration derived from them
// (DESIGN 2.2, 2.3, 2.6). The derivation is pure; `leasehold check` prints what it gives.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/time.h"

namespace leasehold::lease {

enum class OnTokenRegression { kContinue, kRefuse };

struct Options {
  std::string name;
  base::Duration ttl = base::Duration::Seconds(10);
  std::optional<base::Duration> renew_interval;      // unset: derived
  int max_renew_fails = 3;                           // 1..20
  std::optional<base::Duration> renew_call_timeout;  // unset: derived
  std::optional<base::Duration> safety_margin;       // unset: derived
  double max_clock_drift = 0.001;                    // ratio, 0..0.05
  base::Duration step_down_grace = base::Duration::Seconds(20);
  base::Duration drain_tunnels = base::Duration::Seconds(2);
  std::optional<base::Duration>
      step_down_hold_off;                       // unset: 5 s, more where TTL and polls are slow
  std::optional<base::Duration> poll_interval;  // unset: derived
  bool fail_if_held = false;
  OnTokenRegression on_token_regression = OnTokenRegression::kContinue;
  // False where a read may show a write that is not yet durable (redis with wait_replicas): then
  // only the write's own answer confirms it. Set by app from the store's options, not by the user.
  bool reads_confirm = true;
};

// All derived durations of a lease. Source of the arithmetic: DESIGN 2.2 and 2.3; the worked
// example (ttl 300 s, interval about 62 s) is the first seed document's.
struct Timing {
  base::Duration ttl;
  base::Duration margin;              // the permit ends this long before sent + ttl
  base::Duration budget;              // length of one renewal round
  base::Duration call_timeout;        // one store call
  base::Duration renew_interval;      // plus 0..1/8 of it, per wait
  base::Duration forced_drain_after;  // since the last confirmed sending
  base::Duration grace;
  base::Duration hold_off;
  base::Duration poll_interval;
  base::Duration
      frozen_after;  // a wake-up later than this after expiry means the host or process was frozen
  int max_renew_fails = 3;
  double drift = 0.001;

  // A standby's observation window over a record with this TTL.
  base::Duration Window(base::Duration record_ttl) const {
    return record_ttl + record_ttl.Scaled(drift);
  }
};

// All errors at once. Each message is "<option> = <value>: <sentence saying what would be right>",
// so that config can put file and line before it.
std::vector<base::Error> Validate(const Options& options);
// What `check` warns of: risky but allowed (TTL below 2 s or above 120 s, ...). Same form.
std::vector<std::string> Warnings(const Options& options);
// Options must have passed Validate().
Timing Derive(const Options& options);

}  // namespace leasehold::lease

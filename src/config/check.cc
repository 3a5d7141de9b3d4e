// What `leasehold check` prints: the derived timings, the reference, and the configuration as JSON.
#include <cstdio>
#include <string>

#include "base/json_writer.h"
#include "base/text.h"
#include "config/config.h"
#include "config/option_table.h"
#include "config/option_value.h"

namespace leasehold::config {
namespace {

using base::Duration;
using base::FormatDuration;

std::string TypeOf(std::string_view section, const Scope& scope) {
  if (section == "store") return scope.config->store.type;
  if (section == "gate") return std::string(gate::TypeName(scope.gate->type));
  return "";
}

void WriteTable(std::string_view section, const Scope& scope, base::JsonWriter& out) {
  const std::string type = TypeOf(section, scope);
  for (const Option& option : Options()) {
    if (option.section != section) continue;
    if (!AppliesTo(option, type)) continue;
    out.Key(option.key);
    WriteValue(option, scope, out);
  }
}

void WriteTiming(const lease::Timing& t, base::JsonWriter& out) {
  out.Key("derived").BeginObject();
  out.Member("safety_margin", FormatDuration(t.margin));
  out.Member("renewal_round", FormatDuration(t.budget));
  out.Member("renew_call_timeout", FormatDuration(t.call_timeout));
  out.Member("renew_interval", FormatDuration(t.renew_interval));
  out.Member("forced_drain_after", FormatDuration(t.forced_drain_after));
  out.Member("permit_length", FormatDuration(t.ttl - t.margin));
  out.Member("observation_window", FormatDuration(t.Window(t.ttl)));
  out.Member("poll_interval", FormatDuration(t.poll_interval));
  out.Member("step_down_hold_off", FormatDuration(t.hold_off));
  out.Member("frozen_after", FormatDuration(t.frozen_after));
  out.EndObject();
}

std::string Line(std::string_view name, const std::string& value, const std::string& meaning) {
  char line[256];
  std::snprintf(line, sizeof line, "  %-22.*s %-10s %s\n", static_cast<int>(name.size()),
                name.data(), value.c_str(), meaning.c_str());
  return line;
}

std::string Origin(bool configured) { return configured ? "as configured" : "derived"; }

std::string DescribeLease(const lease::Options& options) {
  const lease::Timing t = lease::Derive(options);
  char renewals[32];
  std::snprintf(renewals, sizeof renewals, "%.0f",
                3600 / (t.renew_interval.seconds() * 17 / 16));  // 1/16: the mean of the jitter
  std::string out = "lease " + options.name + "\n";
  out += Line("ttl", FormatDuration(t.ttl), "counted from when a confirmed renewal was sent");
  out += Line("safety_margin", FormatDuration(t.margin),
              Origin(options.safety_margin.has_value()) + "; the permit ends after " +
                  FormatDuration(t.ttl - t.margin));
  out += Line("renewal round", FormatDuration(t.budget),
              "ttl x 3 / (max_renew_fails x 4); " + std::to_string(t.max_renew_fails) +
                  " may fail in a row");
  out += Line("renew_call_timeout", FormatDuration(t.call_timeout),
              Origin(options.renew_call_timeout.has_value()));
  out += Line("renew_interval", FormatDuration(t.renew_interval),
              Origin(options.renew_interval.has_value()) + ", plus up to " +
                  FormatDuration(t.renew_interval / 8) + "; about " + renewals +
                  " writes to the store an hour");
  out += Line("forced drain", FormatDuration(t.forced_drain_after),
              "after the last confirmed renewal; a shorter store outage goes unnoticed");
  out += Line("step_down_grace", FormatDuration(t.grace),
              "a planned drain; one for failed renewals has at most " +
                  FormatDuration(Min(t.grace, t.ttl - t.margin - t.forced_drain_after)));
  out += Line("drain_tunnels", FormatDuration(Min(options.drain_tunnels, t.grace)),
              "of the grace, for WebSockets and raw TCP");
  out += Line("step_down_hold_off", FormatDuration(t.hold_off),
              Origin(options.step_down_hold_off.has_value()) + "; then it is taken back");
  out +=
      Line("poll_interval", FormatDuration(t.poll_interval),
           Origin(options.poll_interval.has_value()) + "; standbys, where the store cannot push");
  out += Line("observation window", FormatDuration(t.Window(t.ttl)),
              "a standby takes over so long after the last change it saw");
  out += Line("frozen after", FormatDuration(t.frozen_after),
              "woken later than this past expiry: reason host_frozen");
  return out;
}

std::string Plain(std::string_view range) {
  std::string out;
  for (const std::string_view word : Words(range)) {
    if (!word.empty()) out += (out.empty() ? "" : " | ") + std::string(word);
  }
  return out;
}

std::string DescribeOption(const Option& option) {
  std::string out = option.default_text.empty()
                        ? std::string(option.key) + "   (must be given)"
                        : std::string(option.key) + " = " + std::string(option.default_text);
  out += "\n    " + std::string(KindName(option.kind));
  if (!option.range.empty()) out += ": " + Plain(option.range);
  if (!option.applies_to.empty()) out += "; only for type = " + TypesOf(option, " or ");
  if (option.secret) out += "; a secret";
  return out + "\n    " + std::string(option.why) + "\n";
}

}  // namespace

std::string ToJson(const Config& config) {
  Config copy = config;
  std::string text;
  base::JsonWriter out(text);
  out.BeginObject();
  for (const std::string_view section : Sections()) {
    out.Key(section);
    if (section == "lease") {
      out.BeginArray();
      for (lease::Options& lease : copy.leases) {
        out.BeginObject();
        WriteTable(section, {&copy, &lease, nullptr}, out);
        WriteTiming(lease::Derive(lease), out);
        out.EndObject();
      }
      out.EndArray();
    } else if (section == "gate") {
      out.BeginArray();
      for (gate::Options& gate : copy.gates) {
        out.BeginObject();
        WriteTable(section, {&copy, nullptr, &gate}, out);
        out.EndObject();
      }
      out.EndArray();
    } else {
      out.BeginObject();
      WriteTable(section, {&copy, nullptr, nullptr}, out);
      out.EndObject();
    }
  }
  out.EndObject();
  return text;
}

std::string DescribeTimings(const Config& config) {
  std::string out;
  for (const lease::Options& lease : config.leases) {
    if (!out.empty()) out += "\n";
    out += DescribeLease(lease);
    for (const gate::Options& gate : config.gates) {
      const bool holds = gate.standby == gate::StandbyPolicy::kHold || gate.forwards();
      if (gate.lease != lease.name || !holds) continue;
      out += Line("gate " + gate.name, FormatDuration(gate.hold_timeout),
                  "hold_timeout: what comes while nobody holds waits so long");
    }
  }
  return out;
}

std::string DescribeOptions() {
  std::string out;
  for (const std::string_view section : Sections()) {
    const std::string name(section);
    out += (out.empty() ? "" : "\n") +
           (IsRepeated(section) ? "[[" + name + "]]\n" : "[" + name + "]\n");
    for (const Option& option : Options()) {
      if (option.section == section) out += DescribeOption(option);
    }
  }
  return out;
}

}  // namespace leasehold::config

// Scenario::Describe: the head of a trace.
#include <cstdarg>
#include <cstdio>
#include <string>

#include "lease/options.h"
#include "simulation/scenario.h"

namespace leasehold::simulation {
namespace {

const char* StartName(StorePlan::Start start) {
  switch (start) {
    case StorePlan::Start::kAbsent: return "absent";
    case StorePlan::Start::kReleased: return "released";
    case StorePlan::Start::kHeldByDead: return "held by a dead process";
    case StorePlan::Start::kUnusable: return "unusable";
    case StorePlan::Start::kNearlyExhausted: return "three tokens left";
  }
  return "?";
}

double S(TrueNs t) { return static_cast<double>(t) / 1e9; }

__attribute__((format(printf, 2, 3))) void Append(std::string& text, const char* format, ...) {
  char line[256];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(line, sizeof line, format, arguments);
  va_end(arguments);
  text += line;
}

void AppendNode(std::string& text, const NodePlan& node) {
  const lease::Timing t = lease::Derive(node.options);
  Append(
      text, "  %s: ttl %.3f margin %.3f interval %.3f call %.3f poll %.3f grace %.3f hold-off %.3f",
      node.node_id.c_str(), t.ttl.seconds(), t.margin.seconds(), t.renew_interval.seconds(),
      t.call_timeout.seconds(), t.poll_interval.seconds(), t.grace.seconds(), t.hold_off.seconds());
  Append(text, " fails %d, clock %+.0f ppm, starts at %.3f%s%s%s%s\n", t.max_renew_fails,
         static_cast<double>(node.clock_rate_ppb) / 1000, S(node.starts_at),
         node.keeps_memory ? ", state_dir" : "", node.push ? ", push" : "",
         node.options.fail_if_held ? ", fail_if_held" : "",
         node.options.on_token_regression == lease::OnTokenRegression::kRefuse
             ? ", refuses token regression"
             : "");
  for (const gate::Options& gate : node.gates) {
    Append(text, "    gate %s: standby %s, hold_timeout %.3f, max_held %u%s\n", gate.name.c_str(),
           gate.forwards()                              ? "forward"
           : gate.standby == gate::StandbyPolicy::kHold ? "hold"
                                                        : "reject",
           gate.hold_timeout.seconds(), gate.max_held,
           gate.on_loss == gate::OnLoss::kFinish ? ", on_loss finish" : "");
  }
}

void AppendRate(std::string& text, const char* name, double rate) {
  if (rate > 0) Append(text, " %s %.3f", name, rate);
}

}  // namespace

std::string Scenario::Describe() const {
  std::string text;
  Append(text, "seed %llu: %s, %zu nodes, faults end at %.3f s, settled within %.3f s\n",
         static_cast<unsigned long long>(seed), KindName(kind), nodes.size(), S(faults_end),
         S(settle_bound));
  for (const NodePlan& node : nodes) AppendNode(text, node);
  if (!changed.empty()) text += "  and after some restarts:\n";
  for (const NodePlan& node : changed) AppendNode(text, node);
  Append(text, "  store: starts %s, leg %.6f s, tail", StartName(store.start), S(store.typical));
  Append(text, " %.3f up to %.3f s%s%s;", store.tail, S(store.tail_max),
         store.proves_death ? ", proves death" : "",
         store.numbered_versions ? ", numbered versions" : "");
  AppendRate(text, "lost request", store.lost_request);
  AppendRate(text, "lost reply", store.lost_reply);
  AppendRate(text, "reset", store.reset);
  AppendRate(text, "doubled", store.doubled);
  AppendRate(text, "replicas missing", store.replicas_missing);
  AppendRate(text, "bare conflict", store.conflict_bare);
  text += "\n  faults per TTL:";
  AppendRate(text, "freeze", faults.freeze);
  AppendRate(text, "suspend", faults.suspend);
  AppendRate(text, "crash", faults.crash);
  AppendRate(text, "app flap", faults.app_flap);
  AppendRate(text, "step-down", faults.step_down);
  AppendRate(text, "shutdown", faults.shutdown);
  AppendRate(text, "outage", faults.outage);
  AppendRate(text, "cut off", faults.cut_off);
  AppendRate(text, "refusal", faults.refusal);
  AppendRate(text, "lost writes", faults.lost_writes);
  AppendRate(text, "push flap", faults.push_flap);
  AppendRate(text, "spurious hint", faults.spurious_hint);
  AppendRate(text, "start failed", faults.start_failed);
  AppendRate(text, "stray drained", faults.stray_drained);
  AppendRate(text, "peer breaks (of each message)", faults.peer_break);
  AppendRate(text, "cut short (of each write)", faults.cut_short);
  AppendRate(text, "rate change", faults.rate_change);
  AppendRate(text, "wall step", faults.wall_step);
  return text + "\n";
}

}  // namespace leasehold::simulation

#include "admin/lease_metrics.h"

#include <unistd.h>

#include <array>
#include <cstdint>
#include <fstream>
#include <string>

#include "admin/views_json.h"
#include "lease/events.h"

namespace leasehold::admin {
namespace {

using observe::Labels;
using observe::Samples;

constexpr std::array kStates = {lease::State::kStandby,   lease::State::kAcquiring,
                                lease::State::kActive,    lease::State::kDraining,
                                lease::State::kReleasing, lease::State::kHoldOff,
                                lease::State::kStopped};

double Flag(bool on) { return on ? 1 : 0; }

void AddState(Samples& samples, const LeaseView& lease) {
  for (const lease::State state : kStates) {
    samples.Gauge("leasehold_lease_state",
                  "1 for the state the lease is in here, 0 for the others.",
                  {{"lease", lease.view.lease}, {"state", std::string(lease::StateName(state))}},
                  Flag(lease.view.state == state));
  }
}

void AddLease(Samples& samples, const LeaseView& lease, const NodeView& node) {
  const Labels labels = {{"lease", lease.view.lease}};
  AddState(samples, lease);
  samples.Gauge("leasehold_lease_holding", "1 while this process may act under the lease.", labels,
                Flag(lease.may_act));
  samples.Gauge("leasehold_lease_token",
                "Fencing token: ours while holding, else the highest seen. A gauge rounds above "
                "2^53; leasehold_lease_info has it exactly.",
                labels, static_cast<double>(lease.view.token));
  const HolderView holder = HolderOf(lease, node);
  samples.Gauge("leasehold_lease_info",
                "Who holds the lease as far as this process knows, with the exact token.",
                {{"lease", lease.view.lease},
                 {"token", std::to_string(lease.view.token)},
                 {"holder_node_id", holder.node_id},
                 {"holder_process_id", holder.process_id}},
                1);
  samples.Gauge("leasehold_lease_seconds_to_expiry",
                "Until the permit ends without another renewal; 0 when not holding.", labels,
                lease.may_act ? lease.to_expiry.seconds() : 0);
  samples.Gauge("leasehold_lease_ttl_seconds", "Lifetime of the lease after a renewal.", labels,
                lease.timing.ttl.seconds());
  samples.Gauge("leasehold_lease_at_risk", "1 while the last renewal round failed.", labels,
                Flag(lease.view.at_risk));
  samples.Gauge("leasehold_lease_failed_rounds", "Renewal rounds that failed in a row.", labels,
                lease.view.failed_rounds);
  samples.Gauge("leasehold_lease_store_fresh",
                "1 while the store has answered about this lease within one TTL.", labels,
                Flag(lease.store_answered_within_ttl));
}

void AddNode(Samples& samples, const NodeView& node) {
  samples.Gauge("leasehold_store_connected", "1 while the store is connected.", {},
                Flag(node.store_connected));
  samples.Gauge("leasehold_app_ready",
                "1 while the application is ready, or nobody checks whether it is.", {},
                Flag(node.app_ready || !node.app_checked));
  samples.Gauge("leasehold_build_info", "The version that runs.", {{"version", node.version}}, 1);
  samples.Gauge("leasehold_start_time_seconds", "When this process started, Unix time.", {},
                static_cast<double>(node.started_at.unix_ms) / 1000);
  samples.Gauge("leasehold_troubles", "Things that are degraded now; /v1/status names them.", {},
                static_cast<double>(node.troubles.size()));
}

// The second number of /proc/self/statm, in pages (proc(5)). A read of procfs touches no disk.
void AddMemory(Samples& samples) {
  std::ifstream statm("/proc/self/statm");
  uint64_t total_pages = 0;
  uint64_t resident_pages = 0;
  if (!(statm >> total_pages >> resident_pages)) return;
  samples.Gauge("leasehold_memory_resident_bytes", "Resident memory of this process.", {},
                static_cast<double>(resident_pages) * static_cast<double>(sysconf(_SC_PAGESIZE)));
}

}  // namespace

void AddLeaseMetrics(observe::Metrics& metrics, const Control& control, loop::Loop& loop) {
  metrics.AddCollector([&control, &loop](Samples& samples) {
    const NodeView node = control.node();
    for (const LeaseView& lease : control.leases()) AddLease(samples, lease, node);
    AddNode(samples, node);
    samples.Gauge("leasehold_loop_lateness_seconds",
                  "The longest the event loop was late since the last scrape.", {},
                  loop.TakeLateness().seconds());
    AddMemory(samples);
  });
}

}  // namespace leasehold::admin

// Lease metrics: what Prometheus sees of leases, store, application, loop and process. All of them
// are states, computed at scrape from Control, so that no gauge can be stale (CASES 15). Counters
// of what happened are kept where it happens, not here.
#pragma once

#include "admin/control.h"
#include "loop/loop.h"
#include "observe/metrics.h"

namespace leasehold::admin {

// `control` and `loop` must outlive `metrics`.
void AddLeaseMetrics(observe::Metrics& metrics, const Control& control, loop::Loop& loop);

}  // namespace leasehold::admin

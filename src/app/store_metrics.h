// Store metrics: what a store adapter counted of its operations, read at scrape. Adapters keep
// plain numbers and know nothing of Prometheus; this is where the two meet.
#pragma once

#include "observe/metrics.h"
#include "store/lease_store.h"

namespace leasehold::app {

// `store` must outlive the last scrape of `metrics`.
void AddStoreMetrics(observe::Metrics& metrics, const store::LeaseStore& store);

}  // namespace leasehold::app

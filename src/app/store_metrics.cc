#include "app/store_metrics.h"

namespace leasehold::app {

void AddStoreMetrics(observe::Metrics& metrics, const store::LeaseStore& store) {
  metrics.AddCollector([&store](observe::Samples& samples) {
    const store::StoreStats stats = store.stats();
    for (const auto& [key, count] : stats.operations) {
      samples.CounterValue(
          "leasehold_store_operations_total", "Store operations, by operation and result.",
          {{"operation", key.first}, {"result", key.second}}, static_cast<double>(count));
    }
    samples.Gauge("leasehold_store_last_latency_seconds",
                  "How long the last answered store operation took.", {},
                  stats.last_latency.seconds());
  });
}

}  // namespace leasehold::app

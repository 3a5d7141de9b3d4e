#include "observe/metrics.h"

#include <prometheus/collectable.h>
#include <prometheus/text_serializer.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "base/check.h"

namespace leasehold::observe {
namespace {

using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;

std::vector<ClientMetric::Label> ToLabels(const Labels& labels) {
  std::vector<ClientMetric::Label> out;
  out.reserve(labels.size());
  for (const auto& [name, value] : labels) out.push_back({name, value});
  return out;
}

ClientMetric Convert(const Labels& labels, const Histogram& cell) {
  ClientMetric metric;
  metric.label = ToLabels(labels);
  uint64_t cumulative = 0;
  for (size_t i = 0; i < cell.counts().size(); ++i) {
    cumulative += cell.counts()[i];
    const double bound =
        i < cell.bounds().size() ? cell.bounds()[i] : std::numeric_limits<double>::infinity();
    metric.histogram.bucket.push_back({cumulative, bound});
  }
  metric.histogram.sample_count = cumulative;
  metric.histogram.sample_sum = cell.sum();
  return metric;
}

// One family per name, whoever contributes to it, so that HELP and TYPE come once.
class Families final : public Samples {
 public:
  void Gauge(const std::string& name, const std::string& help, const Labels& labels,
             double value) override {
    ClientMetric metric;
    metric.label = ToLabels(labels);
    metric.gauge.value = value;
    Add(name, help, MetricType::Gauge, std::move(metric));
  }
  void CounterValue(const std::string& name, const std::string& help, const Labels& labels,
                    double value) override {
    ClientMetric metric;
    metric.label = ToLabels(labels);
    metric.counter.value = value;
    Add(name, help, MetricType::Counter, std::move(metric));
  }
  void Add(const std::string& name, const std::string& help, MetricType type, ClientMetric metric) {
    MetricFamily& family = families_[name];
    if (family.metric.empty()) {
      family.name = name;
      family.help = help;
      family.type = type;
    }
    CHECK(family.type == type, "one metric name is used with two types");
    family.metric.push_back(std::move(metric));
  }
  std::vector<MetricFamily> Take() {
    std::vector<MetricFamily> out;
    out.reserve(families_.size());
    for (auto& [name, family] : families_) out.push_back(std::move(family));
    return out;
  }

 private:
  std::map<std::string, MetricFamily> families_;
};

template <typename Cell>
struct Family {
  std::string help;
  std::map<Labels, std::unique_ptr<Cell>> cells;
};

}  // namespace

Histogram::Histogram(std::vector<double> bounds)
    : bounds_(std::move(bounds)), counts_(bounds_.size() + 1, 0) {
  CHECK(std::is_sorted(bounds_.begin(), bounds_.end()), "histogram bounds must rise");
}

void Histogram::Observe(double seconds) {
  if (!std::isfinite(seconds)) return;
  size_t i = 0;
  while (i < bounds_.size() && seconds > bounds_[i]) ++i;
  ++counts_[i];
  sum_ += seconds;
}

struct Metrics::Impl final : public prometheus::Collectable {
  std::vector<MetricFamily> Collect() const override {
    Families families;
    for (const auto& [name, family] : counters) {
      for (const auto& [labels, cell] : family.cells) {
        families.CounterValue(name, family.help, labels, static_cast<double>(cell->value()));
      }
    }
    for (const auto& [name, family] : histograms) {
      for (const auto& [labels, cell] : family.cells) {
        families.Add(name, family.help, MetricType::Histogram, Convert(labels, *cell));
      }
    }
    for (const auto& collector : collectors) collector(families);
    return families.Take();
  }

  std::map<std::string, Family<Counter>> counters;
  std::map<std::string, Family<Histogram>> histograms;
  std::vector<std::function<void(Samples&)>> collectors;
};

Metrics::Metrics() : impl_(std::make_unique<Impl>()) {}
Metrics::~Metrics() = default;

Counter& Metrics::AddCounter(const std::string& name, const std::string& help,
                             const Labels& labels) {
  CHECK(!impl_->histograms.contains(name), "a counter bears the name of a histogram");
  Family<Counter>& family = impl_->counters[name];
  if (family.cells.empty()) family.help = help;
  std::unique_ptr<Counter>& cell = family.cells[labels];
  if (cell == nullptr) cell = std::make_unique<Counter>();
  return *cell;
}

Histogram& Metrics::AddHistogram(const std::string& name, const std::string& help,
                                 const Labels& labels, std::vector<double> bounds_seconds) {
  CHECK(!impl_->counters.contains(name), "a histogram bears the name of a counter");
  Family<Histogram>& family = impl_->histograms[name];
  if (family.cells.empty()) family.help = help;
  std::unique_ptr<Histogram>& cell = family.cells[labels];
  if (cell == nullptr) cell = std::make_unique<Histogram>(std::move(bounds_seconds));
  return *cell;
}

void Metrics::AddCollector(std::function<void(Samples&)> collector) {
  impl_->collectors.push_back(std::move(collector));
}

std::string Metrics::Scrape() const {
  return prometheus::TextSerializer().Serialize(impl_->Collect());
}

std::vector<double> LatencyBounds() {
  // 0.5 ms (a loopback round trip with work) to 10 s (the default TTL), about 2.5 x apart.
  return {0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10};
}

}  // namespace leasehold::observe

// Metrics: Prometheus text exposition. Counters and histograms are resolved once and bumped in
// place; states are computed at scrape by collectors. The one door to prometheus-cpp is metrics.cc.
// Names start with "leasehold_".
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace leasehold::observe {

using Labels = std::map<std::string, std::string>;

// Plain 64-bit cells: an increment is an add. Stable address; valid as long as the Metrics.
class Counter {
 public:
  void Add(uint64_t n = 1) { value_ += n; }
  uint64_t value() const { return value_; }

 private:
  uint64_t value_ = 0;
};

// Fixed upper bounds in seconds; Observe is a short linear search.
class Histogram {
 public:
  explicit Histogram(std::vector<double> bounds);
  void Observe(double seconds);
  const std::vector<double>& bounds() const { return bounds_; }
  const std::vector<uint64_t>& counts() const {
    return counts_;
  }  // one more than bounds: the last is +Inf
  double sum() const { return sum_; }

 private:
  std::vector<double> bounds_;
  std::vector<uint64_t> counts_;
  double sum_ = 0;
};

// Written to by a collector at scrape time.
class Samples {
 public:
  virtual ~Samples() = default;
  virtual void Gauge(const std::string& name, const std::string& help, const Labels& labels,
                     double value) = 0;
  virtual void CounterValue(const std::string& name, const std::string& help, const Labels& labels,
                            double value) = 0;
};

class Metrics {
 public:
  Metrics();
  ~Metrics();
  // The same name and labels give the same cell. Help of the first call wins.
  Counter& AddCounter(const std::string& name, const std::string& help, const Labels& labels);
  Histogram& AddHistogram(const std::string& name, const std::string& help, const Labels& labels,
                          std::vector<double> bounds_seconds);
  void AddCollector(std::function<void(Samples&)> collector);
  // Prometheus text format 0.0.4.
  std::string Scrape() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// Default latency bounds: 0.5 ms to 10 s.
std::vector<double> LatencyBounds();

}  // namespace leasehold::observe

#include "observe/metrics.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>

namespace leasehold::observe {
namespace {

class MetricsTest : public ::testing::Test {
 protected:
  bool Has(const std::string& line) const {
    return ("\n" + metrics_.Scrape()).find("\n" + line + "\n") != std::string::npos;
  }
  static size_t Count(const std::string& text, const std::string& what) {
    size_t count = 0;
    for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) {
      ++count;
    }
    return count;
  }

  Metrics metrics_;
};

TEST_F(MetricsTest, ACounterShowsWhatWasAdded) {
  Counter& cell = metrics_.AddCounter("leasehold_x_total", "Help.", {{"gate", "web"}});
  cell.Add();
  cell.Add(41);
  EXPECT_TRUE(Has("leasehold_x_total{gate=\"web\"} 42")) << metrics_.Scrape();
  EXPECT_TRUE(Has("# TYPE leasehold_x_total counter"));
  EXPECT_TRUE(Has("# HELP leasehold_x_total Help."));
}

TEST_F(MetricsTest, TheSameNameAndLabelsGiveTheSameCell) {
  Counter& a = metrics_.AddCounter("leasehold_x_total", "First.", {{"k", "1"}});
  Counter& other = metrics_.AddCounter("leasehold_x_total", "Second.", {{"k", "2"}});
  EXPECT_EQ(&a, &metrics_.AddCounter("leasehold_x_total", "Third.", {{"k", "1"}}));
  EXPECT_NE(&a, &other);
  EXPECT_TRUE(Has("# HELP leasehold_x_total First."));
}

TEST_F(MetricsTest, CellsKeepTheirAddressWhileOthersAreAdded) {
  Counter& first = metrics_.AddCounter("leasehold_x_total", "", {{"k", "first"}});
  for (int i = 0; i < 1000; ++i) {
    metrics_.AddCounter("leasehold_x_total", "", {{"k", std::to_string(i)}});
  }
  first.Add(7);
  EXPECT_TRUE(Has("leasehold_x_total{k=\"first\"} 7"));
}

TEST_F(MetricsTest, AHistogramIsCumulativeAndEndsInInfinity) {
  Histogram& cell = metrics_.AddHistogram("leasehold_s", "", {}, {0.5, 1});
  cell.Observe(0.5);
  cell.Observe(0.75);
  cell.Observe(100);
  EXPECT_TRUE(Has("leasehold_s_bucket{le=\"0.5\"} 1")) << metrics_.Scrape();
  EXPECT_TRUE(Has("leasehold_s_bucket{le=\"1\"} 2"));
  EXPECT_TRUE(Has("leasehold_s_bucket{le=\"+Inf\"} 3"));
  EXPECT_TRUE(Has("leasehold_s_count 3"));
  EXPECT_TRUE(Has("leasehold_s_sum 101.25"));
}

TEST_F(MetricsTest, AHistogramIgnoresWhatIsNoNumber) {
  Histogram& cell = metrics_.AddHistogram("leasehold_s", "", {}, LatencyBounds());
  cell.Observe(std::numeric_limits<double>::quiet_NaN());
  cell.Observe(std::numeric_limits<double>::infinity());
  EXPECT_TRUE(Has("leasehold_s_count 0"));
}

TEST_F(MetricsTest, ACollectorIsAskedAtEveryScrape) {
  double now = 1;
  metrics_.AddCollector([&now](Samples& samples) {
    samples.Gauge("leasehold_now", "", {{"lease", "orders"}}, now);
  });
  EXPECT_TRUE(Has("leasehold_now{lease=\"orders\"} 1"));
  now = 2;
  EXPECT_TRUE(Has("leasehold_now{lease=\"orders\"} 2"));
  EXPECT_FALSE(Has("leasehold_now{lease=\"orders\"} 1"));
}

TEST_F(MetricsTest, OneNameHasOneTypeLineHoweverManyContribute) {
  metrics_.AddCounter("leasehold_x_total", "H.", {{"k", "1"}}).Add();
  for (int i = 2; i < 4; ++i) {
    metrics_.AddCollector([i](Samples& samples) {
      samples.CounterValue("leasehold_x_total", "H.", {{"k", std::to_string(i)}}, i);
    });
  }
  const std::string text = metrics_.Scrape();
  EXPECT_EQ(Count(text, "# TYPE leasehold_x_total counter"), 1U) << text;
  EXPECT_TRUE(Has("leasehold_x_total{k=\"3\"} 3"));
}

TEST_F(MetricsTest, ALabelValueCannotBreakTheLine) {
  metrics_.AddCounter("leasehold_x_total", "", {{"k", "a\"b\\c\nd"}}).Add();
  EXPECT_TRUE(Has("leasehold_x_total{k=\"a\\\"b\\\\c\\nd\"} 1")) << metrics_.Scrape();
}

}  // namespace
}  // namespace leasehold::observe

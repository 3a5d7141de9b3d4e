#include "admin/lease_metrics.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "lib/fake_control.h"
#include "lib/loop_fixture.h"

namespace leasehold::admin {
namespace {

using testing::FakeControl;

class LeaseMetricsTest : public testing::LoopFixture {
 protected:
  void SetUp() override { AddLeaseMetrics(metrics_, control_, loop_); }
  bool Has(const std::string& line) const {
    return ("\n" + metrics_.Scrape()).find("\n" + line + "\n") != std::string::npos;
  }

  FakeControl control_;
  observe::Metrics metrics_;
};

TEST_F(LeaseMetricsTest, ExactlyOneStateIsOne) {
  EXPECT_TRUE(Has(R"(leasehold_lease_state{lease="orders",state="active"} 1)"))
      << metrics_.Scrape();
  for (const char* other :
       {"standby", "acquiring", "draining", "releasing", "hold_off", "stopped"}) {
    EXPECT_TRUE(
        Has(R"(leasehold_lease_state{lease="orders",state=")" + std::string(other) + "\"} 0"))
        << other;
  }
}

TEST_F(LeaseMetricsTest, AHolderShowsTokenExpiryAndItself) {
  EXPECT_TRUE(Has(R"(leasehold_lease_holding{lease="orders"} 1)"));
  EXPECT_TRUE(Has(R"(leasehold_lease_token{lease="orders"} 12)"));
  EXPECT_TRUE(Has(R"(leasehold_lease_seconds_to_expiry{lease="orders"} 7.25)"));
  EXPECT_TRUE(Has(R"(leasehold_lease_info{holder_node_id="n1",holder_process_id="p1",)"
                  R"(lease="orders",token="12"} 1)"))
      << metrics_.Scrape();
}

TEST_F(LeaseMetricsTest, ATokenOf64BitsIsExactAsALabel) {
  control_.lease_views[0].view.token = 18446744073709551615U;
  EXPECT_NE(metrics_.Scrape().find("token=\"18446744073709551615\""), std::string::npos);
}

TEST_F(LeaseMetricsTest, GaugesFollowTheStateAtOnce) {
  control_.lease_views[0] = FakeControl::Standby("orders", 13, "n2");
  control_.lease_views[0].view.at_risk = true;
  control_.node_view.store_connected = false;
  EXPECT_TRUE(Has(R"(leasehold_lease_state{lease="orders",state="standby"} 1)"));
  EXPECT_TRUE(Has(R"(leasehold_lease_holding{lease="orders"} 0)"));
  EXPECT_TRUE(Has(R"(leasehold_lease_seconds_to_expiry{lease="orders"} 0)"));
  EXPECT_TRUE(Has(R"(leasehold_lease_at_risk{lease="orders"} 1)"));
  EXPECT_TRUE(Has("leasehold_store_connected 0"));
}

TEST_F(LeaseMetricsTest, ExpiryCountsEvenBeforeTheEngineHasNoticed) {
  control_.lease_views[0].may_act = false;
  EXPECT_TRUE(Has(R"(leasehold_lease_holding{lease="orders"} 0)"));
}

TEST_F(LeaseMetricsTest, AnUncheckedApplicationIsReady) {
  EXPECT_TRUE(Has("leasehold_app_ready 1"));
  control_.node_view.app_checked = true;
  EXPECT_TRUE(Has("leasehold_app_ready 0"));
  control_.node_view.app_ready = true;
  EXPECT_TRUE(Has("leasehold_app_ready 1"));
}

TEST_F(LeaseMetricsTest, BuildLoopAndMemoryAreThere) {
  EXPECT_TRUE(Has(R"(leasehold_build_info{version="0.1.0"} 1)"));
  const std::string text = metrics_.Scrape();
  EXPECT_NE(text.find("\nleasehold_loop_lateness_seconds "), std::string::npos);
  const size_t at = text.find("\nleasehold_memory_resident_bytes ");
  ASSERT_NE(at, std::string::npos);
  EXPECT_GT(std::strtod(text.c_str() + at + 33, nullptr), 100000);
}

TEST_F(LeaseMetricsTest, EveryNameBeginsWithOurs) {
  const std::string text = metrics_.Scrape();
  for (size_t at = 0; at < text.size(); at = text.find('\n', at) + 1) {
    const std::string line = text.substr(at, text.find('\n', at) - at);
    EXPECT_TRUE(line.starts_with("leasehold_") || line.starts_with("# ")) << line;
  }
}

}  // namespace
}  // namespace leasehold::admin

// LeaseReport: the words and numbers in which a lease's life is told (DESIGN 2.4, 5).

#include "app/lease_report.h"

#include <gtest/gtest.h>

#include <cstdio>

namespace leasehold::app {
namespace {

class LeaseReportTest : public ::testing::Test {
 protected:
  void SetUp() override {
    report_ = std::make_unique<LeaseReport>(*log_, metrics_, events_, "orders",
                                            lease::Identity{"n1", "p1"});
  }
  static lease::NoticeEffect Notice(lease::Notice notice,
                                    lease::Reason reason = lease::Reason::kNone) {
    lease::NoticeEffect effect;
    effect.notice = notice;
    effect.reason = reason;
    effect.token = 7;
    return effect;
  }
  bool Shows(const std::string& series) const {
    return metrics_.Scrape().find(series + "\n") != std::string::npos;
  }

  std::unique_ptr<observe::Log> log_ = observe::Log::Silent();
  observe::Metrics metrics_;
  observe::EventBus events_;
  std::unique_ptr<LeaseReport> report_;
};

TEST_F(LeaseReportTest, EveryCounterExistsAtZeroFromTheStart) {
  EXPECT_TRUE(Shows(R"(leasehold_lease_acquisitions_total{lease="orders"} 0)"));
  EXPECT_TRUE(Shows(R"(leasehold_lease_losses_total{lease="orders",reason="expired"} 0)"));
  EXPECT_TRUE(Shows(R"(leasehold_lease_step_downs_total{lease="orders",reason="requested"} 0)"));
  EXPECT_TRUE(Shows(R"(leasehold_lease_renewals_total{lease="orders",result="ambiguous"} 0)"));
  EXPECT_TRUE(Shows(R"(leasehold_lease_token_regressions_total{lease="orders"} 0)"));
}

TEST_F(LeaseReportTest, ALossIsCountedByItsReasonAndToldOnce) {
  report_->Tell(Notice(lease::Notice::kLost, lease::Reason::kHostFrozen));
  EXPECT_TRUE(Shows(R"(leasehold_lease_losses_total{lease="orders",reason="host_frozen"} 1)"));
  ASSERT_EQ(events_.history().size(), 1u);
  EXPECT_EQ(events_.history().back().name, "lease.lost");
  EXPECT_EQ(events_.history().back().reason, "host_frozen");
}

TEST_F(LeaseReportTest, ARecordWithoutAHolderIsToldAsThat) {
  std::FILE* const file = std::tmpfile();
  ASSERT_NE(file, nullptr);
  log_ = observe::Log::ToDescriptor({}, fileno(file));
  SetUp();  // a report that writes there
  lease::NoticeEffect effect = Notice(lease::Notice::kObserved);
  report_->Tell(effect);
  effect.holder_node_id = "n2";
  report_->Tell(effect);
  log_.reset();
  std::rewind(file);
  std::string said(4096, '\0');
  said.resize(std::fread(said.data(), 1, said.size(), file));
  std::fclose(file);
  const size_t nobody = said.find("nobody holds the lease");
  const size_t changed = said.find("the holder seen in the store changed");
  ASSERT_NE(nobody, std::string::npos) << said;
  ASSERT_NE(changed, std::string::npos) << said;
  EXPECT_LT(nobody, changed) << said;
}

TEST_F(LeaseReportTest, AGatesEventsNameLeaseTokenAndHolder) {
  lease::ValveEffect effect;
  effect.valve = lease::Valve::kOpen;
  effect.token = 7;
  report_->TellGate("web", effect);
  ASSERT_EQ(events_.history().size(), 1u);
  const observe::Event& event = events_.history().back();
  EXPECT_EQ(event.name, "gate.opened");
  EXPECT_EQ(event.gate, "web");
  EXPECT_EQ(event.lease, "orders");
  EXPECT_EQ(event.token, 7u);
  EXPECT_EQ(event.holder_node_id, "n1");
  EXPECT_EQ(event.holder_process_id, "p1");
}

TEST_F(LeaseReportTest, HoldingIsNoEventOfAGate) {
  lease::ValveEffect effect;
  effect.valve = lease::Valve::kHolding;
  report_->TellGate("web", effect);
  EXPECT_TRUE(events_.history().empty());
}

TEST_F(LeaseReportTest, AStoresTroubleStandsUntilItRecovers) {
  lease::NoticeEffect degraded = Notice(lease::Notice::kStoreDegraded);
  degraded.detail = "no answer";
  report_->Tell(degraded);
  EXPECT_EQ(report_->store_trouble(), "no answer");
  report_->Tell(Notice(lease::Notice::kStoreRecovered));
  EXPECT_EQ(report_->store_trouble(), "");
}

TEST_F(LeaseReportTest, AWriteTroubleIsToldWhenItChangesOnly) {
  report_->SetWriteTrouble("store_full: OOM");
  report_->SetWriteTrouble("store_full: OOM");
  EXPECT_EQ(events_.history().size(), 1u);
  report_->SetWriteTrouble("");
  ASSERT_EQ(events_.history().size(), 2u);
  EXPECT_EQ(events_.history().back().name, "store.recovered");
}

}  // namespace
}  // namespace leasehold::app

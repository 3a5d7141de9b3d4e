// The table of CASES 17: role x store state x application -> code, for each probe.
#include "admin/probes.h"

#include <gtest/gtest.h>

#include <string>

#include "lib/fake_control.h"

namespace leasehold::admin {
namespace {

using testing::FakeControl;

class ProbesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    control_.node_view.app_checked = true;
    control_.node_view.app_ready = true;
  }
  LeaseView& lease() { return control_.lease_views[0]; }
  void MakeStandby(lease::State state = lease::State::kStandby) {
    lease() = FakeControl::Standby("orders", 12, "n2");
    lease().view.state = state;
  }
  int Ready(const std::string& name = "") const { return Readyz(control_, name).status; }
  int Leader(const std::string& name = "") const { return Leaderz(control_, name).status; }
  int Standby(const std::string& name = "") const { return Standbyz(control_, name).status; }

  FakeControl control_;
};

TEST_F(ProbesTest, TheTableOfRoleStoreAndApplication) {
  struct Row {
    bool holding;
    bool store_fresh;
    bool app_ready;
    int livez, readyz, leaderz, standbyz;
  };
  const Row rows[] = {
      {true, true, true, 200, 200, 200, 503},   {true, false, true, 200, 200, 200, 503},
      {true, true, false, 200, 200, 200, 503},  {true, false, false, 200, 200, 200, 503},
      {false, true, true, 200, 200, 503, 503},  {false, false, true, 200, 503, 503, 503},
      {false, true, false, 200, 503, 503, 503}, {false, false, false, 200, 503, 503, 503},
  };
  for (const Row& row : rows) {
    lease() =
        row.holding ? FakeControl::Holding("orders", 12) : FakeControl::Standby("orders", 12, "n2");
    lease().store_answered_within_ttl = row.store_fresh;
    control_.node_view.app_ready = row.app_ready;
    const std::string which = std::string(row.holding ? "holding" : "standby") +
                              (row.store_fresh ? " fresh" : " stale") +
                              (row.app_ready ? " ready" : " unready");
    EXPECT_EQ(Livez().status, row.livez) << which;
    EXPECT_EQ(Ready(), row.readyz) << which;
    EXPECT_EQ(Leader(), row.leaderz) << which;
    EXPECT_EQ(Standby(), row.standbyz) << which;
  }
}

TEST_F(ProbesTest, ADrainingHolderIsReadyAndLeaderUntilItsPermitEnds) {
  lease().view.state = lease::State::kDraining;
  EXPECT_EQ(Ready(), 200);
  EXPECT_EQ(Leader(), 200);
}

TEST_F(ProbesTest, AnExpiredPermitIsNotHoldingWhateverTheEngineSaysYet) {
  lease().may_act = false;  // state active, holding true: nobody has ticked the engine yet
  EXPECT_EQ(Leader(), 503);
}

TEST_F(ProbesTest, ReleasingAndHoldOffAreReadyLikeAStandby) {
  for (const lease::State state :
       {lease::State::kAcquiring, lease::State::kReleasing, lease::State::kHoldOff}) {
    MakeStandby(state);
    EXPECT_EQ(Ready(), 200);
    EXPECT_EQ(Leader(), 503);
  }
  MakeStandby(lease::State::kStopped);
  EXPECT_EQ(Ready(), 503);
}

TEST_F(ProbesTest, WithoutACheckTheApplicationCountsAsReady) {
  MakeStandby();
  control_.node_view.app_checked = false;
  control_.node_view.app_ready = false;
  EXPECT_EQ(Ready(), 200);
}

TEST_F(ProbesTest, AStandbyThatShutsDownIsNotReady) {
  MakeStandby();
  control_.node_view.shutting_down = true;
  EXPECT_EQ(Ready(), 503);
}

TEST_F(ProbesTest, A503SaysWhyAsAProblem) {
  MakeStandby();
  lease().store_answered_within_ttl = false;
  lease().view.last_error = "redis at x:6379: connection refused";
  control_.node_view.app_ready = false;
  control_.node_view.app_error = "HTTP 500 from /healthz";
  const HttpAnswer answer = Readyz(control_, "");
  EXPECT_EQ(answer.content_type, "application/problem+json");
  for (const char* part : {"\"status\":503", "urn:leasehold:problem:not_ready", "orders",
                           "HTTP 500 from /healthz", "connection refused"}) {
    EXPECT_NE(answer.body.find(part), std::string::npos) << part << " in " << answer.body;
  }
}

TEST_F(ProbesTest, WithSeveralLeasesAllMustSayYesUnlessOneIsNamed) {
  control_.lease_views.push_back(FakeControl::Standby("billing", 3, "n2"));
  EXPECT_EQ(Leader(), 503);
  EXPECT_NE(Leaderz(control_, "").body.find("billing"), std::string::npos);
  EXPECT_EQ(Leader("orders"), 200);
  EXPECT_EQ(Leader("billing"), 503);
  EXPECT_EQ(Ready(), 200);
}

TEST_F(ProbesTest, AnUnknownLeaseIs404) {
  EXPECT_EQ(Ready("nope"), 404);
  EXPECT_EQ(Leader("nope"), 404);
  EXPECT_EQ(Standby("nope"), 404);
}

}  // namespace
}  // namespace leasehold::admin

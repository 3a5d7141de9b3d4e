// GateCore where it forwards: who goes to the holder's gate, who waits for it, and that what comes
// from another sidecar is admitted or refused, never held and never forwarded again.
#include <gtest/gtest.h>

#include <memory>
#include <utility>

#include "gate/gate_core.h"
#include "lib/permit_for_test.h"

namespace leasehold::gate {
namespace {

using base::Duration;
using base::MonoTime;
using lease::Valve;

MonoTime At(int64_t seconds) { return MonoTime::FromNanos(seconds * 1000000000); }

struct Waiting : HoldEntry {};

class GateCoreForwardTest : public ::testing::Test {
 protected:
  void SetUp() override {
    options_.standby = StandbyPolicy::kForward;
    options_.hold_timeout = Duration::Seconds(10);
    options_.max_held = 2;
    core_ = std::make_unique<GateCore>(options_);
  }
  void Both(Valve valve) {
    permit_.Set(valve, At(100));
    core_->SetValve(valve, At(0), At(90), Duration::Seconds(2));
  }
  Decision Admit(MonoTime now) {
    Ticket ticket;
    return core_->Admit(now, permit_.permit, ticket);
  }
  Decision FromPeer(MonoTime now) {
    Ticket ticket;
    return core_->AdmitFromPeer(now, permit_.permit, ticket);
  }
  HoldEntry* Next(MonoTime now, bool* probe) {
    return core_->NextToForward(now, permit_.permit, probe);
  }
  static Peer Holder(bool draining = false) {
    Peer peer;
    peer.address = *base::ParseAddress("127.0.0.1:81");
    peer.process_id = "p";
    peer.token = 1;
    peer.draining = draining;
    return peer;
  }
  void Prove() {
    core_->route().Set(Holder());
    core_->route().ProbeSent();
    core_->route().Admitted(core_->route().generation());
  }

  Options options_;
  lease::PermitForTest permit_;
  std::unique_ptr<GateCore> core_;
};

TEST_F(GateCoreForwardTest, AStandbyHoldsUntilItKnowsTheHolderThenForwards) {
  EXPECT_EQ(Admit(At(1)).verdict, Verdict::kHold);
  core_->route().Set(Holder());
  EXPECT_EQ(Admit(At(1)).verdict, Verdict::kForward);  // as the probe
  core_->route().ProbeSent();
  EXPECT_EQ(Admit(At(1)).verdict, Verdict::kHold);
  core_->route().Admitted(core_->route().generation());
  EXPECT_EQ(Admit(At(1)).verdict, Verdict::kForward);
  EXPECT_EQ(core_->in_flight(), 0u);
}

TEST_F(GateCoreForwardTest, NobodyOvertakesWhoIsHeld) {
  Waiting first;
  EXPECT_TRUE(core_->Hold(first, At(1)));
  Prove();
  EXPECT_EQ(Admit(At(1)).verdict, Verdict::kHold);
  bool probe = true;
  EXPECT_EQ(Next(At(1), &probe), &first);
  EXPECT_FALSE(probe);
  EXPECT_EQ(Admit(At(1)).verdict, Verdict::kForward);
}

TEST_F(GateCoreForwardTest, OneHeldEntryProbesAndTheOthersWaitForIt) {
  Waiting first;
  Waiting second;
  EXPECT_TRUE(core_->Hold(first, At(1)));
  EXPECT_TRUE(core_->Hold(second, At(1) + Duration::Nanos(1)));
  core_->route().Set(Holder());
  bool probe = false;
  EXPECT_EQ(Next(At(1), &probe), &first);
  EXPECT_TRUE(probe);
  core_->route().ProbeSent();
  EXPECT_EQ(Next(At(1), &probe), nullptr);
  probe = false;
  core_->route().NotAdmitted(core_->route().generation(), At(1));
  EXPECT_TRUE(core_->HoldAgain(first));
  EXPECT_EQ(Next(At(1), &probe), nullptr);  // the pause
  EXPECT_EQ(Next(At(2), &probe), &first);   // in its old place
}

TEST_F(GateCoreForwardTest, AnOpenGateAdmitsAndForwardsNothing) {
  Both(Valve::kOpen);
  Prove();
  EXPECT_EQ(Admit(At(1)).verdict, Verdict::kAdmit);
  Waiting entry;
  EXPECT_TRUE(core_->Hold(entry, At(1)));
  bool probe = false;
  EXPECT_EQ(Next(At(1), &probe), nullptr);
}

TEST_F(GateCoreForwardTest, ADrainHoldsAlsoWhenAnotherHolderIsKnown) {
  Both(Valve::kDraining);
  Prove();
  EXPECT_EQ(Admit(At(1)).verdict, Verdict::kHold);
  Waiting entry;
  EXPECT_TRUE(core_->Hold(entry, At(1)));
  Refusal reason = Refusal::kClosed;
  EXPECT_EQ(core_->NextToRefuse(At(2), &reason), nullptr);
  bool probe = false;
  EXPECT_EQ(Next(At(2), &probe), nullptr);
  Both(Valve::kClosed);
  EXPECT_EQ(core_->NextToRefuse(At(3), &reason), nullptr);
  EXPECT_EQ(Next(At(3), &probe), &entry);
}

TEST_F(GateCoreForwardTest, AHolderThatDrainsIsNotForwardedTo) {
  Prove();
  core_->route().Set(Holder(true));
  EXPECT_EQ(Admit(At(1)).verdict, Verdict::kHold);
}

TEST_F(GateCoreForwardTest, AnExpiredPermitForwardsAndIsTold) {
  Both(Valve::kOpen);
  Prove();
  permit_.ExpireAt(At(5));
  EXPECT_EQ(Admit(At(6)).verdict, Verdict::kForward);
  EXPECT_TRUE(core_->TakeSawExpired());
}

TEST_F(GateCoreForwardTest, AFullQueueAndADeadlineRefuse) {
  Waiting entries[3];
  EXPECT_TRUE(core_->Hold(entries[0], At(1)));
  EXPECT_TRUE(core_->Hold(entries[1], At(2)));
  EXPECT_FALSE(core_->Hold(entries[2], At(3)));
  EXPECT_EQ(core_->refusals(Refusal::kHoldFull), 1u);
  EXPECT_FALSE(core_->HoldAgain(entries[2]));
  Refusal reason = Refusal::kClosed;
  EXPECT_EQ(core_->NextToRefuse(At(11), &reason), &entries[0]);
  EXPECT_EQ(reason, Refusal::kHoldTimeout);
  EXPECT_EQ(core_->NextToRefuse(At(11), &reason), nullptr);
}

TEST_F(GateCoreForwardTest, LeavingEndsAllWaits) {
  Waiting entry;
  EXPECT_TRUE(core_->Hold(entry, At(1)));
  core_->Leave(At(3));
  EXPECT_EQ(core_->next_hold_deadline(), At(3));
  Refusal reason = Refusal::kClosed;
  EXPECT_EQ(core_->NextToRefuse(At(2), &reason), nullptr);
  EXPECT_EQ(core_->NextToRefuse(At(3), &reason), &entry);
  EXPECT_EQ(reason, Refusal::kLeaving);
  EXPECT_EQ(core_->refusals(Refusal::kLeaving), 1u);
}

TEST_F(GateCoreForwardTest, AnEntryWithOtherWorkWaitsAnew) {
  Waiting entry;
  EXPECT_TRUE(core_->Hold(entry, At(1)));
  entry.LeaveQueue();
  EXPECT_EQ(entry.hold_deadline(), At(11));
  entry.ForgetDeadline();
  EXPECT_TRUE(entry.hold_deadline().is_never());
  EXPECT_TRUE(core_->Hold(entry, At(20)));
  EXPECT_EQ(entry.hold_deadline(), At(30));
}

// ---- from another sidecar ----

TEST_F(GateCoreForwardTest, PeersAreAdmittedOnlyByAnOpenGateWithAPermit) {
  Both(Valve::kOpen);
  EXPECT_EQ(FromPeer(At(1)).verdict, Verdict::kAdmit);
  permit_.ExpireAt(At(2));
  const Decision expired = FromPeer(At(3));
  EXPECT_EQ(expired.verdict, Verdict::kRefuse);
  EXPECT_EQ(expired.refusal, Refusal::kExpired);
  EXPECT_EQ(core_->refusals(Refusal::kExpired), 1u);
}

TEST_F(GateCoreForwardTest, PeersAreNeverHeldAndNeverForwarded) {
  Prove();
  for (const Valve valve : {Valve::kClosed, Valve::kHolding, Valve::kDraining}) {
    Both(valve);
    EXPECT_EQ(FromPeer(At(1)).verdict, Verdict::kRefuse);
  }
  EXPECT_EQ(core_->refusals(Refusal::kDraining), 1u);
}

}  // namespace
}  // namespace leasehold::gate

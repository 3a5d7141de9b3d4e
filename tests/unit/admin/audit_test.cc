// The audit: which change is which record, once, on the holder and on whoever looks on.
#include "admin/audit.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "lib/loop_fixture.h"
#include "proto/json.h"

namespace leasehold::admin {
namespace {

using base::WallTime;
using lease::Identity;
using lease::Record;
using lease::RecordState;

Record Held(const Identity& holder, uint64_t token, const std::string& former = "") {
  Record record;
  record.lease = "orders";
  record.node_id = holder.node_id;
  record.process_id = holder.process_id;
  record.token = token;
  record.ttl_ms = 10000;
  record.acquired_at_unix_ms = 1796052115123;
  record.former = former;
  return record;
}

Record Released(const Identity& holder, uint64_t token) {
  Record record = Held(holder, token);
  record.state = RecordState::kReleased;
  return record;
}

const Identity kSelf{"n1", "p1"};
const Identity kOther{"n2", "p2"};
const Identity kThird{"n3", "p3"};

class AuditTest : public ::testing::Test {
 protected:
  // "record token source former-node former-token" of each entry, oldest first.
  std::vector<std::string> Told() const {
    std::vector<std::string> told;
    for (const AuditEntry& entry : log_.entries()) {
      std::string line(AuditRecordName(entry.record));
      line += " " + std::to_string(entry.token) + (entry.from_holder ? " holder" : " observer");
      if (entry.former) {
        line += " after " + entry.former->node_id + "/" + std::to_string(entry.former->token);
      }
      told.push_back(std::move(line));
    }
    return told;
  }
  using Lines = std::vector<std::string>;

  void Acquire(const std::optional<Record>& seen, uint64_t token) {
    audit_.Acquiring(seen, token);
    audit_.Acquired(token, WallTime{1796052115000});
  }

  observe::Metrics metrics_;
  AuditLog log_{4, kSelf, metrics_, nullptr};
  LeaseAudit audit_{&log_, "orders", kSelf};
};

// ---- the holder ----

TEST_F(AuditTest, ALeaseThatNobodyHadIsAcquired) {
  audit_.SawNone();
  Acquire(std::nullopt, 1);
  EXPECT_EQ(Told(), Lines{"lease_acquired 1 holder"});
}

TEST_F(AuditTest, ALeaseThatAnotherNodeGaveBackIsHandedOff) {
  Acquire(Released(kOther, 6), 7);
  EXPECT_EQ(Told(), Lines{"lease_handoff 7 holder after n2/6"});
  EXPECT_EQ(log_.entries()[0].taken_over_at.unix_ms, 1796052115000);
  EXPECT_GE(log_.entries()[0].noticed_at.unix_ms, 1796052115000 - 1);
}

TEST_F(AuditTest, ALeaseThatAnotherNodeDidNotGiveBackFailsOver) {
  Acquire(Held(kOther, 6), 7);
  EXPECT_EQ(Told(), Lines{"lease_failover 7 holder after n2/6"});
}

TEST_F(AuditTest, ALeaseTakenBackIsReacquired) {
  Acquire(std::nullopt, 1);
  Acquire(Released(kSelf, 1), 2);
  EXPECT_EQ(Told(), (Lines{"lease_acquired 1 holder", "lease_reacquired 2 holder after n1/1"}));
}

TEST_F(AuditTest, ARestartedProcessReacquiresWhatItsNodeHad) {
  Acquire(Held({"n1", "p0"}, 4), 5);
  EXPECT_EQ(Told(), Lines{"lease_reacquired 5 holder after n1/4"});
}

TEST_F(AuditTest, ALossIsOneRecordWithItsReason) {
  Acquire(Held(kOther, 6), 7);
  audit_.Lost(7, "superseded");
  EXPECT_EQ(Told(),
            (Lines{"lease_failover 7 holder after n2/6", "lease_lost 7 holder after n2/6"}));
  EXPECT_EQ(log_.entries()[1].reason, "superseded");
}

TEST_F(AuditTest, AnAcquisitionThatNeverBecameATermDoesNotHideTheFormerHolder) {
  const std::string first = audit_.Acquiring(Held(kOther, 6), 7);  // its answer was lost for long
  const std::string second = audit_.Acquiring(Held(kSelf, 7, first), 8);
  audit_.Acquired(8, WallTime{});
  EXPECT_EQ(Told(), Lines{"lease_failover 8 holder after n2/6"});
  EXPECT_EQ(second, "8/6/held/p2/n2");
}

// ---- who looks on ----

TEST_F(AuditTest, WhoIsFoundHoldingAtTheFirstLookTookOverBefore) {
  audit_.Saw(Held(kOther, 6));
  EXPECT_EQ(Told(), Lines{});
  audit_.Saw(Held(kThird, 7, "7/6/held/p2/n2"));
  EXPECT_EQ(Told(), Lines{"lease_failover 7 observer after n2/6"});
}

TEST_F(AuditTest, AnObserverThatSawNobodyTellsWhoCame) {
  audit_.SawNone();
  audit_.Saw(Held(kOther, 1));
  EXPECT_EQ(Told(), Lines{"lease_acquired 1 observer"});
  EXPECT_EQ(log_.entries()[0].taken_over_at.unix_ms, 1796052115123) << "the holder's own time";
  EXPECT_FALSE(log_.entries()[0].from_holder);
}

TEST_F(AuditTest, AReleaseThatWasMissedIsAHandoffAllTheSame) {
  audit_.Saw(Held(kOther, 6));
  audit_.Saw(Held(kThird, 7, "7/6/released/p2/n2"));
  EXPECT_EQ(Told(), Lines{"lease_handoff 7 observer after n2/6"});
}

TEST_F(AuditTest, ARecordThatSaysNothingOfItsFormerIsJudgedByWhatWasSeen) {
  audit_.Saw(Held(kOther, 6));
  audit_.Saw(Released(kOther, 6));
  audit_.Saw(Held(kThird, 7, "5/4/held/p9/n9"));  // another term's
  EXPECT_EQ(Told(), Lines{"lease_handoff 7 observer after n2/6"});
}

TEST_F(AuditTest, TheSameHolderSeenAgainIsToldOnce) {
  audit_.SawNone();
  for (int i = 0; i < 3; ++i) {
    audit_.Saw(Held(kOther, 1));
    Record draining = Held(kOther, 1);
    draining.state = RecordState::kDraining;
    audit_.Saw(draining);
  }
  EXPECT_EQ(Told(), Lines{"lease_acquired 1 observer"});
}

TEST_F(AuditTest, AStoreThatWentBackTellsNothingTwice) {
  audit_.SawNone();
  audit_.Saw(Held(kOther, 1));
  audit_.Saw(Held(kThird, 2, "2/1/held/p2/n2"));
  audit_.Saw(Held(kOther, 1));
  audit_.Saw(Held(kThird, 2, "2/1/held/p2/n2"));
  EXPECT_EQ(Told().size(), 2u);
  audit_.Saw(Held({"n4", "p4"}, 2, "2/1/held/p2/n2"));  // the same token, handed out twice
  EXPECT_EQ(Told().size(), 3u);
}

TEST_F(AuditTest, OurOwnRecordSeenInTheStoreIsNoNews) {
  audit_.SawNone();
  audit_.Saw(Held(kSelf, 1));
  audit_.Saw(Released(kSelf, 1));
  EXPECT_EQ(Told(), Lines{});
}

TEST_F(AuditTest, AnAcquisitionOfAnotherThatNeverBecameATermIsToldOnce) {
  audit_.Saw(Held(kOther, 5));
  audit_.Saw(Held(kThird, 6, "6/5/held/p2/n2"));
  audit_.Saw(Held(kThird, 7, "7/5/held/p2/n2"));
  EXPECT_EQ(Told(), Lines{"lease_failover 6 observer after n2/5"});
  audit_.Saw(Held(kThird, 8, "8/7/released/p3/n3"));
  EXPECT_EQ(Told().size(), 2u) << "taken back, a term of its own";
}

TEST_F(AuditTest, WhoLosesToAnotherTellsBoth) {
  Acquire(std::nullopt, 1);
  audit_.Saw(Held(kOther, 2, "2/1/held/p1/n1"));
  audit_.Lost(1, "superseded");
  EXPECT_EQ(Told(), (Lines{"lease_acquired 1 holder", "lease_failover 2 observer after n1/1",
                           "lease_lost 1 holder"}));
}

// ---- what is kept and shown ----

TEST_F(AuditTest, TheNewestAreKeptAndShownFirst) {
  for (uint64_t token = 1; token <= 6; ++token) Acquire(Released(kOther, token * 2), token * 2 + 1);
  EXPECT_EQ(log_.entries().size(), 4u);
  const auto shown = proto::Json::Parse(log_.Json("", 3));
  ASSERT_TRUE(shown.ok());
  ASSERT_EQ(shown->Find("records")->size(), 3u);
  EXPECT_EQ(shown->Find("records")->At(0)->String("token"), "13");
  EXPECT_EQ(shown->Find("records")->At(2)->String("token"), "9");
}

TEST_F(AuditTest, OneLeaseOfSeveralCanBeAskedFor) {
  LeaseAudit other(&log_, "mail", kSelf);
  Acquire(std::nullopt, 1);
  other.Acquiring(std::nullopt, 9);
  other.Acquired(9, WallTime{});
  const auto shown = proto::Json::Parse(log_.Json("mail", 100));
  ASSERT_EQ(shown->Find("records")->size(), 1u);
  EXPECT_EQ(shown->Find("records")->At(0)->String("lease"), "mail");
}

TEST_F(AuditTest, AnEntryHasEveryMember) {
  Acquire(Released(kOther, 18446744073709551613u), 18446744073709551614u);
  const auto entry = proto::Json::Parse(AuditJson(log_.entries()[0]));
  ASSERT_TRUE(entry.ok());
  const std::vector<std::string> members = {
      "id",     "record", "term",          "lease",      "token",  "holder",
      "former", "reason", "taken_over_at", "noticed_at", "source", "recorded_by"};
  EXPECT_EQ(entry->Keys(), members);
  EXPECT_EQ(entry->String("id"), "p1-1");
  EXPECT_EQ(entry->String("term"), "orders/18446744073709551614/p1");
  EXPECT_EQ(entry->String("token"), "18446744073709551614");
  EXPECT_EQ(entry->String("taken_over_at"), "2026-11-30T15:21:55.000Z");
  EXPECT_EQ(entry->Find("holder")->String("node_id"), "n1");
  EXPECT_EQ(entry->Find("former")->String("token"), "18446744073709551613");
  EXPECT_EQ(entry->Find("former")->Bool("released"), true);
  EXPECT_EQ(entry->String("source"), "holder");
}

TEST_F(AuditTest, BytesOfAStrangersRecordStayOneBoundedLine) {
  audit_.SawNone();
  audit_.Saw(Held({std::string(5000, 'n') + "\n", "p\n\"\xff" + std::string(5000, 'p')}, 1));
  const std::string line = AuditJson(log_.entries()[0]);
  EXPECT_LT(line.size(), 2000u);
  EXPECT_EQ(line.find('\n'), std::string::npos);
  EXPECT_TRUE(proto::Json::Parse(line).ok());
}

TEST_F(AuditTest, EveryRecordIsCounted) {
  Acquire(Held(kOther, 6), 7);
  const std::string scrape = metrics_.Scrape();
  EXPECT_NE(scrape.find("leasehold_audit_records_total{record=\"lease_failover\"} 1"),
            std::string::npos)
      << scrape;
  EXPECT_NE(scrape.find("leasehold_audit_records_total{record=\"lease_lost\"} 0"),
            std::string::npos);
}

}  // namespace
}  // namespace leasehold::admin

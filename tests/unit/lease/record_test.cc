#include "lease/record.h"

#include <gtest/gtest.h>

#include <limits>

namespace leasehold::lease {
namespace {

class RecordTest : public ::testing::Test {
 protected:
  void SetUp() override {
    record_.lease = "orders";
    record_.node_id = "node-a";
    record_.process_id = "p1";
    record_.token = 7;
    record_.beat = 3;
    record_.ttl_ms = 10000;
  }

  // The sentence of a refusal, "" if the record is valid.
  std::string Refusal() const {
    const base::Status status = ValidateRecord(record_);
    return status.ok() ? "" : status.error().message;
  }

  bool Says(const std::string& part) const { return Refusal().find(part) != std::string::npos; }

  Record record_;
};

// As a Duration it overflowed.
TEST_F(RecordTest, ATtlOutOfRangeIsNoDuration) {
  for (const int64_t ttl_ms :
       {std::numeric_limits<int64_t>::max(), std::numeric_limits<int64_t>::min(), int64_t{-1},
        kTtlMillisMin - 1, kTtlMillisMax + 1}) {
    record_.ttl_ms = ttl_ms;
    EXPECT_EQ(record_.ttl(), base::Duration::Zero()) << ttl_ms;
  }
  record_.ttl_ms = kTtlMillisMax;
  EXPECT_EQ(record_.ttl(), base::Duration::Seconds(24 * 3600));
}

TEST_F(RecordTest, StateNamesGoThereAndBack) {
  EXPECT_EQ(RecordStateName(RecordState::kHeld), "held");
  EXPECT_EQ(RecordStateName(RecordState::kDraining), "draining");
  EXPECT_EQ(RecordStateName(RecordState::kReleased), "released");
  for (const auto state : {RecordState::kHeld, RecordState::kDraining, RecordState::kReleased}) {
    EXPECT_EQ(ParseRecordState(RecordStateName(state)), state);
  }
}

TEST_F(RecordTest, UnknownStateNamesAreNotAState) {
  EXPECT_FALSE(ParseRecordState("").has_value());
  EXPECT_FALSE(ParseRecordState("Held").has_value());
  EXPECT_FALSE(ParseRecordState("held ").has_value());
  EXPECT_FALSE(ParseRecordState("expired").has_value());
}

TEST_F(RecordTest, DrainingCountsAsHeld) {
  record_.state = RecordState::kDraining;
  EXPECT_TRUE(record_.held());
  record_.state = RecordState::kReleased;
  EXPECT_FALSE(record_.held());
}

TEST_F(RecordTest, VersionIsProcessTokenAndBeat) { EXPECT_EQ(MakeVersion(record_), "p1/7/3"); }

TEST_F(RecordTest, VersionKeepsTheLargestNumbersExactly) {
  record_.token = std::numeric_limits<uint64_t>::max();
  record_.beat = std::numeric_limits<uint64_t>::max() - 1;
  EXPECT_EQ(MakeVersion(record_), "p1/18446744073709551615/18446744073709551614");
}

TEST_F(RecordTest, VersionsOfDifferentWritersNeverMeet) {
  Record other = record_;
  other.process_id = "p1/7";
  other.token = 3;
  other.beat = 0;
  record_.beat = 30;
  EXPECT_NE(MakeVersion(record_), MakeVersion(other));
}

TEST_F(RecordTest, AnOrdinaryRecordIsValid) { EXPECT_EQ(Refusal(), ""); }

TEST_F(RecordTest, AReleasedRecordIsValid) {
  record_.state = RecordState::kReleased;
  EXPECT_EQ(Refusal(), "");
}

TEST_F(RecordTest, AHigherFormatIsRefusedWhateverElseItHolds) {
  record_.format = 2;
  record_.ttl_ms = 0;
  record_.node_id = "";
  EXPECT_TRUE(Says("'orders'")) << Refusal();
  EXPECT_TRUE(Says("format 2")) << Refusal();
  EXPECT_TRUE(Says("formats 1 to 1")) << Refusal();
}

TEST_F(RecordTest, FormatZeroIsRefused) {
  record_.format = 0;
  EXPECT_TRUE(Says("format 0")) << Refusal();
}

TEST_F(RecordTest, TtlOutsideItsRangeIsRefusedWithValueAndRange) {
  record_.ttl_ms = kTtlMillisMin - 1;
  EXPECT_TRUE(Says("ttl_ms 499")) << Refusal();
  EXPECT_TRUE(Says("from 500 to 86400000")) << Refusal();
  record_.ttl_ms = kTtlMillisMax + 1;
  EXPECT_TRUE(Says("ttl_ms 86400001")) << Refusal();
  record_.ttl_ms = -5;
  EXPECT_TRUE(Says("ttl_ms -5")) << Refusal();
}

TEST_F(RecordTest, TtlAtItsBordersIsValid) {
  record_.ttl_ms = kTtlMillisMin;
  EXPECT_EQ(Refusal(), "");
  record_.ttl_ms = kTtlMillisMax;
  EXPECT_EQ(Refusal(), "");
}

TEST_F(RecordTest, AnEmptyIdentityIsRefused) {
  record_.process_id = "";
  EXPECT_TRUE(Says("process_id")) << Refusal();
  record_.process_id = "p1";
  record_.node_id = "";
  EXPECT_TRUE(Says("node_id")) << Refusal();
  record_.node_id = "node-a";
  record_.lease = "";
  EXPECT_TRUE(Says("lease name")) << Refusal();
}

TEST_F(RecordTest, TheFormerHolderGoesThereAndBack) {
  const Former before{"node:b.x_1-y", "p0", std::numeric_limits<uint64_t>::max() - 1, true};
  record_.token = std::numeric_limits<uint64_t>::max();
  record_.former = MakeFormer(record_.token, before);
  ASSERT_TRUE(ParseFormer(record_).has_value());
  EXPECT_EQ(*ParseFormer(record_), before);
  record_.former = MakeFormer(record_.token, {"b", "p0", 1, false});
  EXPECT_FALSE(ParseFormer(record_)->released);
}

TEST_F(RecordTest, TheFormerHolderOfAnotherTermIsNotOurs) {
  record_.former = MakeFormer(6, {"node-b", "p0", 5, true});
  EXPECT_FALSE(ParseFormer(record_).has_value())
      << "left in place by a writer that knows no former";
}

TEST_F(RecordTest, AFormerHolderWithANameThatIsNotOursDoesNotMakeTheRecordLong) {
  EXPECT_NE(MakeFormer(7, {std::string(253, 'n'), std::string(253, 'p'), 6, true}), "");
  EXPECT_EQ(MakeFormer(7, {std::string(254, 'n'), "p0", 6, true}), "");
  EXPECT_EQ(MakeFormer(7, {"node-b", std::string(254, 'p'), 6, true}), "");
}

TEST_F(RecordTest, WhatIsNoFormerHolderIsNone) {
  for (const char* text : {"", "7", "7/6/held/p", "7/6/kept/p/n", "7/x/held/p/n", "7/6/held/p/n/o",
                           "-7/6/held/p/n", "////"}) {
    record_.former = text;
    EXPECT_FALSE(ParseFormer(record_).has_value()) << text;
  }
}

}  // namespace
}  // namespace leasehold::lease

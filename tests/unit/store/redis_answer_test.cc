// What the answers of the redis adapter's scripts and of WAIT mean: only the exact form of a yes is
// a yes, only that of a no is a conflict.
#include "store/redis_answer.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "store/redis_record.h"

namespace leasehold::store {
namespace {

using proto::Reply;
using Cas = CasResult::Outcome;
using Read = ReadResult::Outcome;

Reply Text(const std::string& text) { return Reply::Text(Reply::Kind::kString, text); }
Reply Fault(const std::string& text) { return Reply::Text(Reply::Kind::kError, text); }

Reply SomeHash() {
  lease::Record record;
  record.lease = "orders";
  record.node_id = "n1";
  record.process_id = "p1";
  record.token = 3;
  record.beat = 7;
  record.ttl_ms = 10000;
  std::vector<Reply> elements;
  for (const auto& [name, value] : EncodeRecord(record)) {
    elements.push_back(Text(name));
    elements.push_back(Text(value));
  }
  return Reply::Array(std::move(elements));
}

CasResult JudgedCas(Reply reply) {
  return JudgeCas("redis at h:1/0", "k", "p1/3/8", {std::move(reply), {}});
}

CasResult JudgedReplicas(Reply reply) {
  CasResult applied;
  applied.outcome = Cas::kApplied;
  return JudgeReplicas("redis at h:1/0", 2, std::move(applied), {std::move(reply), {}});
}

TEST(RedisAnswerTest, TheScriptsYesIsApplied) {
  const CasResult result = JudgedCas(Reply::Array({Text("applied"), Text("1700000000123")}));
  EXPECT_EQ(result.outcome, Cas::kApplied);
  EXPECT_EQ(result.version, "p1/3/8");
  EXPECT_EQ(result.store_unix_ms, 1700000000123);
}

TEST(RedisAnswerTest, AYesFromAServerThatTellsNoTimeIsAppliedToo) {
  const CasResult result = JudgedCas(Reply::Array({Text("applied"), Text("")}));
  EXPECT_EQ(result.outcome, Cas::kApplied);
  EXPECT_FALSE(result.store_unix_ms.has_value());
}

TEST(RedisAnswerTest, WhatOnlyLooksLikeAYesIsAmbiguous) {
  for (const Reply& reply :
       {Text("applied"), Reply::Text(Reply::Kind::kStatus, "applied"), Reply::Array({}),
        Reply::Array({Text("applied")}), Reply::Array({Fault("applied"), Text("1")}),
        Reply::Array({Reply::Text(Reply::Kind::kStatus, "applied"), Text("1")}),
        Reply::Array({Text("applied"), Reply::Integer(1)}),
        Reply::Array({Text("applied"), Text("1"), Text("2")}),
        Reply::Array({Text("Applied"), Text("1")}), Reply::Integer(1), Reply::Nil()}) {
    const CasResult result = JudgedCas(reply);
    EXPECT_EQ(result.outcome, Cas::kAmbiguous) << reply.Describe();
    EXPECT_NE(result.error, "");
  }
}

TEST(RedisAnswerTest, AConflictShowsTheRecordThatIsThere) {
  const CasResult result = JudgedCas(Reply::Array({Text("conflict"), SomeHash(), Text("5")}));
  EXPECT_EQ(result.outcome, Cas::kConflict);
  EXPECT_EQ(result.version, "p1/3/7");
  EXPECT_FALSE(result.absent);
  EXPECT_EQ(result.store_unix_ms, 5);
}

TEST(RedisAnswerTest, AConflictWithAnEmptyHashIsAnAbsentRecord) {
  const CasResult result = JudgedCas(Reply::Array({Text("conflict"), Reply::Array({}), Text("5")}));
  EXPECT_EQ(result.outcome, Cas::kConflict);
  EXPECT_TRUE(result.absent);
}

// Taken for an absent record, it cost the holder its lease at once, without grace.
TEST(RedisAnswerTest, AConflictWithoutAHashTellsNothingOfTheRecord) {
  for (const Reply& there : {Reply::Nil(), Text(""), Reply::Integer(0), Fault("ERR no")}) {
    for (const Reply& reply : {Reply::Array({Text("conflict"), there, Text("5")}),
                               Reply::Array({Text("conflict"), there})}) {
      const CasResult result = JudgedCas(reply);
      EXPECT_EQ(result.outcome, Cas::kAmbiguous) << there.Describe();
      EXPECT_FALSE(result.absent);
    }
  }
}

TEST(RedisAnswerTest, AConflictWithWhatIsNoRecordIsRefused) {
  const CasResult result =
      JudgedCas(Reply::Array({Text("conflict"), Reply::Array({Text("a"), Text("b")}), Text("5")}));
  EXPECT_EQ(result.outcome, Cas::kRefused);
  EXPECT_NE(result.error.find("is not a lease record"), std::string::npos) << result.error;
}

TEST(RedisAnswerTest, AFullStoreIsNamed) {
  const CasResult result = JudgedCas(Fault("OOM command not allowed"));
  EXPECT_EQ(result.outcome, Cas::kRefused);
  EXPECT_TRUE(result.error.starts_with("store_full: ")) << result.error;
}

TEST(RedisAnswerTest, AReadIsAbsentOnlyByAnEmptyArray) {
  const auto judged = [](Reply reply) {
    return JudgeRead("redis at h:1/0", "k", {std::move(reply), {}}).outcome;
  };
  EXPECT_EQ(judged(Reply::Array({})), Read::kAbsent);
  EXPECT_EQ(judged(SomeHash()), Read::kRecord);
  EXPECT_EQ(judged(Reply::Array({Text("a"), Text("b")})), Read::kRefused);
  EXPECT_EQ(judged(Reply::Nil()), Read::kAmbiguous);
  EXPECT_EQ(judged(Text("")), Read::kAmbiguous);
  EXPECT_EQ(judged(Fault("ERR something new")), Read::kAmbiguous);
  EXPECT_EQ(judged(Fault("NOPERM no")), Read::kRefused);
}

TEST(RedisAnswerTest, AWriteCountsOnlyWithItsReplicas) {
  EXPECT_EQ(JudgedReplicas(Reply::Integer(2)).outcome, Cas::kApplied);
  EXPECT_EQ(JudgedReplicas(Reply::Integer(1)).outcome, Cas::kAmbiguous);
  EXPECT_EQ(JudgedReplicas(Reply::Integer(-1)).outcome, Cas::kAmbiguous);
  EXPECT_EQ(JudgedReplicas(Text("2")).outcome, Cas::kAmbiguous);
  // Not refused: the write is there, on the primary at least.
  EXPECT_EQ(JudgedReplicas(Fault("NOPERM no")).outcome, Cas::kAmbiguous);
}

}  // namespace
}  // namespace leasehold::store

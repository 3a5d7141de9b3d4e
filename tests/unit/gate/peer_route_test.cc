// The route to the holder's gate: who may go, when a pause is over, and which verdicts count.
#include "gate/peer_route.h"

#include <gtest/gtest.h>

namespace leasehold::gate {
namespace {

using base::Duration;
using base::MonoTime;
using Go = PeerRoute::Go;

class PeerRouteTest : public ::testing::Test {
 protected:
  static Peer Holder(const std::string& process_id = "p", uint64_t token = 1) {
    Peer peer;
    peer.address = *base::ParseAddress("127.0.0.1:81");
    peer.process_id = process_id;
    peer.token = token;
    return peer;
  }
  void Prove() {
    route_.Set(Holder());
    route_.ProbeSent();
    EXPECT_TRUE(route_.Admitted(route_.generation()));
  }

  PeerRoute route_;
  MonoTime now_ = MonoTime() + Duration::Seconds(100);
};

TEST_F(PeerRouteTest, NobodyGoesToAnUnknownHolder) {
  EXPECT_FALSE(route_.known());
  EXPECT_EQ(route_.MayGo(now_), Go::kNobody);
  EXPECT_TRUE(route_.retry_at().is_never());
}

TEST_F(PeerRouteTest, ANewHolderIsProbedByOneThenTakesAll) {
  EXPECT_TRUE(route_.Set(Holder()));
  EXPECT_EQ(route_.MayGo(now_), Go::kProbe);
  route_.ProbeSent();
  EXPECT_EQ(route_.MayGo(now_), Go::kNobody);
  EXPECT_TRUE(route_.retry_at().is_never());
  EXPECT_TRUE(route_.Admitted(route_.generation()));
  EXPECT_EQ(route_.MayGo(now_), Go::kAll);
  EXPECT_FALSE(route_.Admitted(route_.generation()));  // no news
}

TEST_F(PeerRouteTest, PausesDoubleUpToTheirLimitAndAnAdmissionShortensThem) {
  route_.Set(Holder());
  Duration pause = PeerRoute::kRetryMin;
  for (int i = 0; i < 12; ++i) {
    EXPECT_EQ(route_.MayGo(now_), Go::kProbe);
    route_.ProbeSent();
    EXPECT_TRUE(route_.NotAdmitted(route_.generation(), now_));
    EXPECT_EQ(route_.retry_at(), now_ + pause);
    EXPECT_EQ(route_.MayGo(now_), Go::kNobody);
    now_ = now_ + pause;
    pause = base::Min(pause * 2, PeerRoute::kRetryMax);
  }
  EXPECT_EQ(pause, PeerRoute::kRetryMax);
  route_.ProbeSent();
  EXPECT_TRUE(route_.Admitted(route_.generation()));
  EXPECT_TRUE(route_.NotAdmitted(route_.generation(), now_));
  EXPECT_EQ(route_.retry_at(), now_ + PeerRoute::kRetryMin);
}

TEST_F(PeerRouteTest, AProbeThatLearntNothingMakesWayAfterAPauseThatDoubles) {
  route_.Set(Holder());
  const uint64_t generation = route_.generation();
  for (const Duration pause : {PeerRoute::kRetryMin, PeerRoute::kRetryMin * 2}) {
    route_.ProbeSent();
    route_.ProbeDropped(generation, now_);
    EXPECT_EQ(route_.MayGo(now_), Go::kNobody) << "or two standbys hand it round without end";
    EXPECT_EQ(route_.retry_at(), now_ + pause);
    now_ = now_ + pause;
    EXPECT_EQ(route_.MayGo(now_), Go::kProbe);
  }
  EXPECT_EQ(route_.generation(), generation) << "no doubt";
}

TEST_F(PeerRouteTest, VerdictsOnAFormerHolderCountForNothing) {
  Prove();
  const uint64_t before = route_.generation();
  EXPECT_TRUE(route_.Set(Holder("q", 2)));
  EXPECT_FALSE(route_.Admitted(before));
  EXPECT_FALSE(route_.NotAdmitted(before, now_));
  EXPECT_EQ(route_.MayGo(now_), Go::kProbe);
  route_.ProbeSent();
  route_.ProbeDropped(before, now_);
  EXPECT_EQ(route_.MayGo(now_), Go::kNobody);
}

TEST_F(PeerRouteTest, VerdictsAskedForBeforeADoubtDoNotEndIt) {
  Prove();
  const uint64_t before = route_.generation();
  EXPECT_TRUE(route_.NotAdmitted(before, now_));
  now_ = now_ + PeerRoute::kRetryMin;
  EXPECT_EQ(route_.MayGo(now_), Go::kProbe);
  route_.ProbeSent();
  // What was admitted before the drain began is answered now; others come back refused.
  EXPECT_FALSE(route_.Admitted(before));
  EXPECT_FALSE(route_.NotAdmitted(before, now_));
  EXPECT_EQ(route_.MayGo(now_), Go::kNobody);  // the probe is still under way
  EXPECT_TRUE(route_.Admitted(route_.generation()));
}

TEST_F(PeerRouteTest, ADrainingHolderIsAskedNothingAndStaysProven) {
  Prove();
  Peer draining = Holder();
  draining.draining = true;
  EXPECT_FALSE(route_.Set(draining));
  EXPECT_EQ(route_.MayGo(now_), Go::kNobody);
  EXPECT_TRUE(route_.retry_at().is_never());
  EXPECT_FALSE(route_.Set(Holder()));
  EXPECT_EQ(route_.MayGo(now_), Go::kAll);
}

TEST_F(PeerRouteTest, EachPartOfANameMakesAnotherHolder) {
  route_.Set(Holder());
  EXPECT_FALSE(route_.Set(Holder()));
  EXPECT_TRUE(route_.Set(Holder("p", 2)));
  EXPECT_TRUE(route_.Set(Holder("q", 2)));
  Peer elsewhere = Holder("q", 2);
  elsewhere.address.port = 82;
  EXPECT_TRUE(route_.Set(elsewhere));
  EXPECT_TRUE(route_.Set(Peer{}));
  EXPECT_EQ(route_.MayGo(now_), Go::kNobody);
}

}  // namespace
}  // namespace leasehold::gate

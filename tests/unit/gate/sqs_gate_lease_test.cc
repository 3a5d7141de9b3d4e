// An sqs gate and its lease: standby, confirming, draining, closed, and the races between them.
#include <gtest/gtest.h>

#include "sqs_gate_fixture.h"

namespace leasehold::gate {
namespace {

using base::Duration;

class SqsGateLeaseTest : public SqsGateFixture {};

TEST_F(SqsGateLeaseTest, AStandbyAnswersReceivesLikeAnEmptyQueueAfterTheirWait) {
  Build();
  RawSocket* at_once = Client(Receive("\"WaitTimeSeconds\":0"));
  EXPECT_TRUE(GetsEmpty(at_once));
  const base::MonoTime start = loop::Loop::Now();
  RawSocket* unsaid = Client(Receive(""));
  RawSocket* longer = Client(Receive("\"WaitTimeSeconds\":2"));
  EXPECT_TRUE(GetsEmpty(unsaid));
  EXPECT_GE(loop::Loop::Now() - start, Duration::Millis(990));
  EXPECT_FALSE(Has(longer, "HTTP"));
  EXPECT_TRUE(GetsEmpty(longer));
  EXPECT_GE(loop::Loop::Now() - start, Duration::Millis(1990));
  EXPECT_TRUE(NothingAsked());
}

TEST_F(SqsGateLeaseTest, AStandbyRefusesChangesWithTheErrorThatSdksRepeat) {
  Build();
  for (const std::string& request : {Send(), Delete("h-1")}) {
    RawSocket* client = Client(request);
    EXPECT_TRUE(Gets(client, "ServiceUnavailable"));
    EXPECT_TRUE(Has(client, " 503 "));
    EXPECT_TRUE(Has(client, "orders"));
    EXPECT_TRUE(Has(client, "standby"));
  }
  EXPECT_TRUE(NothingAsked());
}

TEST_F(SqsGateLeaseTest, AStandbyLetsReadsPassAndSendsWhereItIsToldTo) {
  options_.sqs.standby_send = StandbySend::kPass;
  Build();
  Client(JsonRequest("GetQueueUrl", R"({"QueueName":"jobs"})"));
  auto asked = Next();
  EXPECT_TRUE(asked && asked->Is("GetQueueUrl"));
  Client(Send());
  asked = Next();
  EXPECT_TRUE(asked && asked->Is("SendMessage"));
}

TEST_F(SqsGateLeaseTest, AReceiveThatWaitsOnAStandbyBecomesARealOneWhenTheLeaseComes) {
  Build();
  RawSocket* client = Client(Receive());
  EXPECT_TRUE(NothingAsked());
  Open();
  auto asked = Next();
  ASSERT_TRUE(asked && asked->Is("ReceiveMessage"));
  Reply(*asked, Messages({"h-1"}));
  EXPECT_TRUE(Gets(client, "h-1"));
}

TEST_F(SqsGateLeaseTest, WhileTheLeaseIsConfirmedChangesAreHeldAndServedAfterwards) {
  BuildOpen();
  HoldValve();
  RawSocket* client = Client(Send());
  EXPECT_TRUE(NothingAsked());
  EXPECT_EQ(gate_->status().held, 1U);
  Open();
  auto asked = Next();
  ASSERT_TRUE(asked && asked->Is("SendMessage"));
  Reply(*asked, R"({"MessageId":"m-1"})");
  EXPECT_TRUE(Gets(client, "m-1"));
}

TEST_F(SqsGateLeaseTest, MessagesThatArriveWhileItIsConfirmedAreKeptUntilThen) {
  BuildOpen();
  RawSocket* client = Client(Receive());
  auto asked = Next();
  ASSERT_TRUE(asked);
  HoldValve();
  Reply(*asked, Messages({"h-1"}));
  EXPECT_TRUE(NothingAsked());
  client->Poll();
  EXPECT_FALSE(Has(client, "HTTP"));
  Open();
  EXPECT_TRUE(Gets(client, "h-1"));
  EXPECT_EQ(in_flight(), 1U);
}

TEST_F(SqsGateLeaseTest, MessagesThatArrivedWhileItWasConfirmedGoBackIfItIsLost) {
  BuildOpen();
  RawSocket* client = Client(Receive());
  auto asked = Next();
  ASSERT_TRUE(asked);
  HoldValve();
  Reply(*asked, Messages({"h-1"}));
  EXPECT_TRUE(NothingAsked());
  CloseGate(true);
  EXPECT_TRUE(GetsEmpty(client));
  asked = Next();
  EXPECT_TRUE(asked && asked->Is("ChangeMessageVisibilityBatch") && asked->Has("h-1"));
}

TEST_F(SqsGateLeaseTest, ADrainEndsOpenReceivesEmptyAndGivesBackWhatStillArrives) {
  BuildOpen();
  RawSocket* client = Client(Receive());
  auto asked = Next();
  ASSERT_TRUE(asked);
  Drain();
  EXPECT_TRUE(GetsEmpty(client));
  EXPECT_TRUE(gate_->empty());
  EXPECT_TRUE(Eventually([&] { return empty_ > 0; }));
  CloseGate(false);
  Reply(*asked, Messages({"h-1"}));  // after the release
  asked = Next();
  ASSERT_TRUE(asked && asked->Is("ChangeMessageVisibilityBatch"));
  EXPECT_TRUE(asked->Has("h-1"));
  Reply(*asked, R"({"Successful":[{"Id":"0"}],"Failed":[]})");
  EXPECT_TRUE(Eventually(
      [&] { return Metric().find("reason=\"draining\",result=\"ok\"} 1") != std::string::npos; }));
}

TEST_F(SqsGateLeaseTest, ADrainSendsNoReceiveOnAndLetsDeletesAndSendsPass) {
  BuildOpen();
  ReceiveOne("h-1");
  Drain();
  Client(Receive());
  EXPECT_TRUE(NothingAsked());
  EXPECT_FALSE(gate_->empty());
  Client(Send());
  auto asked = Next();
  ASSERT_TRUE(asked && asked->Is("SendMessage"));
  Reply(*asked, R"({"MessageId":"m-1"})");
  RawSocket* client = Client(Delete("h-1"));
  asked = Next();
  ASSERT_TRUE(asked && asked->Is("DeleteMessage"));
  Reply(*asked, "{}");
  EXPECT_TRUE(Gets(client, "200"));
  EXPECT_TRUE(gate_->empty());
}

TEST_F(SqsGateLeaseTest, ADrainWaitsForMessagesLongerThanForTunnels) {
  BuildOpen();
  ReceiveOne("h-1");
  Drain();
  loop::Timer wait(loop_, [] {});
  wait.StartAfter(Duration::Millis(150));  // three times drain_tunnels
  RunUntil([&] { return !wait.armed(); });
  EXPECT_FALSE(gate_->empty());
}

TEST_F(SqsGateLeaseTest, BeforeADrainEndsMessagesGoBackOnceAndTheirDeletesAreRefused) {
  BuildOpen();
  ReceiveOne("h-1");
  Drain(Duration::Millis(400));
  auto asked = Next();
  ASSERT_TRUE(asked && asked->Is("ChangeMessageVisibilityBatch") && asked->Has("h-1"));
  EXPECT_FALSE(gate_->empty());
  RawSocket* client = Client(Delete("h-1"));
  EXPECT_TRUE(Gets(client, "ReceiptHandleIsInvalid"));
  Reply(*asked,
        R"({"Successful":[],"Failed":[{"Id":"0","Code":"InternalError","SenderFault":false}]})");
  EXPECT_TRUE(Eventually([&] { return gate_->empty(); }));
  EXPECT_TRUE(NothingAsked());  // never repeated
}

TEST_F(SqsGateLeaseTest, AMessageIsNotGivenBackWhileItsDeleteIsUnanswered) {
  BuildOpen();
  ReceiveOne("h-1");
  Client(Delete("h-1"));
  auto asked = Next();
  ASSERT_TRUE(asked && asked->Is("DeleteMessage"));
  Drain(Duration::Millis(200));
  loop::Timer wait(loop_, [] {});
  wait.StartAfter(Duration::Millis(180));
  RunUntil([&] { return !wait.armed(); });
  EXPECT_TRUE(NothingAsked());
  EXPECT_FALSE(gate_->empty());
  Reply(*asked, "{}");
  EXPECT_TRUE(Eventually([&] { return gate_->empty(); }));
  EXPECT_TRUE(NothingAsked());
}

TEST_F(SqsGateLeaseTest, AfterALossNothingThatTheApplicationSawGoesBack) {
  BuildOpen();
  ReceiveOne("h-1");
  CloseGate(true);
  EXPECT_TRUE(NothingAsked());
  EXPECT_EQ(in_flight(), 0U);
}

TEST_F(SqsGateLeaseTest, ALossEndsReceivesEmptyAndOtherRequestsUnavailable) {
  BuildOpen();
  RawSocket* receiver = Client(Receive());
  auto receive = Next();
  RawSocket* sender = Client(Send());
  auto send = Next();
  ASSERT_TRUE(receive && send);
  CloseGate(true);
  EXPECT_TRUE(GetsEmpty(receiver));
  EXPECT_TRUE(Gets(sender, "may or may not have been done"));
  Reply(*receive, Messages({"h-1"}));
  auto asked = Next();
  EXPECT_TRUE(asked && asked->Is("ChangeMessageVisibilityBatch"));
}

TEST_F(SqsGateLeaseTest, APermitThatRanOutUntoldStopsDeliveryAndChanges) {
  BuildOpen();
  RawSocket* client = Client(Receive("\"WaitTimeSeconds\":1"));
  auto receive = Next();
  ASSERT_TRUE(receive);
  permit_.ExpireAt(loop::Loop::Now());
  Reply(*receive, Messages({"h-1"}));
  auto asked = Next();
  ASSERT_TRUE(asked && asked->Is("ChangeMessageVisibilityBatch"));
  EXPECT_TRUE(GetsEmpty(client));
  EXPECT_TRUE(Eventually([&] { return expired_ > 0; }));
  RawSocket* sender = Client(Send());
  EXPECT_TRUE(Gets(sender, "ServiceUnavailable"));
  EXPECT_TRUE(NothingAsked());
}

TEST_F(SqsGateLeaseTest, HandlesOfAnEarlierTermAreRefusedAlsoUnderANewOne) {
  BuildOpen();
  ReceiveOne("h-1");
  CloseGate(true);
  RawSocket* standby = Client(Delete("h-1"));
  EXPECT_TRUE(Gets(standby, "HTTP/1.1 "));
  Open(8);
  RawSocket* client = Client(Delete("h-1"));
  EXPECT_TRUE(Gets(client, "ReceiptHandleIsInvalid"));
  EXPECT_TRUE(Has(client, "earlier term"));
  EXPECT_TRUE(NothingAsked());
}

TEST_F(SqsGateLeaseTest, OfABatchOnlyThisTermsHandlesGoOnAndTheAnswersAreMerged) {
  BuildOpen();
  ReceiveOne("h-1");
  CloseGate(true);
  Open(8);
  ReceiveOne("h-2");
  RawSocket* client = Client(
      JsonRequest("DeleteMessageBatch", "{\"QueueUrl\":\"" + std::string(kJobs) +
                                            R"(","Entries":[{"Id":"a","ReceiptHandle":"h-1"},)"
                                            R"({"Id":"b","ReceiptHandle":"h-2"}]})"));
  auto asked = Next();
  ASSERT_TRUE(asked);
  EXPECT_FALSE(asked->Has("h-1"));
  EXPECT_TRUE(asked->Has("h-2"));
  Reply(*asked, R"({"Successful":[{"Id":"b"}],"Failed":[]})");
  EXPECT_TRUE(Gets(client, "ReceiptHandleIsInvalid"));
  EXPECT_TRUE(Has(client, R"("Id":"b")"));
  EXPECT_EQ(in_flight(), 0U);
}

TEST_F(SqsGateLeaseTest, AReceiveOfTheLastTermIsNotDeliveredUnderTheNext) {
  BuildOpen();
  RawSocket* client = Client(Receive());
  auto asked = Next();
  ASSERT_TRUE(asked);
  CloseGate(true);
  EXPECT_TRUE(GetsEmpty(client));
  Open(8);
  Reply(*asked, Messages({"h-1"}));
  asked = Next();
  EXPECT_TRUE(asked && asked->Is("ChangeMessageVisibilityBatch"));
}

TEST_F(SqsGateLeaseTest, ADrainThatHealsReceivesAgain) {
  BuildOpen();
  Drain();
  RawSocket* client = Client(Receive());
  EXPECT_TRUE(NothingAsked());
  Open();
  auto asked = Next();
  ASSERT_TRUE(asked && asked->Is("ReceiveMessage"));
  Reply(*asked, Messages({"h-1"}));
  EXPECT_TRUE(Gets(client, "h-1"));
}

TEST_F(SqsGateLeaseTest, TheGateEndsWithAReceiveAndADeleteWithSqs) {
  BuildOpen();
  Client(Receive());
  ASSERT_TRUE(Next());
  Client(Delete("h-9"));
  ASSERT_TRUE(Next());
  gate_.reset();
}

}  // namespace
}  // namespace leasehold::gate

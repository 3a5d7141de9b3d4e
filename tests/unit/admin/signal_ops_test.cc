// What the ops of the signal socket do: register, drained, step_down, status.
#include <gtest/gtest.h>

#include <string>

#include "unit/admin/signal_fixture.h"

namespace leasehold::admin {
namespace {

constexpr const char* kStepDown =
    R"({"op":"step_down","lease":"orders","expected_node_id":"n1","expected_token":"12"})";

class SignalOpsTest : public SignalFixture {};

TEST_F(SignalOpsTest, StatusShowsNodeAndLeases) {
  Start();
  auto client = Client();
  const proto::Json answer = Ask(*client, R"({"op":"status","id":"a-1"})");
  EXPECT_EQ(answer.Bool("ok"), true);
  EXPECT_EQ(answer.String("op"), "status");
  EXPECT_EQ(answer.String("id"), "a-1");
  EXPECT_EQ(answer.Find("node")->String("node_id"), "n1");
  EXPECT_EQ(answer.Find("leases")->size(), 1U);
}

TEST_F(SignalOpsTest, WithoutRegisteredClientsNobodyIsWaitedFor) {
  Start();
  auto client = Client();
  EXPECT_TRUE(server_->AllDrained("orders", 12));
}

TEST_F(SignalOpsTest, ARegisteredClientIsWaitedForUntilItSaysDrained) {
  Start();
  auto client = Client();
  EXPECT_EQ(Ask(*client, R"({"op":"register"})").Bool("ok"), true);
  Drain(12);
  EXPECT_NE(Line(*client, 2).find("lease.draining"), std::string::npos);
  EXPECT_FALSE(server_->AllDrained("orders", 12));
  control_.progress.clear();
  const proto::Json answer = Ask(*client, R"({"op":"drained","lease":"orders","token":"12"})");
  EXPECT_EQ(answer.Bool("ok"), true);
  EXPECT_EQ(answer.Uint("waiting_for"), 0U);
  EXPECT_TRUE(server_->AllDrained("orders", 12));
  EXPECT_TRUE(Eventually([&] { return control_.progress == std::vector<std::string>{"orders"}; }));
}

TEST_F(SignalOpsTest, EveryRegisteredClientIsWaitedFor) {
  Start();
  auto first = Client();
  auto second = Client();
  Ask(*first, R"({"op":"register"})");
  Ask(*second, R"({"op":"register","lease":"orders"})");
  Drain(12);
  ASSERT_NE(Line(*first, 2), "");
  EXPECT_EQ(Ask(*first, R"({"op":"drained","token":12})").Uint("waiting_for"), 1U);
  EXPECT_FALSE(server_->AllDrained("orders", 12));
  ASSERT_NE(Line(*second, 2), "");
  Ask(*second, R"({"op":"drained","token":12})");
  EXPECT_TRUE(server_->AllDrained("orders", 12));
}

TEST_F(SignalOpsTest, AnotherConnectionSaysDrainedForARegisteredName) {
  Start();
  auto worker = Client();
  auto other = Client();
  EXPECT_EQ(Ask(*worker, R"({"op":"register","name":"worker"})").String("name"), "worker");
  Ask(*other, R"({"op":"register","name":"other"})");
  Drain(12);
  auto script = Client();
  const proto::Json answer = Ask(*script, R"({"op":"drained","name":"worker","token":"12"})");
  EXPECT_EQ(answer.Bool("ok"), true);
  EXPECT_EQ(answer.String("name"), "worker");
  EXPECT_EQ(answer.Uint("clients"), 1U);
  EXPECT_EQ(answer.Uint("waiting_for"), 1U);
  EXPECT_FALSE(server_->AllDrained("orders", 12));
  control_.progress.clear();
  EXPECT_EQ(Ask(*script, R"({"op":"drained","name":"other","token":"12"})").Uint("waiting_for"),
            0U);
  EXPECT_TRUE(server_->AllDrained("orders", 12));
  EXPECT_TRUE(Eventually([&] { return !control_.progress.empty(); }));
}

TEST_F(SignalOpsTest, ClientsThatShareANameAreDrainedTogether) {
  Start();
  auto first = Client();
  auto second = Client();
  Ask(*first, R"({"op":"register","name":"worker"})");
  Ask(*second, R"({"op":"register","name":"worker","lease":"orders"})");
  Drain(12);
  auto script = Client();
  EXPECT_EQ(Ask(*script, R"({"op":"drained","name":"worker","token":"12"})").Uint("clients"), 2U);
  EXPECT_TRUE(server_->AllDrained("orders", 12));
}

TEST_F(SignalOpsTest, ANameCountsOnlyForItsOwnLeaseAndOnlyWhileRegistered) {
  control_.lease_views.push_back(testing::FakeControl::Holding("billing", 3));
  Start();
  auto client = Client();
  Ask(*client, R"({"op":"register","name":"worker","lease":"billing"})");
  Drain(12);
  auto script = Client();
  const std::string line = R"({"op":"drained","lease":"orders","name":"worker","token":"12"})";
  EXPECT_EQ(Ask(*script, line).String("error"), "not_registered");
  // Speaking for somebody does not make the speaker drained.
  Ask(*script, R"({"op":"register","lease":"orders"})");
  EXPECT_EQ(Ask(*script, line).String("error"), "not_registered");
  EXPECT_FALSE(server_->AllDrained("orders", 12));
}

TEST_F(SignalOpsTest, ANameIsAShortWord) {
  Start();
  auto client = Client();
  for (const char* name : {R"("")", R"("a b")", "7", "null"}) {
    const proto::Json answer =
        Ask(*client, std::string(R"({"op":"register","name":)") + name + "}");
    EXPECT_EQ(answer.String("event"), "error") << name;
  }
  const std::string longest(64, 'x');
  const std::string line = R"({"op":"register","name":")" + longest;
  EXPECT_EQ(Ask(*client, line + "x\"}").String("event"), "error");
  EXPECT_TRUE(server_->AllDrained("orders", 12)) << "a refused register registers nobody";
  EXPECT_EQ(Ask(*client, line + "\"}").String("name"), longest);
}

TEST_F(SignalOpsTest, AClientRegisteredForAnotherLeaseIsNotWaitedFor) {
  control_.lease_views.push_back(testing::FakeControl::Holding("billing", 3));
  Start();
  auto client = Client();
  Ask(*client, R"({"op":"register","lease":"billing"})");
  EXPECT_TRUE(server_->AllDrained("orders", 12));
  EXPECT_FALSE(server_->AllDrained("billing", 3));
}

TEST_F(SignalOpsTest, AVanishedClientCountsAsDrained) {
  Start();
  auto client = Client();
  Ask(*client, R"({"op":"register"})");
  Drain(12);
  EXPECT_FALSE(server_->AllDrained("orders", 12));
  control_.progress.clear();
  client->CloseWithReset();
  EXPECT_TRUE(Eventually([&] { return server_->AllDrained("orders", 12); }));
  EXPECT_TRUE(Eventually([&] { return !control_.progress.empty(); }));
}

TEST_F(SignalOpsTest, AClientThatCannotSpeakAnyMoreCountsAsDrained) {
  Start();
  auto client = Client();
  Ask(*client, R"({"op":"register"})");
  client->Send(std::string(kStepDown) + "\n");
  client->ShutdownWrite();
  ASSERT_TRUE(Eventually([&] { return control_.asked.size() == 1; }));
  EXPECT_TRUE(Eventually([&] { return server_->AllDrained("orders", 12); }));
  // It still waits for its answer, and gets it.
  EXPECT_EQ(server_->clients(), 1U);
  control_.Finish(0, Outcome::kTakenOver);
  ASSERT_TRUE(IsOver(*client));
  EXPECT_NE(client->received().find("taken_over_by_another_process"), std::string::npos);
}

TEST_F(SignalOpsTest, DrainProgressIsNeverToldFromInsideAnEvent) {
  Start();
  auto client = Client();
  Ask(*client, R"({"op":"register"})");
  ASSERT_TRUE(Eventually([&] { return control_.progress.size() == 1; }));
  client->Send("{\"op\":\"drained\",\"token\":\"12\"}\n");
  bool inside = false;
  bool seen_inside = false;
  events_.Subscribe([&](const observe::Event&) {
    inside = true;
    seen_inside = control_.progress.size() != 1;
    inside = false;
  });
  Drain(12);
  EXPECT_FALSE(seen_inside);
  EXPECT_FALSE(inside);
}

TEST_F(SignalOpsTest, DrainedAfterALossTellsTheTruth) {
  Start();
  auto client = Client();
  Ask(*client, R"({"op":"register"})");
  control_.lease_views[0] = testing::FakeControl::Standby("orders", 13, "n2");
  const proto::Json answer = Ask(*client, R"({"op":"drained","lease":"orders","token":"12"})");
  EXPECT_EQ(answer.Bool("ok"), false);
  EXPECT_EQ(answer.String("error"), "not_holder");
}

TEST_F(SignalOpsTest, DrainedForAnotherTokenIsNotTaken) {
  Start();
  auto client = Client();
  Ask(*client, R"({"op":"register"})");
  Drain(12);
  ASSERT_NE(Line(*client, 2), "");
  EXPECT_EQ(Ask(*client, R"({"op":"drained","token":"11"})").String("error"), "not_holder");
  EXPECT_FALSE(server_->AllDrained("orders", 12));
}

TEST_F(SignalOpsTest, DrainedBeforeADrainIsNotTaken) {
  Start();
  auto client = Client();
  Ask(*client, R"({"op":"register"})");
  EXPECT_EQ(Ask(*client, R"({"op":"drained","token":"12"})").String("error"), "not_draining");
  EXPECT_FALSE(server_->AllDrained("orders", 12));
}

TEST_F(SignalOpsTest, ADrainThatWasCalledOffMakesDrainedVoid) {
  Start();
  auto client = Client();
  Ask(*client, R"({"op":"register"})");
  Drain(12);
  ASSERT_NE(Line(*client, 2), "");
  Ask(*client, R"({"op":"drained","token":"12"})");
  EXPECT_TRUE(server_->AllDrained("orders", 12));
  control_.lease_views[0].view.state = lease::State::kActive;
  Publish("lease.restored", 12);
  Drain(12);
  EXPECT_FALSE(server_->AllDrained("orders", 12)) << "it has taken new work since";
}

TEST_F(SignalOpsTest, ASecondDrainingNoticeOfOneDrainKeepsWhatWasSaid) {
  Start();
  auto client = Client();
  Ask(*client, R"({"op":"register"})");
  Drain(12);
  ASSERT_NE(Line(*client, 2), "");
  Ask(*client, R"({"op":"drained","token":"12"})");
  Drain(12);
  EXPECT_TRUE(server_->AllDrained("orders", 12));
}

TEST_F(SignalOpsTest, WhoNeverRegisteredHoldsNothingUp) {
  Start();
  auto waited_for = Client();
  auto other = Client();
  Ask(*waited_for, R"({"op":"register"})");
  Drain(12);
  ASSERT_NE(Line(*other, 1), "");
  EXPECT_EQ(Ask(*other, R"({"op":"drained","token":"12"})").Uint("waiting_for"), 1U);
  EXPECT_FALSE(server_->AllDrained("orders", 12));
}

TEST_F(SignalOpsTest, AStepDownPassesItsPreconditionOnAndAnswersWithTheOutcome) {
  Start();
  auto client = Client();
  client->Send(
      "{\"op\":\"step_down\",\"id\":7,\"lease\":\"orders\",\"expected_node_id\":\"n1\","
      "\"expected_token\":\"12\",\"take_back\":false}\n");
  ASSERT_TRUE(Eventually([&] { return control_.asked.size() == 1; }));
  EXPECT_EQ(control_.asked[0].ask.lease, "orders");
  EXPECT_EQ(control_.asked[0].ask.expected.node_id, "n1");
  EXPECT_EQ(control_.asked[0].ask.expected.token, 12U);
  EXPECT_FALSE(control_.asked[0].ask.take_back);
  client->Poll();
  EXPECT_EQ(Lines(*client).size(), 1U) << "answered before the outcome was known";
  control_.Finish(0, Outcome::kTakenOver);
  const auto answer = proto::Json::Parse(Line(*client, 1));
  ASSERT_TRUE(answer.ok());
  EXPECT_EQ(answer->Bool("ok"), true);
  EXPECT_EQ(answer->Int("id"), 7);
  EXPECT_EQ(answer->String("outcome"), "taken_over_by_another_process");
  EXPECT_EQ(answer->String("released_token"), "12");
  EXPECT_EQ(answer->String("active_token"), "13");
  EXPECT_EQ(answer->String("active_node_id"), "n2");
  EXPECT_EQ(answer->String("active_process_id"), "p2");
}

TEST_F(SignalOpsTest, AStepDownTakesTheLeaseBackUnlessToldOtherwise) {
  Start();
  auto client = Client();
  client->Send(std::string(kStepDown) + "\n");
  ASSERT_TRUE(Eventually([&] { return control_.asked.size() == 1; }));
  EXPECT_TRUE(control_.asked[0].ask.take_back);
}

TEST_F(SignalOpsTest, AStepDownThatFailsSaysWhyInOneWord) {
  Start();
  auto client = Client();
  const std::pair<Outcome, const char*> cases[] = {
      {Outcome::kFailedPrecondition, "failed_precondition"},
      {Outcome::kNotHolder, "not_holder"},
      {Outcome::kUnknown, "unknown"}};
  for (const auto& [outcome, word] : cases) {
    control_.answer_at_once = testing::FakeControl::Done(outcome, {"orders", {"n1", 12}, true});
    const proto::Json answer = Ask(*client, kStepDown);
    EXPECT_EQ(answer.Bool("ok"), false) << word;
    EXPECT_EQ(answer.String("error"), word);
    EXPECT_EQ(answer.String("outcome"), word);
    EXPECT_EQ(answer.String("expected_token"), "12") << "the values to retry with";
    EXPECT_NE(answer.String("detail"), "");
  }
}

TEST_F(SignalOpsTest, AStepDownOfAnUnknownLeaseIsNotFound) {
  Start();
  auto client = Client();
  const proto::Json answer =
      Ask(*client,
          R"({"op":"step_down","lease":"nope","expected_node_id":"n1","expected_token":"12"})");
  EXPECT_EQ(answer.Bool("ok"), false);
  EXPECT_EQ(answer.String("error"), "not_found");
}

TEST_F(SignalOpsTest, AStepDownThatCannotStartIsAnsweredOnce) {
  control_.refuse = base::Error{base::ErrorCode::kUnavailable, "shutting down"};
  Start();
  auto client = Client();
  const proto::Json answer = Ask(*client, kStepDown);
  EXPECT_EQ(answer.String("error"), "unavailable");
  EXPECT_EQ(Ask(*client, R"({"op":"status"})").String("op"), "status");
}

TEST_F(SignalOpsTest, AStepDownGoesOnWithoutItsClient) {
  Start();
  auto client = Client();
  client->Send(std::string(kStepDown) + "\n");
  ASSERT_TRUE(Eventually([&] { return control_.asked.size() == 1; }));
  client->Close();
  RunFor(base::Duration::Millis(20));
  control_.Finish(0, Outcome::kTakenOver);
  EXPECT_TRUE(Eventually([&] { return server_->clients() == 0; }));
}

TEST_F(SignalOpsTest, WithSeveralLeasesTheLeaseMustBeNamed) {
  control_.lease_views.push_back(testing::FakeControl::Holding("billing", 3));
  Start();
  auto client = Client();
  const proto::Json answer =
      Ask(*client, R"({"op":"step_down","expected_node_id":"n1","expected_token":"12"})");
  EXPECT_EQ(answer.String("event"), "error");
  EXPECT_TRUE(control_.asked.empty());
}

TEST_F(SignalOpsTest, ATokenOf64BitsArrivesUnrounded) {
  control_.lease_views[0].view.token = 18446744073709551615U;
  Start();
  auto client = Client();
  client->Send(
      R"({"op":"step_down","expected_node_id":"n1","expected_token":"18446744073709551615"})"
      "\n");
  ASSERT_TRUE(Eventually([&] { return control_.asked.size() == 1; }));
  EXPECT_EQ(control_.asked[0].ask.expected.token, 18446744073709551615U);
}

TEST_F(SignalOpsTest, OneClientCannotPileUpStepDownsWithoutEnd) {
  Start();
  auto client = Client();
  for (int i = 0; i < 65; ++i) client->Send(std::string(kStepDown) + "\n");
  EXPECT_NE(Line(*client, 1).find("\"error\":\"limit\""), std::string::npos);
  EXPECT_EQ(control_.asked.size(), 64U);
}

}  // namespace
}  // namespace leasehold::admin

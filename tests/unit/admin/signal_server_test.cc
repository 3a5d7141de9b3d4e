// The connection side of the signal socket: who is let in, what is told, who is dropped.
#include "admin/signal_server.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>

#include "unit/admin/signal_fixture.h"

namespace leasehold::admin {
namespace {

using testing::RawSocket;

class SignalServerTest : public SignalFixture {};

TEST_F(SignalServerTest, HelloTellsVersionNodeProcessAndEveryLease) {
  control_.lease_views.push_back(testing::FakeControl::Standby("billing", 3, "n2"));
  Start();
  auto client = Connect();
  const auto hello = proto::Json::Parse(Line(*client, 0));
  ASSERT_TRUE(hello.ok());
  EXPECT_EQ(hello->String("event"), "hello");
  EXPECT_EQ(hello->String("version"), "0.1.0");
  EXPECT_EQ(hello->String("node_id"), "n1");
  EXPECT_EQ(hello->String("process_id"), "p1");
  const auto leases = hello->Find("leases")->Elements();
  ASSERT_EQ(leases.size(), 2U);
  EXPECT_EQ(leases[0].String("state"), "active");
  EXPECT_EQ(leases[0].String("token"), "12");
  EXPECT_EQ(leases[1].String("lease"), "billing");
  EXPECT_EQ(leases[1].Bool("holding"), false);
}

TEST_F(SignalServerTest, EventsFollowTheHelloInOrder) {
  Start();
  auto client = Client();
  Publish("lease.at_risk", 12);
  Publish("lease.lost", 12);
  EXPECT_NE(Line(*client, 1).find("\"event\":\"lease.at_risk\""), std::string::npos);
  EXPECT_NE(Line(*client, 2).find("\"event\":\"lease.lost\""), std::string::npos);
}

TEST_F(SignalServerTest, TheSocketHasMode0660) {
  Start();
  struct stat info {};
  ASSERT_EQ(stat(options_.socket.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777U, 0660U);
}

TEST_F(SignalServerTest, TheSocketIsGoneAfterwards) {
  Start();
  server_.reset();
  EXPECT_NE(access(options_.socket.c_str(), F_OK), 0);
}

TEST_F(SignalServerTest, AnImpossiblePathIsAnErrorThatNamesIt) {
  options_.socket = dir_.File("no/such/dir/s.sock");
  const auto server = SignalServer::Start(loop_, options_, control_, events_, *log_);
  ASSERT_FALSE(server.ok());
  EXPECT_NE(server.error().message.find("signal.socket = \"" + options_.socket), std::string::npos);
}

TEST_F(SignalServerTest, AUserWhoIsNotOnTheListGetsOneErrorLineAndAClose) {
  options_.allow_uids = {static_cast<int64_t>(getuid()) + 1};
  Start();
  auto client = Connect();
  ASSERT_TRUE(IsOver(*client));
  const auto lines = Lines(*client);
  ASSERT_EQ(lines.size(), 1U);
  EXPECT_NE(lines[0].find("\"code\":\"refused\""), std::string::npos);
  EXPECT_NE(lines[0].find("signal.allow_uids"), std::string::npos);
  EXPECT_EQ(server_->clients(), 0U);
}

TEST_F(SignalServerTest, AUserOnTheListIsLetIn) {
  options_.allow_uids = {static_cast<int64_t>(getuid()) + 1, static_cast<int64_t>(getuid())};
  Start();
  auto client = Client();
  EXPECT_EQ(server_->clients(), 1U);
}

TEST_F(SignalServerTest, OneClientTooManyIsToldAndClosedAndTheOthersStay) {
  options_.max_clients = 2;
  Start();
  auto first = Client();
  auto second = Client();
  auto third = Connect();
  ASSERT_TRUE(IsOver(*third));
  EXPECT_NE(third->received().find("\"code\":\"limit\""), std::string::npos);
  EXPECT_EQ(server_->clients(), 2U);
  first->Close();
  ASSERT_TRUE(Eventually([&] { return server_->clients() == 1; }));
  auto fourth = Client();
  EXPECT_EQ(server_->clients(), 2U);
}

TEST_F(SignalServerTest, ASlowReaderIsDroppedAndNobodyWaitsForIt) {
  Start();
  auto slow = Client();
  auto quick = Client();
  Ask(*quick, R"({"op":"register"})");
  slow->Send("{\"op\":\"register\"}\n");
  ASSERT_TRUE(Eventually([&] { return control_.progress.size() == 2; }));
  observe::Event event;
  event.name = "store.degraded";
  event.detail = std::string(8000, 'x');
  for (int i = 0; i < 500 && server_->clients() == 2; ++i) {
    events_.Publish(event);
    quick->Poll();
    loop_.Post([] {});  // so that the turn does not wait
    loop_.RunOnce();
  }
  EXPECT_EQ(server_->clients(), 1U) << "the slow reader is still there";
  quick->Poll();
  EXPECT_FALSE(quick->over());
  EXPECT_TRUE(Eventually([&] { return control_.progress.size() == 3; }))
      << "its end was not told to the drain";
}

TEST_F(SignalServerTest, GarbageGetsOneErrorLineEachAndTheConnectionStays) {
  Start();
  auto client = Client();
  for (const char* garbage :
       {"hello",
        "{",
        "[]",
        "42",
        "null",
        "{}",
        R"({"op":1})",
        R"({"op":"reboot"})",
        R"({"op":"status","op":"status"})",
        "\xff\xfe",
        R"({"op":"status","id":{}})",
        "\x01\x02",
        R"({"op":"drained"})",
        R"({"op":"drained","token":-1})",
        R"({"op":"drained","token":"12x"})",
        R"({"op":"register","lease":5})",
        R"({"op":"step_down"})",
        R"({"op":"step_down","expected_node_id":"n1"})",
        R"({"op":"step_down","expected_node_id":"n1","expected_token":12.5})",
        R"({"op":"step_down","expected_node_id":"n1","expected_token":"12","takeback":false})"}) {
    const proto::Json answer = Ask(*client, garbage);
    EXPECT_EQ(answer.String("event"), "error") << garbage;
    EXPECT_EQ(answer.String("code"), "invalid") << garbage;
  }
  EXPECT_EQ(Ask(*client, R"({"op":"status"})").Bool("ok"), true);
  EXPECT_TRUE(control_.asked.empty());
}

TEST_F(SignalServerTest, ALineOver16KiBIsToldAndClosed) {
  Start();
  for (const bool with_end : {false, true}) {
    auto client = Client();
    client->Send("{\"op\":\"" + std::string(17000, 'x') + (with_end ? "\"}\n" : ""));
    ASSERT_TRUE(IsOver(*client));
    EXPECT_NE(client->received().find("\"code\":\"line_too_long\""), std::string::npos);
  }
  EXPECT_EQ(server_->clients(), 0U);
}

TEST_F(SignalServerTest, ALineJustShortEnoughIsTaken) {
  Start();
  auto client = Client();
  std::string line = R"({"op":"status","x":")";
  line += std::string(16 * 1024 - line.size() - 2, 'x') + "\"}";
  EXPECT_EQ(Ask(*client, line).Bool("ok"), true);
}

TEST_F(SignalServerTest, LinesMayComeInPiecesTogetherAndWithCarriageReturns) {
  Start();
  auto client = Client();
  client->Send("\n\r\n{\"op\":\"sta");
  RunFor(base::Duration::Millis(20));
  client->Send("tus\",\"id\":1}\r\n{\"op\":\"status\",\"id\":2}\n{\"op\":\"status\",\"id\":3}\n");
  for (size_t i = 1; i <= 3; ++i) {
    const auto answer = proto::Json::Parse(Line(*client, i));
    ASSERT_TRUE(answer.ok());
    EXPECT_EQ(answer->Int("id"), static_cast<int64_t>(i));
  }
}

TEST_F(SignalServerTest, AClientThatHalfClosesStillGetsItsAnswers) {
  Start();
  auto client = Client();
  client->Send("{\"op\":\"status\"}\n");
  client->ShutdownWrite();
  ASSERT_TRUE(IsOver(*client));
  EXPECT_EQ(Lines(*client).size(), 2U);
  EXPECT_EQ(server_->clients(), 0U);
}

TEST_F(SignalServerTest, ManyClientsAreAllTold) {
  Start();
  std::vector<std::unique_ptr<RawSocket>> clients;
  for (int i = 0; i < 64; ++i) clients.push_back(Client());
  Publish("lease.draining", 12);
  for (const auto& client : clients) {
    EXPECT_NE(Line(*client, 1).find("lease.draining"), std::string::npos);
  }
}

TEST_F(SignalServerTest, TheServerMayEndWhileClientsAndStepDownsAreThere) {
  Start();
  auto client = Client();
  client->Send("{\"op\":\"step_down\",\"expected_node_id\":\"n1\",\"expected_token\":\"12\"}\n");
  ASSERT_TRUE(Eventually([&] { return control_.asked.size() == 1; }));
  server_.reset();
  control_.Finish(0, Outcome::kTakenOver);
  Publish("lease.released", 12);
  ASSERT_TRUE(IsOver(*client));
}

}  // namespace
}  // namespace leasehold::admin

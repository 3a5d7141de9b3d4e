// The localhost API as its clients see it: routes, answers, errors, step-downs.
#include "admin/api_server.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "admin/lease_metrics.h"
#include "base/text.h"
#include "lib/fake_control.h"
#include "lib/raw_socket_fixture.h"
#include "lib/socket_peer.h"
#include "proto/json.h"
#include "unit/admin/http_client.h"

namespace leasehold::admin {
namespace {

using testing::FakeControl;

constexpr const char* kStepDownPath = "/v1/leases/orders/step-down";
constexpr const char* kPrecondition = R"({"expected_node_id":"n1","expected_token":"12"})";

class ApiServerTest : public testing::RawSocketFixture {
 protected:
  using Outcome = lease::StepDownDone::Outcome;

  void SetUp() override {
    log_ = observe::Log::Silent();
    options_.listen = "127.0.0.1:0";
  }
  void TearDown() override { server_.reset(); }
  void Start(const std::string& token = "") {
    auto server = ApiServer::Start(loop_, options_, token, control_, metrics_, events_, *log_);
    ASSERT_TRUE(server.ok()) << server.error().message;
    server_ = std::move(server).value();
  }
  std::unique_ptr<HttpClient> Client() {
    return std::make_unique<HttpClient>(base::ParseAddress(server_->bound()).value());
  }
  Answered Ask(const std::string& request) {
    auto client = Client();
    client->Send(request);
    Eventually([&] { return !client->Answers().empty() || client->socket().over(); });
    const auto answers = client->Answers();
    return answers.empty() ? Answered{} : answers[0];
  }
  static proto::Json Json(const Answered& answer) {
    const auto json = proto::Json::Parse(answer.body);
    EXPECT_TRUE(json.ok()) << answer.body;
    return json.ok() ? *json : proto::Json();
  }
  static void ExpectProblem(const Answered& answer, int status, const std::string& code) {
    EXPECT_EQ(answer.status, status) << answer.body;
    EXPECT_EQ(answer.Header("Content-Type"), "application/problem+json");
    const proto::Json json = Json(answer);
    EXPECT_EQ(json.String("type"), "urn:leasehold:problem:" + code);
    EXPECT_EQ(json.Int("status"), status);
    EXPECT_NE(json.String("title").value_or(""), "");
    EXPECT_NE(json.String("detail").value_or(""), "");
  }

  AdminOptions options_;
  FakeControl control_;
  observe::Metrics metrics_;
  observe::EventBus events_;
  std::unique_ptr<observe::Log> log_;
  std::unique_ptr<ApiServer> server_;
};

TEST_F(ApiServerTest, ProbesAnswerGetAndHead) {
  Start();
  for (const char* path : {"/livez", "/readyz", "/leaderz", "/leaderz?lease=orders"}) {
    const Answered answer = Ask(Get(path));
    EXPECT_EQ(answer.status, 200) << path;
    EXPECT_EQ(answer.Header("Content-Type"), "application/json");
  }
  auto client = Client();
  client->Send("HEAD /readyz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
  ASSERT_TRUE(Eventually([&] {
    client->socket().Poll();
    return client->socket().over();
  }));
  EXPECT_EQ(client->Answers(false).at(0).status, 200);
  EXPECT_TRUE(client->socket().received().ends_with("\r\n\r\n"));
  ExpectProblem(Ask(Get("/standbyz")), 503, "not_a_hot_standby");
  ExpectProblem(Ask(Get("/readyz?lease=nope")), 404, "not_found");
}

TEST_F(ApiServerTest, AProbeWithoutHostOnHttp10IsAnswered) {
  Start();
  EXPECT_EQ(Ask("GET /readyz HTTP/1.0\r\n\r\n").status, 200);
  ExpectProblem(Ask("GET /v1/status HTTP/1.0\r\n\r\n"), 421, "host_not_ours");
}

TEST_F(ApiServerTest, StatusShowsNodeLeasesAndGates) {
  control_.node_view.troubles = {"the store evicts keys"};
  GateView gate;
  gate.name = "web";
  gate.state = "open";
  gate.in_flight = 3;
  control_.lease_views[0].gates.push_back(gate);
  Start();
  const proto::Json json = Json(Ask(Get("/v1/status")));
  EXPECT_EQ(json.Find("node")->String("process_id"), "p1");
  EXPECT_EQ(json.Find("node")->Find("troubles")->size(), 1U);
  const proto::Json lease = *json.Find("leases")->At(0);
  EXPECT_EQ(lease.String("lease"), "orders");
  EXPECT_EQ(lease.String("state"), "active");
  EXPECT_EQ(lease.Bool("holding"), true);
  EXPECT_EQ(lease.String("token"), "12");
  EXPECT_EQ(lease.Int("expires_in_ms"), 7250);
  EXPECT_EQ(lease.Find("holder")->String("node_id"), "n1");
  EXPECT_EQ(lease.Find("gates")->At(0)->Uint("in_flight"), 3U);
}

TEST_F(ApiServerTest, OneLeaseIsShownByName) {
  control_.lease_views.push_back(FakeControl::Standby("a/b", 3, "n2"));
  Start();
  EXPECT_EQ(Json(Ask(Get("/v1/leases"))).Find("leases")->size(), 2U);
  const proto::Json lease = Json(Ask(Get("/v1/leases/a%2Fb")));
  EXPECT_EQ(lease.String("lease"), "a/b");
  EXPECT_TRUE(lease.Find("expires_in_ms")->is_null());
  EXPECT_EQ(lease.Find("holder")->String("node_id"), "n2");
  EXPECT_EQ(lease.Find("record")->String("token"), "3");
  ExpectProblem(Ask(Get("/v1/leases/nope")), 404, "not_found");
}

TEST_F(ApiServerTest, ATokenOf64BitsIsADecimalString) {
  control_.lease_views[0].view.token = 18446744073709551615U;
  Start();
  EXPECT_NE(Ask(Get("/v1/leases/orders")).body.find("\"token\":\"18446744073709551615\""),
            std::string::npos);
}

TEST_F(ApiServerTest, DescribeNamesTheHolder) {
  control_.lease_views.push_back(FakeControl::Standby("billing", 3, "n2"));
  Start();
  const proto::Json ours = Json(Ask(Get("/v1/leases/orders/describe")));
  EXPECT_EQ(ours.String("node_id"), "n1");
  EXPECT_EQ(ours.String("token"), "12");
  EXPECT_EQ(ours.String("process_id"), "p1");
  EXPECT_EQ(ours.Bool("this_process"), true);
  const proto::Json theirs = Json(Ask(Get("/v1/leases/billing/describe")));
  EXPECT_EQ(theirs.String("node_id"), "n2");
  EXPECT_EQ(theirs.Bool("this_process"), false);
}

TEST_F(ApiServerTest, DescribeOfAFreeLeaseFindsNoHolder) {
  control_.lease_views[0] = FakeControl::Standby("orders", 3, "n2");
  control_.lease_views[0].view.seen->state = lease::RecordState::kReleased;
  Start();
  ExpectProblem(Ask(Get("/v1/leases/orders/describe")), 404, "no_holder");
}

TEST_F(ApiServerTest, DescribeDoesNotCallATermThatIsOverAHolder) {
  control_.lease_views[0] = FakeControl::Standby("orders", 3, "n1");
  control_.lease_views[0].view.seen->process_id = "p1";
  Start();
  ExpectProblem(Ask(Get("/v1/leases/orders/describe")), 404, "no_holder");
}

TEST_F(ApiServerTest, DescribeIsRefusedDuringAStepDownAndItsHoldOff) {
  control_.lease_views[0].view.step_down_in_progress = true;
  Start();
  ExpectProblem(Ask(Get("/v1/leases/orders/describe")), 412, "failed_precondition");
}

TEST_F(ApiServerTest, ConfigAndMetricsAreShown) {
  AddLeaseMetrics(metrics_, control_, loop_);
  Start();
  EXPECT_EQ(Ask(Get("/v1/config")).body, R"({"store":{"password":"***"}})");
  const Answered metrics = Ask(Get("/metrics"));
  EXPECT_EQ(metrics.Header("Content-Type"), "text/plain; version=0.0.4; charset=utf-8");
  EXPECT_NE(metrics.body.find("leasehold_lease_holding{lease=\"orders\"} 1"), std::string::npos);
}

TEST_F(ApiServerTest, AStepDownPassesItsPreconditionOnAndWaitsForTheOutcome) {
  Start();
  auto client = Client();
  client->Send(
      Post(kStepDownPath, R"({"expected_node_id":"n1","expected_token":"12","take_back":false})"));
  ASSERT_TRUE(Eventually([&] { return control_.asked.size() == 1; }));
  EXPECT_EQ(control_.asked[0].ask.lease, "orders");
  EXPECT_EQ(control_.asked[0].ask.expected.node_id, "n1");
  EXPECT_EQ(control_.asked[0].ask.expected.token, 12U);
  EXPECT_FALSE(control_.asked[0].ask.take_back);
  RunFor(base::Duration::Millis(20));
  EXPECT_TRUE(client->Answers().empty()) << "answered before the outcome was known";
  control_.Finish(0, Outcome::kTakenOver);
  ASSERT_TRUE(Eventually([&] { return !client->Answers().empty(); }));
  EXPECT_EQ(client->Answers()[0].status, 200);
  const proto::Json json = Json(client->Answers()[0]);
  EXPECT_EQ(json.String("outcome"), "taken_over_by_another_process");
  EXPECT_EQ(json.String("expected_node_id"), "n1");
  EXPECT_EQ(json.String("expected_token"), "12");
  EXPECT_EQ(json.String("node_id"), "n1");
  EXPECT_EQ(json.String("released_token"), "12");
  EXPECT_EQ(json.String("hold_off"), "5s");
  EXPECT_EQ(json.String("active_token"), "13");
  EXPECT_EQ(json.String("active_node_id"), "n2");
  EXPECT_EQ(json.String("active_process_id"), "p2");
  EXPECT_NE(json.String("detail").value_or(""), "");
}

TEST_F(ApiServerTest, AnUnknownOutcomeCarriesTheValuesToRetryWith) {
  const StepDownAsk ask{"orders", {"n1", 12}, true};
  control_.answer_at_once = FakeControl::Done(Outcome::kUnknown, ask);
  Start();
  const Answered answer = Ask(Post(kStepDownPath, kPrecondition));
  EXPECT_EQ(answer.status, 200);
  const proto::Json json = Json(answer);
  EXPECT_EQ(json.String("outcome"), "unknown");
  EXPECT_NE(json.String("detail")->find("\"n1\" and token 12"), std::string::npos);
  EXPECT_TRUE(json.Find("active_token")->is_null());
}

TEST_F(ApiServerTest, AFailedPreconditionIs412AndNotHolding409) {
  const StepDownAsk ask{"orders", {"n1", 12}, true};
  Start();
  control_.answer_at_once = FakeControl::Done(Outcome::kFailedPrecondition, ask);
  ExpectProblem(Ask(Post(kStepDownPath, kPrecondition)), 412, "failed_precondition");
  control_.answer_at_once = FakeControl::Done(Outcome::kNotHolder, ask);
  ExpectProblem(Ask(Post(kStepDownPath, kPrecondition)), 409, "not_holder");
  ExpectProblem(Ask(Post("/v1/leases/nope/step-down", kPrecondition)), 404, "not_found");
}

TEST_F(ApiServerTest, WithoutWaitingAStepDownIsAcceptedAndItsFailureStillTold) {
  const std::string body = R"({"expected_node_id":"n1","expected_token":12,"wait":false})";
  Start();
  const Answered accepted = Ask(Post(kStepDownPath, body));
  EXPECT_EQ(accepted.status, 202);
  EXPECT_EQ(Json(accepted).String("outcome"), "pending");
  control_.Finish(0, Outcome::kTakenBack);
  control_.answer_at_once =
      FakeControl::Done(Outcome::kFailedPrecondition, {"orders", {"n1", 12}, true});
  ExpectProblem(Ask(Post(kStepDownPath, body)), 412, "failed_precondition");
}

TEST_F(ApiServerTest, AStepDownSurvivesAClientThatLeaves) {
  Start();
  auto client = Client();
  client->Send(Post(kStepDownPath, kPrecondition));
  ASSERT_TRUE(Eventually([&] { return control_.asked.size() == 1; }));
  client->socket().CloseWithReset();
  RunFor(base::Duration::Millis(20));
  control_.Finish(0, Outcome::kTakenOver);
  EXPECT_EQ(Ask(Get("/livez")).status, 200);
}

TEST_F(ApiServerTest, AStepDownSurvivesTheServer) {
  Start();
  auto client = Client();
  client->Send(Post(kStepDownPath, kPrecondition));
  ASSERT_TRUE(Eventually([&] { return control_.asked.size() == 1; }));
  server_.reset();
  control_.Finish(0, Outcome::kTakenOver);
}

TEST_F(ApiServerTest, ABadStepDownBodyChangesNothing) {
  Start();
  for (const char* body : {"", "x", "[]", "{}", R"({"expected_node_id":"n1"})",
                           R"({"expected_node_id":"","expected_token":"12"})",
                           R"({"expected_node_id":1,"expected_token":"12"})",
                           R"({"expected_node_id":"n1","expected_token":"0"})",
                           R"({"expected_node_id":"n1","expected_token":"12.0"})",
                           R"({"expected_node_id":"n1","expected_token":1e3})",
                           R"({"expected_node_id":"n1","expected_token":"99999999999999999999"})",
                           R"({"expected_node_id":"n1","expected_token":"12","take_back":"no"})",
                           R"({"expected_node_id":"n1","expected_token":"12","wait":0})",
                           R"({"expected_node_id":"n1","expected_token":"12","takeback":false})"}) {
    ExpectProblem(Ask(Post(kStepDownPath, body)), 400, "bad_request");
  }
  EXPECT_TRUE(control_.asked.empty());
}

TEST_F(ApiServerTest, StepDownsThatNobodyWaitsForAreBounded) {
  Start();
  auto client = Client();
  const std::string post =
      Post(kStepDownPath, R"({"expected_node_id":"n1","expected_token":12,"wait":false})");
  for (size_t i = 1; i <= 257; ++i) {
    client->Send(post);
    ASSERT_TRUE(Eventually([&] { return client->Answers().size() == i; }));
  }
  EXPECT_EQ(client->Answers()[255].status, 202);
  ExpectProblem(client->Answers()[256], 503, "limit");
  EXPECT_EQ(control_.asked.size(), 256U);
  control_.Finish(0, Outcome::kTakenBack);
  client->Send(post);
  ASSERT_TRUE(Eventually([&] { return client->Answers().size() == 258; }));
  EXPECT_EQ(client->Answers()[257].status, 202);
}

TEST_F(ApiServerTest, WhatIsNotThereIs404AndTheWrongMethod405WithAllow) {
  Start();
  for (const char* path : {"/v1", "/v1/leases/", "/v1/status/", "/livez/x", "//livez",
                           "/v1/events/", "/v1/openapi", "/v2/status"}) {
    ExpectProblem(Ask(Get(path)), 404, "not_found");
  }
  const std::pair<const char*, const char*> wrong[] = {
      {"/livez", "GET, HEAD"}, {"/v1/leases/orders", "GET, HEAD"}, {kStepDownPath, "POST"}};
  for (const auto& [path, allow] : wrong) {
    const Answered answer =
        Ask("DELETE " + std::string(path) + " HTTP/1.1\r\nHost: localhost\r\n\r\n");
    ExpectProblem(answer, 405, "method_not_allowed");
    EXPECT_EQ(answer.Header("Allow"), allow);
  }
  ExpectProblem(Ask(Get(kStepDownPath)), 405, "method_not_allowed");
  ExpectProblem(Ask(Get("/v1/leases/%zz")), 400, "bad_request");
}

TEST_F(ApiServerTest, EventsAreStreamedUntilTheApiStops) {
  Start();
  auto client = Client();
  client->Send(Get("/v1/events?lease=orders"));
  const auto got = [&](const std::string& text) {
    client->socket().Poll();
    return client->socket().received().find(text) != std::string::npos;
  };
  ASSERT_TRUE(Eventually([&] { return got("event: hello\n"); }));
  observe::Event event;
  event.name = "lease.released";
  event.lease = "orders";
  events_.Publish(event);
  server_.reset();
  ASSERT_TRUE(
      Eventually([&] { return got("event: lease.released\n") && client->socket().over(); }));
  EXPECT_TRUE(client->socket().ended());
  EXPECT_TRUE(client->socket().received().ends_with("\r\n0\r\n\r\n"));
}

TEST_F(ApiServerTest, EventsAreGuardedAndCheckedAsOtherReadsAre) {
  options_.listen = "0.0.0.0:0";
  options_.token_file = "/etc/token";
  Start("secret");
  const std::string host =
      "Host: 127.0.0.1:" + std::to_string(base::ParseAddress(server_->bound())->port) + "\r\n";
  const auto ask = [&](const std::string& target, const std::string& more) {
    return Ask("GET " + target + " HTTP/1.1\r\n" + host + more + "\r\n");
  };
  ExpectProblem(ask("/v1/events", ""), 401, "unauthorized");
  ExpectProblem(ask("/v1/openapi.json", ""), 401, "unauthorized");
  const std::string bearer = "Authorization: Bearer secret\r\n";
  ExpectProblem(ask("/v1/events?lease=nope", bearer), 404, "not_found");
  ExpectProblem(ask("/v1/events?event=nope", bearer), 400, "bad_request");
  ExpectProblem(Ask("POST /v1/events HTTP/1.1\r\n" + host + bearer + "Content-Length: 0\r\n\r\n"),
                405, "method_not_allowed");
}

TEST_F(ApiServerTest, TheDescriptionNamesEveryRouteAndTheProgramsVersion) {
  Start();
  const proto::Json document = Json(Ask(Get("/v1/openapi.json")));
  EXPECT_EQ(document.Find("info")->String("version"), LEASEHOLD_VERSION);
  const std::vector<proto::Json> routes = Json(Ask(Get("/"))).Find("routes")->Elements();
  ASSERT_GT(routes.size(), 10U);
  EXPECT_EQ(document.Find("paths")->size(), routes.size());
  for (const proto::Json& route : routes) {
    const auto path = document.Find("paths")->Find(*route.String("path"));
    ASSERT_TRUE(path.has_value()) << *route.String("path");
    EXPECT_TRUE(path->Find(base::ToLower(*route.String("method"))).has_value());
  }
}

TEST_F(ApiServerTest, AForeignHostIsRefusedHoweverItIsNamed) {
  Start();
  ExpectProblem(Ask("GET /v1/status HTTP/1.1\r\nHost: evil.example\r\n\r\n"), 421, "host_not_ours");
  ExpectProblem(Ask("GET http://evil.example/v1/status HTTP/1.1\r\nHost: localhost\r\n\r\n"), 421,
                "host_not_ours");
  EXPECT_EQ(Ask("GET /v1/status HTTP/1.1\r\nHost: " + server_->bound() + "\r\n\r\n").status, 200)
      << "the real port is ours";
}

TEST_F(ApiServerTest, ACrossOriginPostIsRefused) {
  Start();
  ExpectProblem(Ask(Post(kStepDownPath, kPrecondition, "Origin: https://evil.example\r\n")), 403,
                "cross_origin");
  EXPECT_TRUE(control_.asked.empty());
}

TEST_F(ApiServerTest, WithATokenAStepDownNeedsItAndReadsDoNot) {
  Start("secret");
  const Answered refused = Ask(Post(kStepDownPath, kPrecondition));
  ExpectProblem(refused, 401, "unauthorized");
  EXPECT_EQ(refused.Header("WWW-Authenticate"), "Bearer realm=\"leasehold\"");
  ExpectProblem(Ask(Post(kStepDownPath, kPrecondition, "Authorization: Bearer wrong\r\n")), 401,
                "unauthorized");
  EXPECT_TRUE(control_.asked.empty());
  EXPECT_EQ(Ask(Get("/v1/status")).status, 200);
  control_.answer_at_once = FakeControl::Done(Outcome::kTakenBack, {"orders", {"n1", 12}, true});
  const Answered answer =
      Ask(Post(kStepDownPath, kPrecondition, "Authorization: Bearer secret\r\n"));
  EXPECT_EQ(Json(answer).String("outcome"), "taken_back_by_this_process");
}

TEST_F(ApiServerTest, BeyondLoopbackWithoutATokenItDoesNotStart) {
  options_.listen = "0.0.0.0:0";
  const auto server = ApiServer::Start(loop_, options_, "", control_, metrics_, events_, *log_);
  ASSERT_FALSE(server.ok());
  EXPECT_NE(server.error().message.find("admin.token_file"), std::string::npos);
}

TEST_F(ApiServerTest, BeyondLoopbackReadsNeedTheTokenAndProbesDoNot) {
  options_.listen = "0.0.0.0:0";
  Start("secret");
  EXPECT_EQ(Ask(Get("/livez")).status, 200);
  ExpectProblem(Ask(Get("/metrics")), 401, "unauthorized");
  ExpectProblem(Ask(Get("/no/such/thing")), 401, "unauthorized");
  EXPECT_EQ(Ask(Get("/metrics", "Authorization: Bearer secret\r\n")).status, 200);
}

TEST_F(ApiServerTest, APortInUseIsAnErrorThatNamesTheOption) {
  Start();
  options_.listen = server_->bound();
  const auto second = ApiServer::Start(loop_, options_, "", control_, metrics_, events_, *log_);
  ASSERT_FALSE(second.ok());
  EXPECT_NE(second.error().message.find("admin.listen = \"" + options_.listen), std::string::npos)
      << second.error().message;
}

TEST_F(ApiServerTest, AUnixSocketServesTooAndGarbageOnItHurtsNobody) {
  const testing::TempDir dir;
  options_.listen = "unix:" + dir.File("api.sock");
  Start();
  EXPECT_EQ(Ask(std::string("\0\x01\xff\n\n", 5)).status, 400);
  EXPECT_EQ(Ask(Get("/livez")).status, 200);
  server_.reset();
}

}  // namespace
}  // namespace leasehold::admin

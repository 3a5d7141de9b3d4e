// The commands against a scripted API: what they ask, what they print, how they end.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>

#include "cli/cli.h"
#include "fake_api.h"
#include "proto/json.h"

namespace leasehold::cli {
namespace {

constexpr const char* kLeases =
    R"({"leases":[{"lease":"orders","state":"active","holding":true,"token":"7"}]})";
constexpr const char* kDescribed =
    R"({"lease":"orders","node_id":"node-a","token":"7","process_id":"p1","this_process":true,)"
    R"("state":"active"})";
constexpr const char* kTakenOver =
    R"({"lease":"orders","outcome":"taken_over_by_another_process","detail":"lease \"orders\" was )"
    R"(taken over","expected_node_id":"node-a","expected_token":"7","node_id":"node-a",)"
    R"("released_token":"7","hold_off":"5s","active_token":"8","active_node_id":"node-b",)"
    R"("active_process_id":"p2"})";
constexpr const char* kStepDown = "POST /v1/leases/orders/step-down";
constexpr const char* kDescribe = "GET /v1/leases/orders/describe";

class CommandsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    api_ = std::make_unique<FakeApi>(loop_);
    api_->On("GET /v1/leases", kLeases);
    api_->On(kDescribe, kDescribed);
    api_->On(kStepDown, kTakenOver);
  }

  // Runs a command line against the fake API.
  int Run(std::vector<std::string> arguments) {
    arguments.push_back("--admin");
    arguments.push_back(api_->url());
    return RunPlain(arguments);
  }
  int RunPlain(const std::vector<std::string>& arguments) {
    out_.str("");
    err_.str("");
    const ParsedCommandLine parsed = ParseCommandLine(arguments);
    EXPECT_TRUE(parsed.command.has_value()) << parsed.err;
    if (!parsed.command) return parsed.exit_code;
    Console console{out_, err_, color_, {}};
    if (terminal_) {
      console.confirm = [this](const std::string& question) {
        question_ = question;
        return consent_;
      };
    }
    return Dispatch(*parsed.command, loop_, console);
  }
  void ExpectOut(const std::string& part) {
    EXPECT_NE(out_.str().find(part), std::string::npos) << "out: " << out_.str();
  }
  void ExpectErr(const std::string& part) {
    EXPECT_NE(err_.str().find(part), std::string::npos) << "err: " << err_.str();
  }
  proto::Json JsonOut() {
    auto json = proto::Json::Parse(out_.str());
    EXPECT_TRUE(json.ok()) << out_.str();
    return json ? *json : proto::Json();
  }
  std::string SentBody() { return api_->requests().back().body; }

  loop::Loop loop_;
  std::unique_ptr<FakeApi> api_;
  std::ostringstream out_;
  std::ostringstream err_;
  bool color_ = false;
  bool terminal_ = false;
  bool consent_ = false;
  std::string question_;
};

// ---- step-down ----

TEST_F(CommandsTest, StepDownDescribesExpectsThatAndPrintsIt) {
  EXPECT_EQ(Run({"step-down", "--yes"}), kOk);
  ASSERT_EQ(api_->requests().size(), 3u);
  EXPECT_EQ(api_->requests()[1].line, kDescribe);
  EXPECT_EQ(SentBody(),
            R"({"expected_node_id":"node-a","expected_token":"7","take_back":true,"wait":true})");
  ExpectOut("expecting node id node-a, token 7");
  ExpectOut("taken_over_by_another_process");
  ExpectOut("active token       8");
}

TEST_F(CommandsTest, StepDownWithBothFlagsSendsThemAndDoesNotDescribe) {
  EXPECT_EQ(Run({"step-down", "orders", "--yes", "--expected-node-id", "node-x", "--expected-token",
                 "18446744073709551615", "--no-take-back", "--no-wait"}),
            kOk);
  EXPECT_EQ(api_->requests().size(), 1u);
  EXPECT_EQ(SentBody(), R"({"expected_node_id":"node-x","expected_token":"18446744073709551615",)"
                        R"("take_back":false,"wait":false})");
}

TEST_F(CommandsTest, StepDownOfAnotherNodeThanExpectedIsRefusedBeforeAnythingIsSent) {
  EXPECT_EQ(Run({"step-down", "--yes", "--expected-node-id", "node-b"}), kFailedPrecondition);
  EXPECT_EQ(api_->Count(kStepDown), 0u);
  ExpectErr("node id node-a holds the lease, not node-b; nothing was changed");
  EXPECT_EQ(Run({"step-down", "--yes", "--expected-node-id", "node-a"}), kOk);
  EXPECT_EQ(api_->Count(kStepDown), 1u);
}

TEST_F(CommandsTest, StepDownOnAStandbyNamesTheHolderAndSendsNothing) {
  FakeApi standby(loop_);
  standby.On(kDescribe, R"({"lease":"orders","node_id":"node-b","token":"8","process_id":"p2",)"
                        R"("this_process":false,"state":"standby"})");
  EXPECT_EQ(RunPlain({"step-down", "orders", "--yes", "--admin", standby.url()}), kNotHolder);
  EXPECT_EQ(standby.Count(kStepDown), 0u);
  ExpectErr("node id node-b does, so ask there");
}

TEST_F(CommandsTest, StepDownStopsWhenTheDescribeFails) {
  FakeApi busy(loop_);
  busy.On(kDescribe, FakeApi::Problem(412, "failed_precondition", "a step-down is under way"));
  EXPECT_EQ(RunPlain({"step-down", "orders", "--yes", "--admin", busy.url()}), kFailedPrecondition);
  EXPECT_EQ(busy.Count(kStepDown), 0u);
  ExpectErr("a step-down is under way");
}

TEST_F(CommandsTest, StepDownWithoutTerminalWantsYes) {
  EXPECT_EQ(Run({"step-down"}), kUsage);
  EXPECT_EQ(api_->Count(kStepDown), 0u);
  ExpectErr("give --yes to step down lease orders of node id node-a, token 7");
}

TEST_F(CommandsTest, StepDownOnATerminalAsksFirst) {
  terminal_ = true;
  EXPECT_EQ(Run({"step-down"}), kFailed);
  EXPECT_EQ(api_->Count(kStepDown), 0u);
  EXPECT_EQ(question_, "Step down lease orders of node id node-a, token 7? [y/N] ");
  consent_ = true;
  EXPECT_EQ(Run({"step-down"}), kOk);
  EXPECT_EQ(api_->Count(kStepDown), 1u);
}

TEST_F(CommandsTest, StepDownThatTimesOutCarriesTheValuesToRetryWith) {
  FakeApi silent(loop_);
  silent.On(kDescribe, kDescribed);
  silent.On(kStepDown, FakeApi::Answer{200, "", FakeApi::Behaviour::kSilent});
  EXPECT_EQ(RunPlain({"step-down", "orders", "--yes", "--timeout", "100ms", "--no-take-back",
                      "--admin", silent.url()}),
            kTimedOut);
  ExpectErr("the outcome is unknown");
  ExpectErr(
      "step-down orders --yes --expected-node-id node-a --expected-token 7 --no-take-back "
      "--admin " +
      silent.url() + "\n");
}

TEST_F(CommandsTest, StepDownWhoseConnectionIsLostCarriesTheValuesInJsonToo) {
  FakeApi hangs_up(loop_);
  hangs_up.On(kDescribe, kDescribed);
  hangs_up.On(kStepDown, FakeApi::Answer{200, "", FakeApi::Behaviour::kHangUp});
  EXPECT_EQ(RunPlain({"step-down", "orders", "--yes", "--json", "--admin", hangs_up.url()}),
            kTimedOut);
  const proto::Json json = JsonOut();
  EXPECT_EQ(json.String("outcome"), "unknown");
  EXPECT_EQ(json.String("expected_node_id"), "node-a");
  EXPECT_EQ(json.String("expected_token"), "7");
}

TEST_F(CommandsTest, StepDownOutcomesMapToExitCodes) {
  struct Case {
    FakeApi::Answer answer;
    int exit_code;
  };
  const Case cases[] = {
      {FakeApi::Problem(412, "failed_precondition", "x"), kFailedPrecondition},
      {FakeApi::Problem(409, "not_holder", "x"), kNotHolder},
      {FakeApi::Problem(401, "unauthorized", "x"), kFailed},
      {FakeApi::Problem(404, "not_found", "x"), kFailed},
      {FakeApi::Problem(503, "limit", "x"), kFailed},
      {FakeApi::Problem(500, "internal", "x"), kTimedOut},
      {{200, R"({"outcome":"unknown","detail":"d"})"}, kTimedOut},
      {{200, R"({"outcome":"taken_back_by_this_process"})"}, kOk},
      {{202, R"({"outcome":"pending"})"}, kOk},
      {{200, "not json"}, kNotReachable},
  };
  for (const Case& c : cases) {
    FakeApi api(loop_);
    api.On(kStepDown, c.answer);
    EXPECT_EQ(RunPlain({"step-down", "orders", "--yes", "--expected-node-id", "a",
                        "--expected-token", "1", "--admin", api.url()}),
              c.exit_code)
        << c.answer.status << " " << c.answer.body;
  }
}

TEST_F(CommandsTest, StepDownThatReleasedWithoutASuccessorSaysSoAndWhatToDo) {
  const std::string released = R"({"outcome":"unknown","released_token":"7","detail":)";
  FakeApi api(loop_);
  api.On(kDescribe, kDescribed);
  api.On(kStepDown, {200, released + R"("nobody holds, and take_back=false was asked for"})"});
  EXPECT_EQ(RunPlain({"step-down", "orders", "--yes", "--no-take-back", "--admin", api.url()}),
            kTimedOut);
  ExpectErr("lease orders was released (token 7)");
  ExpectErr("restart this one to let it compete");
  EXPECT_EQ(err_.str().find("try again"), std::string::npos) << err_.str();
  FakeApi leaving(loop_);
  leaving.On(kDescribe, kDescribed);
  leaving.On(kStepDown, {200, released + R"("this process is shutting down"})"});
  EXPECT_EQ(RunPlain({"step-down", "orders", "--yes", "--admin", leaving.url()}), kTimedOut);
  ExpectErr("Who holds it now:\n  leasehold status --admin");
  FakeApi other(loop_);  // another token than the one meant: nothing is known
  other.On(kDescribe, kDescribed);
  other.On(kStepDown, {200, R"({"outcome":"unknown","released_token":"6","detail":"d"})"});
  EXPECT_EQ(RunPlain({"step-down", "orders", "--yes", "--admin", other.url()}), kTimedOut);
  ExpectErr("the outcome is unknown");
}

TEST_F(CommandsTest, StepDownJsonIsTheApisAnswerAlone) {
  EXPECT_EQ(Run({"step-down", "--yes", "--json"}), kOk);
  EXPECT_EQ(JsonOut().String("active_node_id"), "node-b");
}

// ---- which lease, which sidecar ----

TEST_F(CommandsTest, SeveralLeasesMustBeNamed) {
  FakeApi two(loop_);
  two.On("GET /v1/leases", R"({"leases":[{"lease":"a"},{"lease":"b"}]})");
  EXPECT_EQ(RunPlain({"describe", "--admin", two.url()}), kUsage);
  ExpectErr("this sidecar has several leases; name one of a, b");
}

TEST_F(CommandsTest, ExecUnderOneOfSeveralLeasesListsThem) {
  const std::string path = ::testing::TempDir() + "exec_of_two.conf";
  std::ofstream(path) << "[store]\nfile.dir = \"/tmp\"\n[[lease]]\nname = \"orders\"\n"
                         "[[lease]]\nname = \"mails\"\n";
  EXPECT_EQ(RunPlain({"exec", "-c", path, "--", "true"}), kUsage);
  ExpectErr("lease = one of \"orders\", \"mails\"");
  std::remove(path.c_str());
}

TEST_F(CommandsTest, LeaseNamesAreEscapedInPaths) {
  EXPECT_EQ(Run({"describe", "a/../b c"}), kFailed);
  EXPECT_EQ(api_->requests()[0].line, "GET /v1/leases/a%2F..%2Fb%20c/describe");
}

TEST_F(CommandsTest, TheApiIsFoundInTheConfigurationWithItsToken) {
  char dir[] = "/tmp/leasehold-cli-XXXXXX";
  ASSERT_NE(mkdtemp(dir), nullptr);
  const std::string conf = std::string(dir) + "/s.conf";
  const std::string token = std::string(dir) + "/token";
  std::ofstream(token) << "sesame\n";
  std::ofstream(conf) << "[[lease]]\nname = \"orders\"\n[admin]\nlisten = \""
                      << api_->url().substr(7) << "\"\ntoken_file = \"" << token << "\"\n";
  EXPECT_EQ(RunPlain({"describe", "orders", "-c", conf}), kOk);
  EXPECT_NE(api_->requests()[0].head.find("Authorization: Bearer sesame"), std::string::npos)
      << api_->requests()[0].head;
  std::ofstream(conf) << "[[lease]]\nname = 3\n";
  EXPECT_EQ(RunPlain({"describe", "orders", "-c", conf}), kUsage);
  ExpectErr("lease.name = 3");
  std::remove(conf.c_str());
  std::remove(token.c_str());
  rmdir(dir);
}

TEST_F(CommandsTest, AnAdminUrlThatIsNoneIsAUsageError) {
  for (const std::string url : {"127.0.0.1:9090", "https://127.0.0.1:9090", "http://h:1/path"}) {
    EXPECT_EQ(RunPlain({"status", "--admin", url}), kUsage) << url;
    ExpectErr("must be like http://127.0.0.1:9090");
  }
}

TEST_F(CommandsTest, ASidecarThatIsNotThereIsNotReachable) {
  const std::string url = api_->url();
  api_.reset();
  EXPECT_EQ(RunPlain({"status", "--json", "--admin", url}), kNotReachable);
  EXPECT_EQ(JsonOut().String("error"), "not_reachable");
  ExpectErr("refused");
}

// ---- status, describe, wait ----

TEST_F(CommandsTest, StatusIsATableAtAGlance) {
  api_->On(
      "GET /v1/status",
      R"({"node":{"node_id":"node-a","process_id":"p1","version":"0.1.0","store":"file in /s",)"
      R"("store_connected":true,"app_checked":true,"app_ready":false,"app_error":"refused",)"
      R"("uptime_ms":65000,"shutting_down":false,"troubles":["disk is slow"]},"leases":[)"
      R"({"lease":"orders","state":"active","holding":true,"at_risk":false,"token":"7",)"
      R"("holder":{"node_id":"node-a","process_id":"p1","token":"7"},"expires_in_ms":8250,)"
      R"("last_reason":"","store_ok":true,"gates":[{"name":"web","type":"http",)"
      R"("state":"open","listen":"127.0.0.1:8080","upstream":"127.0.0.1:8000",)"
      R"("connections":3,"in_flight":1,"held":0,)"
      R"("forwarding":2,"peer":"10.0.0.2:8081"}]}]})");
  EXPECT_EQ(Run({"status"}), kOk);
  EXPECT_EQ(
      out_.str(),
      "node   node-a  process p1  version 0.1.0  up 1m\n"
      "store  file in /s  connected\n"
      "app    unready  refused\n"
      "\n"
      "LEASE   STATE   TOKEN  HOLDER             EXPIRES IN  NOTE\n"
      "orders  active  7      node-a (this one)  8.2s\n"
      "\n"
      "GATE  TYPE  STATE  LISTEN          UPSTREAM        CONNS  IN FLIGHT  HELD  FORWARDED TO\n"
      "web   http  open   127.0.0.1:8080  127.0.0.1:8000  3      1          0     10.0.0.2:8081 "
      "(2)\n"
      "\n"
      "trouble  disk is slow\n");
  color_ = true;
  EXPECT_EQ(Run({"status"}), kOk);
  ExpectOut("\x1b[32mactive\x1b[0m");
}

TEST_F(CommandsTest, TextOfOthersCannotSteerTheTerminal) {
  api_->On("GET /v1/leases/x/describe",
           R"({"node_id":"\u001b[2Jnode","token":"1","process_id":"p","this_process":true})");
  EXPECT_EQ(Run({"describe", "x"}), kOk);
  EXPECT_EQ(out_.str().find('\x1b'), std::string::npos);
}

TEST_F(CommandsTest, DescribePrintsTheThreeValues) {
  EXPECT_EQ(Run({"describe"}), kOk);
  ExpectOut("node id     node-a\ntoken       7\nprocess id  p1\n");
  FakeApi nobody(loop_);
  nobody.On(kDescribe, FakeApi::Problem(404, "no_holder", "nobody holds"));
  EXPECT_EQ(RunPlain({"describe", "orders", "--admin", nobody.url()}), kNotHolder);
}

TEST_F(CommandsTest, WaitAsksUntilTheStateIsThere) {
  FakeApi api(loop_);
  api.On("GET /v1/leases/orders", R"({"lease":"orders","state":"standby","holding":false})");
  api.On("GET /v1/leases/orders", R"({"lease":"orders","state":"active","holding":false})");
  api.On("GET /v1/leases/orders", R"({"lease":"orders","state":"active","holding":true})");
  EXPECT_EQ(RunPlain({"wait", "orders", "--for", "active", "--admin", api.url()}), kOk);
  EXPECT_EQ(api.Count("GET /v1/leases/orders"), 3u);
}

TEST_F(CommandsTest, WaitEndsWithATimeOutThatSaysWhatItSaw) {
  api_->On("GET /v1/leases/orders", R"({"lease":"orders","state":"standby","holding":false})");
  EXPECT_EQ(Run({"wait", "--for", "active", "--timeout", "150ms"}), kTimedOut);
  ExpectErr("not active within 150ms: it is standby");
}

TEST_F(CommandsTest, WaitOutlastsASidecarThatIsNotUpYet) {
  const std::string url = api_->url();
  api_.reset();
  EXPECT_EQ(RunPlain({"wait", "orders", "--for", "active", "--timeout", "150ms", "--admin", url}),
            kTimedOut);
  ExpectErr("refused");
}

TEST_F(CommandsTest, WaitForALeaseThatIsNotThereFailsAtOnce) {
  EXPECT_EQ(Run({"wait", "nope", "--for", "active"}), kFailed);
  ExpectErr("nothing is scripted");
}

// ---- check, version ----

TEST_F(CommandsTest, CheckTellsAllErrorsAndEndsWithTwo) {
  char path[] = "/tmp/leasehold-conf-XXXXXX";
  ASSERT_GE(mkstemp(path), 0);
  std::ofstream(path) << "[[lease]]\nname = \"a\"\nttl = 3\n[log]\nlevel = \"loud\"\n";
  EXPECT_EQ(RunPlain({"check", "-c", path}), kUsage);
  ExpectErr(std::string(path) + ":3: lease.ttl = 3: ");
  ExpectErr(std::string(path) + ":5: log.level = \"loud\": ");
  ExpectErr("2 errors in ");
  EXPECT_EQ(RunPlain({"check", "--json", "-c", path}), kUsage);
  EXPECT_EQ(JsonOut().Find("errors")->size(), 2u);
  EXPECT_EQ(RunPlain({"run", "-c", path}), kUsage);
  std::remove(path);
}

TEST_F(CommandsTest, CheckPrintsDerivedTimingsAndWarnings) {
  char path[] = "/tmp/leasehold-conf-XXXXXX";
  ASSERT_GE(mkstemp(path), 0);
  std::ofstream(path) << "[[lease]]\nname = \"a\"\nttl = \"300s\"\n";
  EXPECT_EQ(RunPlain({"check", "-c", path}), kOk);
  ExpectOut("62.222s");
  ExpectErr("warning: " + std::string(path) + ":3: lease.ttl = \"300s\": ");
  EXPECT_EQ(RunPlain({"check", "--json", "-c", path}), kOk);
  EXPECT_EQ(JsonOut().Bool("ok"), true);
  EXPECT_EQ(JsonOut().Find("warnings")->size(), 1u);
  std::remove(path);
}

TEST_F(CommandsTest, CheckReferenceExplainsEveryOption) {
  EXPECT_EQ(RunPlain({"check", "--reference"}), kOk);
  ExpectOut("[[lease]]\nname   (must be given)");
}

TEST_F(CommandsTest, VersionIsJsonToo) {
  EXPECT_EQ(RunPlain({"version"}), kOk);
  ExpectOut("leasehold ");
  EXPECT_EQ(RunPlain({"version", "--json"}), kOk);
  EXPECT_TRUE(JsonOut().String("version").has_value());
}

}  // namespace
}  // namespace leasehold::cli

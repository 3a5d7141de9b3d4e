#include "gate/process_gate.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "lib/loop_fixture.h"
#include "lib/permit_for_test.h"

namespace leasehold::gate {
namespace {

using base::Duration;
using base::MonoTime;
using lease::Valve;
using loop::Loop;

// The gate with a real watchdog and real commands, and a permit that the test chooses.
class ProcessGateTest : public testing::LoopFixture {
 protected:
  static constexpr Duration kLong = Duration::Seconds(60);

  void SetUp() override {
    std::string path = ::testing::TempDir() + "process_gate.XXXXXX";
    ASSERT_NE(mkdtemp(path.data()), nullptr);
    dir_ = path;
    options_.lease = "orders";
    options_.stop_timeout = Duration::Millis(200);
    options_.restart_delay = Duration::Millis(10);
  }
  void TearDown() override {
    gate_.reset();
    watchdog_.reset();
  }

  void Build(const std::string& script) { BuildCommand({"sh", "-c", script}); }
  void BuildCommand(std::vector<std::string> command) {
    options_.command = std::move(command);
    loop::WatchdogOptions watched;
    watched.argv = options_.command;
    watched.stop_timeout = options_.stop_timeout;
    auto forked = loop::Watchdog::Fork(std::move(watched));
    ASSERT_TRUE(forked.ok());
    watchdog_ = std::move(*forked);
    Host host{loop_,    *log_,       metrics_,   permit_.permit,         "orders",
              "node-1", "process-1", Duration(), [this] { ++expired_; }, [this] { ++empty_; }};
    ProcessHost process{*watchdog_, {}, [] { return std::vector<int>(); }, {}, {}};
    process.environment = [this] { return std::map<std::string, std::string>{{"DIR", dir_}}; };
    process.on_finished = [this](int code, const std::string&) { finished_.push_back(code); };
    process.on_start_failed = [this](uint64_t token, const std::string&) { failed_ = token; };
    gate_ = MakeProcessGate(options_, std::move(host), std::move(process));
    ASSERT_TRUE(gate_->Start().ok());
  }

  void Open(uint64_t token = 1, Duration permit = kLong) {
    permit_.Open(Loop::Now() + permit, token);
    EXPECT_TRUE(gate_->SetValve({Valve::kOpen, false, {}, ""}).ok());
  }
  void Drain(Duration grace, const std::string& reason = "requested") {
    const MonoTime end = Loop::Now() + grace;
    permit_.Set(Valve::kDraining, Loop::Now() + kLong, permit_.permit.token());
    EXPECT_TRUE(gate_->SetValve({Valve::kDraining, false, end, reason}).ok());
  }
  void Close(bool lost) {
    permit_.Close();
    EXPECT_TRUE(gate_->SetValve({Valve::kClosed, lost, {}, "superseded"}).ok());
  }
  bool Ready(const std::string& name = "ready") {
    return RunUntil([&] { return access((dir_ + "/" + name).c_str(), F_OK) == 0; });
  }
  bool Empty() {
    return RunUntil([this] { return gate_->empty(); });
  }
  std::string Content(const std::string& name) const {
    std::ifstream file(dir_ + "/" + name);
    std::stringstream text;
    text << file.rdbuf();
    return text.str();
  }
  bool Shows(const std::string& sample) const {
    return metrics_.Scrape().find(sample + "\n") != std::string::npos;
  }

  std::string dir_;
  ProcessOptions options_;
  std::unique_ptr<observe::Log> log_ = observe::Log::Silent();
  observe::Metrics metrics_;
  lease::PermitForTest permit_;
  std::unique_ptr<loop::Watchdog> watchdog_;
  std::unique_ptr<Gate> gate_;
  int expired_ = 0;
  int empty_ = 0;
  std::vector<int> finished_;
  uint64_t failed_ = 0;
};

TEST_F(ProcessGateTest, NothingRunsBeforeItIsOpen) {
  Build("touch $DIR/ready");
  RunFor(Duration::Millis(50));
  EXPECT_NE(access((dir_ + "/ready").c_str(), F_OK), 0);
  EXPECT_TRUE(gate_->empty());
  EXPECT_TRUE(gate_->ends_last());
  EXPECT_EQ(gate_->status().state, "closed");
}

TEST_F(ProcessGateTest, OpeningStartsTheCommandWithTheTokenOfThePermit) {
  Build(
      "echo $FENCING_TOKEN $LEASE_NAME $LEASE_STATE $LEASE_NODE_ID $LEASE_PROCESS_ID > "
      "$DIR/out; touch $DIR/ready; sleep 999");
  Open(18446744073709551615u);
  ASSERT_TRUE(Ready());
  EXPECT_EQ(Content("out"), "18446744073709551615 orders active node-1 process-1\n");
  EXPECT_FALSE(gate_->empty());
  EXPECT_EQ(gate_->status().in_flight, 1u);
  EXPECT_EQ(gate_->status().upstream, "sh");
  EXPECT_EQ(gate_->status().type, "process");
  EXPECT_TRUE(Shows("leasehold_exec_running{lease=\"orders\"} 1"));
}

TEST_F(ProcessGateTest, AnExpiredPermitStartsNothingAndIsTold) {
  Build("touch $DIR/ready");
  Open(1, Duration::Zero());
  EXPECT_EQ(expired_, 1);
  EXPECT_TRUE(gate_->empty());
}

TEST_F(ProcessGateTest, HoldingKeepsItRunning) {
  Build("touch $DIR/ready; sleep 999");
  Open();
  ASSERT_TRUE(Ready());
  permit_.Set(Valve::kHolding, Loop::Now() + kLong);
  EXPECT_TRUE(gate_->SetValve({Valve::kHolding, false, {}, ""}).ok());
  Open();
  RunFor(Duration::Millis(50));
  EXPECT_TRUE(Shows("leasehold_exec_starts_total{lease=\"orders\"} 1"));
  EXPECT_FALSE(gate_->empty());
}

TEST_F(ProcessGateTest, ADrainWaitsForTheOthersThenTellsItToEnd) {
  Build("trap 'echo told > $DIR/out; exit 0' TERM; touch $DIR/ready; while :; do read x; done");
  Open();
  ASSERT_TRUE(Ready());
  Drain(kLong);
  RunFor(Duration::Millis(50));
  EXPECT_FALSE(gate_->empty());
  gate_->OthersEmpty();
  gate_->OthersEmpty();
  ASSERT_TRUE(Empty());
  EXPECT_EQ(Content("out"), "told\n");
  EXPECT_GE(empty_, 1);
  EXPECT_TRUE(finished_.empty()) << "an end that was asked for is none of its own";
}

TEST_F(ProcessGateTest, WithoutTheOthersItIsDeadByTheEndOfTheDrain) {
  Build("trap '' TERM; touch $DIR/ready; sleep 999");
  Open();
  ASSERT_TRUE(Ready());
  const MonoTime end = Loop::Now() + Duration::Millis(500);
  Drain(Duration::Millis(500));
  ASSERT_TRUE(Empty());
  EXPECT_LT(Loop::Now(), end);
  EXPECT_TRUE(Shows("leasehold_exec_exits_total{lease=\"orders\",result=\"killed\"} 1"));
}

TEST_F(ProcessGateTest, ADrainForFailedRenewalsLetsItGoOnAsLongAsThatCanHeal) {
  Build("touch $DIR/ready; sleep 999");
  Open();
  ASSERT_TRUE(Ready());
  Drain(Duration::Seconds(5), "renewals_failed");
  gate_->OthersEmpty();
  RunFor(Duration::Millis(100));
  EXPECT_FALSE(gate_->empty());
  Open();
  RunFor(Duration::Millis(50));
  EXPECT_FALSE(gate_->empty());
  EXPECT_TRUE(Shows("leasehold_exec_starts_total{lease=\"orders\"} 1"));
}

TEST_F(ProcessGateTest, WhatWasToldToEndInADrainThatHealedIsStartedAgain) {
  Build("echo x >> $DIR/starts; touch $DIR/ready; sleep 999");
  Open();
  ASSERT_TRUE(Ready());
  Drain(Duration::Millis(100), "renewals_failed");  // too short to wait with the TERM
  RunFor(Duration::Millis(1));
  Open();
  EXPECT_TRUE(RunUntil([this] { return Content("starts") == "x\nx\n"; }));
  EXPECT_TRUE(finished_.empty());
}

TEST_F(ProcessGateTest, ALossKillsItAndTheNextTermStartsItAgain) {
  Build("trap '' TERM; echo $FENCING_TOKEN >> $DIR/tokens; touch $DIR/ready; sleep 999");
  Open(1);
  ASSERT_TRUE(Ready());
  Close(true);
  Open(3);  // at once: nothing is started while anything of the former is left
  EXPECT_TRUE(RunUntil([this] { return Content("tokens") == "1\n3\n"; }));
  EXPECT_TRUE(Shows("leasehold_exec_exits_total{lease=\"orders\",result=\"killed\"} 1"));
  EXPECT_TRUE(finished_.empty());
}

TEST_F(ProcessGateTest, ARenewalMovesTheEndThatItsWatchdogKeeps) {
  Build("touch $DIR/ready; sleep 999");
  Open(1, Duration::Millis(400));
  ASSERT_TRUE(Ready());
  permit_.ExpireAt(Loop::Now() + kLong);
  gate_->OnPermit(permit_.permit.expiry());
  RunFor(Duration::Millis(450));
  EXPECT_FALSE(gate_->empty());
  EXPECT_TRUE(Shows("leasehold_exec_exits_total{lease=\"orders\",result=\"expired\"} 0"));
}

TEST_F(ProcessGateTest, WhatTheWatchdogEndedIsToldSoThatTheExpiryIsSeen) {
  Build("touch $DIR/ready; sleep 999");
  Open(1, Duration::Seconds(2));  // long beside the start of a shell on a busy machine
  ASSERT_TRUE(Ready());
  permit_.ExpireAt(Loop::Now());
  ASSERT_TRUE(Empty());
  EXPECT_GE(expired_, 1);
  EXPECT_TRUE(Shows("leasehold_exec_exits_total{lease=\"orders\",result=\"expired\"} 1"));
  EXPECT_TRUE(finished_.empty());
}

TEST_F(ProcessGateTest, ItsOwnEndIsTheEndUnlessToldOtherwise) {
  Build("exit 3");
  Open();
  ASSERT_TRUE(RunUntil([this] { return !finished_.empty(); }));
  EXPECT_EQ(finished_, std::vector<int>{3});
  Open();  // the process is going away: it is not started again
  RunFor(Duration::Millis(50));
  EXPECT_TRUE(Shows("leasehold_exec_starts_total{lease=\"orders\"} 1"));
  EXPECT_TRUE(Shows("leasehold_exec_exits_total{lease=\"orders\",result=\"failed\"} 1"));
}

TEST_F(ProcessGateTest, ASignalThatEndsItIsAnExitCodeAsAShellHasIt) {
  Build("kill -9 $$");
  Open();
  ASSERT_TRUE(RunUntil([this] { return !finished_.empty(); }));
  EXPECT_EQ(finished_, std::vector<int>{137});
}

TEST_F(ProcessGateTest, AFailureIsStartedAgainAndASuccessEndsIt) {
  options_.restart = Restart::kOnFailure;
  Build("echo x >> $DIR/starts; [ $(wc -l < $DIR/starts) -ge 3 ]");
  Open();
  ASSERT_TRUE(RunUntil([this] { return !finished_.empty(); }));
  EXPECT_EQ(finished_, std::vector<int>{0});
  EXPECT_EQ(Content("starts"), "x\nx\nx\n");
}

TEST_F(ProcessGateTest, InTheCourseOfADrainNothingIsStartedAgain) {
  options_.restart = Restart::kAlways;
  options_.restart_delay = Duration::Millis(50);
  Build("echo x >> $DIR/starts; touch $DIR/ready");
  Open();
  ASSERT_TRUE(Ready());
  ASSERT_TRUE(Empty());
  const std::string starts = Content("starts");
  Drain(kLong);
  EXPECT_TRUE(gate_->empty());
  RunFor(Duration::Millis(100));
  EXPECT_EQ(Content("starts"), starts);
  EXPECT_TRUE(finished_.empty());
}

TEST_F(ProcessGateTest, WhatCannotBeExecutedIsToldWithItsToken) {
  BuildCommand({"/no/such/command"});
  Open(5);
  ASSERT_TRUE(RunUntil([this] { return failed_ != 0; }));
  EXPECT_EQ(failed_, 5u);
  EXPECT_TRUE(gate_->empty());
}

TEST_F(ProcessGateTest, AWatchdogThatDiesEndsItWithACodeOfItsOwn) {
  Build("touch $DIR/ready; sleep 999");
  Open();
  ASSERT_TRUE(Ready());
  kill(watchdog_->pid(), SIGKILL);
  ASSERT_TRUE(RunUntil([this] { return !finished_.empty(); }));
  EXPECT_EQ(finished_, std::vector<int>{kProcessLostExitCode});
  EXPECT_TRUE(gate_->empty());
  EXPECT_TRUE(Shows(R"(leasehold_exec_exits_total{lease="orders",result="killed"} 1)"));
}

TEST_F(ProcessGateTest, AWatchdogThatDiesWhileNothingRunsHasKilledNothing) {
  Build("exit 0");
  kill(watchdog_->pid(), SIGKILL);
  ASSERT_TRUE(RunUntil([this] { return !finished_.empty(); }));
  EXPECT_EQ(finished_, std::vector<int>{kProcessLostExitCode});
  EXPECT_TRUE(Shows(R"(leasehold_exec_exits_total{lease="orders",result="killed"} 0)"));
}

TEST_F(ProcessGateTest, AWatchdogThatDiesAfterTheCommandHasEndedDoesNotChangeItsExitCode) {
  Build("exit 3");
  Open();
  ASSERT_TRUE(RunUntil([this] { return !finished_.empty(); }));
  kill(watchdog_->pid(), SIGKILL);
  // Reaped when its end is seen; what is told of that comes by a timer, before this one.
  ASSERT_TRUE(RunUntil([this] { return kill(watchdog_->pid(), 0) != 0; }));
  bool later = false;
  loop::Timer timer(loop_, [&] { later = true; });
  timer.StartAfter(Duration::Zero());
  ASSERT_TRUE(RunUntil([&] { return later; }));
  EXPECT_EQ(finished_, std::vector<int>{3});
}

}  // namespace
}  // namespace leasehold::gate

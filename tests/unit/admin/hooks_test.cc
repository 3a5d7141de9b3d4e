// Hooks: order, environment, ends, and that nothing waits for them but a planned release.
#include "admin/hooks.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "lib/loop_fixture.h"
#include "lib/permit_for_test.h"

namespace leasehold::admin {
namespace {

namespace fs = std::filesystem;
using base::Duration;
using lease::Valve;
using loop::Loop;

class HooksTest : public testing::LoopFixture {
 protected:
  void SetUp() override {
    char path[] = "/tmp/leasehold-hooks-XXXXXX";
    ASSERT_NE(mkdtemp(path), nullptr);
    directory_ = path;
    told_ = directory_ + "/told";
    options_.timeout = Duration::Seconds(30);
  }
  void TearDown() override {
    hooks_.reset();
    fs::remove_all(directory_);
  }

  // A hook that notes its state and token, then does more.
  std::string Notes(const std::string& more = "") const {
    return "sh -c 'echo $LEASE_STATE $FENCING_TOKEN >> " + told_ + "; " + more + "'";
  }
  void NoteAll() { options_.on_active = options_.on_draining = options_.on_standby = Notes(); }
  // A command that puts its process id into `directory_/<name>` and never ends.
  std::string Endless(const std::string& name) const {
    return Notes("trap \"\" TERM; echo $$ > " + directory_ + "/" + name +
                 "; while :; do sleep 60; done");
  }

  void Make() {
    auto commands = ParseHooks(options_);
    ASSERT_TRUE(commands.ok());
    hooks_ = std::make_unique<Hooks>(loop_, std::move(*commands), lease::Identity{"n1", "p1"},
                                     metrics_, *log_);
    hooks_->AddLease("orders", permit_.permit, [this] { ++settled_; });
  }

  // As the driver tells it: the permit says so already, and the gates have acted.
  void Tell(lease::Valve valve, uint64_t token, lease::Reason reason = lease::Reason::kNone,
            Duration grace = Duration::Seconds(20)) {
    permit_.Set(valve, Loop::Now() + Duration::Seconds(10), token);
    lease::ValveEffect effect;
    effect.valve = valve;
    effect.reason = reason;
    effect.token = token;
    effect.drain_end = Loop::Now() + grace;
    hooks_->OnValve("orders", effect);
  }

  std::string Told() const { return Read("told"); }
  std::string Read(const std::string& name) const {
    std::ifstream in(directory_ + "/" + name);
    std::stringstream text;
    text << in.rdbuf();
    return text.str();
  }
  bool WaitTold(const std::string& text) {
    return RunUntil([&] { return Told() == text; });
  }
  int WaitPid(const std::string& name) {
    RunUntil([&] { return Read(name).ends_with('\n'); });
    return std::stoi("0" + Read(name));
  }
  bool Gone(int pid) {
    return RunUntil([pid] { return kill(pid, 0) != 0 && errno == ESRCH; });
  }
  uint64_t Count(const std::string& hook, const std::string& result) {
    return metrics_
        .AddCounter("leasehold_hook_runs_total", "",
                    {{"lease", "orders"}, {"hook", hook}, {"result", result}})
        .value();
  }

  std::string directory_;
  std::string told_;
  HookOptions options_;
  observe::Metrics metrics_;
  std::unique_ptr<observe::Log> log_ = observe::Log::Silent();
  lease::PermitForTest permit_;
  int settled_ = 0;
  std::unique_ptr<Hooks> hooks_;
};

TEST_F(HooksTest, EachChangeRunsItsHookInOrder) {
  NoteAll();
  Make();
  Tell(Valve::kOpen, 7);
  ASSERT_TRUE(WaitTold("active 7\n"));
  Tell(Valve::kDraining, 7);
  ASSERT_TRUE(WaitTold("active 7\ndraining 7\n"));
  Tell(Valve::kClosed, 7);
  ASSERT_TRUE(WaitTold("active 7\ndraining 7\nstandby 7\n"));
}

TEST_F(HooksTest, AHookBeginsOnlyAfterTheGatesHaveActed) {
  NoteAll();
  Make();
  Tell(Valve::kOpen, 7);
  EXPECT_EQ(Told(), "");
  EXPECT_TRUE(hooks_->Settled("orders"));
  ASSERT_TRUE(WaitTold("active 7\n"));
}

TEST_F(HooksTest, TheEnvironmentSaysWhatHappens) {
  options_.on_draining = "sh -c 'env | grep -E \"^(LEASE_|FENCING|GRACE)\" | sort > " + directory_ +
                         "/env; touch " + directory_ + "/done'";
  Make();
  Tell(Valve::kOpen, 18446744073709551615u);
  Tell(Valve::kDraining, 18446744073709551615u, lease::Reason::kRequested);
  ASSERT_TRUE(RunUntil([&] { return fs::exists(directory_ + "/done"); }));
  const std::string env = Read("env");
  const std::string begins = "FENCING_TOKEN=18446744073709551615\nGRACE_MS=";
  ASSERT_TRUE(env.starts_with(begins)) << env;
  const int grace = std::stoi(env.substr(begins.size()));
  EXPECT_LE(grace, 10000) << "never more than the permit has left";
  EXPECT_GT(grace, 5000);
  EXPECT_NE(env.find("LEASE_NAME=orders\nLEASE_NODE_ID=n1\nLEASE_PROCESS_ID=p1\n"
                     "LEASE_REASON=requested\nLEASE_STATE=draining\n"),
            std::string::npos)
      << env;
}

TEST_F(HooksTest, HeldAdmissionsAreNoChange) {
  NoteAll();
  Make();
  Tell(Valve::kOpen, 7);
  Tell(Valve::kHolding, 7);
  Tell(Valve::kOpen, 7);
  ASSERT_TRUE(WaitTold("active 7\n"));
  Tell(Valve::kClosed, 7);
  ASSERT_TRUE(WaitTold("active 7\nstandby 7\n"));
}

TEST_F(HooksTest, APlannedReleaseWaitsForOnDraining) {
  options_.on_draining = Notes("while ! [ -e " + directory_ + "/go ]; do sleep 0.01; done");
  Make();
  Tell(Valve::kOpen, 7);
  Tell(Valve::kDraining, 7);
  EXPECT_FALSE(hooks_->Settled("orders")) << "already before it runs";
  ASSERT_TRUE(WaitTold("draining 7\n"));
  EXPECT_FALSE(hooks_->Settled("orders"));
  EXPECT_EQ(settled_, 0);
  std::ofstream(directory_ + "/go") << "";
  ASSERT_TRUE(RunUntil([&] { return settled_ == 1; }));
  EXPECT_TRUE(hooks_->Settled("orders"));
}

TEST_F(HooksTest, AnOnDrainingThatCannotStartKeepsNobodyWaiting) {
  options_.on_draining = "/nowhere/hook";
  Make();
  Tell(Valve::kOpen, 7);
  Tell(Valve::kDraining, 7);
  EXPECT_FALSE(hooks_->Settled("orders"));
  ASSERT_TRUE(RunUntil([&] { return settled_ == 1; }));
  EXPECT_EQ(Count("on_draining", "not_started"), 1u);
}

TEST_F(HooksTest, AtTheEndOfGraceOnDrainingIsKilledAndOnStandbyRuns) {
  options_.on_draining = Endless("pid");
  options_.on_standby = Notes();
  Make();
  Tell(Valve::kOpen, 7);
  Tell(Valve::kDraining, 7);
  const int pid = WaitPid("pid");
  ASSERT_GT(pid, 0);
  Tell(Valve::kClosed, 7, lease::Reason::kRequested);
  EXPECT_TRUE(Gone(pid));
  ASSERT_TRUE(WaitTold("draining 7\nstandby 7\n"));
  EXPECT_EQ(Count("on_draining", "ended"), 1u);
}

// CASES 11: a hook that never ends, and a loss.
TEST_F(HooksTest, ALossEndsAHookThatNeverEndsWithItsGroupAndRunsOnStandby) {
  options_.on_active = Notes("trap \"\" TERM; sh -c \"trap : TERM; echo \\$\\$ > " + directory_ +
                             "/pid; while :; do sleep 60; done\" & wait; wait");
  options_.on_standby = Notes();
  Make();
  Tell(Valve::kOpen, 7);
  const int grandchild = WaitPid("pid");
  ASSERT_GT(grandchild, 0);
  Tell(Valve::kClosed, 7, lease::Reason::kExpired);
  ASSERT_TRUE(WaitTold("active 7\nstandby 7\n"));
  EXPECT_TRUE(Gone(grandchild));
}

TEST_F(HooksTest, AnOnActiveNotYetBegunIsDroppedWhenItsTermIsOver) {
  NoteAll();
  Make();
  Tell(Valve::kOpen, 7);
  Tell(Valve::kClosed, 7);
  ASSERT_TRUE(WaitTold("standby 7\n"));
  EXPECT_EQ(Count("on_active", "dropped"), 1u);
}

TEST_F(HooksTest, AnOnActiveIsNotBegunOnceThePermitIsOver) {
  NoteAll();
  Make();
  Tell(Valve::kOpen, 7);
  permit_.ExpireAt(Loop::Now());  // the engine has not said so yet
  ASSERT_TRUE(RunUntil([&] { return Count("on_active", "dropped") == 1; }));
  Tell(Valve::kClosed, 7);
  ASSERT_TRUE(WaitTold("standby 7\n"));
}

TEST_F(HooksTest, ADrainThatHealsTellsActiveAgain) {
  options_.on_active = Notes();
  options_.on_draining = Endless("pid");
  Make();
  Tell(Valve::kOpen, 7);
  ASSERT_TRUE(WaitTold("active 7\n"));
  Tell(Valve::kDraining, 7, lease::Reason::kRenewalsFailed);
  ASSERT_GT(WaitPid("pid"), 0);
  Tell(Valve::kOpen, 7);
  ASSERT_TRUE(WaitTold("active 7\ndraining 7\nactive 7\n"));
  EXPECT_TRUE(hooks_->Settled("orders"));
}

TEST_F(HooksTest, ADrainThatBecomesAPlannedOneRunsItsHookOnce) {
  NoteAll();
  Make();
  Tell(Valve::kOpen, 7);
  ASSERT_TRUE(WaitTold("active 7\n"));
  Tell(Valve::kDraining, 7, lease::Reason::kRenewalsFailed);
  Tell(Valve::kDraining, 7, lease::Reason::kRequested);
  ASSERT_TRUE(WaitTold("active 7\ndraining 7\n"));
  Tell(Valve::kClosed, 7);
  ASSERT_TRUE(WaitTold("active 7\ndraining 7\nstandby 7\n"));
}

TEST_F(HooksTest, OnStandbyIsLetFinishBeforeTheNextOnActive) {
  options_.on_active = Notes();
  options_.on_standby = Notes("sleep 0.3; echo undone >> " + told_);
  Make();
  Tell(Valve::kOpen, 7);
  ASSERT_TRUE(WaitTold("active 7\n"));
  Tell(Valve::kClosed, 7);
  ASSERT_TRUE(WaitTold("active 7\nstandby 7\n"));
  Tell(Valve::kOpen, 8);
  ASSERT_TRUE(WaitTold("active 7\nstandby 7\nundone\nactive 8\n"));
}

TEST_F(HooksTest, TwoHundredQuickStepDownsDoNotPileUpProcesses) {
  options_.on_active = options_.on_draining = Notes("sleep 60");
  options_.on_standby = Notes("sleep 0.02");
  Make();
  for (uint64_t token = 1; token <= 200; ++token) {
    for (const auto valve : {Valve::kOpen, Valve::kDraining, Valve::kClosed}) {
      Tell(valve, token);
      RunFor(Duration::Millis(1));
    }
  }
  bool finished = false;
  hooks_->Finish(kLimit, [&] { finished = true; });
  const base::MonoTime start = Loop::Now();
  ASSERT_TRUE(RunUntil([&] { return finished; }));
  EXPECT_LT(Loop::Now() - start, Duration::Seconds(2))
      << "what waited at the end was a hook or two";
  // After every on_active that was begun came an on_standby.
  std::istringstream lines(Told());
  std::string last;
  for (std::string line; std::getline(lines, line); last = line) {
    EXPECT_FALSE(line.starts_with("active") && last.starts_with("active")) << Told();
  }
  EXPECT_TRUE(last.starts_with("standby")) << Told();
}

TEST_F(HooksTest, AHookThatTakesTooLongIsKilled) {
  options_.on_active = Endless("pid");
  options_.timeout = Duration::Millis(300);
  Make();
  Tell(Valve::kOpen, 7);
  const int pid = WaitPid("pid");
  ASSERT_GT(pid, 0);
  ASSERT_TRUE(RunUntil([&] { return Count("on_active", "timeout") == 1; }));
  EXPECT_TRUE(Gone(pid));
}

TEST_F(HooksTest, AFloodOfOutputStopsNothing) {
  options_.on_active = Notes("yes");
  options_.on_standby = Notes();
  Make();
  Tell(Valve::kOpen, 7);
  ASSERT_TRUE(WaitTold("active 7\n"));
  Tell(Valve::kClosed, 7);
  ASSERT_TRUE(WaitTold("active 7\nstandby 7\n"));
}

TEST_F(HooksTest, AHookThatFailsIsCountedAndNothingElse) {
  options_.on_active = Notes("exit 3");
  options_.on_standby = Notes();
  Make();
  Tell(Valve::kOpen, 7);
  ASSERT_TRUE(RunUntil([&] { return Count("on_active", "failed") == 1; }));
  Tell(Valve::kClosed, 7);
  ASSERT_TRUE(WaitTold("active 7\nstandby 7\n"));
  ASSERT_TRUE(RunUntil([&] { return Count("on_standby", "ok") == 1; }));
}

TEST_F(HooksTest, AHookInheritsNoDescriptorsOfOurs) {
  const int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
  const int ours = fcntl(null, F_DUPFD_CLOEXEC, 777);  // a number that nobody else takes
  ASSERT_EQ(ours, 777);
  options_.on_active =
      "sh -c 'ls /proc/self/fd > " + directory_ + "/fds; touch " + directory_ + "/done'";
  Make();
  Tell(Valve::kOpen, 7);
  ASSERT_TRUE(RunUntil([&] { return fs::exists(directory_ + "/done"); }));
  close(null);
  close(ours);
  EXPECT_NE(Read("fds").find("2\n"), std::string::npos);
  EXPECT_EQ(Read("fds").find("777\n"), std::string::npos) << Read("fds");
}

TEST_F(HooksTest, TheEndOfTheProcessWaitsForOnStandby) {
  options_.on_standby = Notes("sleep 0.2; echo undone >> " + told_);
  Make();
  Tell(Valve::kOpen, 7);
  Tell(Valve::kClosed, 7);
  bool finished = false;
  hooks_->Finish(kLimit, [&] { finished = true; });
  EXPECT_FALSE(finished);
  ASSERT_TRUE(RunUntil([&] { return finished; }));
  EXPECT_EQ(Told(), "standby 7\nundone\n");
}

TEST_F(HooksTest, TheEndOfTheProcessWaitsNoLongerThanItsLimit) {
  options_.on_standby = Endless("pid");
  Make();
  Tell(Valve::kOpen, 7);
  Tell(Valve::kClosed, 7);
  const int pid = WaitPid("pid");
  ASSERT_GT(pid, 0);
  bool finished = false;
  hooks_->Finish(Duration::Millis(200), [&] { finished = true; });
  ASSERT_TRUE(RunUntil([&] { return finished; }, Duration::Seconds(2)));
  EXPECT_TRUE(Gone(pid));
}

TEST_F(HooksTest, TheEndOfAProcessWithoutHooksAtWorkIsAtOnce) {
  NoteAll();
  Make();
  bool finished = false;
  hooks_->Finish(kLimit, [&] { finished = true; });
  EXPECT_FALSE(finished) << "never from inside the call";
  loop_.RunOnce();
  EXPECT_TRUE(finished);
}

TEST_F(HooksTest, ACommandThatIsNoneIsRefusedByName) {
  options_.on_standby = "sh 'open";
  const auto commands = ParseHooks(options_);
  ASSERT_FALSE(commands.ok());
  EXPECT_EQ(commands.error().message, "hooks.on_standby = \"sh 'open\": the quote ' is not closed");
}

}  // namespace
}  // namespace leasehold::admin

#include "loop/guarded_child.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <fstream>
#include <optional>
#include <sstream>

#include "lib/loop_fixture.h"
#include "loop/process_tree.h"

namespace leasehold::loop {
namespace {

using base::Duration;
using base::MonoTime;
using Cause = GuardedExit::Cause;

// A pipe's end shows a death without a loop and without looking at process ids: the kernel reports
// it when the last process that had the other end is gone.
class DeathPipe {
 public:
  DeathPipe() = default;
  ~DeathPipe() {
    CloseWriter();
    if (ends_[0] >= 0) close(ends_[0]);
  }
  // After the watchdog was forked, which keeps what is open then.
  void Open() { ASSERT_EQ(pipe2(ends_, O_CLOEXEC), 0); }
  int writer() const { return ends_[1]; }
  void CloseWriter() {
    if (ends_[1] >= 0) close(std::exchange(ends_[1], -1));
  }
  // Waits in the kernel: the loop stands still meanwhile, as that of a frozen sidecar does.
  bool DeadWithin(Duration limit) {
    pollfd end{ends_[0], 0, 0};
    return poll(&end, 1, static_cast<int>(limit.millis_ceil())) > 0 && (end.revents & POLLHUP) != 0;
  }

 private:
  int ends_[2] = {-1, -1};
};

class GuardedChildTest : public testing::LoopFixture {
 protected:
  static constexpr Duration kLong = Duration::Seconds(60);

  void SetUp() override {
    std::string path = ::testing::TempDir() + "guarded.XXXXXX";
    ASSERT_NE(mkdtemp(path.data()), nullptr);
    dir_ = path;
  }
  void TearDown() override {
    child_.reset();
    watchdog_.reset();
    death_.CloseWriter();
    EXPECT_TRUE(death_.DeadWithin(kLimit)) << "a test left a process behind";
  }

  void Watch(std::vector<std::string> argv, Duration stop_timeout = Duration::Millis(200)) {
    WatchdogOptions options;
    options.argv = std::move(argv);
    options.stop_timeout = stop_timeout;
    auto forked = Watchdog::Fork(std::move(options));
    ASSERT_TRUE(forked.ok());
    watchdog_ = std::move(*forked);
    death_.Open();
    GuardedChild::Callbacks callbacks;
    callbacks.on_started = [this](int pid) { pid_ = pid; };
    callbacks.on_start_failed = [this](const std::string& why) { start_failed_ = why; };
    callbacks.on_exit = [this](const GuardedExit&) { ++exits_; };
    callbacks.on_end = [this](const GuardedExit& exit) { end_ = exit; };
    callbacks.on_lost = [this](const std::string& why, bool ran) {
      lost_ = why;
      lost_ran_ = ran;
    };
    child_ = std::make_unique<GuardedChild>(loop_, *watchdog_, std::move(callbacks));
  }
  void Start(MonoTime expiry = Loop::Now() + kLong, std::vector<int> keep_open = {}) {
    pid_ = 0;
    end_.reset();
    keep_open.push_back(death_.writer());
    const base::Status started = child_->Start(
        {{"FENCING_TOKEN", "7"}, {"DIR", dir_}, {"MARK", dir_}}, "MARK", keep_open, expiry);
    ASSERT_TRUE(started.ok());
  }
  void Shell(const std::string& script, MonoTime expiry = Loop::Now() + kLong) {
    Watch({"sh", "-c", script});
    Start(expiry);
  }
  // The script says so by making a file.
  bool Ready() {
    return RunUntil([this] { return access((dir_ + "/ready").c_str(), F_OK) == 0; });
  }
  // The third field of /proc/PID/stat is the state, behind the name in brackets (proc(5)).
  static bool Stopped(int pid) {
    std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
    std::stringstream text;
    text << file.rdbuf();
    const size_t name_end = text.str().rfind(") ");
    return name_end != std::string::npos && text.str().substr(name_end + 2, 1) == "T";
  }
  bool Ended() {
    return RunUntil([this] { return end_.has_value(); });
  }
  std::string Content(const std::string& name) const {
    std::ifstream file(dir_ + "/" + name);
    std::stringstream text;
    text << file.rdbuf();
    return text.str();
  }

  std::string dir_;
  DeathPipe death_;
  std::unique_ptr<Watchdog> watchdog_;
  std::unique_ptr<GuardedChild> child_;
  int pid_ = 0;
  int exits_ = 0;
  std::string start_failed_;
  std::string lost_;
  bool lost_ran_ = false;
  std::optional<GuardedExit> end_;
};

TEST_F(GuardedChildTest, AnExitCodeIsTold) {
  Shell("exit 3");
  ASSERT_TRUE(Ended());
  EXPECT_EQ(end_->code, 3);
  EXPECT_EQ(end_->signal, 0);
  EXPECT_EQ(end_->cause, Cause::kItself);
  EXPECT_GT(pid_, 0);
  EXPECT_EQ(exits_, 1);
  EXPECT_FALSE(child_->alive());
}

TEST_F(GuardedChildTest, TheSignalThatEndedItIsToldSoNoSignalIsBlockedInIt) {
  Shell("kill -TERM $$; exit 1");
  ASSERT_TRUE(Ended());
  EXPECT_EQ(end_->signal, SIGTERM);
  EXPECT_EQ(end_->code, -1);
  EXPECT_EQ(end_->cause, Cause::kItself);
}

TEST_F(GuardedChildTest, ItIsStartedAgainWithAnotherEnvironment) {
  ASSERT_EQ(setenv("FENCING_TOKEN", "an outer one", 1), 0);
  Shell("echo $FENCING_TOKEN ${HOME:+home} >> $DIR/out");
  ASSERT_TRUE(Ended());
  ASSERT_EQ(unsetenv("FENCING_TOKEN"), 0);
  end_.reset();
  ASSERT_TRUE(
      child_->Start({{"FENCING_TOKEN", "8"}, {"DIR", dir_}}, "", {}, Loop::Now() + kLong).ok());
  ASSERT_TRUE(Ended());
  EXPECT_EQ(Content("out"), "7 home\n8 home\n");
}

TEST_F(GuardedChildTest, WhatCannotBeExecutedIsAnErrorThatNamesIt) {
  Watch({"no-such-command"});
  Start();
  ASSERT_TRUE(RunUntil([this] { return !start_failed_.empty(); }));
  EXPECT_NE(start_failed_.find("\"no-such-command\""), std::string::npos) << start_failed_;
  EXPECT_FALSE(child_->alive());
  EXPECT_EQ(exits_, 0);
}

TEST_F(GuardedChildTest, NothingIsStartedUnderAPermitThatIsOver) {
  Watch({"sh", "-c", "touch $DIR/ready"});
  Start(Loop::Now());
  ASSERT_TRUE(RunUntil([this] { return !start_failed_.empty(); }));
  EXPECT_NE(start_failed_.find("permit"), std::string::npos) << start_failed_;
  EXPECT_NE(access((dir_ + "/ready").c_str(), F_OK), 0);
}

TEST_F(GuardedChildTest, ATermLetsItFinish) {
  Shell("trap 'echo done > $DIR/out; exit 4' TERM; touch $DIR/ready; while :; do read x; done");
  ASSERT_TRUE(Ready());
  child_->Terminate(Loop::Now() + kLong);
  ASSERT_TRUE(Ended());
  EXPECT_EQ(end_->code, 4);
  EXPECT_EQ(end_->cause, Cause::kTerminated);
  EXPECT_EQ(Content("out"), "done\n");
}

TEST_F(GuardedChildTest, WhoDoesNotHeedATermIsKilledWhenItIsDue) {
  Shell("trap '' TERM; touch $DIR/ready; sleep 999");
  ASSERT_TRUE(Ready());
  const MonoTime kill_at = Loop::Now() + Duration::Millis(200);
  child_->Terminate(kill_at);
  ASSERT_TRUE(Ended());
  EXPECT_GE(Loop::Now(), kill_at);
  EXPECT_EQ(end_->signal, SIGKILL);
  EXPECT_EQ(end_->cause, Cause::kKilled);
}

TEST_F(GuardedChildTest, AStoppedCommandHeedsATermToo) {
  Shell("trap 'exit 5' TERM; kill -STOP $$; while :; do read x; done");
  ASSERT_TRUE(RunUntil([this] { return child_->pid() > 0 && Stopped(child_->pid()); }));
  child_->Terminate(Loop::Now() + kLong);
  ASSERT_TRUE(Ended());
  EXPECT_EQ(end_->code, 5);
}

TEST_F(GuardedChildTest, AKillTakesTheWholeGroupAndWhoLeftIt) {
  Shell("sleep 999 & setsid sleep 998 & touch $DIR/ready; wait");
  ASSERT_TRUE(Ready());
  death_.CloseWriter();
  child_->Kill();
  EXPECT_TRUE(death_.DeadWithin(kLimit));
  ASSERT_TRUE(Ended());
  EXPECT_EQ(end_->cause, Cause::kKilled);
}

// The watchdog may see that the time is over before it reads the order to kill: some of these
// rounds, on a busy machine, told of a permit that was ending.
TEST_F(GuardedChildTest, AKillIsNeverToldAsTheEndOfThePermit) {
  Watch({"sleep", "999"});
  for (int round = 0; round < 50; ++round) {
    Start();
    ASSERT_TRUE(RunUntil([this] { return pid_ != 0; }));
    child_->Kill();
    ASSERT_TRUE(Ended());
    ASSERT_EQ(end_->cause, Cause::kKilled) << "in round " << round;
  }
}

// The loop does not run: no more than in a process that was stopped.
TEST_F(GuardedChildTest, AllOfItIsDeadByThePermitsEndAlthoughTheLoopStandsStill) {
  Shell("trap '' TERM; sleep 999 & setsid sh -c 'sleep 998 & wait' & touch $DIR/ready; wait");
  ASSERT_TRUE(Ready());
  death_.CloseWriter();
  const MonoTime expiry = Loop::Now() + Duration::Millis(500);
  child_->SetExpiry(expiry);
  // What is judged is when it was dead, not when this process was scheduled again to see it.
  EXPECT_TRUE(death_.DeadWithin(expiry - Loop::Now()));
  ASSERT_TRUE(Ended());
  EXPECT_EQ(end_->cause, Cause::kExpired);
}

TEST_F(GuardedChildTest, ARenewalMovesTheEndWithoutAWord) {
  const MonoTime first = Loop::Now() + Duration::Millis(400);
  Shell("touch $DIR/ready; sleep 999", first);
  ASSERT_TRUE(Ready());
  death_.CloseWriter();
  const MonoTime second = first + Duration::Millis(300);
  child_->SetExpiry(second);
  EXPECT_FALSE(death_.DeadWithin(first - Loop::Now())) << "killed at the end that was moved";
  EXPECT_TRUE(death_.DeadWithin(kLimit));
  EXPECT_LT(Loop::Now(), second + Duration::Millis(200));
}

TEST_F(GuardedChildTest, WhatItLeavesBehindIsToldToEndAndThenKilled) {
  // A second, so that what is told has the time to say so on a busy machine.
  Watch({"sh", "-c",
         "(trap 'echo told >> $DIR/out' TERM; touch $DIR/ready; while :; do sleep 0.01; done) & "
         "while [ ! -e $DIR/ready ]; do sleep 0.01; done; exit 6"},
        Duration::Seconds(1));
  Start(Loop::Now() + kLong);
  ASSERT_TRUE(Ended());
  EXPECT_EQ(end_->code, 6);
  EXPECT_EQ(end_->cause, Cause::kItself);
  EXPECT_EQ(exits_, 1);
  EXPECT_EQ(Content("out"), "told\n");
}

TEST_F(GuardedChildTest, ItsLocksAreHeldAsLongAsItLives) {
  Watch({"sh", "-c", "touch $DIR/ready; sleep 999"});
  const std::string path = dir_ + "/lock";
  const int ours = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  const int other = open(path.c_str(), O_RDWR | O_CLOEXEC);
  ASSERT_EQ(flock(ours, LOCK_EX), 0);
  Start(Loop::Now() + kLong, {ours});
  ASSERT_TRUE(Ready());
  close(ours);
  EXPECT_NE(flock(other, LOCK_EX | LOCK_NB), 0);
  child_->Kill();
  ASSERT_TRUE(Ended());
  EXPECT_EQ(flock(other, LOCK_EX | LOCK_NB), 0);
  close(other);
}

TEST_F(GuardedChildTest, ADeadWatchdogTakesAllOfItAlong) {
  Shell("sleep 999 & setsid sleep 998 & touch $DIR/ready; wait");
  ASSERT_TRUE(Ready());
  death_.CloseWriter();
  kill(watchdog_->pid(), SIGKILL);
  ASSERT_TRUE(RunUntil([this] { return !lost_.empty(); }));
  EXPECT_TRUE(death_.DeadWithin(kLimit));
  EXPECT_FALSE(child_->alive());
  EXPECT_TRUE(child_->lost());
  EXPECT_NE(lost_.find("signal 9"), std::string::npos) << lost_;
  EXPECT_TRUE(lost_ran_);
  EXPECT_FALSE(child_->Start({}, "", {}, Loop::Now() + kLong).ok());
}

// As in a container whose process 1 we are.
TEST_F(GuardedChildTest, WhatADeadWatchdogLeftToUsIsKnownToBeGoneAlthoughNobodyReapsIt) {
  Shell("touch $DIR/ready; sleep 999");
  ASSERT_TRUE(Ready());
  ASSERT_EQ(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
  kill(watchdog_->pid(), SIGKILL);
  EXPECT_TRUE(RunUntil([this] { return !lost_.empty(); }));
  EXPECT_EQ(prctl(PR_SET_CHILD_SUBREAPER, 0), 0);
  EXPECT_NE(lost_.find("nothing of the command is left"), std::string::npos) << lost_;
}

TEST_F(GuardedChildTest, AWatchdogThatDiesWhileNothingRunsIsToldToo) {
  Watch({"true"});
  kill(watchdog_->pid(), SIGKILL);
  ASSERT_TRUE(RunUntil([this] { return !lost_.empty(); }));
  EXPECT_FALSE(lost_ran_);
  EXPECT_EQ(lost_.find("of the command is left"), std::string::npos) << lost_;
}

TEST_F(GuardedChildTest, AStoppedWatchdogDoesNotKeepAKillFromTheGroupAndWhoLeftIt) {
  Shell("sleep 999 & setsid sleep 998 & touch $DIR/ready; wait");
  ASSERT_TRUE(Ready());
  const std::string mark = "MARK=" + dir_;
  ASSERT_TRUE(RunUntil([&] { return WithEnvironment(mark).size() == 3; }));
  // The watchdog has the pipe's end as well, and keeps it while it is stopped; what is dead shows
  // no environment any more.
  kill(watchdog_->pid(), SIGSTOP);
  child_->Kill();
  EXPECT_TRUE(RunUntil([&] { return WithEnvironment(mark).empty(); }));
  kill(watchdog_->pid(), SIGCONT);
  ASSERT_TRUE(Ended());
  EXPECT_EQ(end_->cause, Cause::kKilled);
}

TEST_F(GuardedChildTest, SignalsToTheWatchdogOtherThanAKillChangeNothing) {
  Shell("touch $DIR/ready; read x < /dev/null; sleep 999");
  ASSERT_TRUE(Ready());
  for (const int signal : {SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGALRM}) {
    kill(watchdog_->pid(), signal);
  }
  child_->Terminate(Loop::Now() + kLong);
  ASSERT_TRUE(Ended());
  EXPECT_EQ(end_->cause, Cause::kTerminated);
  EXPECT_TRUE(lost_.empty());
}

TEST_F(GuardedChildTest, ProcShowsWhoDescendsAndWhoCarriesAWord) {
  Shell("setsid sh -c ': > $DIR/ready; sleep 999; true' & wait");
  ASSERT_TRUE(Ready());
  ASSERT_TRUE(RunUntil([this] { return pid_ != 0; }));
  ASSERT_TRUE(RunUntil([this] { return DescendantsOf(watchdog_->pid()).size() == 3; }));
  const std::vector<pid_t> descendants = DescendantsOf(watchdog_->pid());
  EXPECT_EQ(descendants.size(), 3u);
  EXPECT_EQ(descendants.at(0), pid_);
  EXPECT_EQ(WithEnvironment("MARK=" + dir_).size(), 3u);
  EXPECT_TRUE(WithEnvironment("MARK=" + dir_.substr(1)).empty());
  EXPECT_TRUE(DescendantsOf(descendants.at(2)).empty());
  EXPECT_EQ(MembersOf(pid_), std::vector<pid_t>{pid_});
  EXPECT_EQ(MembersOf(descendants.at(1)).size(), 2u);
}

}  // namespace
}  // namespace leasehold::loop

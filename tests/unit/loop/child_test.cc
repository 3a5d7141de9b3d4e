#include "loop/child.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <optional>

#include "lib/loop_fixture.h"
#include "lib/socket_peer.h"
#include "loop/signals.h"

namespace leasehold::loop {
namespace {

using base::Duration;

class ChildTest : public testing::LoopFixture {
 protected:
  void TearDown() override { child_.reset(); }
  base::Status Start(const ChildOptions& options) {
    auto child = Child::Start(loop_, options, [this](const ChildExit& exit) {
      exit_ = exit;
      ++exits_;
      if (on_exit_) on_exit_();
    });
    if (!child) return child.error();
    child_ = std::move(*child);
    return {};
  }
  base::Status Shell(const std::string& script, Duration timeout = {}) {
    ChildOptions options;
    options.argv = {"sh", "-c", script};
    options.timeout = timeout;
    return Start(options);
  }
  bool Exited() {
    return RunUntil([this] { return exits_ > 0; });
  }
  // A killed process stays visible until its parent has reaped it; the test waits for that.
  bool Gone(int pid) {
    return RunUntil([pid] { return kill(pid, 0) != 0 && errno == ESRCH; });
  }

  std::unique_ptr<Child> child_;
  std::optional<ChildExit> exit_;
  std::function<void()> on_exit_;
  int exits_ = 0;
};

TEST_F(ChildTest, TheLastOfAFloodIsKeptWhereThatIsAskedFor) {
  ChildOptions options;
  options.argv = {"sh", "-c", "seq 1 100000; echo end"};
  options.output_bytes_max = 16;
  options.output_keep_last = true;
  ASSERT_TRUE(Start(options).ok());
  ASSERT_TRUE(Exited());
  EXPECT_EQ(exit_->output, "9999\n100000\nend\n");
}

TEST_F(ChildTest, ExitCodeAndBothOutputsAreReported) {
  ASSERT_TRUE(Shell("echo out; echo err >&2; exit 3").ok());
  ASSERT_TRUE(Exited());
  EXPECT_EQ(exit_->code, 3);
  EXPECT_EQ(exit_->signal, 0);
  EXPECT_FALSE(exit_->timed_out);
  EXPECT_EQ(exit_->output, "out\nerr\n");
}

TEST_F(ChildTest, StandardErrorIsDroppedWhereThatIsAskedFor) {
  ChildOptions options;
  options.argv = {"sh", "-c", "echo out; echo err >&2 && echo still"};
  options.stderr_dropped = true;
  ASSERT_TRUE(Start(options).ok());
  ASSERT_TRUE(Exited());
  EXPECT_EQ(exit_->output, "out\nstill\n");
}

TEST_F(ChildTest, EnvironmentIsAddedToOurs) {
  ChildOptions options;
  options.argv = {"sh", "-c", "echo $LEASE_NAME; test -n \"$PATH\""};
  options.env = {{"LEASE_NAME", "orders"}};
  ASSERT_TRUE(Start(options).ok());
  ASSERT_TRUE(Exited());
  EXPECT_EQ(exit_->code, 0);
  EXPECT_EQ(exit_->output, "orders\n");
}

TEST_F(ChildTest, StandardInputIsEmpty) {
  ASSERT_TRUE(Shell("cat; echo end").ok());
  ASSERT_TRUE(Exited());
  EXPECT_EQ(exit_->output, "end\n");
}

TEST_F(ChildTest, ArgumentsAreNotSeenByAShell) {
  ChildOptions options;
  options.argv = {"echo", "$HOME; *"};
  ASSERT_TRUE(Start(options).ok());
  ASSERT_TRUE(Exited());
  EXPECT_EQ(exit_->output, "$HOME; *\n");
}

TEST_F(ChildTest, CommandThatDoesNotExistIsAnErrorNamingIt) {
  ChildOptions options;
  options.argv = {"no-such-command-here"};
  const base::Status status = Start(options);
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code, base::ErrorCode::kNotFound);
  EXPECT_NE(status.error().message.find("no-such-command-here"), std::string::npos);
  EXPECT_FALSE(Start({}).ok());
}

TEST_F(ChildTest, AFileThatIsNotExecutableIsToldWithItsRemedy) {
  ChildOptions options;
  options.argv = {"/etc/passwd"};
  const base::Status status = Start(options);
  ASSERT_FALSE(status.ok());
  EXPECT_NE(status.error().message.find("\"/etc/passwd\" (make it executable"), std::string::npos)
      << status.error().message;
}

TEST_F(ChildTest, OutputIsBoundedAndATalkativeChildDoesNotBlock) {
  ChildOptions options;
  options.argv = {"sh", "-c", "head -c 1000000 /dev/zero; exit 7"};
  options.output_bytes_max = 100;
  ASSERT_TRUE(Start(options).ok());
  ASSERT_TRUE(Exited());
  EXPECT_EQ(exit_->code, 7);
  EXPECT_EQ(exit_->output.size(), 100u);
}

TEST_F(ChildTest, TimeoutKillsTheWholeGroupAGrandchildToo) {
  // The grandchild holds the output pipe's write end and would sleep on for long. A busy machine
  // takes a while to come as far as the echo.
  const base::MonoTime start = Loop::Now();
  ASSERT_TRUE(Shell("sleep 999 & echo $!; wait", Duration::Seconds(1)).ok());
  ASSERT_TRUE(Exited());
  EXPECT_GE(Loop::Now() - start, Duration::Seconds(1));
  EXPECT_TRUE(exit_->timed_out);
  EXPECT_EQ(exit_->signal, SIGKILL);
  EXPECT_EQ(exit_->code, -1);
  const int grandchild = std::stoi(exit_->output);
  ASSERT_GT(grandchild, 1);
  EXPECT_TRUE(Gone(grandchild));
}

TEST_F(ChildTest, DestructionKillsTheGroupAndCallsNobody) {
  ASSERT_TRUE(Shell("sleep 999 & wait").ok());
  const int pid = child_->pid();
  child_.reset();
  EXPECT_TRUE(Gone(pid));
  EXPECT_EQ(exits_, 0);
}

TEST_F(ChildTest, MayBeDestroyedInsideItsCallback) {
  on_exit_ = [this] { child_.reset(); };
  ASSERT_TRUE(Shell("exit 0").ok());
  ASSERT_TRUE(Exited());
  EXPECT_EQ(exit_->code, 0);
}

TEST_F(ChildTest, SignalReachesTheGroupAndNobodyAfterTheExit) {
  ASSERT_TRUE(Shell("trap 'exit 5' TERM; echo ready; sleep 999 & wait").ok());
  RunFor(Duration::Millis(100));
  child_->Signal(SIGTERM);
  ASSERT_TRUE(Exited());
  child_->Signal(SIGKILL);  // its number may be somebody else's by now: must do nothing
  EXPECT_TRUE(exit_->code == 5 || exit_->signal == SIGTERM);
}

TEST_F(ChildTest, ChildInheritsNoSocketOrLoopDescriptor) {
  const auto [a, b] = testing::TcpPair();
  ASSERT_TRUE(Shell("ls -l /proc/self/fd").ok());
  ASSERT_TRUE(Exited());
  EXPECT_NE(exit_->output.find("/dev/null"), std::string::npos);
  EXPECT_EQ(exit_->output.find("socket:"), std::string::npos) << exit_->output;
  EXPECT_EQ(exit_->output.find("anon_inode"), std::string::npos) << exit_->output;
  close(a);
  close(b);
}

TEST_F(ChildTest, SigpipeIsIgnoredHereButNotInTheChild) {
  EXPECT_EQ(signal(SIGPIPE, SIG_IGN), SIG_IGN);
  ASSERT_TRUE(Shell("kill -PIPE $$; echo survived").ok());
  ASSERT_TRUE(Exited());
  EXPECT_EQ(exit_->signal, SIGPIPE);
}

class SignalsTest : public testing::LoopFixture {};

TEST_F(SignalsTest, WatchedSignalsArriveFromTheLoop) {
  std::vector<int> seen;
  auto signals =
      Signals::Watch(loop_, {SIGUSR1, SIGUSR2}, [&](int signal) { seen.push_back(signal); });
  raise(SIGUSR1);
  raise(SIGUSR2);
  EXPECT_TRUE(seen.empty());
  ASSERT_TRUE(RunUntil([&] { return seen.size() == 2; }));
  EXPECT_EQ(seen[0] + seen[1], SIGUSR1 + SIGUSR2);
}

TEST_F(SignalsTest, WatchMayBeDestroyedInsideItsCallback) {
  int seen = 0;
  std::unique_ptr<Signals> signals;
  signals = Signals::Watch(loop_, {SIGUSR1}, [&](int) {
    signals.reset();
    ++seen;
  });
  raise(SIGUSR1);
  ASSERT_TRUE(RunUntil([&] { return seen == 1; }));
}

}  // namespace
}  // namespace leasehold::loop

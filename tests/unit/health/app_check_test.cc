// AppCheck against real applications: sockets and commands of the test.
#include "health/app_check.h"

#include <gtest/gtest.h>
#include <signal.h>

#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "lib/raw_socket_fixture.h"
#include "lib/socket_peer.h"

namespace leasehold::health {
namespace {

using base::Duration;
using base::MonoTime;
using loop::Loop;
using testing::RawServer;
using testing::RawSocket;

class AppCheckTest : public testing::RawSocketFixture {
 protected:
  void SetUp() override {
    options_.interval = Duration::Millis(20);
    options_.timeout = Duration::Seconds(5);
    options_.unready_after = Duration::Seconds(60);
    app_ = std::make_unique<RawServer>(testing::TcpAddress("127.0.0.1", 0));
    address_ = app_->address();
  }
  void Start(const std::string& check) {
    options_.check = check;
    AppCheck::Callbacks callbacks;
    callbacks.on_change = [this](bool ready, const std::string& why) {
      verdicts_.emplace_back(ready, why);
    };
    callbacks.on_unready_too_long = [this] {
      ++too_long_;
      too_long_at_ = Loop::Now();
    };
    auto check_or = AppCheck::Start(loop_, options_, std::move(callbacks));
    ASSERT_TRUE(check_or.ok()) << check_or.error().message;
    check_ = std::move(check_or).value();
    EXPECT_TRUE(verdicts_.empty()) << "never from inside Start";
  }
  void StartTcp() { Start("tcp://" + address_.ToString()); }
  void StartHttp() { Start("http://" + address_.ToString() + "/healthz"); }
  void StopApp() { app_.reset(); }
  void StartApp() { app_ = std::make_unique<RawServer>(address_); }
  // Runs until there are n verdicts, answering each http request with `status` (0: not at all).
  bool Verdicts(size_t n, int status = 0) {
    return Eventually([&] {
      Serve(status);
      return verdicts_.size() >= n;
    });
  }
  void Serve(int status) {
    if (app_ == nullptr) {
      return;
    }
    while (auto socket = app_->Accept()) {
      ++checks_seen_;
      open_.push_back(std::move(socket));
    }
    std::erase_if(open_, [&](auto& socket) {
      socket->Poll();
      if (!socket->over() && status != 0 &&
          socket->received().find("\r\n\r\n") != std::string::npos) {
        socket->Send("HTTP/1.1 " + std::to_string(status) + " X\r\nContent-Length: 0\r\n\r\n");
        return true;
      }
      return socket->over();
    });
    most_open_ = std::max(most_open_, open_.size());
  }

  Options options_;
  std::unique_ptr<RawServer> app_;
  base::Address address_;
  std::vector<std::unique_ptr<RawSocket>> open_;
  int checks_seen_ = 0;
  size_t most_open_ = 0;
  std::vector<std::pair<bool, std::string>> verdicts_;
  int too_long_ = 0;
  MonoTime too_long_at_;
  std::unique_ptr<AppCheck> check_;
};

TEST_F(AppCheckTest, WithoutACheckTheApplicationIsReadyOnce) {
  Start("");
  EXPECT_FALSE(check_->ready());
  ASSERT_TRUE(Verdicts(1));
  RunFor(Duration::Millis(60));
  EXPECT_EQ(verdicts_.size(), 1u);
  EXPECT_TRUE(check_->ready());
}

TEST_F(AppCheckTest, AConnectIsEnoughForATcpCheck) {
  StartTcp();
  ASSERT_TRUE(Verdicts(1));
  EXPECT_TRUE(verdicts_[0].first);
  EXPECT_EQ(check_->last_error(), "");
}

TEST_F(AppCheckTest, AnApplicationThatNeverStartedIsUnreadyFromTheFirstVerdict) {
  StopApp();
  StartTcp();
  ASSERT_TRUE(Verdicts(1));
  EXPECT_FALSE(verdicts_[0].first);
  EXPECT_NE(verdicts_[0].second.find(address_.ToString()), std::string::npos)
      << verdicts_[0].second;
  EXPECT_FALSE(check_->ready());
  EXPECT_EQ(check_->last_error(), verdicts_[0].second);
}

TEST_F(AppCheckTest, OneFailureMakesUnreadyAndOneSuccessReady) {
  StartTcp();
  ASSERT_TRUE(Verdicts(1));
  StopApp();
  ASSERT_TRUE(Verdicts(2));
  EXPECT_FALSE(verdicts_[1].first);
  StartApp();
  ASSERT_TRUE(Verdicts(3));
  EXPECT_TRUE(verdicts_[2].first);
  EXPECT_EQ(verdicts_[2].second, "");
}

TEST_F(AppCheckTest, HttpAnswersFrom200To399AreReadyAndOthersAreNot) {
  StartHttp();
  ASSERT_TRUE(Verdicts(1, 204));
  EXPECT_TRUE(verdicts_[0].first);
  ASSERT_TRUE(Verdicts(2, 500));
  EXPECT_FALSE(verdicts_[1].first);
  EXPECT_NE(verdicts_[1].second.find("500"), std::string::npos);
  ASSERT_TRUE(Verdicts(3, 302));
  EXPECT_TRUE(verdicts_[2].first);
  ASSERT_TRUE(Verdicts(4, 404));
  EXPECT_FALSE(verdicts_[3].first);
}

TEST_F(AppCheckTest, AHangingCheckIsBoundedAndNeverJoinedByAnother) {
  options_.timeout = Duration::Millis(100);  // five intervals
  StartHttp();
  const MonoTime start = Loop::Now();
  ASSERT_TRUE(Verdicts(1));
  EXPECT_GE(Loop::Now() - start, Duration::Millis(100));
  EXPECT_FALSE(verdicts_[0].first);
  EXPECT_NE(verdicts_[0].second.find("100ms"), std::string::npos) << verdicts_[0].second;
  ASSERT_TRUE(Eventually([&] {
    Serve(0);
    return checks_seen_ >= 3;
  }));
  EXPECT_EQ(most_open_, 1u);
}

TEST_F(AppCheckTest, UnreadyTooLongIsToldOncePerSpell) {
  options_.unready_after = Duration::Millis(100);
  StartTcp();
  ASSERT_TRUE(Verdicts(1));
  StopApp();
  ASSERT_TRUE(Eventually([&] { return too_long_ == 1; }));
  RunFor(Duration::Millis(150));
  EXPECT_EQ(too_long_, 1);
  StartApp();
  ASSERT_TRUE(Verdicts(3));
  StopApp();
  EXPECT_TRUE(Eventually([&] { return too_long_ == 2; }));
}

TEST_F(AppCheckTest, UnreadyTooLongCountsFromTheStartOfTheLastSuccessfulCheck) {
  options_.interval = Duration::Millis(200);
  options_.timeout = Duration::Millis(200);
  options_.unready_after = Duration::Millis(1000);
  StartHttp();
  ASSERT_TRUE(Verdicts(1, 200));
  const MonoTime after_success = Loop::Now();
  // It hangs from now on: the first failure is known about 400 ms after the last success began,
  // and 1000 ms from there would be 1400.
  ASSERT_TRUE(Eventually([&] {
    Serve(0);
    return too_long_ == 1;
  }));
  EXPECT_LE(too_long_at_, after_success + Duration::Millis(1300));
  EXPECT_GE(too_long_at_, after_success + Duration::Millis(800));
}

TEST_F(AppCheckTest, AShortSpellIsNotTooLong) {
  options_.unready_after = Duration::Seconds(1);
  StartTcp();
  ASSERT_TRUE(Verdicts(1));
  StopApp();
  ASSERT_TRUE(Verdicts(2));
  StartApp();
  ASSERT_TRUE(Verdicts(3));
  RunFor(Duration::Millis(1100));
  EXPECT_EQ(too_long_, 0);
}

TEST_F(AppCheckTest, ACommandIsReadyByItsExitCode) {
  testing::TempDir dir;
  const std::string flag = dir.File("ready");
  Start("exec:sh -c 'test -e " + flag + " || { echo not yet; exit 7; }'");
  ASSERT_TRUE(Verdicts(1));
  EXPECT_FALSE(verdicts_[0].first);
  EXPECT_NE(verdicts_[0].second.find("exit code 7: not yet"), std::string::npos)
      << verdicts_[0].second;
  std::ofstream(flag) << "x";
  ASSERT_TRUE(Verdicts(2));
  EXPECT_TRUE(verdicts_[1].first);
}

TEST_F(AppCheckTest, ACommandThatDoesNotExistIsUnreadyWithItsName) {
  Start("exec:/nonexistent/leasehold-check");
  ASSERT_TRUE(Verdicts(1));
  EXPECT_FALSE(verdicts_[0].first);
  EXPECT_NE(verdicts_[0].second.find("/nonexistent/leasehold-check"), std::string::npos)
      << verdicts_[0].second;
}

TEST_F(AppCheckTest, AHangingCommandIsKilledWithItsWholeGroup) {
  testing::TempDir dir;
  const std::string pid_file = dir.File("pid");
  options_.timeout = Duration::Seconds(1);
  options_.interval = Duration::Seconds(60);
  // The shell's child is not its own group leader: it must go with the group.
  Start("exec:sh -c 'sleep 999 & echo $! >" + pid_file + "; wait'");
  ASSERT_TRUE(Verdicts(1));
  EXPECT_FALSE(verdicts_[0].first);
  EXPECT_NE(verdicts_[0].second.find("1s"), std::string::npos) << verdicts_[0].second;
  int pid = 0;
  std::ifstream(pid_file) >> pid;
  ASSERT_GT(pid, 0);
  EXPECT_TRUE(Eventually([&] {
    // Gone, or a zombie that nobody reaps where process 1 does not.
    std::ifstream stat("/proc/" + std::to_string(pid) + "/stat");
    std::string text;
    std::getline(stat, text);
    return text.empty() || text.find(") Z ") != std::string::npos;
  }));
}

TEST_F(AppCheckTest, ACheckThatIsDestroyedEndsWhatItBegan) {
  StartHttp();
  ASSERT_TRUE(Eventually([&] {
    Serve(0);
    return !open_.empty();
  }));
  check_.reset();
  EXPECT_TRUE(Eventually([&] {
    Serve(0);
    return open_.empty();
  }));
  EXPECT_TRUE(verdicts_.empty());
}

TEST_F(AppCheckTest, AWrongCheckIsAnErrorAtStart) {
  options_.check = "https://127.0.0.1/";
  EXPECT_FALSE(AppCheck::Start(loop_, options_, {}).ok());
}

}  // namespace
}  // namespace leasehold::health

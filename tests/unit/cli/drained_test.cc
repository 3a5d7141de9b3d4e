// `leasehold drained` against a scripted signal socket: the greeting names the draining token,
// events that come between are passed over, refusals keep their meaning in the exit code.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "cli/cli.h"
#include "loop/listener.h"
#include "loop/stream.h"

namespace leasehold::cli {
namespace {

constexpr const char* kHello =
    R"({"event":"hello","leases":[{"lease":"a","state":"active","token":"3"},)"
    R"({"lease":"orders","state":"draining","token":"12"}]})";

class DrainedTest : public ::testing::Test, public loop::StreamListener {
 protected:
  void SetUp() override {
    char dir[] = "/tmp/leasehold-drained-XXXXXX";
    ASSERT_NE(mkdtemp(dir), nullptr);
    dir_ = dir;
    path_ = dir_ + "/s.sock";
    base::Address address;
    address.kind = base::Address::Kind::kUnix;
    address.path = path_;
    auto listener = loop::Listener::Open(
        loop_, address, {},
        [this](int fd, std::string peer) {
          stream_ = loop::AdoptSocket(loop_, fd, std::move(peer));
          stream_->SetListener(this);
          stream_->StartReading();
          if (!hello_.empty()) stream_->Write(hello_ + "\n");
        },
        [](const base::Error&) {});
    ASSERT_TRUE(listener.ok()) << listener.error().message;
    listener_ = std::move(listener).value();
  }
  void TearDown() override {
    stream_.reset();
    listener_.reset();
    rmdir(dir_.c_str());
  }

  int Run(std::vector<std::string> arguments) {
    arguments.insert(arguments.end(), {"--socket", path_});
    const ParsedCommandLine parsed = ParseCommandLine(arguments);
    EXPECT_TRUE(parsed.command.has_value()) << parsed.err;
    Console console{out_, err_, false, {}};
    return Dispatch(*parsed.command, loop_, console);
  }

  void OnData(std::span<const char> bytes) override {
    received_.append(bytes.data(), bytes.size());
    if (!answer_.empty() && received_.ends_with("\n")) stream_->Write(answer_ + "\n");
    if (answer_.empty()) stream_.reset();
  }
  void OnEnd() override {}
  void OnDrained() override {}
  void OnClosed(const base::Error&) override {}

  loop::Loop loop_;
  std::string dir_;
  std::string path_;
  std::unique_ptr<loop::Listener> listener_;
  std::unique_ptr<loop::Stream> stream_;
  std::string hello_ = kHello;
  std::string answer_ =
      R"({"op":"drained","ok":true,"lease":"orders","token":"12","waiting_for":1})";
  std::string received_;
  std::ostringstream out_;
  std::ostringstream err_;
};

TEST_F(DrainedTest, TakesLeaseAndTokenFromTheGreeting) {
  EXPECT_EQ(Run({"drained"}), kOk) << err_.str();
  EXPECT_EQ(received_, "{\"op\":\"drained\",\"lease\":\"orders\",\"token\":\"12\"}\n");
  EXPECT_EQ(out_.str(), "drained; still waiting for 1\n");
}

TEST_F(DrainedTest, SpeaksForARegisteredName) {
  EXPECT_EQ(Run({"drained", "--name", "worker"}), kOk) << err_.str();
  EXPECT_EQ(received_,
            "{\"op\":\"drained\",\"lease\":\"orders\",\"token\":\"12\",\"name\":\"worker\"}\n");
}

TEST_F(DrainedTest, ANameThatNobodyRegisteredIsAFailure) {
  answer_ = R"({"op":"drained","ok":false,"error":"not_registered","detail":"nobody is \"w\""})";
  EXPECT_EQ(Run({"drained", "--name", "w"}), kFailed);
  EXPECT_NE(err_.str().find("nobody is \"w\""), std::string::npos) << err_.str();
}

TEST_F(DrainedTest, ARefusedConnectionSaysWhyAndIsNotTakenForAGreeting) {
  hello_ = R"({"event":"error","code":"refused","message":"user id 7 is not in allow_uids"})";
  EXPECT_EQ(Run({"drained"}), kFailed);
  EXPECT_NE(err_.str().find("user id 7"), std::string::npos) << err_.str();
}

TEST_F(DrainedTest, AnErrorLineSaysWhy) {
  answer_ = R"({"event":"error","code":"invalid","message":"\"name\" must be a word"})";
  EXPECT_EQ(Run({"drained", "--name", "a b"}), kFailed);
  EXPECT_NE(err_.str().find("must be a word"), std::string::npos) << err_.str();
}

TEST_F(DrainedTest, PassesOverEventsThatComeBeforeTheAnswer) {
  answer_ = R"({"event":"gate.draining","lease":"orders"})"
            "\n" +
            answer_;
  EXPECT_EQ(Run({"drained", "orders", "--token", "12", "--json"}), kOk) << err_.str();
  EXPECT_NE(out_.str().find("\"ok\":true"), std::string::npos) << out_.str();
}

TEST_F(DrainedTest, ALossIsToldAsNotTheHolder) {
  answer_ = R"({"op":"drained","ok":false,"error":"not_holder","detail":"lost under token 9"})";
  EXPECT_EQ(Run({"drained", "orders", "--token", "9"}), kNotHolder);
  EXPECT_NE(err_.str().find("lost under token 9"), std::string::npos) << err_.str();
  EXPECT_NE(received_.find("\"token\":\"9\""), std::string::npos) << received_;
}

TEST_F(DrainedTest, WithoutADrainThereIsNothingToSay) {
  hello_ = R"({"event":"hello","leases":[{"lease":"orders","state":"active","token":"3"}]})";
  EXPECT_EQ(Run({"drained"}), kFailedPrecondition);
  EXPECT_NE(err_.str().find("no lease draining now"), std::string::npos) << err_.str();
  EXPECT_EQ(received_, "");
}

TEST_F(DrainedTest, AConnectionThatEndsIsNotReachable) {
  answer_.clear();
  EXPECT_EQ(Run({"drained"}), kNotReachable);
}

TEST_F(DrainedTest, ASilentSocketIsATimeOut) {
  hello_.clear();
  EXPECT_EQ(Run({"drained", "--timeout", "100ms"}), kTimedOut);
}

TEST_F(DrainedTest, ASocketThatIsNotThereIsNotReachable) {
  path_ += "x";
  EXPECT_EQ(Run({"drained"}), kNotReachable);
}

TEST_F(DrainedTest, WithoutSocketOrConfigurationItIsAUsageError) {
  const ParsedCommandLine parsed = ParseCommandLine({"drained"});
  ASSERT_TRUE(parsed.command.has_value());
  Console console{out_, err_, false, {}};
  EXPECT_EQ(Dispatch(*parsed.command, loop_, console), kUsage);
}

}  // namespace
}  // namespace leasehold::cli

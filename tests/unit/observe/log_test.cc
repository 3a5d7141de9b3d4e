#include "observe/log.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <string>

#include "observe/log_line.h"

namespace leasehold::observe {
namespace {

class LogTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_EQ(pipe2(pipe_, O_CLOEXEC | O_NONBLOCK), 0); }
  void TearDown() override {
    close(pipe_[0]);
    close(pipe_[1]);
  }
  std::unique_ptr<Log> Open(LogFormat format, LogLevel level = LogLevel::kInfo) {
    return Log::ToDescriptor({.format = format, .level = level}, pipe_[1]);
  }
  // All that is in the pipe now: what a process killed at this moment would have left.
  std::string Written() {
    std::string out;
    char buffer[4096];
    for (ssize_t n = 0; (n = read(pipe_[0], buffer, sizeof buffer)) > 0;) {
      out.append(buffer, static_cast<size_t>(n));
    }
    return out;
  }
  static size_t Lines(const std::string& text) {
    return static_cast<size_t>(std::count(text.begin(), text.end(), '\n'));
  }
  // Fills the pipe; a reader that has gone to sleep.
  void FillPipe() {
    const std::string block(4096, 'x');
    while (write(pipe_[1], block.data(), block.size()) > 0) {
    }
  }
  // As the inherited standard error usually is.
  void MakeWriterBlocking() { ASSERT_EQ(fcntl(pipe_[1], F_SETFL, 0), 0); }

  int pipe_[2] = {-1, -1};
};

TEST_F(LogTest, ALogfmtLineHasStampLevelEventMessageAndFieldsInOrder) {
  Open(LogFormat::kLogfmt)
      ->Info("lease.acquired", "holding now", {{"lease", "orders"}, {"token", uint64_t{12}}});
  const std::string line = Written();
  EXPECT_EQ(line.substr(0, 5), "ts=20") << line;
  EXPECT_EQ(line.substr(27),
            " level=info event=lease.acquired msg=\"holding now\" lease=orders token=12\n")
      << line;
}

TEST_F(LogTest, AJsonLineIsOneObject) {
  Open(LogFormat::kJson)->Warn("gate.listen", "say \"hi\"", {{"gate", "web"}, {"n", 3}});
  const std::string line = Written();
  EXPECT_EQ(line.substr(0, 9), "{\"ts\":\"20") << line;
  EXPECT_EQ(
      line.substr(line.find(",\"level\"")),
      ",\"level\":\"warn\",\"event\":\"gate.listen\",\"msg\":\"say \\\"hi\\\"\",\"gate\":\"web\","
      "\"n\":3}\n");
}

TEST_F(LogTest, OneEventIsOneLineWhateverBytesItHolds) {
  const std::string nasty =
      "a\nb\r\nc\x0b\x0c\x1b[31m\xc2\x85\xe2\x80\xa8\xe2\x80\xa9\x7f\xff d=\"1\" level=error";
  for (const LogFormat format : {LogFormat::kLogfmt, LogFormat::kJson}) {
    Open(format)->Info("x\ny", nasty, {{"key\n", nasty}, {"empty", ""}});
    const std::string line = Written();
    EXPECT_EQ(Lines(line), 1U) << line;
    for (const char* breaker : {"\r", "\x0b", "\x0c", "\x1b", "\x7f", "\xc2\x85", "\xe2\x80\xa8"}) {
      EXPECT_EQ(line.find(breaker), std::string::npos) << line;
    }
  }
}

TEST_F(LogTest, AValueCannotForgeAnotherField) {
  Open(LogFormat::kLogfmt)->Info("e", "m", {{"peer", "x level=error"}, {"q", "a=b"}});
  EXPECT_NE(Written().find("peer=\"x level=error\" q=\"a=b\"\n"), std::string::npos);
}

TEST_F(LogTest, ALineIsCutAtOnePipeBufferAndSaysSo) {
  for (const LogFormat format : {LogFormat::kLogfmt, LogFormat::kJson}) {
    Open(format)->Info("e", std::string(3000, '\x01'), {{"a", std::string(9000, 'y')}, {"b", 1}});
    const std::string line = Written();
    EXPECT_EQ(Lines(line), 1U);
    EXPECT_LE(line.size(), kLineBytesMax);
    EXPECT_NE(line.find(format == LogFormat::kJson ? ",\"cut\":true}\n" : " cut=true\n"),
              std::string::npos)
        << line;
  }
}

TEST_F(LogTest, ALineJustLongEnoughIsNotCut) {
  const std::string value(3800, 'v');
  Open(LogFormat::kLogfmt)->Info("e", "m", {{"v", value}});
  const std::string line = Written();
  EXPECT_NE(line.find(value + "\n"), std::string::npos);
  EXPECT_EQ(line.find("cut="), std::string::npos);
}

TEST_F(LogTest, LinesBelowTheLevelAreNotWritten) {
  const auto log = Open(LogFormat::kLogfmt, LogLevel::kWarn);
  log->Info("e", "no");
  log->Debug("e", "no");
  EXPECT_EQ(Written(), "");
  log->Error("e", "yes");
  EXPECT_EQ(Lines(Written()), 1U);
  EXPECT_FALSE(log->Enabled(LogLevel::kInfo));
}

TEST_F(LogTest, AReaderThatSleepsCostsLinesAndNotTheLoop) {
  const auto log = Open(LogFormat::kLogfmt);
  FillPipe();
  MakeWriterBlocking();
  // Would hang here for ever if the log waited for the reader.
  for (int i = 0; i < 3; ++i) log->Info("e", "lost");
  Written();
  log->Info("e", "back");
  const std::string lines = Written();
  EXPECT_NE(lines.find("event=log.dropped"), std::string::npos) << lines;
  EXPECT_NE(lines.find("lines=3\n"), std::string::npos) << lines;
  EXPECT_NE(lines.find("msg=back\n"), std::string::npos) << lines;
}

TEST_F(LogTest, ASilentLogWritesNothing) {
  const auto log = Log::Silent();
  log->Error("e", "nobody hears this");
  EXPECT_FALSE(log->Enabled(LogLevel::kError));
}

TEST_F(LogTest, ADurationFieldIsText) {
  Open(LogFormat::kJson)->Info("e", "m", {{"grace", base::Duration::Millis(250)}});
  EXPECT_NE(Written().find("\"grace\":\"250ms\"}"), std::string::npos);
}

TEST_F(LogTest, ARateLimitLetsOneThroughPerIntervalAndCountsTheRest) {
  RateLimit limit(base::Duration::Seconds(1));
  const auto start = base::MonoTime::FromNanos(1);
  uint64_t suppressed = 99;
  EXPECT_TRUE(limit.Allow(start, &suppressed));
  EXPECT_EQ(suppressed, 0U);
  EXPECT_FALSE(limit.Allow(start, &suppressed));
  EXPECT_FALSE(limit.Allow(start + base::Duration::Millis(999), &suppressed));
  EXPECT_TRUE(limit.Allow(start + base::Duration::Seconds(1), &suppressed));
  EXPECT_EQ(suppressed, 2U);
}

}  // namespace
}  // namespace leasehold::observe

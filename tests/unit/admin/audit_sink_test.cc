// Where the audit's lines go: whole, in order, after a rotation too; and a file that takes none
// stops nobody.
#include "admin/audit_sink.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "admin/audit_file.h"
#include "lib/loop_fixture.h"

namespace leasehold::admin {
namespace {

namespace fs = std::filesystem;

class AuditSinkTest : public testing::LoopFixture {
 protected:
  void SetUp() override {
    char path[] = "/tmp/leasehold-audit-XXXXXX";
    ASSERT_NE(mkdtemp(path), nullptr);
    directory_ = path;
    file_ = directory_ + "/audit.jsonl";
  }
  void TearDown() override {
    sink_.reset();
    fs::remove_all(directory_);
  }
  base::Status Open(const std::string& file) {
    auto sink = AuditSink::Open(loop_, file, "n1", metrics_, *log_);
    if (!sink) return sink.error();
    sink_ = std::move(*sink);
    return {};
  }
  bool Close(base::Duration limit = kLimit) {
    bool closed = false;
    sink_->Close(limit, [&] { closed = true; });
    EXPECT_FALSE(closed) << "called back from inside the call";
    return RunUntil([&] { return closed; });
  }
  static std::string Read(const std::string& path) {
    std::ifstream in(path);
    std::stringstream text;
    text << in.rdbuf();
    return text.str();
  }
  uint64_t Dropped() {
    return metrics_.AddCounter("leasehold_audit_dropped_total", "", {}).value();
  }

  std::string directory_;
  std::string file_;
  observe::Metrics metrics_;
  std::unique_ptr<observe::Log> log_ = observe::Log::Silent();
  std::unique_ptr<AuditSink> sink_;
};

TEST_F(AuditSinkTest, LinesAreAppendedInOrder) {
  std::ofstream(file_) << "before\n";
  ASSERT_TRUE(Open(file_).ok());
  std::string expected = "before\n";
  for (int i = 0; i < 500; ++i) {
    sink_->Write("line " + std::to_string(i));
    expected += "line " + std::to_string(i) + "\n";
  }
  ASSERT_TRUE(Close());
  EXPECT_EQ(Read(file_), expected);
  EXPECT_EQ(Dropped(), 0u);
}

TEST_F(AuditSinkTest, AFileThatWasMovedAwayIsOpenedAnew) {
  ASSERT_TRUE(Open(file_).ok());
  sink_->Write("one");
  ASSERT_TRUE(RunUntil([&] { return Read(file_) == "one\n"; }));
  fs::rename(file_, file_ + ".1");
  sink_->Write("two");
  ASSERT_TRUE(RunUntil([&] { return fs::exists(file_) && Read(file_) == "two\n"; }));
  fs::remove(file_);
  sink_->Write("three");
  ASSERT_TRUE(RunUntil([&] { return fs::exists(file_) && Read(file_) == "three\n"; }));
  EXPECT_EQ(Read(file_ + ".1"), "one\n");
}

TEST_F(AuditSinkTest, AFileThatWasCutIsAppendedToFromItsStart) {
  ASSERT_TRUE(Open(file_).ok());
  sink_->Write("one");
  ASSERT_TRUE(RunUntil([&] { return Read(file_) == "one\n"; }));
  fs::resize_file(file_, 0);
  sink_->Write("two");
  ASSERT_TRUE(Close());
  EXPECT_EQ(Read(file_), "two\n");
}

TEST_F(AuditSinkTest, AFullDiskCostsLinesAndNothingElse) {
  ASSERT_TRUE(Open("/dev/full").ok());
  for (int i = 0; i < 10; ++i) sink_->Write("line");
  ASSERT_TRUE(RunUntil([&] { return Dropped() == 10; }));
  ASSERT_TRUE(Close());
}

TEST_F(AuditSinkTest, AReaderThatHasStoppedCostsLinesAndNotTheLoopsTime) {
  ASSERT_EQ(mkfifo(file_.c_str(), 0600), 0);
  const int reader = open(file_.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  ASSERT_GE(reader, 0);
  ASSERT_TRUE(Open(file_).ok());
  const base::MonoTime start = loop::Loop::Now();
  const std::string line(4000, 'x');
  for (int i = 0; i < 2000; ++i) sink_->Write(line);  // 8 MB; the pipe takes 64 KiB
  EXPECT_LT(loop::Loop::Now() - start, base::Duration::Millis(500));
  EXPECT_GT(Dropped(), 0u) << "the queue is bounded";
  EXPECT_TRUE(Close(base::Duration::Millis(100)));
  EXPECT_LT(loop::Loop::Now() - start, base::Duration::Seconds(2));
  close(reader);  // the worker's writes fail now
}

TEST_F(AuditSinkTest, AFileThatCannotBeOpenedIsRefusedBySentence) {
  const base::Status status = Open(directory_ + "/none/audit.jsonl");
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().message,
            "audit.file = \"" + directory_ +
                "/none/audit.jsonl\" cannot be opened for appending (No such file or directory); "
                "give a file in a directory that exists and that this user may write, or "
                "\"stdout\"");
  EXPECT_FALSE(Open(directory_).ok()) << "a directory";
  ASSERT_EQ(mkfifo(file_.c_str(), 0600), 0);
  EXPECT_FALSE(Open(file_).ok()) << "a pipe that nobody reads must not block the start";
}

TEST_F(AuditSinkTest, ATornLineIsEndedBeforeTheNext) {
  // A pipe with one page of room takes part of a line that is longer than PIPE_BUF.
  ASSERT_EQ(mkfifo(file_.c_str(), 0600), 0);
  const int reader = open(file_.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  ASSERT_GE(reader, 0);
  ASSERT_EQ(fcntl(reader, F_SETPIPE_SZ, 4096), 4096);
  const auto file = AuditFile::Open(file_);
  ASSERT_TRUE(file.ok());
  const auto torn = (*file)->Write({std::string(6000, 'x') + "\n"});
  EXPECT_EQ(torn.failed, 1u);
  std::string got(8192, '\0');
  ASSERT_EQ(read(reader, got.data(), got.size()), 4096);
  EXPECT_EQ((*file)->Write({"whole\n"}).failed, 0u);
  const ssize_t n = read(reader, got.data(), got.size());
  ASSERT_GT(n, 0);
  EXPECT_EQ(got.substr(0, static_cast<size_t>(n)), "\nwhole\n");
  close(reader);
}

TEST_F(AuditSinkTest, WhatAnEarlierProcessOfTheNodeWroteIsRemembered) {
  const auto entry = [](const std::string& record, const std::string& lease, int token,
                        const std::string& process, const std::string& writer) {
    return "{\"record\":\"" + record + "\",\"lease\":\"" + lease + "\",\"token\":\"" +
           std::to_string(token) + "\",\"holder\":{\"node_id\":\"x\",\"process_id\":\"" + process +
           "\"},\"recorded_by\":{\"node_id\":\"" + writer + "\",\"process_id\":\"p\"}}\n";
  };
  std::ofstream(file_) << entry("lease_acquired", "orders", 1, "p1", "n1")
                       << entry("lease_failover", "orders", 2, "p2", "n1") << "not JSON\n{}\n[]\n"
                       << entry("lease_lost", "orders", 9, "p9", "n1")
                       << entry("lease_handoff", "orders", 3, "p3", "n2")
                       << entry("lease_acquired", "mail", 7, "p7", "n1") << "{\"torn";
  ASSERT_TRUE(Open(file_).ok());
  const auto& remembered = sink_->remembered();
  ASSERT_EQ(remembered.size(), 2u);
  EXPECT_EQ(remembered.at("orders").token, 2u);
  EXPECT_EQ(remembered.at("orders").process_id, "p2");
  EXPECT_EQ(remembered.at("mail").token, 7u);
}

TEST_F(AuditSinkTest, OnlyTheEndOfALongFileIsReadAndTornLinesArePassedOver) {
  {
    std::ofstream out(file_);
    for (int i = 0; i < 100000; ++i) out << "{\"lease\":\"orders\",\"x\":" << i << "}\n";
  }
  const auto file = AuditFile::Open(file_);
  ASSERT_TRUE(file.ok());
  const std::string tail = (*file)->Tail();
  EXPECT_LE(tail.size(), 64u * 1024);
  EXPECT_GT(tail.size(), 60u * 1024);
  EXPECT_EQ(tail.substr(tail.rfind('\n') + 1), "{\"lease\":\"orders\",\"x\":99999}");
}

}  // namespace
}  // namespace leasehold::admin

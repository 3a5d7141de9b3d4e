#include "loop/file_watch.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "lib/loop_fixture.h"
#include "lib/socket_peer.h"

namespace leasehold::loop {
namespace {

using base::Duration;

class FileWatchTest : public testing::LoopFixture {
 protected:
  void SetUp() override {
    auto watch = FileWatch::Open(loop_, dir_.path(), [this](std::string_view name, bool closed) {
      seen_.emplace_back(name, closed);
      if (on_change_) on_change_();
    });
    ASSERT_TRUE(watch.ok()) << watch.error().message;
    watch_ = std::move(*watch);
  }
  void TearDown() override { watch_.reset(); }
  bool Saw(const std::string& name, bool closed) {
    return RunUntil([&] {
      for (const auto& entry : seen_) {
        if (entry == std::pair(name, closed)) return true;
      }
      return false;
    });
  }

  testing::TempDir dir_;
  std::unique_ptr<FileWatch> watch_;
  std::vector<std::pair<std::string, bool>> seen_;
  std::function<void()> on_change_;
};

TEST_F(FileWatchTest, SeesCreationAndTheCloseAfterAWrite) {
  std::ofstream(dir_.File("a")) << "x";
  EXPECT_TRUE(Saw("a", false));
  EXPECT_TRUE(Saw("a", true));
}

TEST_F(FileWatchTest, SeesARenameOntoAFileAndADeletion) {
  std::ofstream(dir_.File("new")) << "x";
  ASSERT_TRUE(Saw("new", true));
  ASSERT_EQ(std::rename(dir_.File("new").c_str(), dir_.File("record").c_str()), 0);
  EXPECT_TRUE(Saw("record", false));
  seen_.clear();
  ASSERT_EQ(unlink(dir_.File("record").c_str()), 0);
  EXPECT_TRUE(Saw("record", false));
}

TEST_F(FileWatchTest, ReadingAFileIsNoChange) {
  std::ofstream(dir_.File("a")) << "x";
  ASSERT_TRUE(Saw("a", true));
  seen_.clear();
  std::string text;
  std::ifstream(dir_.File("a")) >> text;
  RunFor(Duration::Millis(20));
  EXPECT_TRUE(seen_.empty());
}

// What proof of death stands on: the kernel closes a killed writer's files.
TEST_F(FileWatchTest, SeesTheCloseByAKilledWriter) {
  int ready[2];
  ASSERT_EQ(pipe(ready), 0);
  const std::string path = dir_.File("locked");
  const pid_t writer = fork();
  if (writer == 0) {
    const int fd = open(path.c_str(), O_CREAT | O_RDWR, 0600);
    (void)!write(ready[1], fd >= 0 ? "y" : "n", 1);
    pause();
    _exit(0);
  }
  char answer = 0;
  ASSERT_EQ(read(ready[0], &answer, 1), 1);
  ASSERT_EQ(answer, 'y');
  ASSERT_TRUE(Saw("locked", false));
  EXPECT_EQ(seen_.size(), 1u);
  kill(writer, SIGKILL);
  EXPECT_TRUE(Saw("locked", true));
  waitpid(writer, nullptr, 0);
  close(ready[0]);
  close(ready[1]);
}

TEST_F(FileWatchTest, ManyChangesInOneBurstAreAllSeen) {
  for (int i = 0; i < 500; ++i) std::ofstream(dir_.File("file-" + std::to_string(i))) << i;
  EXPECT_TRUE(Saw("file-499", true));
  size_t closed = 0;
  for (const auto& entry : seen_) closed += entry.second ? 1 : 0;
  EXPECT_EQ(closed, 500u);
}

TEST_F(FileWatchTest, RemovalOfTheDirectoryIsAChangeWithoutAName) {
  ASSERT_EQ(rmdir(dir_.path().c_str()), 0);
  EXPECT_TRUE(Saw("", false));
}

TEST_F(FileWatchTest, MayBeDestroyedInsideItsCallback) {
  on_change_ = [this] { watch_.reset(); };
  std::ofstream(dir_.File("a")) << "x";
  ASSERT_TRUE(RunUntil([this] { return !seen_.empty(); }));
  RunFor(Duration::Millis(5));
  EXPECT_EQ(seen_.size(), 1u);
}

TEST_F(FileWatchTest, DirectoryThatIsMissingOrAFileIsAnErrorNamingIt) {
  std::ofstream(dir_.File("file")) << "x";
  for (const char* name : {"missing", "file"}) {
    const std::string path = dir_.File(name);
    auto watch = FileWatch::Open(loop_, path, [](std::string_view, bool) {});
    ASSERT_FALSE(watch.ok());
    EXPECT_NE(watch.error().message.find(path), std::string::npos);
  }
}

}  // namespace
}  // namespace leasehold::loop

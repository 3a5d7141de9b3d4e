// StateDir: what is remembered across restarts, and what proves a predecessor dead
// (DESIGN 2.1, 2.6).

#include "app/state_dir.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <unistd.h>

#include <fstream>

#include "lib/loop_fixture.h"
#include "lib/socket_peer.h"

namespace leasehold::app {
namespace {

class StateDirTest : public testing::LoopFixture {
 protected:
  std::string Dir() const { return temp_.path() + "/state"; }
  std::unique_ptr<StateDir> MustOpen(const std::string& process_id) {
    auto opened = StateDir::Open(loop_, Dir(), process_id, *log_);
    EXPECT_TRUE(opened.ok()) << opened.error().message;
    return opened.ok() ? std::move(*opened) : nullptr;
  }
  base::Error MustFail(const std::string& process_id) {
    auto opened = StateDir::Open(loop_, Dir(), process_id, *log_);
    EXPECT_FALSE(opened.ok());
    return opened.ok() ? base::Error{} : opened.error();
  }
  void WriteNote(const std::string& text) { std::ofstream(Dir() + "/state.json") << text; }

  testing::TempDir temp_;
  std::unique_ptr<observe::Log> log_ = observe::Log::Silent();
};

TEST_F(StateDirTest, AFirstStartKnowsNothingAndProvesNothing) {
  auto state = MustOpen("p1");
  EXPECT_EQ(state->MemoryOf("orders").highest_token, 0u);
  EXPECT_FALSE(state->ProvenDead("p1"));
  EXPECT_FALSE(state->ProvenDead("p0"));
}

TEST_F(StateDirTest, ASuccessorProvesItsPredecessorsDead) {
  MustOpen("p1").reset();
  MustOpen("p2").reset();
  auto state = MustOpen("p3");
  EXPECT_TRUE(state->ProvenDead("p1"));
  EXPECT_TRUE(state->ProvenDead("p2"));
  EXPECT_FALSE(state->ProvenDead("p3"));
}

TEST_F(StateDirTest, ALivingHolderOfTheDirectoryIsNeverProvenDead) {
  auto living = MustOpen("p1");
  const base::Error error = MustFail("p2");
  EXPECT_NE(error.message.find("in use by another living sidecar"), std::string::npos)
      << error.message;
}

TEST_F(StateDirTest, TheHighestTokenSeenSurvivesARestart) {
  auto state = MustOpen("p1");
  state->Remember("orders", 7, base::Duration::Seconds(10));
  state->Remember("orders", 9, base::Duration::Seconds(20));
  state->Remember("orders", 8, base::Duration::Seconds(20));
  EXPECT_TRUE(RunUntil(
      [&] {
        std::ifstream note(Dir() + "/state.json");
        return std::string(std::istreambuf_iterator<char>(note), {}).find("\"9\"") !=
               std::string::npos;
      },
      base::Duration::Seconds(5)));
  state.reset();
  auto next = MustOpen("p2");
  EXPECT_EQ(next->MemoryOf("orders").highest_token, 9u);
  EXPECT_EQ(next->MemoryOf("orders").last_ttl, base::Duration::Seconds(20));
}

// Its token could not be outbid by anybody, and its TTL was waited for after a restart.
TEST_F(StateDirTest, NothingIsNotedOfARecordWhoseTtlIsOutOfRange) {
  auto state = MustOpen("p1");
  state->Remember("orders", 7, base::Duration::Seconds(10));
  state->Remember("orders", 900, base::Duration::Zero());
  state->Remember("orders", 900, base::Duration::Millis(-5));
  state->Remember("orders", 900, base::Duration::Seconds(365 * 24 * 3600));
  EXPECT_EQ(state->MemoryOf("orders").highest_token, 7u);
  EXPECT_EQ(state->MemoryOf("orders").last_ttl, base::Duration::Seconds(10));
}

TEST_F(StateDirTest, AnUnreadableNoteIsRefusedAndLeftAlone) {
  MustOpen("p1").reset();
  WriteNote("{ torn");
  EXPECT_NE(MustFail("p2").message.find("state.json"), std::string::npos);
  std::ifstream note(Dir() + "/state.json");
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(note), {}), "{ torn");
}

TEST_F(StateDirTest, ANoteWithoutTokensIsRefused) {
  MustOpen("p1").reset();
  WriteNote(R"({"format":1,"process_id":"p1","former":[],"leases":{"orders":{}}})");
  EXPECT_NE(MustFail("p2").message.find("highest_token"), std::string::npos);
}

TEST_F(StateDirTest, AMissingParentIsAnErrorThatNamesThePath) {
  auto opened = StateDir::Open(loop_, temp_.path() + "/no/such", "p1", *log_);
  ASSERT_FALSE(opened.ok());
  EXPECT_NE(opened.error().message.find("/no/such"), std::string::npos);
}

}  // namespace
}  // namespace leasehold::app

// What `check` says of [exec], and what it fills in.
#include <gtest/gtest.h>

#include <string>

#include "config/config.h"

namespace leasehold::config {
namespace {

class ExecConfigTest : public ::testing::Test {
 protected:
  static LoadResult Load(const std::string& more, const std::string& grace = "20s") {
    return LoadText(
        "[store]\nfile.dir = \"/var/lib/test\"\n[[lease]]\nname = \"orders\"\n"
        "step_down_grace = \"" +
            grace + "\"\n" + more,
        "test.conf", [](const char*) -> const char* { return nullptr; });
  }
  static std::string Error(const std::string& more) {
    const LoadResult result = Load(more);
    return result.errors.empty() ? "" : result.errors[0].ToString();
  }
};

TEST_F(ExecConfigTest, NeitherGateNorSectionIsNeededAndTheOnlyLeaseIsTaken) {
  const LoadResult loaded = Load("");
  ASSERT_TRUE(loaded.errors.empty()) << loaded.errors[0].ToString();
  EXPECT_EQ(loaded.config.exec.lease, "orders");
  EXPECT_EQ(loaded.config.exec.stop_timeout, base::Duration::Seconds(5));
}

TEST_F(ExecConfigTest, AStopTimeoutThatWasNotGivenIsAtMostHalfOfTheGrace) {
  EXPECT_EQ(Load("", "4s").config.exec.stop_timeout, base::Duration::Seconds(2));
}

TEST_F(ExecConfigTest, AStopTimeoutBeyondTheGraceIsAnError) {
  EXPECT_NE(Error("[exec]\nstop_timeout = \"21s\"\n").find("step_down_grace = 20s"),
            std::string::npos);
  EXPECT_EQ(Error("[exec]\nstop_timeout = \"20s\"\n"), "");
}

TEST_F(ExecConfigTest, AnUnknownLeaseIsAnError) {
  EXPECT_NE(Error("[exec]\nlease = \"other\"\n").find("no [[lease]] has this name"),
            std::string::npos);
}

TEST_F(ExecConfigTest, WithSeveralLeasesOnlyExecItselfNeedsOneNamed) {
  const LoadResult loaded = Load("[[lease]]\nname = \"second\"\n");
  EXPECT_TRUE(loaded.errors.empty());
  EXPECT_EQ(loaded.config.exec.lease, "");
}

}  // namespace
}  // namespace leasehold::config

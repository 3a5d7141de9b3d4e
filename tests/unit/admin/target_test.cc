#include "admin/target.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace leasehold::admin {
namespace {

TEST(Target, SegmentsAreSplitBeforeTheyAreDecoded) {
  std::string authority;
  const auto target = ParseTarget("/v1/leases/a%2Fb%20c?lease=x%26y", &authority);
  ASSERT_TRUE(target.ok());
  EXPECT_EQ(target->segments, (std::vector<std::string>{"v1", "leases", "a/b c"}));
  EXPECT_EQ(target->One("lease"), "x&y");
  EXPECT_EQ(authority, "");
}

TEST(Target, AnAbsoluteTargetGivesItsAuthority) {
  std::string authority;
  const auto target = ParseTarget("http://evil.example:80/livez?x", &authority);
  ASSERT_TRUE(target.ok());
  EXPECT_EQ(authority, "evil.example:80");
  EXPECT_EQ(target->segments, (std::vector<std::string>{"livez"}));
}

TEST(Target, BrokenEscapesAndRepeatedParametersAreErrors) {
  std::string authority;
  for (const char* bad : {"/a%", "/a%2", "/a%zz", "/a?x=%", "/a?x=1&x=2"}) {
    EXPECT_FALSE(ParseTarget(bad, &authority).ok()) << bad;
  }
}

TEST(Target, AnEscapeAtTheVeryEndIsTaken) {
  std::string authority;
  EXPECT_EQ(ParseTarget("/a%41", &authority)->segments.at(0), "aA");
}

}  // namespace
}  // namespace leasehold::admin

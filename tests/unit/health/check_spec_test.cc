// CheckSpec: what app.check may say.
#include "health/check_spec.h"

#include <gtest/gtest.h>

#include "health/app_check.h"

namespace leasehold::health {
namespace {

TEST(CheckSpecTest, NothingMeansNoCheck) {
  auto spec = ParseCheckSpec("");
  ASSERT_TRUE(spec.ok());
  EXPECT_EQ(spec->kind, CheckSpec::Kind::kNone);
}

TEST(CheckSpecTest, AnHttpUrlGivesAddressAndTarget) {
  auto spec = ParseCheckSpec("http://127.0.0.1:8000/healthz?full=1");
  ASSERT_TRUE(spec.ok());
  EXPECT_EQ(spec->kind, CheckSpec::Kind::kHttp);
  EXPECT_EQ(spec->address.ToString(), "127.0.0.1:8000");
  EXPECT_EQ(spec->target, "/healthz?full=1");
  EXPECT_EQ(ParseCheckSpec("http://localhost")->target, "/");
}

TEST(CheckSpecTest, ATcpAddressMayBeIPv6OrAUnixSocket) {
  EXPECT_EQ(ParseCheckSpec("tcp://[::1]:5432")->address.ToString(), "[::1]:5432");
  EXPECT_EQ(ParseCheckSpec("tcp://unix:/run/x.sock")->address.ToString(), "unix:/run/x.sock");
}

TEST(CheckSpecTest, ACommandIsSplitAtBlanksAndQuotesKeepThem) {
  auto spec = ParseCheckSpec("exec:sh -c 'exit  1'  \"\" a\"b c\"d");
  ASSERT_TRUE(spec.ok());
  EXPECT_EQ(spec->argv, (std::vector<std::string>{"sh", "-c", "exit  1", "", "ab cd"}));
}

TEST(CheckSpecTest, WhatIsWrongIsNamedWithWhatWouldBeRight) {
  for (const char* text : {"https://x/", "127.0.0.1:80", "tcp://", "tcp://127.0.0.1:0",
                           "exec:", "exec:  ", "exec:''", "exec:sh 'open", "http://", "ftp://x"}) {
    EXPECT_FALSE(ValidateCheck(text).ok()) << text;
    EXPECT_GT(ValidateCheck(text).error().message.size(), 20u) << text;
  }
  EXPECT_NE(ValidateCheck("8000").error().message.find("http://host:port/path"), std::string::npos);
}

TEST(CheckSpecTest, APasswordInTheUrlIsRefusedAndNotRepeated) {
  auto spec = ParseCheckSpec("http://joe:geheim@127.0.0.1:80/");
  ASSERT_FALSE(spec.ok());
  EXPECT_EQ(spec.error().message.find("geheim"), std::string::npos);
}

}  // namespace
}  // namespace leasehold::health

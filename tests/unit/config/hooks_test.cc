// What `check` says of hooks and of the audit's file.
#include <gtest/gtest.h>

#include <string>

#include "config/config.h"

namespace leasehold::config {
namespace {

class HooksConfigTest : public ::testing::Test {
 protected:
  static LoadResult Load(const std::string& more) {
    return LoadText(
        "[store]\nfile.dir = \"/var/lib/test\"\n[[lease]]\nname = \"orders\"\n[[gate]]\nname = "
        "\"web\"\nlisten = \"127.0.0.1:8080\"\nupstream = \"127.0.0.1:8000\"\n" +
            more,
        "test.conf", [](const char*) -> const char* { return nullptr; });
  }
  static std::string Warning(const std::string& more) {
    const LoadResult result = Load(more);
    EXPECT_TRUE(result.errors.empty()) << result.errors[0].ToString();
    return result.warnings.empty() ? "" : result.warnings[0].ToString();
  }
  static std::string Error(const std::string& more) {
    const LoadResult result = Load(more);
    return result.errors.empty() ? "" : result.errors[0].ToString();
  }
};

TEST_F(HooksConfigTest, CommandsThatAreThereGoUnremarked) {
  EXPECT_EQ(Warning("[hooks]\non_active = \"sh -c 'exit 0'\"\non_standby = \"/bin/sh\"\n"), "");
}

TEST_F(HooksConfigTest, AProgramThatIsNotThereIsAWarning) {
  EXPECT_EQ(Warning("[hooks]\non_draining = \"/nowhere/hook --now\"\n"),
            "test.conf:10: hooks.on_draining = \"/nowhere/hook --now\": cannot be run: there is no "
            "such file here; give the path of an executable file, or a command found in PATH");
  EXPECT_NE(Warning("[hooks]\non_active = \"/etc/passwd\"\n").find("it is not executable"),
            std::string::npos);
  EXPECT_NE(Warning("[hooks]\non_active = \"/etc/\"\n").find("it is a directory"),
            std::string::npos);
  EXPECT_NE(Warning("[hooks]\non_active = \"no-such-command-here\"\n").find("no directory of PATH"),
            std::string::npos);
}

TEST_F(HooksConfigTest, ATextThatIsNoCommandIsAnError) {
  EXPECT_EQ(Error("[hooks]\non_standby = \"sh 'open\"\n"),
            "test.conf:10: hooks.on_standby = \"sh 'open\": the quote ' is not closed; write a "
            "program and its arguments, like \"/etc/leasehold/on_standby --fast\"");
  EXPECT_NE(Error("[hooks]\non_active = \"  \"\n").find("it names no command"), std::string::npos);
}

TEST_F(HooksConfigTest, AnAuditFileMustBeAPlaceThatIsAlwaysTheSame) {
  EXPECT_EQ(Warning("[audit]\nfile = \"/var/log/leasehold.jsonl\"\n"), "");
  EXPECT_EQ(Warning("[audit]\nfile = \"stdout\"\n"), "");
  EXPECT_NE(Warning("[audit]\nfile = \"audit.jsonl\"\n").find("absolute path"), std::string::npos);
  EXPECT_NE(Error("[audit]\nfile = \"-\"\n").find("write \"stdout\""), std::string::npos);
  EXPECT_NE(Error("[audit]\nfile = \"/var/log/\"\n").find("write the path of a file"),
            std::string::npos);
  EXPECT_NE(Error("[audit]\nkeep = 0\n"), "");
}

}  // namespace
}  // namespace leasehold::config

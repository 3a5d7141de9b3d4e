// What `check` says of the files that options name: hooks, the audit's file, secrets.
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

TEST_F(HooksConfigTest, SignsOfAShellOutsideOfOneAreAWarning) {
  for (const std::string sign : {">", "|", "&&", ";", "$("}) {
    const std::string said = Warning("[hooks]\non_active = \"/bin/echo a " + sign + " b\"\n");
    EXPECT_NE(said.find("there is no shell, so \"" + sign + "\""), std::string::npos) << said;
    EXPECT_NE(said.find("write sh -c '"), std::string::npos) << said;
  }
  EXPECT_EQ(Warning("[hooks]\non_active = \"sh -c 'date > /tmp/x; true'\"\n"), "");
  EXPECT_EQ(Warning("[hooks]\non_active = \"/bin/echo 'a > b; $(c)' d\"\n"), "") << "quoted";
}

TEST_F(HooksConfigTest, AnAuditFileThatRunCouldNotOpenIsAWarning) {
  EXPECT_EQ(Warning("[audit]\nfile = \"/nowhere/at/all/audit.jsonl\"\n"),
            "test.conf:10: audit.file = \"/nowhere/at/all/audit.jsonl\": there is no directory "
            "/nowhere/at/all/ here, and `leasehold run` refuses to start without it; make it, or "
            "name a file in one that is there");
  EXPECT_NE(Warning("[audit]\nfile = \"/var/log\"\n").find("like \"/var/log/audit.jsonl\""),
            std::string::npos);
}

TEST_F(HooksConfigTest, ASecretThatCannotBeReadIsAWarningAtItsLine) {
  EXPECT_EQ(Warning("[admin]\ntoken_file = \"/nowhere/token\"\n"),
            "test.conf:10: admin.token_file = \"/nowhere/token\": cannot be read: No such file or "
            "directory; name a file that holds the secret and that `leasehold run` may read, or it "
            "refuses to start");
  const std::string gate =
      Warning("peer_listen = \"127.0.0.1:8081\"\npeer_secret_file = \"/nowhere/peer\"\n");
  EXPECT_EQ(gate.find("test.conf:10: gate.peer_secret_file = \"/nowhere/peer\": cannot be read"),
            0u)
      << gate;
}

TEST_F(HooksConfigTest, AdvertiseThatMayLeadToClientsIsAWarning) {
  EXPECT_NE(Warning("peer_listen = \"0.0.0.0:8081\"\npeer_secret_file = \"/etc/hostname\"\n"
                    "advertise = \"10.0.0.1:9090\"\n[admin]\nlisten = \"0.0.0.0:9090\"\n"
                    "token_file = \"/etc/hostname\"\n")
                .find("gate.advertise = \"10.0.0.1:9090\": has the port at which the API answers"),
            std::string::npos);
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

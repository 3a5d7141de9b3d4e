// The shared files: what each form of line means, and what is wrong with a file, without repeating
// any of it.
#include "aws/profile.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>

#include "lib/socket_peer.h"

namespace leasehold::aws {
namespace {

class ProfileTest : public ::testing::Test {
 protected:
  void Config(const std::string& text) { Parse(text, "/etc/config", false); }
  void Credentials(const std::string& text) { Parse(text, "/etc/credentials", true); }
  void Parse(const std::string& text, const std::string& path, bool credentials) {
    status_ = ParseProfiles(text, path, credentials, profiles_);
  }
  std::string Get(const std::string& profile, const std::string& setting) {
    const Profile* found = profiles_.Find(profile);
    if (found == nullptr) return "<no profile>";
    return found->Get(setting).value_or("<none>");
  }
  void ExpectWrong(const std::string& part) {
    ASSERT_FALSE(status_.ok());
    EXPECT_EQ(status_.error().code, base::ErrorCode::kInvalid);
    EXPECT_NE(status_.error().message.find(part), std::string::npos) << status_.error().message;
    EXPECT_EQ(status_.error().message.find("SECRET"), std::string::npos);
  }

  Profiles profiles_;
  base::Status status_;
};

TEST_F(ProfileTest, AConfigFilesSectionsAreDefaultProfileServicesAndSsoSession) {
  Config(
      "[default]\nregion = eu-west-1\n[profile orders]\nregion=us-east-1\n"
      "[services local]\ndynamodb =\n  endpoint_url = http://127.0.0.1:8000\n"
      "[sso-session corp]\nsso_region = eu-west-1\n[orders2]\nregion = x\n[plugins]\na = b\n");
  ASSERT_TRUE(status_.ok());
  EXPECT_EQ(Get("default", "region"), "eu-west-1");
  EXPECT_EQ(Get("orders", "region"), "us-east-1");
  EXPECT_EQ(profiles_.services["local"].nested["dynamodb"]["endpoint_url"],
            "http://127.0.0.1:8000");
  EXPECT_EQ(profiles_.sso_sessions["corp"].Get("sso_region"), "eu-west-1");
  EXPECT_EQ(Get("orders2", "region"), "<no profile>");
}

TEST_F(ProfileTest, ProfileDefaultGoesOverDefaultWhicheverStandsFirst) {
  Config("[default]\na = 1\nb = 1\n[profile default]\na = 2\n[default]\na = 3\n");
  EXPECT_EQ(Get("default", "a"), "2");
  EXPECT_EQ(Get("default", "b"), "<none>");
  profiles_ = {};
  Config("[profile default]\na = 2\n[default]\na = 3\nb = 3\n");
  EXPECT_EQ(Get("default", "a"), "2");
  EXPECT_EQ(Get("default", "b"), "<none>");
}

TEST_F(ProfileTest, ACredentialsFileHasBareNamesAndGoesOverTheConfigFile) {
  Config("[profile orders]\nregion = eu-west-1\naws_access_key_id = FROMCONFIG\n");
  Credentials("[orders]\naws_access_key_id = FROMCREDENTIALS\n");
  ASSERT_TRUE(status_.ok());
  EXPECT_EQ(Get("orders", "aws_access_key_id"), "FROMCREDENTIALS");
  EXPECT_EQ(Get("orders", "region"), "eu-west-1");
}

TEST_F(ProfileTest, CommentsAreLinesOrFollowABlank) {
  Config(
      "# one\n; two\n[default] # three\na = 1 # four\nb = x#y;z\nc = # nothing\n  # indented\n"
      "d = 4 ; five\ne = ;f\n");
  ASSERT_TRUE(status_.ok()) << status_.error().message;
  EXPECT_EQ(Get("default", "a"), "1");
  EXPECT_EQ(Get("default", "b"), "x#y;z");
  EXPECT_EQ(Get("default", "c"), "<none>");
  EXPECT_EQ(Get("default", "d"), "4");
  EXPECT_EQ(Get("default", "e"), "<none>");
}

TEST_F(ProfileTest, AnIndentedLineContinuesTheSettingBefore) {
  Config("[default]\na = 1\n 2\n\n\t3\nb = 2\n");
  EXPECT_EQ(Get("default", "a"), "1\n2\n3");
  EXPECT_EQ(Get("default", "b"), "2");
}

TEST_F(ProfileTest, AFileThatIsIndentedAsAWholeHasSettingsNotContinuations) {
  Credentials("  [default]\n  aws_access_key_id = A\n  aws_secret_access_key = B\n");
  ASSERT_TRUE(status_.ok());
  EXPECT_EQ(Get("default", "aws_access_key_id"), "A");
  EXPECT_EQ(Get("default", "aws_secret_access_key"), "B");
}

TEST_F(ProfileTest, BelowASettingWithoutAValueOthersNest) {
  Config("[profile a]\ns3 =\n  addressing_style = path\n  Max_Queue = 3\nregion = x\n");
  const Profile& profile = *profiles_.Find("a");
  EXPECT_EQ(profile.nested.at("s3").at("addressing_style"), "path");
  EXPECT_EQ(profile.nested.at("s3").at("max_queue"), "3");
  EXPECT_EQ(profile.Get("region"), "x");
  EXPECT_FALSE(profile.Get("s3").has_value());
}

TEST_F(ProfileTest, AProfileThatStandsTwiceIsMergedAndTheLaterSettingWins) {
  Config("[profile a]\nx = 1\ny = 1\n[profile b]\nx = 9\n[profile a]\nx = 2\nx = 3\n");
  EXPECT_EQ(Get("a", "x"), "3");
  EXPECT_EQ(Get("a", "y"), "1");
}

TEST_F(ProfileTest, NamesAreQuotedOrNotAndSettingsHaveNoCase) {
  Config("[profile \"my orders\"]\nREGION = a\n[ profile\t  b ]\nregion = c = d\r\n");
  EXPECT_EQ(Get("my orders", "region"), "a");
  EXPECT_EQ(Get("b", "region"), "c = d");
}

TEST_F(ProfileTest, WrongLinesAreNamedByFileAndNumberAndNeverRepeated) {
  Credentials("[default]\naws_secret_access_key SECRET\n");
  ExpectWrong("/etc/credentials, line 2: ");
  Credentials("aws_secret_access_key = SECRET\n");
  ExpectWrong("/etc/credentials, line 1: a setting stands before the first [profile]");
  Credentials("\n\n[default\nx = SECRET\n");
  ExpectWrong("line 3: the ']'");
  Credentials("[default] SECRET\n");
  ExpectWrong("line 1: after the ']'");
  Credentials("[default]\n = SECRET\n");
  ExpectWrong("line 2");
  Credentials("[default]\ns3 =\n  SECRET\n");
  ExpectWrong("line 3: below a setting without a value");
}

class ProfileFilesTest : public ProfileTest {
 protected:
  void Write(const std::string& name, const std::string& text) {
    std::ofstream(dir_.File(name)) << text;
  }
  void Read() {
    base::Result<Profiles> read = ReadProfiles(environment_);
    status_ = read.ok() ? base::Status() : base::Status(read.error());
    if (read.ok()) profiles_ = *read;
  }
  testing::TempDir dir_;
  Environment environment_;
};

TEST_F(ProfileFilesTest, FilesLieUnderHomeUnlessVariablesNameOthers) {
  environment_.variables["HOME"] = dir_.path();
  mkdir(dir_.File(".aws").c_str(), 0700);
  Write(".aws/config", "[default]\nregion = home\n");
  Write("other", "[default]\nregion = other\n");
  Read();
  EXPECT_EQ(Get("default", "region"), "home");
  EXPECT_EQ(profiles_.credentials_path, dir_.File(".aws/credentials"));
  environment_.variables["AWS_CONFIG_FILE"] = "~/other";
  Read();
  EXPECT_EQ(Get("default", "region"), "other");
  unlink(dir_.File(".aws/config").c_str());
  rmdir(dir_.File(".aws").c_str());
}

TEST_F(ProfileFilesTest, MissingFilesAndDevNullAndNoHomeAreEmpty) {
  Read();
  EXPECT_TRUE(status_.ok());
  EXPECT_EQ(profiles_.config_path, "");
  environment_.variables["HOME"] = dir_.path();
  environment_.variables["AWS_CONFIG_FILE"] = "/dev/null";
  Read();
  EXPECT_TRUE(status_.ok());
  EXPECT_TRUE(profiles_.profiles.empty());
}

TEST_F(ProfileFilesTest, AFifoADirectoryAndAHugeFileAreRefusedAtOnce) {
  ASSERT_EQ(mkfifo(dir_.File("fifo").c_str(), 0600), 0);
  environment_.variables["AWS_CONFIG_FILE"] = dir_.File("fifo");
  Read();
  ASSERT_FALSE(status_.ok());
  EXPECT_NE(status_.error().message.find("is no file"), std::string::npos);
  environment_.variables["AWS_CONFIG_FILE"] = dir_.path();
  Read();
  ASSERT_FALSE(status_.ok());
  EXPECT_NE(status_.error().message.find("is a directory"), std::string::npos);
  environment_.variables["AWS_CONFIG_FILE"] = "/dev/zero";
  Read();
  ASSERT_FALSE(status_.ok());
  EXPECT_EQ(status_.error().code, base::ErrorCode::kLimit);
}

TEST_F(ProfileFilesTest, TheProfilesNameIsTheOptionsThenTheEnvironmentsThenDefault) {
  EXPECT_EQ(ProfileName("", environment_), "default");
  environment_.variables["AWS_DEFAULT_PROFILE"] = "c";
  EXPECT_EQ(ProfileName("", environment_), "c");
  environment_.variables["AWS_PROFILE"] = "b";
  EXPECT_EQ(ProfileName("", environment_), "b");
  EXPECT_EQ(ProfileName("a", environment_), "a");
}

}  // namespace
}  // namespace leasehold::aws

// The chain: which source serves, and that no other is tried when it fails; profiles that lead to
// one another; and the provider over it with real files.
#include "aws/chain.h"

#include <gtest/gtest.h>

#include "aws/chain_source.h"
#include "aws/credentials_cache.h"
#include "source_fixture.h"

namespace leasehold::aws {
namespace {

using base::ErrorCode;

class ChainTest : public SourceFixture {
 protected:
  void SetUp() override {
    SourceFixture::SetUp();
    Set("AWS_ENDPOINT_URL_STS", Url());
    Set("AWS_CONFIG_FILE", dir_.File("config"));
    Set("AWS_SHARED_CREDENTIALS_FILE", dir_.File("credentials"));
    answer_ = [this](const std::string& request) { return Everybody(request); };
  }
  void TearDown() override {
    source_.reset();
    SourceFixture::TearDown();
  }
  void Ask() {
    source_ = std::make_unique<ChainSource>(context_);
    Fetch([this](FetchDone done) { return source_->Fetch(std::move(done)); });
  }
  // STS, the container endpoint and instance metadata at once.
  static std::string Everybody(const std::string& request) {
    const std::string target = TargetOf(request);
    if (target == "/latest/api/token") return Http(200, "imdstoken");
    if (target.ends_with("security-credentials/")) return Http(200, "role");
    if (target.ends_with("/role")) return Http(200, KeysJson("AKIAIMDS", kLater));
    if (target == "/container") return Http(200, KeysJson("AKIACONTAINER", kLater));
    // The key that signed says which link of the chain it is.
    const size_t signer = request.find("Credential=");
    std::string id = "AKIAWEB";
    if (signer != std::string::npos) {
      id = "BY-" + request.substr(signer + 11, request.find('/', signer) - signer - 11);
    }
    return Http(200, "<R><Credentials><AccessKeyId>" + id + "</AccessKeyId><SecretAccessKey>" +
                         kSecret + "</SecretAccessKey><SessionToken>" + kToken +
                         "</SessionToken><Expiration>" + kLater +
                         "</Expiration></Credentials></R>");
  }
  void StaticProfile(const std::string& name, const std::string& id) {
    credentials_ +=
        "[" + name + "]\naws_access_key_id = " + id + "\naws_secret_access_key = " + kSecret + "\n";
    WriteCredentials(credentials_);
  }
  void Unset(const std::string& name) { context_.environment.variables.erase(name); }

  std::unique_ptr<ChainSource> source_;
  std::string credentials_;
};

TEST_F(ChainTest, TheSourcesAreTakenInTheOrderOfTheSdks) {
  Set("AWS_ACCESS_KEY_ID", "AKIAENV");
  Set("AWS_SECRET_ACCESS_KEY", kSecret);
  Set("AWS_WEB_IDENTITY_TOKEN_FILE", WriteFile("token", kBearer));
  Set("AWS_ROLE_ARN", "arn:aws:iam::1:role/r");
  Set("AWS_CONTAINER_CREDENTIALS_FULL_URI", Url() + "/container");
  StaticProfile("default", "AKIADEFAULT");
  Ask();
  ExpectKey("AKIAENV");
  Unset("AWS_ACCESS_KEY_ID");
  Unset("AWS_SECRET_ACCESS_KEY");
  Ask();
  ExpectKey("AKIAWEB");
  Unset("AWS_WEB_IDENTITY_TOKEN_FILE");
  Ask();
  ExpectKey("AKIADEFAULT");
  WriteFile("credentials", "[default]\nregion = x\n");
  Ask();
  ExpectKey("AKIACONTAINER");
  Unset("AWS_CONTAINER_CREDENTIALS_FULL_URI");
  Ask();
  ExpectKey("AKIAIMDS");
}

TEST_F(ChainTest, AProfileOfTheOptionsGoesBeforeTheEnvironment) {
  Set("AWS_ACCESS_KEY_ID", "AKIAENV");
  Set("AWS_SECRET_ACCESS_KEY", kSecret);
  Set("AWS_WEB_IDENTITY_TOKEN_FILE", WriteFile("token", kBearer));
  Set("AWS_ROLE_ARN", "arn:aws:iam::1:role/r");
  StaticProfile("orders", "AKIAORDERS");
  context_.profile = "orders";
  Ask();
  ExpectKey("AKIAORDERS");
  EXPECT_EQ(source_->Describe(), "profile \"orders\"");
  context_.profile = "";
  Set("AWS_PROFILE", "orders");
  Ask();
  ExpectKey("AKIAENV");
}

TEST_F(ChainTest, ASourceThatFailsIsNotReplacedByAnother) {
  StaticProfile("default", "AKIADEFAULT");
  Set("AWS_ACCESS_KEY_ID", "AKIAENV");
  Ask();
  ExpectError(ErrorCode::kRefused, "AWS_ACCESS_KEY_ID, but no AWS_SECRET_ACCESS_KEY");
  Unset("AWS_ACCESS_KEY_ID");
  Set("AWS_WEB_IDENTITY_TOKEN_FILE", dir_.File("gone"));
  Ask();
  ExpectError(ErrorCode::kRefused, "but no AWS_ROLE_ARN");
  Set("AWS_ROLE_ARN", "arn:aws:iam::1:role/r");
  Ask();
  ExpectError(ErrorCode::kRefused, "gone: there is no such file");
  Unset("AWS_WEB_IDENTITY_TOKEN_FILE");
  Set("AWS_PROFILE", "nobody");
  Ask();
  ExpectError(ErrorCode::kRefused, "profile \"nobody\" of");
  WriteFile("credentials", std::string("[default]\n") + kSecret);
  Ask();
  ExpectError(ErrorCode::kInvalid, "credentials, line 2");
  EXPECT_TRUE(requests_.empty());
}

TEST_F(ChainTest, WithoutAnySourceTheErrorSaysWhereWasLooked) {
  answer_ = nullptr;
  context_.imds.timeout = base::Duration::Millis(20);
  Ask();
  for (const std::string part :
       {"no credentials for AWS", "AWS_ACCESS_KEY_ID and AWS_WEB_IDENTITY_TOKEN_FILE are not set",
        "profile \"default\" of", "is not there", "no container endpoint is set",
        "EC2 instance metadata"}) {
    ExpectError(ErrorCode::kTimeout, part);
  }
  Set("AWS_EC2_METADATA_DISABLED", "true");
  Ask();
  ExpectError(ErrorCode::kRefused, "switched off");
}

TEST_F(ChainTest, ARoleIsTakenWithTheCredentialsOfItsSourceProfile) {
  StaticProfile("base", "AKIABASE");
  WriteConfig(
      "[profile base]\n"
      "[profile middle]\nrole_arn = arn:m\nsource_profile = base\n"
      "[profile top]\nrole_arn = arn:t\nsource_profile = middle\nrole_session_name = s\n");
  Set("AWS_PROFILE", "top");
  Ask();
  ExpectKey("BY-BY-AKIABASE");
  EXPECT_EQ(requests_.size(), 2u);
  EXPECT_NE(requests_.at(1).find("RoleArn=arn%3At&RoleSessionName=s"), std::string::npos);
}

TEST_F(ChainTest, AProfileMayNameItselfForItsOwnKeys) {
  StaticProfile("self", "AKIASELF");
  WriteConfig("[profile self]\nrole_arn = arn:s\nsource_profile = self\n");
  Set("AWS_PROFILE", "self");
  Ask();
  ExpectKey("BY-AKIASELF");
}

TEST_F(ChainTest, ARoleIsTakenWithANamedSourcesCredentials) {
  context_.profile = "p";
  WriteConfig("[profile p]\nrole_arn = arn:p\ncredential_source = Environment\n");
  Ask();
  ExpectError(ErrorCode::kRefused, "the environment: AWS_ACCESS_KEY_ID is not set");
  Set("AWS_ACCESS_KEY_ID", "AKIAENV");
  Set("AWS_SECRET_ACCESS_KEY", kSecret);
  Ask();
  ExpectKey("BY-AKIAENV");
  WriteConfig("[profile p]\nrole_arn = arn:p\ncredential_source = EcsContainer\n");
  Ask();
  ExpectError(ErrorCode::kRefused, "neither AWS_CONTAINER_CREDENTIALS_RELATIVE_URI nor");
  Set("AWS_CONTAINER_CREDENTIALS_FULL_URI", Url() + "/container");
  Ask();
  ExpectKey("BY-AKIACONTAINER");
  WriteConfig("[profile p]\nrole_arn = arn:p\ncredential_source = Ec2InstanceMetadata\n");
  Ask();
  ExpectKey("BY-AKIAIMDS");
  WriteConfig("[profile p]\nrole_arn = arn:p\ncredential_source = Magic\n");
  Ask();
  ExpectError(ErrorCode::kRefused, "credential_source is \"Magic\"");
}

TEST_F(ChainTest, AProfilesWebIdentityAndProcessServe) {
  Set("AWS_PROFILE", "p");
  WriteConfig("[profile p]\nrole_arn = arn:p\nweb_identity_token_file = " +
              WriteFile("token", kBearer) + "\n");
  Ask();
  ExpectKey("AKIAWEB");
  WriteConfig(
      "[profile p]\ncredential_process = echo "
      "'{\"Version\":1,\"AccessKeyId\":\"AKIAPROC\",\"SecretAccessKey\":\"s\"}'\n");
  Ask();
  ExpectKey("AKIAPROC");
}

TEST_F(ChainTest, ProfilesThatCannotServeSayWhatWouldBeRight) {
  Set("AWS_PROFILE", "p");
  std::string far = "[profile p]\nrole_arn = arn:0\nsource_profile = p1\n";
  for (int i = 1; i < 15; ++i) {
    far += "[profile p" + std::to_string(i) + "]\nrole_arn = arn:x\nsource_profile = p" +
           std::to_string(i + 1) + "\n";
  }
  const std::vector<std::pair<std::string, std::string>> wrong = {
      {"[profile p]\nrole_arn = a\n", "neither source_profile nor credential_source"},
      {"[profile p]\nrole_arn = a\nsource_profile = b\ncredential_source = Environment\n",
       "one of them would be right"},
      {"[profile p]\nrole_arn = a\nsource_profile = gone\n", "there is no such profile"},
      {"[profile p]\nrole_arn = a\nsource_profile = p\n", "names the profile itself"},
      {"[profile p]\nrole_arn = a\nsource_profile = q\n[profile q]\nrole_arn = b\n"
       "source_profile = p\n",
       "source_profile leads back to it"},
      {far, "through more than 10 profiles"},
      {"[profile p]\nrole_arn = a\nsource_profile = b\nmfa_serial = c\n", "mfa_serial"},
      {"[profile p]\nrole_arn = a\nsource_profile = b\nduration_seconds = 1\n", "900 to 43200"},
      {"[profile p]\nweb_identity_token_file = /x\n", "but no role_arn"},
      {"[profile p]\nsso_session = corp\n",
       "which is not supported here; write "
       "credential_process = "},
      {"[profile p]\nlogin_session = x\n", "credential_process"},
      {"[profile p]\naws_access_key_id = x\n", "but no aws_secret_access_key"},
      {std::string("[profile p]\naws_secret_access_key = ") + kSecret + "\n",
       "but no aws_access_key_id"},
      {std::string("[profile p]\naws_access_key_id = x\naws_secret_access_key = ") + kSecret +
           "\n more\n",
       "a secret access key with a blank, a line break"},
  };
  for (const auto& [config, part] : wrong) {
    WriteConfig(config);
    Ask();
    ASSERT_FALSE(result_->ok()) << config;
    EXPECT_NE(result_->error().message.find(part), std::string::npos)
        << config << result_->error().message;
    ExpectNoSecret(result_->error().message);
  }
  EXPECT_TRUE(requests_.empty());
}

class ProviderTest : public ChainTest {
 protected:
  void TearDown() override {
    provider_.reset();
    ChainTest::TearDown();
  }
  void Make() {
    provider_ =
        MakeChain(loop_, {context_.profile, context_.region}, context_.environment, 1, *log_);
  }
  SharedCredentials Get() {
    std::optional<base::Result<SharedCredentials>> got;
    provider_->Get([&](base::Result<SharedCredentials> result) { got.emplace(std::move(result)); });
    EXPECT_FALSE(got.has_value()) << "told from inside the call";
    EXPECT_TRUE(EventuallyPumped([&] { return got.has_value(); }));
    EXPECT_TRUE(got->ok()) << got->error().message;
    return got->ok() ? got->value() : nullptr;
  }
  std::unique_ptr<CredentialsProvider> provider_;
};

TEST_F(ProviderTest, ACredentialsFileThatWasReplacedIsReadAfterARefusal) {
  StaticProfile("default", "AKIAOLD");
  Make();
  const SharedCredentials old = Get();
  EXPECT_EQ(old->key.access_key_id, "AKIAOLD");
  credentials_.clear();
  StaticProfile("default", "AKIANEW");
  EXPECT_EQ(Get()->key.access_key_id, "AKIAOLD");  // files are not read for nothing
  provider_->NoteRefused(old);
  EXPECT_TRUE(EventuallyPumped([&] { return Get()->key.access_key_id == "AKIANEW"; }));
}

TEST_F(ProviderTest, NoSecretIsEverLogged) {
  Set("AWS_WEB_IDENTITY_TOKEN_FILE", WriteFile("token", kBearer));
  Set("AWS_ROLE_ARN", "arn:aws:iam::1:role/r");
  Make();
  Get();
  ExpectNoSecret(Logged());
  EXPECT_NE(Logged().find("aws.credentials_refreshed"), std::string::npos) << Logged();
  answer_ = [](const std::string&) { return Http(403, kBearer); };
  Make();
  std::optional<base::Result<SharedCredentials>> got;
  provider_->Get([&](base::Result<SharedCredentials> result) { got.emplace(std::move(result)); });
  EXPECT_TRUE(EventuallyPumped([&] { return got.has_value(); }));
  EXPECT_FALSE(got->ok());
  EXPECT_NE(Logged().find("aws.credentials_failing"), std::string::npos) << Logged();
  ExpectNoSecret(Logged());
}

}  // namespace
}  // namespace leasehold::aws

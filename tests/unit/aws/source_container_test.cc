// The container endpoint, by a peer that behaves as those of ECS and EKS do, and by ones that do
// not.
#include "aws/source_container.h"

#include <gtest/gtest.h>

#include "source_fixture.h"

namespace leasehold::aws {
namespace {

using base::ErrorCode;

class SourceContainerTest : public SourceFixture {
 protected:
  void Ask() {
    Fetch([this](FetchDone done) { return FetchFromContainer(context_, std::move(done)); });
  }
  void Full(const std::string& path = "/v1/credentials") {
    Set("AWS_CONTAINER_CREDENTIALS_FULL_URI", Url() + path);
  }
};

TEST_F(SourceContainerTest, ARelativeUriIsAskedAtTheEndpointOfEcs) {
  Set("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "/v2/credentials/guid?id=1");
  answer_ = [](const std::string&) { return Http(200, KeysJson("AKIA1", kLater)); };
  Ask();
  ExpectKey("AKIA1");
  EXPECT_EQ(TargetOf(requests_.at(0)), "/v2/credentials/guid?id=1");
  EXPECT_EQ((*result_)->credentials.key.session_token, kToken);
  EXPECT_EQ((*result_)->credentials.expires_unix_ms, 4070908800000);
}

TEST_F(SourceContainerTest, TheTokenFileIsReadForEachFetchAndGoesOverTheVariable) {
  Full();
  Set("AWS_CONTAINER_AUTHORIZATION_TOKEN", "of-the-variable");
  Set("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", WriteFile("token", "one\n"));
  answer_ = [](const std::string&) { return Http(200, KeysJson("AKIA1", kLater)); };
  Ask();
  EXPECT_EQ(HeaderOf(requests_.at(0), "Authorization"), "one");
  WriteFile("token", "two");
  Ask();
  EXPECT_EQ(HeaderOf(requests_.at(1), "Authorization"), "two");
}

TEST_F(SourceContainerTest, ALineBreakInATokenIsRefusedWithoutRepeatingIt) {
  Full();
  Set("AWS_CONTAINER_AUTHORIZATION_TOKEN", std::string(kBearer) + "\r\nX-Evil: 1");
  Ask();
  ExpectError(ErrorCode::kInvalid, "AWS_CONTAINER_AUTHORIZATION_TOKEN has a line break");
  Set("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE",
      WriteFile("token", std::string(kBearer) + "\nX-Evil: 1\n"));
  Ask();
  ExpectError(ErrorCode::kRefused, "has a line break or another control byte inside");
  EXPECT_TRUE(requests_.empty());
}

TEST_F(SourceContainerTest, ATokenFileThatIsMissingOrEmptyOrAFifoIsNamed) {
  Full();
  Set("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", dir_.File("gone"));
  Ask();
  ExpectError(ErrorCode::kRefused, "gone: there is no such file");
  Set("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", WriteFile("empty", "\n"));
  Ask();
  ExpectError(ErrorCode::kRefused, "is empty");
  ASSERT_EQ(mkfifo(dir_.File("fifo").c_str(), 0600), 0);
  Set("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", dir_.File("fifo"));
  Ask();
  ExpectError(ErrorCode::kRefused, "fifo is no file");
}

TEST_F(SourceContainerTest, AFullUriMayOnlyBeHttpsOrOfThisMachineOrOfAwssAgents) {
  for (const char* wrong :
       {"http://example.com/x", "http://10.0.0.1/", "http://169.254.169.254/", "http://[fd00::1]/",
        "http://127.0.0.1.example.com/", "http://localhost.example.com/", "ftp://127.0.0.1/"}) {
    Set("AWS_CONTAINER_CREDENTIALS_FULL_URI", wrong);
    Set("AWS_CONTAINER_AUTHORIZATION_TOKEN", kBearer);
    Ask();
    ASSERT_FALSE(result_->ok()) << wrong;
    EXPECT_NE(result_->error().message.find("AWS_CONTAINER_CREDENTIALS_FULL_URI"),
              std::string::npos);
    ExpectNoSecret(result_->error().message);
  }
  // These are asked: what fails is only that nobody is there.
  context_.container.attempts = 1;
  context_.container.timeout = base::Duration::Millis(100);
  for (const char* right : {"http://169.254.170.2/", "http://169.254.170.23/v1/credentials",
                            "http://[fd00:ec2::23]/v1/credentials", "https://127.0.0.1:1/x",
                            "http://localhost:1/x", "http://[::1]:1/"}) {
    Set("AWS_CONTAINER_CREDENTIALS_FULL_URI", right);
    Ask();
    ASSERT_FALSE(result_->ok()) << right;
    EXPECT_EQ(result_->error().message.find("in the clear"), std::string::npos) << right;
  }
}

TEST_F(SourceContainerTest, ServerErrorsAndSilenceAndRefusalsToConnectAreTriedAgain) {
  Full();
  answer_ = [this](const std::string&) {
    if (requests_.size() == 1) return Http(500, kBearer);
    return requests_.size() == 2 ? Http(429, "") : Http(200, KeysJson("AKIA3", kLater));
  };
  Ask();
  ExpectKey("AKIA3");
  requests_.clear();
  context_.container.timeout = base::Duration::Millis(50);
  answer_ = nullptr;
  Ask();
  ExpectError(ErrorCode::kTimeout, "(3 attempts)");
  EXPECT_EQ(requests_.size(), 3u);
  Set("AWS_CONTAINER_CREDENTIALS_FULL_URI",
      "http://127.0.0.1:" + std::to_string(testing::ClosedPort()) + "/secretpath");
  Ask();
  ExpectError(ErrorCode::kUnavailable, "the container endpoint: ");
  EXPECT_EQ(result_->error().message.find("secretpath"), std::string::npos);
}

TEST_F(SourceContainerTest, ARefusalIsNotTriedAgainAndOnlyItsNameIsTold) {
  Full();
  Set("AWS_CONTAINER_AUTHORIZATION_TOKEN", kBearer);
  answer_ = [](const std::string&) {
    return Http(403, std::string(R"({"code":"AccessDenied","message":")") + kBearer + "\"}");
  };
  Ask();
  ExpectError(ErrorCode::kRefused, "answered 403 (AccessDenied); is its token right");
  EXPECT_EQ(requests_.size(), 1u);
}

TEST_F(SourceContainerTest, AnswersThatAreNoCredentialsAreSaidSoWithoutRepeatingThem) {
  Full();
  const std::string secret = kSecret;
  const std::vector<std::pair<std::string, std::string>> wrong = {
      {"<html>" + secret, "no JSON object"},
      {"\"" + secret + "\"", "no JSON object"},
      {"{\"SecretAccessKey\":\"" + secret + "\"}", "without AccessKeyId"},
      {"{\"AccessKeyId\":\"A\",\"SecretAccessKey\":5}", "without SecretAccessKey"},
      {"{\"AccessKeyId\":\"A\",\"SecretAccessKey\":\"" + secret + "\"}", "without Token"},
      {KeysJson("AKIA1", "tomorrow"), "an Expiration that is no time"},
      {KeysJson("AK IA", kLater), "an access key id with a blank"},
      {R"({"Code":"AssumeRoleUnauthorizedAccess"})", "(AssumeRoleUnauthorizedAccess)"},
      {std::string(70000, 'x'), "longer than 64KiB"},
  };
  for (const auto& [body, part] : wrong) {
    answer_ = [&body = body](const std::string&) { return Http(200, body); };
    Ask();
    ASSERT_FALSE(result_->ok());
    EXPECT_NE(result_->error().message.find(part), std::string::npos) << result_->error().message;
    ExpectNoSecret(result_->error().message);
  }
}

TEST_F(SourceContainerTest, AFetchThatIsDestroyedTellsNobody) {
  Full();
  Set("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", WriteFile("token", "x"));
  int told = 0;
  auto fetch = FetchFromContainer(context_, [&](base::Result<Fetched>) { ++told; });
  fetch.reset();
  fetch = FetchFromContainer(context_, [&](base::Result<Fetched>) { ++told; });
  EXPECT_TRUE(EventuallyPumped([&] { return !requests_.empty(); }));
  fetch.reset();
  RunFor(base::Duration::Millis(50));
  EXPECT_EQ(told, 0);
}

}  // namespace
}  // namespace leasehold::aws

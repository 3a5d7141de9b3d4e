// STS by a peer that behaves as documented, and by ones that do not; and its answers' form.
#include "aws/source_sts.h"

#include <gtest/gtest.h>

#include "source_fixture.h"

namespace leasehold::aws {
namespace {

using base::ErrorCode;

class SourceStsTest : public SourceFixture {
 protected:
  void SetUp() override {
    SourceFixture::SetUp();
    Set("AWS_ENDPOINT_URL_STS", Url());
    request_.role_arn = "arn:aws:iam::123456789012:role/orders";
    request_.token_file = WriteFile("token", std::string(kBearer) + "\n");
    answer_ = [](const std::string&) { return Http(200, Xml("AKIASTS")); };
  }
  void Ask() {
    Fetch([this](FetchDone done) {
      return FetchFromSts(context_, Profiles{}, request_, "the environment", std::move(done));
    });
  }
  void SignedBy(const std::string& id) {
    request_.token_file.clear();
    request_.signer = proto::sigv4::Key{id, kSecret, kToken};
  }
  static std::string Xml(const std::string& id) {
    return "<AssumeRoleResponse xmlns=\"https://sts.amazonaws.com/doc/2011-06-15/\">\n"
           "  <AssumeRoleResult>\n    <AssumedRoleUser><Arn>arn</Arn></AssumedRoleUser>\n"
           "    <Credentials>\n      <AccessKeyId>" +
           id +
           "</AccessKeyId>\n"
           "      <SecretAccessKey>" +
           kSecret +
           "</SecretAccessKey>\n"
           "      <SessionToken>" +
           kToken +
           "</SessionToken>\n"
           "      <Expiration>2099-01-01T00:00:00Z</Expiration>\n    </Credentials>\n"
           "  </AssumeRoleResult>\n</AssumeRoleResponse>";
  }
  static std::string Failure(const std::string& code, const std::string& message) {
    return "<ErrorResponse><Error><Type>Sender</Type><Code>" + code + "</Code><Message>" + message +
           "</Message></Error></ErrorResponse>";
  }
  std::string Body(size_t n) {
    return requests_.at(n).substr(requests_.at(n).find("\r\n\r\n") + 4);
  }

  RoleRequest request_;
};

TEST_F(SourceStsTest, AWebIdentitysTokenIsChangedForARolesCredentialsUnsigned) {
  request_.session_name = "pod/1";
  Ask();
  ExpectKey("AKIASTS");
  EXPECT_EQ(Body(0),
            "Action=AssumeRoleWithWebIdentity&Version=2011-06-15&RoleArn=arn%3Aaws%3Aiam%3A%3A"
            "123456789012%3Arole%2Forders&RoleSessionName=pod%2F1&WebIdentityToken=" +
                std::string(kBearer));
  EXPECT_EQ(HeaderOf(requests_.at(0), "Authorization"), "");
  EXPECT_EQ((*result_)->credentials.source,
            "role arn:aws:iam::123456789012:role/orders of the environment");
  EXPECT_EQ((*result_)->credentials.expires_unix_ms, 4070908800000);
}

TEST_F(SourceStsTest, TheTokenFileIsReadForEachFetch) {
  Ask();
  WriteFile("token", "rotated");
  Ask();
  EXPECT_NE(Body(1).find("WebIdentityToken=rotated"), std::string::npos);
  unlink(dir_.File("token").c_str());
  Ask();
  ExpectError(ErrorCode::kRefused, "token: there is no such file");
}

TEST_F(SourceStsTest, ARoleIsAssumedWithASignatureAndAllItsParameters) {
  SignedBy("AKIASIGNER");
  request_.session_name = "s";
  request_.external_id = "e";
  request_.duration_seconds = 900;
  Ask();
  ExpectKey("AKIASTS");
  EXPECT_NE(Body(0).find("Action=AssumeRole&"), std::string::npos);
  EXPECT_NE(Body(0).find("&ExternalId=e&DurationSeconds=900"), std::string::npos);
  const std::string authorization = HeaderOf(requests_.at(0), "Authorization");
  EXPECT_NE(authorization.find("AKIASIGNER/"), std::string::npos);
  EXPECT_NE(authorization.find("/eu-central-1/sts/aws4_request"), std::string::npos);
  EXPECT_EQ(HeaderOf(requests_.at(0), "X-Amz-Security-Token"), kToken);
}

TEST_F(SourceStsTest, AWrongClockIsCorrectedFromTheDateOfTheRefusal) {
  SignedBy("AKIASIGNER");
  answer_ = [this](const std::string&) {
    if (requests_.size() > 1) return Http(200, Xml("AKIASTS"));
    const std::string body = Failure("SignatureDoesNotMatch", "Signature expired: ...");
    return "HTTP/1.1 403 X\r\nDate: Sun, 06 Nov 2050 08:49:37 GMT\r\nContent-Length: " +
           std::to_string(body.size()) + "\r\n\r\n" + body;
  };
  Ask();
  ExpectKey("AKIASTS");
  EXPECT_NE(HeaderOf(requests_.at(0), "X-Amz-Date").substr(0, 8), "20501106");
  EXPECT_EQ(HeaderOf(requests_.at(1), "X-Amz-Date").substr(0, 8), "20501106");
}

TEST_F(SourceStsTest, ThrottlingServerErrorsAndAnUnreachableIssuerAreTriedAgain) {
  answer_ = [this](const std::string&) {
    if (requests_.size() == 1) return Http(400, Failure("IDPCommunicationError", "later"));
    return requests_.size() == 2 ? Http(500, "") : Http(200, Xml("AKIASTS"));
  };
  Ask();
  ExpectKey("AKIASTS");
  answer_ = [](const std::string&) { return Http(400, Failure("Throttling", "Rate exceeded")); };
  requests_.clear();
  Ask();
  ExpectError(ErrorCode::kUnavailable, "refused AssumeRoleWithWebIdentity for role arn:aws:iam::");
  EXPECT_EQ(requests_.size(), 3u);
}

TEST_F(SourceStsTest, ARefusalIsToldInItsWordsUnlessTheyRepeatASecret) {
  answer_ = [](const std::string&) {
    return Http(403, Failure("AccessDenied", "Not authorized to perform sts:AssumeRole"));
  };
  Ask();
  ExpectError(ErrorCode::kRefused, "403 AccessDenied: Not authorized to perform sts:AssumeRole");
  EXPECT_EQ(requests_.size(), 1u);
  for (const bool with_signature : {false, true}) {
    if (with_signature) SignedBy("AKIASIGNER");
    answer_ = [&](const std::string&) {
      return Http(400, Failure("InvalidIdentityToken",
                               std::string("not good: ") + (with_signature ? kToken : kBearer)));
    };
    Ask();
    ExpectError(ErrorCode::kRefused, "400 InvalidIdentityToken");
  }
}

TEST_F(SourceStsTest, AnswersThatAreNoCredentialsAreSaidSoWithoutRepeatingThem) {
  std::string no_token = Xml("A");
  no_token.erase(no_token.find("<SessionToken>"),
                 no_token.find("</SessionToken>") + 15 - no_token.find("<SessionToken>"));
  std::string cut = Xml("A");
  cut.resize(cut.size() - 30);
  std::string no_time = Xml("A");
  no_time.replace(no_time.find("2099"), 4, "soon");
  for (const std::string& body : {std::string("{}"), std::string(""), no_token, cut, no_time,
                                  std::string("<a>") + kSecret, Xml(" "), Xml("A\nB")}) {
    answer_ = [&](const std::string&) { return Http(200, body); };
    Ask();
    ASSERT_FALSE(result_->ok()) << body;
    EXPECT_EQ(result_->error().code, ErrorCode::kInvalid);
    ExpectNoSecret(result_->error().message);
  }
}

TEST_F(SourceStsTest, NobodyThereIsAnErrorThatNamesTheEndpoint) {
  const std::string where = "127.0.0.1:" + std::to_string(testing::ClosedPort());
  Set("AWS_ENDPOINT_URL_STS", "http://" + where);
  Ask();
  ExpectError(ErrorCode::kUnavailable, where);
}

}  // namespace
}  // namespace leasehold::aws

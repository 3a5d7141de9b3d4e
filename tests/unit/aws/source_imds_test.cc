// EC2 instance metadata by a peer that behaves as IMDSv2 does, and by ones that do not.
#include "aws/source_imds.h"

#include <gtest/gtest.h>

#include "source_fixture.h"

namespace leasehold::aws {
namespace {

using base::ErrorCode;

constexpr const char* kPath = "/latest/meta-data/iam/security-credentials/";

class SourceImdsTest : public SourceFixture {
 protected:
  void SetUp() override {
    SourceFixture::SetUp();
    answer_ = [this](const std::string& request) { return Imds(request); };
  }
  void Ask() {
    Fetch([this](FetchDone done) { return FetchFromImds(context_, profile_, std::move(done)); });
  }
  // As documented: a token by PUT with a time to live, and nothing without it.
  std::string Imds(const std::string& request) {
    const std::string target = TargetOf(request);
    if (target == "/latest/api/token") {
      if (!request.starts_with("PUT ")) return Http(405, "");
      if (HeaderOf(request, "X-aws-ec2-metadata-token-ttl-seconds").empty()) return Http(400, "");
      ++tokens_;
      return Http(200, token_);
    }
    if (HeaderOf(request, "X-aws-ec2-metadata-token") != token_) return Http(401, "");
    if (target == kPath) return Http(200, role_);
    if (target == kPath + role_) return Http(200, KeysJson("AKIAIMDS", expiration_));
    return Http(404, "");
  }

  const Profile* profile_ = nullptr;
  std::string token_ = kBearer;
  std::string role_ = "orders-role";
  std::string expiration_ = kLater;
  int tokens_ = 0;
};

TEST_F(SourceImdsTest, ATokenTheRolesNameAndItsCredentialsAreAskedFor) {
  Ask();
  ExpectKey("AKIAIMDS");
  EXPECT_EQ((*result_)->credentials.source, "EC2 instance metadata (role orders-role)");
  EXPECT_TRUE((*result_)->may_outlive_expiry);
  EXPECT_EQ(requests_.size(), 3u);
  EXPECT_EQ(server_.Connections(), 1u);  // on one connection
}

TEST_F(SourceImdsTest, ExpiredCredentialsAreGivenOnAsTheyAre) {
  expiration_ = "2020-01-01T00:00:00Z";
  Ask();
  ExpectKey("AKIAIMDS");
}

TEST_F(SourceImdsTest, ThereIsNoWayBackToVersionOne) {
  answer_ = [this](const std::string& request) {
    if (TargetOf(request) == "/latest/api/token") return Http(403, "");
    return TargetOf(request) == kPath ? Http(200, role_) : Http(200, KeysJson("V1", kLater));
  };
  Ask();
  ExpectError(ErrorCode::kRefused, "answered 403 when asked for the session token; IMDSv2 is");
  EXPECT_EQ(requests_.size(), 1u);
}

TEST_F(SourceImdsTest, ATokenThatIsRefusedIsAskedForAnewOnce) {
  bool refused = false;
  answer_ = [&](const std::string& request) {
    if (TargetOf(request) == kPath && !std::exchange(refused, true)) return Http(401, "");
    return Imds(request);
  };
  Ask();
  ExpectKey("AKIAIMDS");
  EXPECT_EQ(tokens_, 2);
  answer_ = [&](const std::string& request) {
    return TargetOf(request) == kPath ? Http(401, "") : Imds(request);
  };
  Ask();
  ExpectError(ErrorCode::kRefused, "answered 401 when asked for the role's name");
}

TEST_F(SourceImdsTest, ABusyServiceIsAskedAgain) {
  int busy = 0;
  answer_ = [&](const std::string& request) {
    if (TargetOf(request) == kPath && ++busy < 3) return busy == 1 ? Http(500, "") : Http(200, "");
    return Imds(request);
  };
  Ask();
  ExpectKey("AKIAIMDS");
  EXPECT_EQ(busy, 3);
}

TEST_F(SourceImdsTest, AMachineWithoutItHasItsAnswerAfterTwoAttempts) {
  answer_ = nullptr;
  context_.imds.timeout = base::Duration::Millis(50);
  const base::MonoTime start = loop::Loop::Now();
  Ask();
  ExpectError(ErrorCode::kTimeout, "EC2 instance metadata, the session token");
  EXPECT_EQ(requests_.size(), 2u);
  EXPECT_LT((loop::Loop::Now() - start).seconds(), 5.0);
}

TEST_F(SourceImdsTest, AnInstanceWithoutARoleAndWrongNamesAreSaidSo) {
  answer_ = [&](const std::string& request) {
    return TargetOf(request) == kPath ? Http(404, "") : Imds(request);
  };
  Ask();
  ExpectError(ErrorCode::kRefused, "this instance has no role");
  role_ = "../../evil role";
  answer_ = [&](const std::string& request) { return Imds(request); };
  Ask();
  ExpectError(ErrorCode::kInvalid, "a role's name that IAM does not allow");
  role_ = "gone";
  answer_ = [&](const std::string& request) {
    return TargetOf(request) == std::string(kPath) + "gone" ? Http(404, "") : Imds(request);
  };
  Ask();
  ExpectError(ErrorCode::kRefused, "answered 404 when asked for the credentials of role gone");
  answer_ = [&](const std::string& request) {
    return TargetOf(request) == std::string(kPath) + "gone"
               ? Http(200, std::string("{\"Code\":\"Failed\",\"x\":\"") + kSecret + "\"}")
               : Imds(request);
  };
  Ask();
  ExpectError(ErrorCode::kRefused, "(Failed)");
}

TEST_F(SourceImdsTest, ATokenWithALineBreakIsNotSentOn) {
  answer_ = [&](const std::string&) { return Http(200, std::string(kBearer) + "\r\nX-Evil: 1"); };
  Ask();
  ExpectError(ErrorCode::kInvalid, "a session token with a blank, a line break");
}

TEST_F(SourceImdsTest, EndpointModeAttemptsAndSwitchAreSettings) {
  Set("AWS_EC2_METADATA_SERVICE_ENDPOINT", Url() + "/");
  context_.imds_endpoint = "http://127.0.0.1:1";
  Ask();
  ExpectKey("AKIAIMDS");
  context_.environment.variables.erase("AWS_EC2_METADATA_SERVICE_ENDPOINT");
  Set("AWS_EC2_METADATA_SERVICE_ENDPOINT_MODE", "ipv6");
  context_.imds_endpoint_ipv6 = Url();
  Ask();
  ExpectKey("AKIAIMDS");
  Set("AWS_EC2_METADATA_SERVICE_ENDPOINT_MODE", "both");
  Ask();
  ExpectError(ErrorCode::kInvalid, "IPv4 or IPv6 would be right");
  Profile profile;
  profile.settings["ec2_metadata_service_endpoint"] = Url();
  profile.settings["metadata_service_num_attempts"] = "1";
  profile_ = &profile;
  Ask();
  ExpectKey("AKIAIMDS");
  requests_.clear();
  answer_ = [](const std::string&) { return Http(503, ""); };
  Ask();
  ExpectError(ErrorCode::kUnavailable, "answered 503");
  EXPECT_EQ(requests_.size(), 1u);
  Set("AWS_EC2_METADATA_DISABLED", "TRUE");
  Ask();
  ExpectError(ErrorCode::kRefused, "switched off (AWS_EC2_METADATA_DISABLED)");
  EXPECT_EQ(requests_.size(), 1u);
}

}  // namespace
}  // namespace leasehold::aws

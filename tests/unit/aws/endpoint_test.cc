// Where services are. The hosts were compared with botocore's own resolver over its endpoint rule
// sets, for three services, all partitions and all switches; a line of each form is kept here.
#include "aws/endpoint.h"

#include <gtest/gtest.h>

namespace leasehold::aws {
namespace {

class EndpointTest : public ::testing::Test {
 protected:
  void SetUp() override {
    options_.service = "sqs";
    profiles_.config_path = "/root/.aws/config";
  }
  void Set(const std::string& name, const std::string& value) {
    environment_.variables[name] = value;
  }
  void Setting(const std::string& name, const std::string& value) {
    profiles_.profiles["default"].settings[name] = value;
  }
  std::string Where() {
    const base::Result<Endpoint> found = ResolveEndpoint(options_, environment_, profiles_);
    return found.ok() ? found->ToString() + " " + found->region : found.error().message;
  }
  std::string Sts() {
    const base::Result<Endpoint> found = ResolveSts("", "", environment_, profiles_);
    return found.ok() ? found->ToString() + " " + found->region : found.error().message;
  }
  void ExpectWrong(const std::string& part) {
    const base::Result<Endpoint> found = ResolveEndpoint(options_, environment_, profiles_);
    ASSERT_FALSE(found.ok());
    EXPECT_EQ(found.error().code, base::ErrorCode::kInvalid);
    EXPECT_NE(found.error().message.find(part), std::string::npos) << found.error().message;
  }

  ServiceOptions options_;
  Environment environment_;
  Profiles profiles_;
};

TEST_F(EndpointTest, EachPartitionNamesItsHostsInItsOwnWay) {
  const auto of = [&](const std::string& region) {
    options_.region = region;
    return Where().substr(0, Where().find(' '));
  };
  EXPECT_EQ(of("eu-central-1"), "https://sqs.eu-central-1.amazonaws.com");
  EXPECT_EQ(of("cn-north-1"), "https://sqs.cn-north-1.amazonaws.com.cn");
  EXPECT_EQ(of("us-gov-west-1"), "https://sqs.us-gov-west-1.amazonaws.com");
  EXPECT_EQ(of("us-iso-east-1"), "https://sqs.us-iso-east-1.c2s.ic.gov");
  EXPECT_EQ(of("us-isob-east-1"), "https://sqs.us-isob-east-1.sc2s.sgov.gov");
  EXPECT_EQ(of("eu-isoe-west-1"), "https://sqs.eu-isoe-west-1.cloud.adc-e.uk");
  EXPECT_EQ(of("us-isof-south-1"), "https://sqs.us-isof-south-1.csp.hci.ic.gov");
  EXPECT_EQ(of("eusc-de-east-1"), "https://sqs.eusc-de-east-1.amazonaws.eu");
  EXPECT_EQ(of("xx-new-9"), "https://sqs.xx-new-9.amazonaws.com");
}

TEST_F(EndpointTest, FipsAndDualStackChangeTheHost) {
  options_.region = "us-east-1";
  options_.service = "dynamodb";
  Set("AWS_USE_FIPS_ENDPOINT", "true");
  EXPECT_EQ(Where(), "https://dynamodb-fips.us-east-1.amazonaws.com us-east-1");
  Set("AWS_USE_DUALSTACK_ENDPOINT", "TRUE");
  EXPECT_EQ(Where(), "https://dynamodb-fips.us-east-1.api.aws us-east-1");
  Set("AWS_USE_FIPS_ENDPOINT", "false");
  Setting("use_fips_endpoint", "true");  // the variable goes before it
  EXPECT_EQ(Where(), "https://dynamodb.us-east-1.api.aws us-east-1");
  options_.region = "cn-north-1";
  EXPECT_EQ(Where(), "https://dynamodb.cn-north-1.api.amazonwebservices.com.cn cn-north-1");
  environment_ = {};
  options_.region = "us-gov-west-1";
  EXPECT_EQ(Where(), "https://dynamodb.us-gov-west-1.amazonaws.com us-gov-west-1");
  options_.region = "fips-us-west-2";
  EXPECT_EQ(Where(), "https://dynamodb-fips.us-west-2.amazonaws.com us-west-2");
  Set("AWS_USE_DUALSTACK_ENDPOINT", "yes");
  ExpectWrong("AWS_USE_DUALSTACK_ENDPOINT is \"yes\"; true or false would be right");
}

TEST_F(EndpointTest, TheRegionIsTheOptionsTheEnvironmentsTheProfiles) {
  Setting("region", "eu-west-4");
  EXPECT_EQ(Where(), "https://sqs.eu-west-4.amazonaws.com eu-west-4");
  Set("AWS_DEFAULT_REGION", "eu-west-3");
  EXPECT_EQ(Where(), "https://sqs.eu-west-3.amazonaws.com eu-west-3");
  Set("AWS_REGION", "eu-west-2");
  EXPECT_EQ(Where(), "https://sqs.eu-west-2.amazonaws.com eu-west-2");
  options_.region = "eu-west-1";
  EXPECT_EQ(Where(), "https://sqs.eu-west-1.amazonaws.com eu-west-1");
}

TEST_F(EndpointTest, WithoutARegionTheErrorSaysWhereItMayBeWritten) {
  ExpectWrong("AWS_REGION");
  ExpectWrong("/root/.aws/config, which has no such profile");
  Set("AWS_REGION", "evil.example/#");
  ExpectWrong("AWS_REGION is \"evil.example/#\", which is no AWS region");
}

TEST_F(EndpointTest, EndpointsGoInTheSdksOrder) {
  options_.region = "eu-west-1";
  Setting("endpoint_url", "http://profile:1");
  EXPECT_EQ(Where(), "http://profile:1 eu-west-1");
  Setting("services", "local");
  profiles_.services["local"].nested["sqs"]["endpoint_url"] = "http://services:2/";
  EXPECT_EQ(Where(), "http://services:2 eu-west-1");
  Set("AWS_ENDPOINT_URL", "http://all:3");
  EXPECT_EQ(Where(), "http://all:3 eu-west-1");
  Set("AWS_ENDPOINT_URL_SQS", "https://one:443/a/b/");
  EXPECT_EQ(Where(), "https://one/a/b eu-west-1");
  Set("AWS_IGNORE_CONFIGURED_ENDPOINT_URLS", "true");
  EXPECT_EQ(Where(), "https://sqs.eu-west-1.amazonaws.com eu-west-1");
  options_.endpoint = "http://[::1]:9324";
  EXPECT_EQ(Where(), "http://[::1]:9324 eu-west-1");
}

TEST_F(EndpointTest, TheSwitchesMeanNothingForAnEndpointThatIsWrittenDown) {
  Set("AWS_USE_FIPS_ENDPOINT", "true");
  options_.endpoint = "http://127.0.0.1:8000";
  EXPECT_EQ(Where(), "http://127.0.0.1:8000 us-east-1");
}

TEST_F(EndpointTest, AServicesSectionThatIsNotThereIsAnError) {
  options_.region = "eu-west-1";
  Setting("services", "gone");
  ExpectWrong("has no [services gone]");
  profiles_.services["gone"].nested["s3"]["endpoint_url"] = "http://x";
  EXPECT_EQ(Where(), "https://sqs.eu-west-1.amazonaws.com eu-west-1");
}

TEST_F(EndpointTest, AnEndpointWithoutARegionIsSignedForItsHosts) {
  const auto of = [&](const std::string& url) {
    options_.endpoint = url;
    return Where().substr(Where().find(' ') + 1);
  };
  EXPECT_EQ(of("https://sqs.eu-central-1.amazonaws.com"), "eu-central-1");
  EXPECT_EQ(of("https://dynamodb-fips.us-west-2.api.aws"), "us-west-2");
  EXPECT_EQ(of("https://sqs.cn-north-1.amazonaws.com.cn"), "cn-north-1");
  EXPECT_EQ(of("https://vpce-0a1b-2c3d-1.sqs.eu-west-3.vpce.amazonaws.com"), "eu-west-3");
  EXPECT_EQ(of("https://queue.amazonaws.com"), "us-east-1");
  EXPECT_EQ(of("https://sqs.eu-central-1.amazonaws.com.evil.example"), "us-east-1");
  EXPECT_EQ(of("http://127.0.0.1:8000"), "us-east-1");
}

TEST_F(EndpointTest, WrongEndpointsAreNamedWithTheirPlaceAndWithoutPasswords) {
  Set("AWS_ENDPOINT_URL", "redis://x:1");
  ExpectWrong("AWS_ENDPOINT_URL: ");
  Set("AWS_ENDPOINT_URL", "http://me:SECRET@x:1");
  ExpectWrong("AWS_ENDPOINT_URL: ");
  EXPECT_EQ(Where().find("SECRET"), std::string::npos);
  Set("AWS_ENDPOINT_URL", "http://x:1/?a=b");
  ExpectWrong("an endpoint has no query");
}

TEST_F(EndpointTest, TheCaFileIsTheVariablesOrTheProfiles) {
  options_.region = "eu-west-1";
  Setting("ca_bundle", "/a.pem");
  EXPECT_EQ(ResolveEndpoint(options_, environment_, profiles_)->ca_file, "/a.pem");
  Set("AWS_CA_BUNDLE", "/b.pem");
  EXPECT_EQ(ResolveEndpoint(options_, environment_, profiles_)->ca_file, "/b.pem");
}

TEST_F(EndpointTest, StsIsAskedInTheRegionUnlessToldToBeAskedAsOfOld) {
  EXPECT_EQ(Sts(), "https://sts.amazonaws.com us-east-1");
  Set("AWS_REGION", "eu-west-1");
  EXPECT_EQ(Sts(), "https://sts.eu-west-1.amazonaws.com eu-west-1");
  Set("AWS_STS_REGIONAL_ENDPOINTS", "legacy");
  EXPECT_EQ(Sts(), "https://sts.amazonaws.com us-east-1");
  Set("AWS_REGION", "ap-east-1");
  EXPECT_EQ(Sts(), "https://sts.ap-east-1.amazonaws.com ap-east-1");
  Set("AWS_REGION", "eu-west-1");
  Set("AWS_ENDPOINT_URL_STS", "http://127.0.0.1:9");
  EXPECT_EQ(Sts(), "http://127.0.0.1:9 eu-west-1");
  Set("AWS_STS_REGIONAL_ENDPOINTS", "maybe");
  EXPECT_EQ(Sts(), "AWS_STS_REGIONAL_ENDPOINTS is \"maybe\"; regional or legacy would be right");
}

TEST_F(EndpointTest, TheProcesssOwnVariablesAreThoseOfAwsAndHome) {
  const Environment own = Environment::OfProcess();
  for (const auto& [name, value] : own.variables) {
    EXPECT_TRUE(name == "HOME" || name.starts_with("AWS_")) << name;
  }
  environment_.variables["AWS_REGION"] = "";
  EXPECT_FALSE(environment_.Get("AWS_REGION").has_value());
}

}  // namespace
}  // namespace leasehold::aws

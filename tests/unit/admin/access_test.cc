// Who may ask what: token, Host and Origin rules.
#include "admin/access.h"

#include <gtest/gtest.h>

#include <string>

namespace leasehold::admin {
namespace {

class AccessTest : public ::testing::Test {
 protected:
  base::Result<AccessRules> TryMake(const std::string& listen, const std::string& token) {
    options_.listen = listen;
    return AccessRules::Make(options_, base::ParseAddress(listen).value(), token);
  }
  AccessRules Make(const std::string& listen = "127.0.0.1:9090", const std::string& token = "") {
    auto rules = TryMake(listen, token);
    EXPECT_TRUE(rules.ok()) << rules.error().message;
    return std::move(rules).value();
  }
  static HttpRequest Request(const std::string& host) {
    HttpRequest request;
    request.host = host;
    return request;
  }
  // 0: allowed.
  static int Refused(const AccessRules& rules, const HttpRequest& request, Access access) {
    const auto answer = rules.Refuse(request, access);
    return answer ? answer->status : 0;
  }
  static int Host(const AccessRules& rules, const std::string& host) {
    return Refused(rules, Request(host), Access::kRead);
  }
  static int Origin(const AccessRules& rules, const std::string& origin) {
    HttpRequest request = Request("localhost");
    request.origin = origin;
    return Refused(rules, request, Access::kChange);
  }
  static int Bearer(const AccessRules& rules, const std::string& authorization, Access access) {
    HttpRequest request = Request("localhost");
    request.authorization = authorization;
    return Refused(rules, request, access);
  }

  AdminOptions options_;
};

TEST_F(AccessTest, AnAddressOthersCanReachDemandsAToken) {
  for (const char* listen : {"0.0.0.0:9090", "[::]:9090", "10.1.2.3:9090", "example.com:9090"}) {
    const auto rules = TryMake(listen, "");
    ASSERT_FALSE(rules.ok()) << listen;
    EXPECT_NE(rules.error().message.find(listen), std::string::npos);
    EXPECT_NE(rules.error().message.find("admin.token_file"), std::string::npos) << "the remedy";
    EXPECT_TRUE(TryMake(listen, "secret").ok());
  }
}

TEST_F(AccessTest, LoopbackNeedsNoToken) {
  for (const char* listen : {"127.0.0.1:0", "[::1]:9090", "localhost:9090", "unix:/tmp/a.sock"}) {
    EXPECT_TRUE(TryMake(listen, "").ok()) << listen;
  }
}

TEST_F(AccessTest, ATokenFileThatIsEmptyIsAnErrorAndNotNoToken) {
  options_.token_file = "/etc/leasehold/token";
  const auto rules = TryMake("127.0.0.1:9090", "\n");
  ASSERT_FALSE(rules.ok());
  EXPECT_NE(rules.error().message.find("/etc/leasehold/token"), std::string::npos);
}

TEST_F(AccessTest, ATokenOfSeveralWordsIsAnError) {
  EXPECT_FALSE(TryMake("127.0.0.1:9090", "two words").ok());
  EXPECT_FALSE(TryMake("127.0.0.1:9090", "two\nlines").ok());
  EXPECT_TRUE(TryMake("127.0.0.1:9090", "oneword\n").ok());
}

TEST_F(AccessTest, OurOwnNamesAreOurs) {
  const AccessRules rules = Make();
  for (const char* host : {"127.0.0.1:9090", "127.0.0.1", "localhost", "localhost:9090",
                           "LOCALHOST:9090", "localhost.", "[::1]:9090", "[::1]", "localhost:19090",
                           "127.0.0.1:1"}) {  // forwarded ports
    EXPECT_EQ(Host(rules, host), 0) << host;
  }
}

TEST_F(AccessTest, AnyOtherHostIsRefusedAsRebindingWouldBe) {
  const AccessRules rules = Make();
  for (const char* host : {"evil.example", "evil.example:9090", "localhost.evil.example",
                           "127.0.0.1.evil.example:9090", "10.0.0.7:9090", "", "[::1",
                           "localhost:", "localhost:x", "[::2]:9090", ":9090"}) {
    EXPECT_EQ(Host(rules, host), 421) << host;
  }
}

TEST_F(AccessTest, ProbesToo) {
  const AccessRules rules = Make();
  EXPECT_EQ(Refused(rules, Request("evil.example"), Access::kProbe), 421);
}

TEST_F(AccessTest, OnlyProbesMayDoWithoutAHost) {
  const AccessRules rules = Make();
  EXPECT_EQ(Refused(rules, HttpRequest(), Access::kProbe), 0);
  EXPECT_EQ(Refused(rules, HttpRequest(), Access::kRead), 421);
  EXPECT_EQ(Refused(rules, HttpRequest(), Access::kChange), 421);
}

TEST_F(AccessTest, ConfiguredNamesAreOursWithAnyPortOrTheirOwn) {
  options_.allowed_hosts = {"Admin.Example", "other.example:8443"};
  const AccessRules rules = Make();
  EXPECT_EQ(Host(rules, "admin.example"), 0);
  EXPECT_EQ(Host(rules, "admin.example:1234"), 0);
  EXPECT_EQ(Host(rules, "other.example:8443"), 0);
  EXPECT_EQ(Host(rules, "other.example:8444"), 421);
  EXPECT_EQ(Host(rules, "other.example"), 421);
}

TEST_F(AccessTest, BeyondLoopbackAnAddressIsOursAndANameIsNot) {
  const AccessRules rules = Make("0.0.0.0:9090", "secret");
  EXPECT_EQ(Refused(rules, Request("10.1.2.3:9090"), Access::kProbe), 0) << "a kubelet's probe";
  EXPECT_EQ(Refused(rules, Request("[fd00::1]:9090"), Access::kProbe), 0);
  EXPECT_EQ(Refused(rules, Request("evil.example:9090"), Access::kProbe), 421);
  EXPECT_EQ(Refused(rules, Request("10.1.2.3:9091"), Access::kProbe), 421);
}

TEST_F(AccessTest, OnAUnixSocketThePortDoesNotMatter) {
  const AccessRules rules = Make("unix:/tmp/a.sock");
  EXPECT_EQ(Host(rules, "localhost"), 0);
  EXPECT_EQ(Host(rules, "localhost:80"), 0);
  EXPECT_EQ(Host(rules, "evil.example"), 421);
}

TEST_F(AccessTest, APageFromElsewhereMayNotChangeAnything) {
  const AccessRules rules = Make();
  for (const char* origin :
       {"https://evil.example", "http://evil.example:9090", "null", "", "http://localhost",
        "http://localhost:3000", "https://localhost:9090", "file://", "http://localhost:9090/x"}) {
    EXPECT_EQ(Origin(rules, origin), 403) << origin;
  }
  EXPECT_EQ(Origin(rules, "http://localhost:9090"), 0);
  EXPECT_EQ(Origin(rules, "http://127.0.0.1:9090"), 0);
}

TEST_F(AccessTest, APageOfAnAllowedHostMay) {
  options_.allowed_hosts = {"admin.example"};
  const AccessRules rules = Make();
  EXPECT_EQ(Origin(rules, "https://admin.example"), 0);
}

TEST_F(AccessTest, OnLoopbackTheTokenGuardsWhatChangesThings) {
  const AccessRules rules = Make("127.0.0.1:9090", "secret\n");
  const HttpRequest bare = Request("localhost");
  EXPECT_EQ(Refused(rules, bare, Access::kProbe), 0);
  EXPECT_EQ(Refused(rules, bare, Access::kRead), 0);
  EXPECT_EQ(Refused(rules, bare, Access::kChange), 401);
  EXPECT_EQ(Bearer(rules, "Bearer secret", Access::kChange), 0);
  EXPECT_EQ(Bearer(rules, "bearer  secret", Access::kChange), 0);
}

TEST_F(AccessTest, BeyondLoopbackItGuardsReadsToo) {
  const AccessRules rules = Make("0.0.0.0:9090", "secret");
  const HttpRequest bare = Request("localhost");
  EXPECT_EQ(Refused(rules, bare, Access::kProbe), 0);
  EXPECT_EQ(Refused(rules, bare, Access::kRead), 401);
  EXPECT_EQ(Bearer(rules, "Bearer secret", Access::kRead), 0);
}

TEST_F(AccessTest, AWrongTokenIsRefused) {
  const AccessRules rules = Make("127.0.0.1:9090", "secret");
  for (const char* authorization : {"Bearer secre", "Bearer secrets", "Bearer Secret", "Bearer ",
                                    "Bearer", "secret", "", "Basic secret", "Bearersecret"}) {
    EXPECT_EQ(Bearer(rules, authorization, Access::kChange), 401) << authorization;
  }
}

TEST_F(AccessTest, ARefusalNamesTheSchemeAndNeverTheToken) {
  const AccessRules rules = Make("127.0.0.1:9090", "secret");
  const auto answer = rules.Refuse(Request("localhost"), Access::kChange);
  ASSERT_TRUE(answer.has_value());
  EXPECT_EQ(answer->headers.at(0).first, "WWW-Authenticate");
  EXPECT_EQ(answer->body.find("secret"), std::string::npos);
}

TEST_F(AccessTest, ConstantTimeComparisonComparesRight) {
  EXPECT_TRUE(EqualInConstantTime("abc", "abc"));
  EXPECT_FALSE(EqualInConstantTime("abd", "abc"));
  EXPECT_FALSE(EqualInConstantTime("ab", "abc"));
  EXPECT_FALSE(EqualInConstantTime("abcd", "abc"));
  EXPECT_FALSE(EqualInConstantTime("", "abc"));
  EXPECT_FALSE(EqualInConstantTime(std::string("abc\0", 4), "abc"));
}

}  // namespace
}  // namespace leasehold::admin

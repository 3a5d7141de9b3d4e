// Url: what is accepted, what is refused, and that no message shows a password.
#include "proto/url.h"

#include <gtest/gtest.h>

namespace leasehold::proto {
namespace {

std::string ErrorOf(std::string_view text) {
  const base::Result<Url> url = ParseUrl(text);
  return url.ok() ? "no error for " + std::string(text) : url.error().message;
}

bool Refused(std::string_view text) { return !ParseUrl(text).ok(); }

TEST(UrlTest, TheWholeFormIsTakenApart) {
  const base::Result<Url> url = ParseUrl("rediss://orders:s3cret@redis.internal:6380/7");
  ASSERT_TRUE(url.ok()) << url.error().message;
  EXPECT_EQ(url->scheme, "rediss");
  EXPECT_EQ(url->user, "orders");
  EXPECT_EQ(url->password, "s3cret");
  EXPECT_TRUE(url->has_password);
  EXPECT_EQ(url->host, "redis.internal");
  EXPECT_EQ(url->port, 6380);
  EXPECT_EQ(url->path, "/7");
}

TEST(UrlTest, WhatIsNotWrittenHasItsDefault) {
  EXPECT_EQ(ParseUrl("redis://h")->port, 6379);
  EXPECT_EQ(ParseUrl("rediss://h")->port, 6379);
  EXPECT_EQ(ParseUrl("http://h")->port, 80);
  EXPECT_EQ(ParseUrl("https://h")->port, 443);
  EXPECT_EQ(ParseUrl("http://h")->path, "");
  EXPECT_FALSE(ParseUrl("http://h")->has_password);
}

TEST(UrlTest, ASchemeIsTakenInAnyCase) { EXPECT_EQ(ParseUrl("HTTP://h/")->scheme, "http"); }

TEST(UrlTest, UserAndPasswordArePercentDecoded) {
  const base::Result<Url> url = ParseUrl("redis://a%40b:p%2Fw%3a%20:x@h");
  ASSERT_TRUE(url.ok()) << url.error().message;
  EXPECT_EQ(url->user, "a@b");
  EXPECT_EQ(url->password, "p/w: :x");
}

TEST(UrlTest, APasswordNeedsNoUser) {
  const base::Result<Url> url = ParseUrl("redis://:pw@h");
  ASSERT_TRUE(url.ok());
  EXPECT_EQ(url->user, "");
  EXPECT_EQ(url->password, "pw");
}

TEST(UrlTest, AnIpv6HostLosesItsBrackets) {
  EXPECT_EQ(ParseUrl("http://[::1]:8000/x")->host, "::1");
  EXPECT_EQ(ParseUrl("http://[::1]:8000/x")->port, 8000);
  EXPECT_EQ(ParseUrl("http://[fe80::1]")->host, "fe80::1");
  EXPECT_EQ(ParseUrl("http://[::1]:8000")->address().ToString(), "[::1]:8000");
}

TEST(UrlTest, AQueryBelongsToThePath) {
  EXPECT_EQ(ParseUrl("http://h/healthz?deep=1&x=%20")->path, "/healthz?deep=1&x=%20");
  EXPECT_EQ(ParseUrl("http://h?deep=1")->path, "/?deep=1");
}

TEST(UrlTest, WhatIsNotSurelyRightIsRefused) {
  for (const std::string_view text : {"",
                                      "h",
                                      "h:80",
                                      "//h",
                                      "http:/h",
                                      "http:h",
                                      "https:/h",
                                      "httpss://h",
                                      "ftp://h",
                                      "://h",
                                      " http://h",
                                      "http://",
                                      "http:///x",
                                      "http://:80",
                                      "http://h:",
                                      "http://h:0",
                                      "http://h:65536",
                                      "http://h:080",
                                      "http://h:+80",
                                      "http://h:8a",
                                      "http://h:80:81",
                                      "http://::1",
                                      "http://[::1",
                                      "http://[::1]80",
                                      "http://[h]",
                                      "http://[::1%25eth0]",
                                      "http://[]",
                                      "http://h h",
                                      "http://h\x7f",
                                      "http://h\xc3\xa4",
                                      "http://h/a b",
                                      "http://h/a\r\nX: y",
                                      "http://h/#top",
                                      "redis://a@b@h",
                                      "redis://a%4@h",
                                      "redis://a%zz@h",
                                      "redis://a%00@h",
                                      "redis://a b@h",
                                      "redis://@",
                                      "redis://u:p/w@h",
                                      "http://h\\x"}) {
    EXPECT_TRUE(Refused(text)) << text;
  }
  EXPECT_TRUE(Refused(std::string_view("http://h\0x", 10)));
  EXPECT_TRUE(Refused("http://" + std::string(254, 'h')));
  EXPECT_FALSE(Refused("http://" + std::string(253, 'h')));
  EXPECT_TRUE(Refused("http://h/" + std::string(3000, 'x')));
}

TEST(UrlTest, AnErrorSaysWhatWouldBeRight) {
  EXPECT_NE(ErrorOf("ftp://h").find("redis://, rediss://, http:// or https://"), std::string::npos);
  EXPECT_NE(ErrorOf("http://h:99999").find("1 to 65535"), std::string::npos);
  EXPECT_NE(ErrorOf("redis://a@b@h").find("%40"), std::string::npos);
  EXPECT_NE(ErrorOf("redis://u:p/w@h").find("%2F"), std::string::npos);
}

TEST(UrlTest, NoMessageShowsAPassword) {
  for (const std::string_view text :
       {"redis://u:s3cret@h:0", "ftp://u:s3cret@h", "redis://u:s3cret/x@h", "u:s3cret@h",
        "redis://u:s3cret@@h", "redis://u:s3cret%@h", "redis://u:s3cret@h/#x"}) {
    EXPECT_EQ(ErrorOf(text).find("s3cret"), std::string::npos) << ErrorOf(text);
  }
  EXPECT_EQ(ParseUrl("redis://u:s3cret@h/1")->ToString(), "redis://u:***@h:6379/1");
}

}  // namespace
}  // namespace leasehold::proto

// SigV4: the rules that the published vectors do not reach: what is signed and what never is, one
// spelling for all spellings, and that what is sent is what was signed.
#include "proto/sigv4.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "crypto/digest.h"
#include "proto/sigv4_canonical.h"

namespace leasehold::proto::sigv4 {
namespace {

class SigV4Test : public testing::Test {
 protected:
  void SetUp() override {
    headers_ = {{"Host", "sqs.eu-central-1.amazonaws.com"},
                {"Content-Type", "application/x-amz-json-1.0"}};
    payload_ = crypto::Sha256Hex("{}");
    request_.method = "POST";
    request_.payload_sha256_hex = payload_;
  }

  std::vector<Header> SignIt() {
    request_.headers = headers_;
    return Sign(request_, scope_, key_, kNow);
  }
  std::string Authorization() { return SignIt().back().second; }
  // "host;x-amz-date" of it.
  std::string Signed() {
    const std::string text = Authorization();
    const size_t begin = text.find("SignedHeaders=") + 14;
    return text.substr(begin, text.find(',', begin) - begin);
  }
  static std::string Value(const std::vector<Header>& headers, std::string_view name) {
    for (const Header& header : headers) {
      if (header.first == name) return header.second;
    }
    return "(absent)";
  }

  static constexpr int64_t kNow = 1772323198;  // 2026-02-28T23:59:58Z
  std::vector<Header> headers_;
  std::string payload_;
  Request request_;
  Scope scope_{"eu-central-1", "sqs"};
  Key key_{"AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY", ""};
};

TEST_F(SigV4Test, TheDateAndTheAuthorizationAreAdded) {
  const std::vector<Header> added = SignIt();
  ASSERT_EQ(added.size(), 2u);
  EXPECT_EQ(added[0], Header("X-Amz-Date", "20260228T235958Z"));
  EXPECT_EQ(added[1].first, "Authorization");
  EXPECT_TRUE(added[1].second.starts_with(
      "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20260228/eu-central-1/sqs/aws4_request, "
      "SignedHeaders=content-type;host;x-amz-date, Signature="));
}

TEST_F(SigV4Test, ASessionTokenIsAddedAndSigned) {
  key_.session_token = "token//of+a=session";
  EXPECT_EQ(Value(SignIt(), "X-Amz-Security-Token"), "token//of+a=session");
  EXPECT_EQ(Signed(), "content-type;host;x-amz-date;x-amz-security-token");
  const std::string with = Authorization();
  key_.session_token += "x";
  EXPECT_NE(Authorization(), with);
}

TEST_F(SigV4Test, S3IsToldThePayloadsHash) {
  request_.path_form = PathForm::kS3;
  EXPECT_EQ(Value(SignIt(), "X-Amz-Content-Sha256"), payload_);
  EXPECT_EQ(Signed(), "content-type;host;x-amz-content-sha256;x-amz-date");
}

TEST_F(SigV4Test, AnUnsignedPayloadIsSaidToBeSoToAllServices) {
  request_.payload_sha256_hex = kUnsignedPayload;
  EXPECT_EQ(Value(SignIt(), "X-Amz-Content-Sha256"), "UNSIGNED-PAYLOAD");
  EXPECT_EQ(Signed(), "content-type;host;x-amz-content-sha256;x-amz-date");
}

TEST_F(SigV4Test, TheAuthorizationComesLastAndNoSecretIsInAnyHeader) {
  key_.session_token = "token";
  request_.path_form = PathForm::kS3;
  const std::vector<Header> added = SignIt();
  ASSERT_EQ(added.size(), 4u);
  EXPECT_EQ(added.back().first, "Authorization");
  for (const auto& [name, value] : added) {
    EXPECT_EQ(value.find("wJalrXUtnFEMI"), std::string::npos) << name;
  }
}

TEST_F(SigV4Test, EveryPartChangesTheSignature) {
  const std::string whole = Authorization();
  const auto differs = [&](auto change) {
    const Request request = request_;
    const std::vector<Header> headers = headers_;
    const Key key = key_;
    const Scope scope = scope_;
    change();
    const bool different = Authorization() != whole;
    request_ = request;
    headers_ = headers;
    key_ = key;
    scope_ = scope;
    return different;
  };
  EXPECT_TRUE(differs([&] { request_.method = "GET"; }));
  EXPECT_TRUE(differs([&] { request_.path = "/x"; }));
  EXPECT_TRUE(differs([&] { request_.query = "x"; }));
  EXPECT_TRUE(differs([&] { headers_[0].second += "x"; }));
  EXPECT_TRUE(differs([&] { headers_[1].second += "x"; }));
  EXPECT_TRUE(differs([&] { headers_.emplace_back("X-Amz-Target", "x"); }));
  EXPECT_TRUE(differs([&] { request_.payload_sha256_hex = kUnsignedPayload; }));
  EXPECT_TRUE(differs([&] { key_.secret_access_key += "x"; }));
  EXPECT_TRUE(differs([&] { scope_.region = "us-east-1"; }));
  EXPECT_TRUE(differs([&] { scope_.service = "dynamodb"; }));
  EXPECT_FALSE(differs([&] { headers_[1].second = "  application/x-amz-json-1.0 "; }));
  EXPECT_FALSE(differs([&] { std::swap(headers_[0], headers_[1]); }));
  EXPECT_FALSE(differs([&] { headers_[0].first = "hOST"; }));
}

TEST_F(SigV4Test, ASignerThatRemembersItsKeySignsTheSame) {
  Signer signer;
  const auto same = [&](int64_t now) {
    request_.headers = headers_;
    return signer.Sign(request_, scope_, key_, now) == Sign(request_, scope_, key_, now);
  };
  EXPECT_TRUE(same(kNow));
  EXPECT_TRUE(same(kNow));
  EXPECT_TRUE(same(kNow + 1));
  EXPECT_TRUE(same(kNow + 2));  // the next day
  EXPECT_TRUE(same(kNow));
  key_.session_token = "token";
  EXPECT_TRUE(same(kNow));
  key_.secret_access_key += "x";
  EXPECT_TRUE(same(kNow));
  key_.access_key_id = "OTHER";
  EXPECT_TRUE(same(kNow));
  scope_ = {"eu-central-1sqs", ""};
  EXPECT_TRUE(same(kNow));
  scope_ = {"eu-central-1", "dynamodb"};
  EXPECT_TRUE(same(kNow));
  scope_.region = "us-east-1";
  EXPECT_TRUE(same(kNow));
}

TEST_F(SigV4Test, HeadersOfHopsAreLeftOut) {
  const std::string without = Authorization();
  for (const std::string_view name : {"Connection",
                                      "Keep-Alive",
                                      "Proxy-Connection",
                                      "Proxy-Authorization",
                                      "TE",
                                      "Trailer",
                                      "Transfer-Encoding",
                                      "Upgrade",
                                      "Expect",
                                      "User-Agent",
                                      "Via",
                                      "Forwarded",
                                      "X-Forwarded-For",
                                      "X-Forwarded-Proto",
                                      "X-Real-IP",
                                      "X-Amzn-Trace-Id",
                                      "Content-Length",
                                      "Accept-Encoding",
                                      "traceparent",
                                      "tracestate",
                                      "baggage",
                                      "X-B3-TraceId",
                                      "X-Envoy-Attempt-Count",
                                      "X-Request-Id",
                                      "Cache-Control",
                                      "Lease-Fencing-Token"}) {
    EXPECT_FALSE(MayBeSigned(name)) << name;
    headers_.emplace_back(name, "x");
  }
  EXPECT_EQ(Authorization(), without);
}

TEST_F(SigV4Test, OtherHeadersMayBeSigned) {
  for (const std::string_view name :
       {"Host", "Content-Type", "Content-MD5", "X-Amz-Date", "X-Amz-Target", "x-amz-meta-via",
        "Range", "If-Match", "My-Header1", "X-Amzn-Query-Mode", "", "viaduct", "t"}) {
    EXPECT_TRUE(MayBeSigned(name)) << name;
  }
}

TEST_F(SigV4Test, WhatAClientSignedWithIsKnownAndNotSignedAgain) {
  const std::string without = Authorization();
  for (const std::string_view name : {"Authorization", "AUTHORIZATION", "X-Amz-Date",
                                      "x-amz-security-token", "X-Amz-Content-Sha256"}) {
    EXPECT_TRUE(IsSignature(name)) << name;
    headers_.emplace_back(name, "the client's");
  }
  EXPECT_FALSE(IsSignature("X-Amz-Target"));
  EXPECT_FALSE(IsSignature("Date"));
  EXPECT_EQ(Authorization(), without);
}

TEST_F(SigV4Test, ARequestWithoutHostIsABug) {
  headers_ = {{"Content-Type", "text/plain"}};
  EXPECT_DEATH(SignIt(), "Host");
}

TEST_F(SigV4Test, ARequestWithoutAHashOfItsBodyIsABug) {
  request_.payload_sha256_hex = "";
  EXPECT_DEATH(SignIt(), "hash");
}

TEST_F(SigV4Test, PathsAreNormalisedForAllButS3) {
  for (const auto& [path, normal] :
       std::vector<std::pair<std::string_view, std::string_view>>{{"", "/"},
                                                                  {"/", "/"},
                                                                  {"//", "/"},
                                                                  {"/.", "/"},
                                                                  {"/..", "/"},
                                                                  {"/../../a", "/a"},
                                                                  {"/a/", "/a/"},
                                                                  {"/a//b", "/a/b"},
                                                                  {"/a/./b/../c", "/a/c"},
                                                                  {"/a/b/..", "/a"},
                                                                  {"/a/..b/...", "/a/..b/..."},
                                                                  {"a", "/a"},
                                                                  {"/%2e%2e/a", "/%2e%2e/a"}}) {
    EXPECT_EQ(NormalizePath(path), normal) << path;
  }
}

TEST_F(SigV4Test, PathsAreEncodedTwiceForAllButS3) {
  EXPECT_EQ(CanonicalPath("", PathForm::kOthers), "/");
  EXPECT_EQ(CanonicalPath("/000000000000/orders", PathForm::kOthers), "/000000000000/orders");
  EXPECT_EQ(CanonicalPath("/a%20b//c", PathForm::kOthers), "/a%2520b/c");
  EXPECT_EQ(CanonicalPath("/a:b@c", PathForm::kOthers), "/a%3Ab%40c");
}

TEST_F(SigV4Test, S3PathsKeepWhatIsThereInOneSpelling) {
  EXPECT_EQ(CanonicalPath("", PathForm::kS3), "/");
  EXPECT_EQ(CanonicalPath("//a/./../b//", PathForm::kS3), "//a/./../b//");
  EXPECT_EQ(CanonicalPath("/a%20b%C3%A4", PathForm::kS3), "/a%20b%C3%A4");
  EXPECT_EQ(CanonicalPath("/%c3%a4%41%7e", PathForm::kS3), "/%C3%A4A~");
  EXPECT_EQ(CanonicalPath("/a%2Fb", PathForm::kS3), "/a%2Fb");
  EXPECT_EQ(CanonicalPath("/a+b=c$", PathForm::kS3), "/a%2Bb%3Dc%24");
  EXPECT_EQ(CanonicalPath("/100%", PathForm::kS3), "/100%25");
  EXPECT_EQ(CanonicalPath("/%4", PathForm::kS3), "/%254");
  EXPECT_EQ(CanonicalPath("/%zz%4g", PathForm::kS3), "/%25zz%254g");
}

TEST_F(SigV4Test, QueriesHaveOneSpellingAndOneOrder) {
  for (const auto& [query, canonical] : std::vector<std::pair<std::string_view, std::string_view>>{
           {"", ""},
           {"a", "a="},
           {"a=", "a="},
           {"=", "="},
           {"=b", "=b"},
           {"&", ""},
           {"&a&&b&", "a=&b="},
           {"b=1&a=2", "a=2&b=1"},
           {"a=2&a=10&a=1", "a=1&a=10&a=2"},
           // By name first: "a-b=" sorts before "a=" as text, but "a" is before "a-b".
           {"a-b=1&a=2", "a=2&a-b=1"},
           {"a=b=c", "a=b%3Dc"},
           {"a=%2f%41~", "a=%2FA~"},
           {"a+b=c%2Bd", "a%20b=c%2Bd"},
           {"a=%", "a=%25"},
           {"a=%4", "a=%254"},
           {"a=/:?@!$'()*,;", "a=%2F%3A%3F%40%21%24%27%28%29%2A%2C%3B"},
           {"\xC3\xA4=1&Z=1&a=1", "%C3%A4=1&Z=1&a=1"}}) {
    EXPECT_EQ(CanonicalQuery(query), canonical) << query;
  }
}

TEST_F(SigV4Test, HeadersAreSortedTrimmedAndJoined) {
  const std::vector<Header> headers = {{"B", "2"}, {"a", " x \t  y "},  {"b", "1"},
                                       {"C", ""},  {"A", "\tz\r\n  w"}, {"a-b", "  "}};
  const std::vector<Header> expected = {{"a", "x y,z w"}, {"a-b", ""}, {"b", "2,1"}, {"c", ""}};
  const std::vector<Header> canonical = CanonicalHeaders(headers);
  EXPECT_EQ(canonical, expected);
  EXPECT_EQ(SignedHeaders(canonical), "a;a-b;b;c");
  EXPECT_EQ(SignedHeaders({}), "");
}

TEST_F(SigV4Test, BytesBeyondAsciiInAValueStayAsTheyAre) {
  const std::vector<Header> headers = {{"X-Amz-Meta-Name", "\xC3\xA4\x80"}};
  EXPECT_EQ(CanonicalHeaders(headers)[0].second, "\xC3\xA4\x80");
}

}  // namespace
}  // namespace leasehold::proto::sigv4

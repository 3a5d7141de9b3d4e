// SigV4 against the published vectors (vectors/sigv4.txt, which says where they are from): each
// step of each case, and the Authorization header where Sign makes the same choice of headers.
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "base/text.h"
#include "crypto/digest.h"
#include "proto/sigv4.h"

namespace leasehold::proto::sigv4 {
namespace {

constexpr size_t kCases = 43;

struct Vector {
  std::string name;
  std::string form;
  std::string method;
  std::string path;
  std::string query;
  std::vector<Header> headers;
  std::string body;
  std::string canonical;
  std::string to_sign;
  std::string signature;
};

// The text up to `end`, and what stands behind it.
std::string Cut(std::string_view& rest, std::string_view end) {
  const size_t at = rest.find(end);
  const std::string part(rest.substr(0, at));
  rest.remove_prefix(at == std::string_view::npos ? rest.size() : at + end.size());
  return part;
}

// Request lines of the suite may have blanks inside the path.
void ReadRequest(std::string_view text, Vector& vector) {
  std::string_view rest = text;
  std::string head = Cut(rest, "\n\n");
  vector.body = std::string(rest);
  std::string_view lines = head;
  const std::string line = Cut(lines, "\n");
  const size_t method_end = line.find(' ');
  const size_t target_end = line.rfind(' ');
  vector.method = line.substr(0, method_end);
  const std::string target = line.substr(method_end + 1, target_end - method_end - 1);
  std::string_view after = target;
  vector.path = Cut(after, "?");
  vector.query = std::string(after);
  while (!lines.empty()) {
    const std::string header = Cut(lines, "\n");
    const size_t colon = header.find(':');
    vector.headers.emplace_back(header.substr(0, colon), header.substr(colon + 1));
  }
}

std::vector<Vector> Vectors() {
  std::ifstream file(std::string(LEASEHOLD_TEST_DIR) + "/unit/proto/vectors/sigv4.txt",
                     std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  std::vector<Vector> vectors;
  std::string_view rest = text;
  Cut(rest, "\n==== ");
  while (!rest.empty()) {
    Vector vector;
    vector.name = Cut(rest, " ");
    vector.form = Cut(rest, "\n");
    ReadRequest(Cut(rest, "\n----\n"), vector);
    vector.canonical = Cut(rest, "\n----\n");
    vector.to_sign = Cut(rest, "\n----\n");
    vector.signature = Cut(rest, "\n");
    vectors.push_back(std::move(vector));
    Cut(rest, "==== ");
  }
  return vectors;
}

class SigV4VectorsTest : public testing::Test {
 protected:
  void SetUp() override {
    vectors_ = Vectors();
    ASSERT_EQ(vectors_.size(), kCases);
  }

  static Scope ScopeOf(const Vector& vector) {
    return {"us-east-1", vector.form == "s3" ? "s3" : "service"};
  }

  static Key KeyOf(const Vector& vector) {
    if (vector.form == "s3") {
      return {"AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", ""};
    }
    Key key{"AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY", ""};
    for (const auto& [name, value] : vector.headers) {
      if (base::EqualsIgnoreCase(name, "X-Amz-Security-Token")) key.session_token = value;
    }
    return key;
  }

  static int64_t TimeOf(const Vector& vector) {
    return *ParseAmzDate(base::Split(vector.to_sign, '\n')[1]);
  }

  static Request RequestOf(const Vector& vector, const std::vector<Header>& headers,
                           const std::string& payload) {
    Request request;
    request.method = vector.method;
    request.path = vector.path;
    request.query = vector.query;
    request.headers = headers;
    request.payload_sha256_hex = payload;
    request.path_form = vector.form == "others" ? PathForm::kOthers : PathForm::kS3;
    return request;
  }

  std::vector<Vector> vectors_;
};

TEST_F(SigV4VectorsTest, CanonicalRequestsAreThePublishedOnes) {
  for (const Vector& vector : vectors_) {
    const std::string payload = crypto::Sha256Hex(vector.body);
    EXPECT_EQ(CanonicalRequest(RequestOf(vector, vector.headers, payload)), vector.canonical)
        << vector.name;
  }
}

TEST_F(SigV4VectorsTest, StringsToSignAreThePublishedOnes) {
  for (const Vector& vector : vectors_) {
    EXPECT_EQ(StringToSign(vector.canonical, ScopeOf(vector), TimeOf(vector)), vector.to_sign)
        << vector.name;
  }
}

TEST_F(SigV4VectorsTest, SignaturesAreThePublishedOnes) {
  size_t compared = 0;
  for (const Vector& vector : vectors_) {
    // Signs Content-Length, or leaves S3's X-Amz-Content-Sha256 out: choices that Sign does not
    // make.
    if (vector.canonical.find("content-length;") != std::string::npos) continue;
    if (vector.form == "s3-path") continue;
    std::vector<Header> headers;
    for (const Header& header : vector.headers) {
      if (!IsSignature(header.first)) headers.push_back(header);
    }
    const std::string payload = crypto::Sha256Hex(vector.body);
    const std::vector<Header> added =
        Sign(RequestOf(vector, headers, payload), ScopeOf(vector), KeyOf(vector), TimeOf(vector));
    const std::string& authorization = added.back().second;
    EXPECT_TRUE(authorization.ends_with("Signature=" + vector.signature))
        << vector.name << ": " << authorization;
    ++compared;
  }
  EXPECT_EQ(compared, kCases - 7);
}

// The suite's get-header-value-multiline folds one header over three lines and signs it as three
// headers. Nothing of ours may send such a value, but three headers are what it means.
TEST_F(SigV4VectorsTest, AValueOverSeveralLinesIsSignedAsSeveralHeaders) {
  const std::vector<Header> headers = {{"Host", "example.amazonaws.com"},
                                       {"My-Header1", "value1"},
                                       {"My-Header1", "  value2"},
                                       {"My-Header1", "     value3"}};
  Request request;
  request.method = "GET";
  request.headers = headers;
  const std::string payload = crypto::Sha256Hex("");
  request.payload_sha256_hex = payload;
  const Key key{"AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY", ""};
  const std::vector<Header> added =
      Sign(request, {"us-east-1", "service"}, key, *ParseAmzDate("20150830T123600Z"));
  EXPECT_EQ(added.back().second,
            "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/service/aws4_request, "
            "SignedHeaders=host;my-header1;x-amz-date, "
            "Signature=ba17b383a53190154eb5fa66a1b836cc297cc0a3d70a5d00705980573d8ff790");
}

}  // namespace
}  // namespace leasehold::proto::sigv4

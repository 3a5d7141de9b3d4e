// sigv4_sign: signs what it is told, for the comparison with an SDK's signer
// (tests/integration/test_sigv4_botocore.py). One JSON object a line on standard input, one on
// standard output for each:
//
//   {"method", "path", "query", "headers": [[name, value], ...], "payload", "s3": bool, "region",
//    "service", "key", "secret", "token", "time": unix seconds}
//   {"added": [[name, value], ...], "canonical": the canonical request, to explain a difference}
#include <iostream>
#include <string>
#include <vector>

#include "base/check.h"
#include "base/json_writer.h"
#include "proto/json.h"
#include "proto/sigv4.h"

namespace leasehold {
namespace {

namespace sigv4 = proto::sigv4;

std::string Text(const proto::Json& json, std::string_view key) {
  const std::optional<std::string> text = json.String(key);
  CHECK(text.has_value(), "a member is missing");
  return *text;
}

std::vector<sigv4::Header> Headers(const proto::Json& json) {
  std::vector<sigv4::Header> headers;
  for (const proto::Json& pair : json.Find("headers")->Elements()) {
    headers.emplace_back(*pair.At(0)->AsString(), *pair.At(1)->AsString());
  }
  return headers;
}

// What Sign signed, made again from its parts.
std::string Canonical(sigv4::Request request, const std::vector<sigv4::Header>& added) {
  std::vector<sigv4::Header> covered;
  for (const sigv4::Header& header : request.headers) {
    if (sigv4::MayBeSigned(header.first) && !sigv4::IsSignature(header.first)) {
      covered.push_back(header);
    }
  }
  covered.insert(covered.end(), added.begin(), added.end() - 1);
  request.headers = covered;
  return sigv4::CanonicalRequest(request);
}

std::string Answer(const proto::Json& json) {
  const std::string method = Text(json, "method");
  const std::string path = Text(json, "path");
  const std::string query = Text(json, "query");
  const std::string payload = Text(json, "payload");
  const std::string region = Text(json, "region");
  const std::string service = Text(json, "service");
  const std::vector<sigv4::Header> headers = Headers(json);
  const bool s3 = *json.Bool("s3");
  const sigv4::Request request = {
      method, path, query, headers, payload, s3 ? sigv4::PathForm::kS3 : sigv4::PathForm::kOthers};
  const sigv4::Key key = {Text(json, "key"), Text(json, "secret"), Text(json, "token")};
  const std::vector<sigv4::Header> added =
      sigv4::Sign(request, {region, service}, key, *json.Int("time"));
  std::string line;
  base::JsonWriter writer(line);
  writer.BeginObject().Key("added").BeginArray();
  for (const auto& [name, value] : added) {
    writer.BeginArray().String(name).String(value).EndArray();
  }
  writer.EndArray().Member("canonical", Canonical(request, added)).EndObject();
  return line;
}

}  // namespace
}  // namespace leasehold

int main() {
  std::string line;
  while (std::getline(std::cin, line)) {
    const auto json = leasehold::proto::Json::Parse(line);
    CHECK(json.ok(), "a line that is no JSON");
    std::cout << leasehold::Answer(*json) << "\n";
  }
  return 0;
}

#include "sqs_signature.h"

#include <vector>

#include "base/text.h"
#include "crypto/digest.h"
#include "proto/sigv4.h"

namespace leasehold::bench {
namespace {

using proto::http1::RequestHead;

// The value of "name=value" in the list after the algorithm; empty: not there.
std::string_view Part(std::string_view authorization, std::string_view name) {
  for (const std::string_view raw : base::Split(authorization, ',')) {
    const std::string_view part = base::Trim(raw);
    if (part.size() > name.size() && part.starts_with(name) && part[name.size()] == '=') {
      return part.substr(name.size() + 1);
    }
  }
  return {};
}

std::string SigningKey(std::string_view secret, const std::vector<std::string_view>& credential) {
  std::string key = "AWS4" + std::string(secret);
  for (size_t i = 1; i < credential.size(); ++i) {  // day, region, service, "aws4_request"
    const crypto::Digest256 digest = crypto::HmacSha256(key, credential[i]);
    key = crypto::AsText(digest);
  }
  return key;
}

}  // namespace

std::string WrongSignature(const RequestHead& head, std::string_view body,
                           std::string_view access_key_id, std::string_view secret) {
  constexpr std::string_view kAlgorithm = "AWS4-HMAC-SHA256 ";
  std::string_view authorization = head.Find("Authorization");
  if (!authorization.starts_with(kAlgorithm)) return "Authorization is not AWS4-HMAC-SHA256";
  authorization.remove_prefix(kAlgorithm.size());
  const std::vector<std::string_view> credential =
      base::Split(Part(authorization, "Credential"), '/');
  if (credential.size() != 5) return "Credential has not five parts";
  if (credential[0] != access_key_id) return "Credential names another access key";
  const auto at = proto::sigv4::ParseAmzDate(head.Find("X-Amz-Date"));
  if (!at) return "X-Amz-Date is none";

  std::vector<proto::sigv4::Header> headers;
  bool host = false;
  for (const std::string_view name : base::Split(Part(authorization, "SignedHeaders"), ';')) {
    headers.emplace_back(name, head.Find(name));
    host = host || name == "host";
  }
  if (!host) return "SignedHeaders lacks host";
  const size_t query = head.origin.find('?');
  const std::string payload = crypto::Sha256Hex(body);
  proto::sigv4::Request request;
  request.method = head.method;
  request.path = head.origin.substr(0, query);
  if (query != std::string_view::npos) request.query = head.origin.substr(query + 1);
  request.headers = headers;
  request.payload_sha256_hex = payload;
  const std::string text =
      proto::sigv4::StringToSign(proto::sigv4::CanonicalRequest(request),
                                 {.region = credential[2], .service = credential[3]}, *at);
  const std::string right = crypto::HmacSha256Hex(SigningKey(secret, credential), text);
  return Part(authorization, "Signature") == right ? ""
                                                   : "the signature is not that of the request";
}

}  // namespace leasehold::bench

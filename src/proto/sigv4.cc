#include "proto/sigv4.h"

#include <algorithm>
#include <array>

#include "base/check.h"
#include "base/text.h"
#include "crypto/digest.h"
#include "proto/sigv4_canonical.h"

namespace leasehold::proto::sigv4 {
namespace {

constexpr std::string_view kAlgorithm = "AWS4-HMAC-SHA256";
constexpr std::string_view kTerminator = "aws4_request";
constexpr size_t kDayChars = 8;  // "20150830"

constexpr std::string_view kDateHeader = "X-Amz-Date";
constexpr std::string_view kTokenHeader = "X-Amz-Security-Token";
constexpr std::string_view kPayloadHeader = "X-Amz-Content-Sha256";

constexpr std::array<std::string_view, 4> kSignature = {
    "authorization", "x-amz-date", "x-amz-security-token", "x-amz-content-sha256"};

// Hop-by-hop headers (RFC 9110 7.6.1), what proxies rewrite or add, and what meshes and tracers
// put into every request that passes.
constexpr std::array<std::string_view, 31> kOfHops = {"accept-encoding",
                                                      "authorization",
                                                      "b3",
                                                      "baggage",
                                                      "cache-control",
                                                      "connection",
                                                      "content-length",
                                                      "expect",
                                                      "forwarded",
                                                      "from",
                                                      "keep-alive",
                                                      "max-forwards",
                                                      "origin",
                                                      "pragma",
                                                      "priority",
                                                      "referer",
                                                      "te",
                                                      "traceparent",
                                                      "tracestate",
                                                      "trailer",
                                                      "transfer-encoding",
                                                      "true-client-ip",
                                                      "upgrade",
                                                      "user-agent",
                                                      "via",
                                                      "x-amzn-trace-id",
                                                      "x-cloud-trace-context",
                                                      "x-ot-span-context",
                                                      "x-real-ip",
                                                      "x-request-id",
                                                      "x-client-ip"};
constexpr std::array<std::string_view, 7> kOfHopsPrefixes = {
    "cf-", "lease-", "proxy-", "sec-", "x-b3-", "x-envoy-", "x-forwarded-"};

// "20150830/us-east-1/service/aws4_request"
std::string CredentialScope(std::string_view date, const Scope& scope) {
  std::string text(date.substr(0, kDayChars));
  text.append("/").append(scope.region).append("/").append(scope.service);
  return text.append("/").append(kTerminator);
}

// The headers that Sign adds, but for Authorization.
std::vector<Header> Added(const Request& request, const Key& key, std::string_view date) {
  std::vector<Header> added;
  added.reserve(4);
  added.emplace_back(kDateHeader, date);
  if (!key.session_token.empty()) added.emplace_back(kTokenHeader, key.session_token);
  // Who reads "unsigned" as the payload must be told that it is; S3 wants to be told in any case.
  if (request.path_form == PathForm::kS3 || request.payload_sha256_hex == kUnsignedPayload) {
    added.emplace_back(kPayloadHeader, request.payload_sha256_hex);
  }
  return added;
}

}  // namespace

bool MayBeSigned(std::string_view name) {
  const std::string lower = base::ToLower(name);
  if (std::find(kOfHops.begin(), kOfHops.end(), lower) != kOfHops.end()) return false;
  return std::none_of(kOfHopsPrefixes.begin(), kOfHopsPrefixes.end(),
                      [&](std::string_view prefix) { return lower.starts_with(prefix); });
}

bool IsSignature(std::string_view name) {
  return std::any_of(kSignature.begin(), kSignature.end(),
                     [&](std::string_view of) { return base::EqualsIgnoreCase(name, of); });
}

std::string StringToSign(std::string_view canonical_request, const Scope& scope,
                         int64_t unix_seconds) {
  const std::string date = FormatAmzDate(unix_seconds);
  std::string text(kAlgorithm);
  text.append("\n").append(date).append("\n");
  text.append(CredentialScope(date, scope)).append("\n");
  return text.append(crypto::Sha256Hex(canonical_request));
}

std::vector<Header> Sign(const Request& request, const Scope& scope, const Key& key,
                         int64_t unix_seconds) {
  return Signer().Sign(request, scope, key, unix_seconds);
}

const crypto::Digest256& Signer::SigningKey(const Key& key, const Scope& scope,
                                            std::string_view day) {
  // Parted by a byte that none of them has: a day, a region and a service go into a header.
  std::string of(day);
  of.append("\n").append(scope.region).append("\n").append(scope.service).append("\n");
  of.append(key.secret_access_key);
  if (of == of_) return signing_key_;
  signing_key_ = crypto::HmacSha256("AWS4" + key.secret_access_key, day);
  for (const std::string_view part : {scope.region, scope.service, kTerminator}) {
    signing_key_ = crypto::HmacSha256(crypto::AsText(signing_key_), part);
  }
  of_ = std::move(of);
  return signing_key_;
}

std::vector<Header> Signer::Sign(const Request& request, const Scope& scope, const Key& key,
                                 int64_t unix_seconds) {
  CHECK(!request.payload_sha256_hex.empty(), "a signature covers the body's hash");
  const std::string date = FormatAmzDate(unix_seconds);
  std::vector<Header> added = Added(request, key, date);
  std::vector<Header> covered;
  covered.reserve(request.headers.size() + added.size());
  bool has_host = false;
  for (const Header& header : request.headers) {
    if (!MayBeSigned(header.first) || IsSignature(header.first)) continue;
    has_host = has_host || base::EqualsIgnoreCase(header.first, "host");
    covered.push_back(header);
  }
  CHECK(has_host, "a signature covers the Host header");
  covered.insert(covered.end(), added.begin(), added.end());

  const std::vector<Header> canonical = CanonicalHeaders(covered);
  const std::string string_to_sign =
      StringToSign(CanonicalRequest(request, canonical), scope, unix_seconds);
  std::string authorization(kAlgorithm);
  authorization.append(" Credential=").append(key.access_key_id).append("/");
  authorization.append(CredentialScope(date, scope)).append(", SignedHeaders=");
  authorization.append(SignedHeaders(canonical)).append(", Signature=");
  const crypto::Digest256& signing_key =
      SigningKey(key, scope, std::string_view(date).substr(0, kDayChars));
  authorization.append(crypto::HmacSha256Hex(crypto::AsText(signing_key), string_to_sign));
  added.emplace_back("Authorization", std::move(authorization));
  return added;
}

}  // namespace leasehold::proto::sigv4

// SigV4: AWS Signature Version 4, sans I/O and without a clock: what is to be signed in, the
// headers that carry the signature out. Not here: credentials and where they come from
// (aws/credentials.h), the correction of a wrong clock (aws/service.h). Invariant: a signature
// covers exactly the headers it is given, of which none may be one that a proxy on the way adds,
// drops or changes; the caller sends path, query and these headers byte for byte as they were
// signed.
//
// Source: "AWS Signature Version 4 for API requests" (IAM User Guide); the published test suite
// (aws-sig-v4-test-suite) is in tests/unit/proto.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "crypto/digest.h"

namespace leasehold::proto::sigv4 {

struct Key {
  std::string access_key_id;
  std::string secret_access_key;  // a secret
  std::string session_token;      // a secret; empty: none
};

// How the path becomes canonical. S3 takes it as it is, encoded once, because "a//b" and "a/./b"
// are names there; all others remove dot segments and doubled slashes, and encode once more.
enum class PathForm : uint8_t { kOthers, kS3 };

using Header = std::pair<std::string, std::string>;

struct Request {
  std::string_view method;
  std::string_view path = "/";          // as in the request line: percent-encoded
  std::string_view query;               // as in the request line, without "?"
  std::span<const Header> headers;      // Host must be among them
  std::string_view payload_sha256_hex;  // of the body; or kUnsignedPayload (S3)
  PathForm path_form = PathForm::kOthers;
};
inline constexpr std::string_view kUnsignedPayload = "UNSIGNED-PAYLOAD";

struct Scope {
  std::string_view region;   // "eu-central-1"
  std::string_view service;  // the signing name: "dynamodb", "sqs", "sts", "s3"
};

// The headers to add: X-Amz-Date, X-Amz-Security-Token if the key has one (both signed),
// X-Amz-Content-Sha256 (signed) for S3 and for an unsigned payload, and Authorization, which comes
// last. Signed are besides those of the request's headers that may be (MayBeSigned); the others are
// as if they were not there. Whoever passes a client's headers on drops those that IsSignature
// names, or they would be there twice. `unix_seconds` is the service's time as far as we know it.
std::vector<Header> Sign(const Request& request, const Scope& scope, const Key& key,
                         int64_t unix_seconds);

// Sign, many times with the same key: remembers the key that is derived of it for a day, a region
// and a service, which is most of the work (four HMACs of five). Not shared between services.
class Signer {
 public:
  std::vector<Header> Sign(const Request& request, const Scope& scope, const Key& key,
                           int64_t unix_seconds);

 private:
  const crypto::Digest256& SigningKey(const Key& key, const Scope& scope, std::string_view day);

  std::string of_;                   // all that the derived key depends on; empty: none yet
  crypto::Digest256 signing_key_{};  // a secret
};

// The steps, for tests and for whoever must explain a refused signature. CanonicalRequest takes all
// headers that it is given, which are then those that were signed, the added ones too.
std::string CanonicalRequest(const Request& request);
std::string StringToSign(std::string_view canonical_request, const Scope& scope,
                         int64_t unix_seconds);

// May a header of this name be signed? Not those that hops add, drop or change (Connection,
// Content-Length, Expect, Transfer-Encoding, User-Agent, Via, X-Forwarded-*, X-Amzn-Trace-Id, ...).
bool MayBeSigned(std::string_view name);
// Is it one of those by which a client signed for somebody else, which go when a request is signed
// anew: Authorization, X-Amz-Date, X-Amz-Security-Token, X-Amz-Content-Sha256?
bool IsSignature(std::string_view name);

// "20150830T123600Z" (a time before 1970 or after 9999 becomes the nearest in between); and back,
// for what a service says of its clock.
std::string FormatAmzDate(int64_t unix_seconds);
std::optional<int64_t> ParseAmzDate(std::string_view text);
// An HTTP Date header ("Sun, 06 Nov 1994 08:49:37 GMT", RFC 9110 5.6.7, IMF-fixdate only; the
// weekday must be the date's).
std::optional<int64_t> ParseHttpDate(std::string_view text);

}  // namespace leasehold::proto::sigv4

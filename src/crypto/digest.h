// Digests: SHA-256, HMAC-SHA-256 and MD5, the door to OpenSSL for them. For sidecars that share a
// secret, AWS signatures, and checksums that a protocol demands. Pure functions; nothing here is a
// cipher or a connection (those are loop's).
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace leasehold::crypto {

using Digest256 = std::array<uint8_t, 32>;

// SHA-256 (FIPS 180-4).
Digest256 Sha256(std::string_view text);
std::string Sha256Hex(std::string_view text);

// HMAC-SHA-256 (RFC 2104, FIPS 180-4) of `text` under `key`. Keys chain: the bytes of one digest
// may be the next one's key (AsText).
Digest256 HmacSha256(std::string_view key, std::string_view text);
std::string HmacSha256Hex(std::string_view key, std::string_view text);

// MD5 (RFC 1321): no protection against anybody, only the checksum that SQS and S3 use. Empty where
// OpenSSL refuses it (FIPS mode).
std::string Md5Hex(std::string_view text);

// Lower-case hexadecimal digits, two a byte.
std::string Hex(std::span<const uint8_t> bytes);
// A digest's bytes as they are, for use as a key.
std::string_view AsText(const Digest256& digest);

// Compares in a time that depends on the lengths only.
bool EqualSecrets(std::string_view a, std::string_view b);

}  // namespace leasehold::crypto

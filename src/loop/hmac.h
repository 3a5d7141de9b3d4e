// Keyed digests (the door to OpenSSL for them), for sidecars that share a secret. Pure functions.
#pragma once

#include <string>
#include <string_view>

namespace leasehold::loop {

// HMAC-SHA-256 (RFC 2104, FIPS 180-4) of `text` under `key`, as 64 lower-case hexadecimal digits.
std::string HmacSha256Hex(std::string_view key, std::string_view text);

// Compares in a time that depends on the lengths only.
bool EqualSecrets(std::string_view a, std::string_view b);

}  // namespace leasehold::loop

#include "crypto/digest.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include "base/check.h"

namespace leasehold::crypto {
namespace {

const unsigned char* Bytes(std::string_view text) {
  return reinterpret_cast<const unsigned char*>(text.data());
}

}  // namespace

Digest256 Sha256(std::string_view text) {
  Digest256 digest{};
  unsigned int size = 0;
  const int made =
      EVP_Digest(text.data(), text.size(), digest.data(), &size, EVP_sha256(), nullptr);
  CHECK(made == 1 && size == digest.size(), "SHA-256 is part of every OpenSSL");
  return digest;
}

std::string Sha256Hex(std::string_view text) { return Hex(Sha256(text)); }

Digest256 HmacSha256(std::string_view key, std::string_view text) {
  Digest256 digest{};
  unsigned int size = 0;
  const unsigned char* made = HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()),
                                   Bytes(text), text.size(), digest.data(), &size);
  CHECK(made != nullptr && size == digest.size(), "HMAC-SHA-256 is part of every OpenSSL");
  return digest;
}

std::string HmacSha256Hex(std::string_view key, std::string_view text) {
  return Hex(HmacSha256(key, text));
}

std::string Md5Hex(std::string_view text) {
  std::array<uint8_t, 16> digest{};
  unsigned int size = 0;
  // Absent where OpenSSL is in FIPS mode: then there is no checksum to compare with.
  if (EVP_Digest(text.data(), text.size(), digest.data(), &size, EVP_md5(), nullptr) != 1) {
    return {};
  }
  return Hex(digest);
}

std::string Hex(std::span<const uint8_t> bytes) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string hex;
  hex.reserve(2 * bytes.size());
  for (const uint8_t byte : bytes) {
    hex += kDigits[byte >> 4];
    hex += kDigits[byte & 15];
  }
  return hex;
}

std::string_view AsText(const Digest256& digest) {
  return {reinterpret_cast<const char*>(digest.data()), digest.size()};
}

bool EqualSecrets(std::string_view a, std::string_view b) {
  return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

}  // namespace leasehold::crypto

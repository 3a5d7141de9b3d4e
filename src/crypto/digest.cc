#include "crypto/digest.h"

// SHA-256 by OpenSSL 3's older functions, which it calls deprecated: the newer ones (EVP_*) bring
// up its providers first, which costs an idle sidecar 1.8 MiB, and look an algorithm up at each
// call.
#define OPENSSL_SUPPRESS_DEPRECATED
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/sha.h>

namespace leasehold::crypto {
namespace {

constexpr size_t kBlockBytes = 64;  // of SHA-256

Digest256 Sha256Of(std::string_view first, std::string_view second) {
  Digest256 digest{};
  SHA256_CTX state;
  SHA256_Init(&state);
  SHA256_Update(&state, first.data(), first.size());
  SHA256_Update(&state, second.data(), second.size());
  SHA256_Final(digest.data(), &state);
  return digest;
}

}  // namespace

Digest256 Sha256(std::string_view text) { return Sha256Of(text, {}); }

std::string Sha256Hex(std::string_view text) { return Hex(Sha256(text)); }

Digest256 HmacSha256(std::string_view key, std::string_view text) {
  std::array<char, kBlockBytes> inner{};
  std::array<char, kBlockBytes> outer{};
  const Digest256 short_key = key.size() > kBlockBytes ? Sha256(key) : Digest256{};
  if (key.size() > kBlockBytes) key = AsText(short_key);
  for (size_t i = 0; i < kBlockBytes; ++i) {
    const char byte = i < key.size() ? key[i] : '\0';
    inner[i] = static_cast<char>(byte ^ 0x36);
    outer[i] = static_cast<char>(byte ^ 0x5c);
  }
  const Digest256 digest = Sha256Of({inner.data(), inner.size()}, text);
  return Sha256Of({outer.data(), outer.size()}, AsText(digest));
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

#include "base/base64.h"

#include <cstddef>
#include <cstdint>

namespace leasehold::base {
namespace {

constexpr std::string_view kDigits =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

int ValueOf(char c) {
  if (c >= 'A' && c <= 'Z') return c - 'A';
  if (c >= 'a' && c <= 'z') return c - 'a' + 26;
  if (c >= '0' && c <= '9') return c - '0' + 52;
  if (c == '+') return 62;
  return c == '/' ? 63 : -1;
}

}  // namespace

std::string Base64Encode(std::string_view bytes) {
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (size_t i = 0; i < bytes.size(); i += 3) {
    const size_t count = bytes.size() - i < 3 ? bytes.size() - i : 3;
    uint32_t group = 0;
    for (size_t k = 0; k < 3; ++k) {
      group = (group << 8) | (k < count ? static_cast<unsigned char>(bytes[i + k]) : 0U);
    }
    for (size_t k = 0; k < 4; ++k) {
      text += k <= count ? kDigits[(group >> (18 - 6 * k)) & 63U] : '=';
    }
  }
  return text;
}

std::optional<std::string> Base64Decode(std::string_view text) {
  if (text.size() % 4 != 0) return std::nullopt;
  std::string bytes;
  bytes.reserve(text.size() / 4 * 3);
  for (size_t i = 0; i < text.size(); i += 4) {
    const bool last = i + 4 == text.size();
    size_t digits = 4;
    while (last && digits > 2 && text[i + digits - 1] == '=') --digits;
    uint32_t group = 0;
    for (size_t k = 0; k < digits; ++k) {
      const int value = ValueOf(text[i + k]);
      if (value < 0) return std::nullopt;
      group |= static_cast<uint32_t>(value) << (18 - 6 * k);
    }
    for (size_t k = 0; k + 1 < digits; ++k) {
      bytes += static_cast<char>((group >> (16 - 8 * k)) & 0xffU);
    }
    // Bits that no byte takes must be zero, or two texts would mean the same.
    if (digits < 4 && (group & (0xffffffU >> (8 * (digits - 1)))) != 0) return std::nullopt;
  }
  return bytes;
}

}  // namespace leasehold::base

// Base64 (RFC 4648, section 4: with '+', '/' and padding): bytes as text and back. Pure. Strict:
// one text for each sequence of bytes, no blanks, no missing padding.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace leasehold::base {

std::string Base64Encode(std::string_view bytes);
std::optional<std::string> Base64Decode(std::string_view text);

}  // namespace leasehold::base

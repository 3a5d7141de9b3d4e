// Percent-encoding (RFC 3986 2.1): bytes into %XX and back. Pure functions. Not here: what a '+'
// means (a blank in a form, itself in a path), and which '/', '&' or '=' part what; that is for
// whoever knows the format. Invariant: PercentDecode(PercentEncode(bytes)) == bytes.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace leasehold::proto {

// 0..15, or -1 for what is no hexadecimal digit.
int HexDigitValue(char c);

// A letter, a digit, or one of "-._~": what never needs encoding (RFC 3986 2.3).
bool IsUnreserved(char c);

// Appends `byte` as "%XX", in upper case.
void AppendEncoded(std::string& out, char byte);

// Every byte but the unreserved ones, and those of `keep`, becomes %XX.
std::string PercentEncode(std::string_view bytes, std::string_view keep = "");

// Nothing for a '%' without two hexadecimal digits behind it. All else stands for itself, '+' too.
std::optional<std::string> PercentDecode(std::string_view text);

}  // namespace leasehold::proto

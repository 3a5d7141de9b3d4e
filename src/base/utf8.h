// UTF-8 (RFC 3629): where one character ends and the next begins. Pure; strict: no overlong forms,
// no surrogates, nothing above U+10FFFF.
#pragma once

#include <cstddef>
#include <string_view>

namespace leasehold::base {

// Length of the well-formed sequence at `text[at]`, 0 if there is none.
size_t Utf8Length(std::string_view text, size_t at);

}  // namespace leasehold::base

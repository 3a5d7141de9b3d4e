// The parts of a canonical request, for sigv4.cc and for tests. Not for callers: sigv4.h is.
// Pure functions. Invariant: each is idempotent but CanonicalPath of kOthers, which encodes.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "proto/sigv4.h"

namespace leasehold::proto::sigv4 {

// Without empty, "." and ".." segments (RFC 3986 5.2.4; nothing is above the root). A '/' at the
// end stays. Encoded dots are names. Begins with '/'.
std::string NormalizePath(std::string_view path);
std::string CanonicalPath(std::string_view path, PathForm form);

// name=value for each parameter, in one spelling, sorted by name and then by value.
std::string CanonicalQuery(std::string_view query);

// Names in lower case, sorted, each once; values trimmed, doubled ones joined by commas.
std::vector<Header> CanonicalHeaders(std::span<const Header> headers);
std::string SignedHeaders(std::span<const Header> canonical_headers);  // "host;x-amz-date"

// With these, as CanonicalHeaders gave them, in the place of the request's own.
std::string CanonicalRequest(const Request& request, std::span<const Header> canonical_headers);

}  // namespace leasehold::proto::sigv4

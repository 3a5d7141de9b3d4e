// Writers of HTTP/1 heads: they append to a string that the caller reuses, so that nothing is
// allocated per message once it has grown. They write what they are given: values that come from
// outside must have come through http1.h's parsers, which let no line break through. Chunk framing
// is gate/http_outgoing.h's, which knows the pieces.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace leasehold::proto::http1 {

// "GET /x HTTP/1.1\r\n"
void AppendRequestLine(std::string& out, std::string_view method, std::string_view target);
// "HTTP/1.1 200 OK\r\n"; an empty reason stays empty.
void AppendStatusLine(std::string& out, int status, std::string_view reason);
// "Name: value\r\n"
void AppendHeader(std::string& out, std::string_view name, std::string_view value);
void AppendHeader(std::string& out, std::string_view name, uint64_t value);

inline constexpr std::string_view kCrlf = "\r\n";

// "Service Unavailable" for 503, and so on; "Unknown" for what has no name.
std::string_view ReasonPhrase(int status);

}  // namespace leasehold::proto::http1

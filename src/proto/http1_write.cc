#include "proto/http1_write.h"

#include <array>
#include <charconv>

namespace leasehold::proto::http1 {
namespace {

void AppendNumber(std::string& out, uint64_t value) {
  std::array<char, 24> digits;  // 20 decimal digits at most
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), value).ptr;
  out.append(digits.data(), static_cast<size_t>(end - digits.data()));
}

}  // namespace

void AppendRequestLine(std::string& out, std::string_view method, std::string_view target) {
  out.append(method).append(" ").append(target).append(" HTTP/1.1\r\n");
}

void AppendStatusLine(std::string& out, int status, std::string_view reason) {
  out.append("HTTP/1.1 ");
  AppendNumber(out, static_cast<uint64_t>(status));
  out.append(" ").append(reason).append(kCrlf);
}

void AppendHeader(std::string& out, std::string_view name, std::string_view value) {
  out.append(name).append(": ").append(value).append(kCrlf);
}

void AppendHeader(std::string& out, std::string_view name, uint64_t value) {
  out.append(name).append(": ");
  AppendNumber(out, value);
  out.append(kCrlf);
}

std::string_view ReasonPhrase(int status) {
  switch (status) {
    case 100: return "Continue";
    case 101: return "Switching Protocols";
    case 200: return "OK";
    case 202: return "Accepted";
    case 204: return "No Content";
    case 304: return "Not Modified";
    case 400: return "Bad Request";
    case 401: return "Unauthorized";
    case 403: return "Forbidden";
    case 404: return "Not Found";
    case 405: return "Method Not Allowed";
    case 408: return "Request Timeout";
    case 409: return "Conflict";
    case 411: return "Length Required";
    case 412: return "Precondition Failed";
    case 413: return "Content Too Large";
    case 414: return "URI Too Long";
    case 415: return "Unsupported Media Type";
    case 421: return "Misdirected Request";
    case 429: return "Too Many Requests";
    case 431: return "Request Header Fields Too Large";
    case 500: return "Internal Server Error";
    case 501: return "Not Implemented";
    case 502: return "Bad Gateway";
    case 503: return "Service Unavailable";
    case 504: return "Gateway Timeout";
    case 505: return "HTTP Version Not Supported";
    case 508: return "Loop Detected";
    default: return "Unknown";
  }
}

}  // namespace leasehold::proto::http1

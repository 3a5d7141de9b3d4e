// What makes a request head and a response head acceptable beyond their syntax.
#include <algorithm>

#include "proto/http1.h"
#include "proto/http1_syntax.h"

namespace leasehold::proto::http1 {
namespace {

bool Equals(std::string_view text, std::string_view lower) {
  return std::equal(text.begin(), text.end(), lower.begin(), lower.end(), [](char a, char b) {
    return ((a >= 'A' && a <= 'Z') ? static_cast<char>(a | 0x20) : a) == b;
  });
}

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

// A name has at most 253 bytes (RFC 1035 2.3.4), escaped ones three times that, and a port. A gate
// repeats the host in X-Forwarded-Host, so that its size is part of what a head may grow by.
constexpr size_t kHostBytesMax = 1024;

bool IsSaneHost(std::string_view host) {
  return host.size() <= kHostBytesMax && std::none_of(host.begin(), host.end(), [](char c) {
           return c <= ' ' || c == ',' || c == '/' || c == '?' || c == '#' || c == '@' ||
                  c == '\\' || c == '\x7f';
         });
}

bool IsIdempotent(std::string_view method) {  // RFC 9110 9.2.2
  return method == "GET" || method == "HEAD" || method == "PUT" || method == "DELETE" ||
         method == "OPTIONS" || method == "TRACE";
}

}  // namespace

bool RequestParser::AcceptHead(std::string_view first_line) {
  head_.method = first_line.substr(0, first_line.find(' '));
  head_.target = syntax_->target;
  head_.version_minor = first_line.back() - '0';
  head_.is_head = head_.method == "HEAD";
  head_.idempotent = IsIdempotent(head_.method);
  if (head_.method == "CONNECT") return Fail(501, "CONNECT is not served here");
  // llhttp forgives blanks between method, target and version; one blank each is the grammar.
  if (head_.method.size() + head_.target.size() + 10 != first_line.size()) {
    return Fail(400, "the request line must be: method, one blank, target, one blank, version");
  }
  return AcceptTarget() && AcceptHost() && AcceptFields(head_);
}

bool RequestParser::AcceptTarget() {
  const std::string_view target = head_.target;
  if (target.size() > limits().target_bytes_max) {
    return Fail(414, "the request target is longer than target_bytes_max");
  }
  if (target.find('#') != std::string_view::npos) {
    return Fail(400, "a request target has no fragment");
  }
  head_.origin = target;
  head_.host = {};
  if (target.front() == '/') return true;
  if (target == "*") {
    return head_.method == "OPTIONS" || Fail(400, "only OPTIONS may ask for \"*\"");
  }
  const bool http = Equals(target.substr(0, 7), "http://");
  if (!http && !Equals(target.substr(0, 8), "https://")) {
    return Fail(400, "a request target must begin with \"/\" or \"http://\"");
  }
  const std::string_view rest = target.substr(http ? 7 : 8);
  const size_t end = std::min(rest.find_first_of("/?"), rest.size());
  if (end == 0) return Fail(400, "the request target names no host");
  head_.host = rest.substr(0, end);
  head_.origin = rest.substr(end);
  return true;
}

bool RequestParser::AcceptHost() {
  int hosts = 0;
  std::string_view host;
  head_.expect_continue = false;
  for (const Header& header : head_.headers) {
    if (header.id == HeaderId::kHost) ++hosts, host = header.value;
    if (header.id == HeaderId::kExpect && !AcceptExpectation(header.value)) return false;
  }
  if (hosts > 1) return Fail(400, "more than one Host header");
  if (hosts == 0 && head_.version_minor == 1) return Fail(400, "HTTP/1.1 needs a Host header");
  if (!IsSaneHost(host) || !IsSaneHost(head_.host)) {
    return Fail(400, "the host is not a name or address with an optional port");
  }
  if (head_.host.empty()) head_.host = host;  // RFC 9112 3.2.2: absolute-form goes first
  return true;
}

bool RequestParser::AcceptExpectation(std::string_view value) {
  if (!Equals(value, "100-continue")) {
    return Fail(417, "the only expectation understood is 100-continue");
  }
  head_.expect_continue = head_.version_minor == 1;
  return true;
}

bool ResponseParser::AcceptHead(std::string_view first_line) {
  // "HTTP/1.1 200 OK"; CheckFirstLine has seen its first five letters and length.
  const std::string_view version = first_line.substr(5, 3);
  if ((version != "1.1" && version != "1.0") || first_line[8] != ' ') {
    return Fail(502, "the answer is not HTTP/1.1 or HTTP/1.0");
  }
  const std::string_view code = first_line.substr(9, 3);
  const bool ended = first_line.size() == 12 || first_line[12] == ' ';
  if (!ended || !std::all_of(code.begin(), code.end(), IsDigit) || code[0] == '0') {
    return Fail(502, "the answer's status is not three digits, 100 or above");
  }
  head_.version_minor = version[2] - '0';
  head_.status = (code[0] - '0') * 100 + (code[1] - '0') * 10 + (code[2] - '0');
  head_.reason = first_line.size() > 13 ? first_line.substr(13) : std::string_view();
  // llhttp lets anything stand here, and we pass it on.
  const bool printable = std::none_of(head_.reason.begin(), head_.reason.end(), [](char c) {
    return (static_cast<unsigned char>(c) < 0x20 && c != '\t') || c == '\x7f';
  });
  if (!printable) return Fail(502, "the answer's reason phrase holds control characters");
  if (!AcceptFields(head_)) return false;
  // RFC 9112 6.3: these have no body whatever their headers announce.
  if (answer_to_head_ || head_.status < 200 || head_.status == 204 || head_.status == 304) {
    head_.framing = Framing::kNone;
  } else if (head_.framing == Framing::kNone && !head_.has_content_length) {
    head_.framing = Framing::kUntilClose;
    head_.keep_alive = false;
  }
  return true;
}

}  // namespace leasehold::proto::http1

#include "client/http_exchange.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/text.h"
#include "proto/http1_write.h"

namespace leasehold::client {
namespace {

namespace http1 = proto::http1;
using base::Error;
using base::ErrorCode;

bool IsTokenByte(char c) {
  return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
         std::string_view("!#$%&'*+-.^_`|~").find(c) != std::string_view::npos;
}

bool IsToken(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), IsTokenByte);
}

// Visible ASCII and, where allowed, blanks: nothing that could end the line it stands in.
bool IsLineText(std::string_view text, bool blanks) {
  return std::all_of(text.begin(), text.end(), [blanks](char c) {
    const auto byte = static_cast<unsigned char>(c);
    const bool blank = c == ' ' || c == '\t';
    return blank ? blanks : byte > ' ' && byte < 0x7f;
  });
}

// Written by WriteHead: a second one would let the server see another request than was meant.
constexpr std::array<std::string_view, 4> kOurs = {"Host", "Connection", "Content-Length",
                                                   "Transfer-Encoding"};

base::Status CheckHeaders(const HttpRequest& request) {
  for (const auto& [name, value] : request.headers) {
    if (!IsToken(name) || !IsLineText(value, true)) {
      return Error{ErrorCode::kInvalid, "header \"" + base::Printable(name) +
                                            "\" has a line break or another byte headers cannot "
                                            "have in its name or value"};
    }
    for (const std::string_view ours : kOurs) {
      if (!base::EqualsIgnoreCase(name, ours)) continue;
      return Error{ErrorCode::kInvalid,
                   "header \"" + name + "\" is written by the call itself; leave it out"};
    }
  }
  return {};
}

bool HasHeader(const HttpRequest& request, std::string_view name) {
  return std::any_of(request.headers.begin(), request.headers.end(), [name](const auto& header) {
    return base::EqualsIgnoreCase(header.first, name);
  });
}

}  // namespace

base::Status CheckRequest(const HttpRequest& request) {
  if (!IsToken(request.method)) {
    return Error{ErrorCode::kInvalid, "\"" + base::Printable(request.method) +
                                          "\" is not an HTTP method; GET or POST would be"};
  }
  if (request.target.empty() || !IsLineText(request.target, false)) {
    return Error{ErrorCode::kInvalid,
                 "\"" + base::Printable(request.target) +
                     "\" is not an HTTP request target; blanks and control bytes are written %XX"};
  }
  if (!IsLineText(request.host_header, false)) {
    return Error{ErrorCode::kInvalid, "\"" + base::Printable(request.host_header) +
                                          "\" cannot be a Host header; it has blanks or controls"};
  }
  return CheckHeaders(request);
}

std::string WriteHead(const HttpRequest& request, const base::Address& address, bool keep_alive) {
  std::string host = request.host_header;
  if (host.empty()) {
    host = address.kind == base::Address::Kind::kUnix ? "localhost" : address.ToString();
  }
  std::string out;
  http1::AppendRequestLine(out, request.method, request.target);
  http1::AppendHeader(out, "Host", host);
  if (!HasHeader(request, "User-Agent")) {
    http1::AppendHeader(out, "User-Agent", "leasehold/" LEASEHOLD_VERSION);
  }
  http1::AppendHeader(out, "Connection", keep_alive ? "keep-alive" : "close");
  for (const auto& [name, value] : request.headers) http1::AppendHeader(out, name, value);
  if (!request.body.empty() || request.method == "POST" || request.method == "PUT") {
    http1::AppendHeader(out, "Content-Length", static_cast<uint64_t>(request.body.size()));
  }
  out += http1::kCrlf;
  return out;
}

std::string CallName(const HttpRequest& request, const base::Address& address) {
  if (!request.name.empty()) return request.name;
  return request.method + " " + address.ToString() + base::Printable(request.target);
}

void AnswerReader::Expect(const HttpRequest& request) {
  parser_.ExpectAnswerToHead(request.method == "HEAD");
  response_ = {};
  body_bytes_max_ = request.body_bytes_max;
  head_is_enough_ = request.head_is_enough;
  hands_on_ = false;
  keeps_connection_ = false;
}

AnswerReader::Progress AnswerReader::Next(std::string_view& input) {
  while (true) {
    const http1::Step step = parser_.Next(input);
    input.remove_prefix(step.consumed);
    Progress progress = Progress::kMore;
    switch (step.event) {
      case http1::Event::kNeedMore: return Progress::kMore;
      case http1::Event::kHead: progress = TakeHead(); break;
      case http1::Event::kBody: progress = TakeBody(step.body); break;
      case http1::Event::kComplete:
        if (response_.status == 0) break;  // of a 1xx
        return Progress::kComplete;
      case http1::Event::kError:
        return Fail(ErrorCode::kUnavailable,
                    std::string("the answer is not HTTP/1: ") + parser_.error().message);
    }
    if (progress != Progress::kMore) return progress;
  }
}

AnswerReader::Progress AnswerReader::Finish() {
  const http1::Step step = parser_.Finish();
  if (step.event == http1::Event::kComplete && response_.status != 0) return Progress::kComplete;
  return Fail(ErrorCode::kClosed, parser_.idle() ? "the connection ended without an answer"
                                                 : "the connection ended inside the answer");
}

AnswerReader::Progress AnswerReader::TakeHead() {
  const http1::ResponseHead& head = parser_.head();
  if (head.interim()) return Progress::kMore;
  response_.status = head.status;
  response_.headers.reserve(head.headers.size());
  for (const http1::Header& header : head.headers) {
    response_.headers.emplace_back(header.name, header.value);
  }
  if (head_is_enough_ || head.status == 101) return Progress::kComplete;
  keeps_connection_ = head.keep_alive;
  return Progress::kHead;
}

AnswerReader::Progress AnswerReader::TakeBody(std::string_view piece) {
  if (hands_on_) {
    piece_ = piece;
    return Progress::kBody;
  }
  if (response_.body.size() + piece.size() > body_bytes_max_) {
    return Fail(ErrorCode::kLimit,
                "the answer's body is longer than " + base::FormatSize(body_bytes_max_));
  }
  response_.body += piece;
  return Progress::kMore;
}

AnswerReader::Progress AnswerReader::Fail(ErrorCode code, std::string why) {
  error_ = {code, std::move(why)};
  return Progress::kFailed;
}

}  // namespace leasehold::client

// What all HTTP calls of this room share, without a connection: may a request be sent, how is it
// written, and AnswerReader, which makes a bounded answer of the bytes that come. Sans I/O; for
// http_call.cc and http_connection.cc. Invariants: nothing that CheckRequest passed can end a line
// it stands in; what a reader keeps is at most the request's body_bytes_max and one head.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/address.h"
#include "base/result.h"
#include "client/http_call.h"
#include "proto/http1.h"

namespace leasehold::client {

// kInvalid: which part cannot be sent, and why. The value of a header may be a secret: it is not
// repeated.
base::Status CheckRequest(const HttpRequest& request);

// Request line and headers with the empty line; Host, User-Agent (unless the request has its own),
// Connection and Content-Length are added. The body follows as it is.
std::string WriteHead(const HttpRequest& request, const base::Address& address, bool keep_alive);

// What messages call the request: its own name, else "GET 127.0.0.1:8000/healthz".
std::string CallName(const HttpRequest& request, const base::Address& address);

class AnswerReader {
 public:
  enum class Progress : uint8_t {
    kMore,      // all input is taken
    kHead,      // the final head is in response(); HandOn() may be called now
    kBody,      // after HandOn: piece() is some of the body, valid as long as the input
    kComplete,  // response() is whole; also with the head, where that is enough
    kFailed,    // error() says why, without the call's name; only destruction remains
  };

  AnswerReader() : parser_(proto::http1::Limits{}) {}

  // The next answer is to `request`.
  void Expect(const HttpRequest& request);
  // Takes what one event needs off the front of `input`. Call until kMore.
  Progress Next(std::string_view& input);
  // The server has sent its last byte: kComplete if that ends the body, else kFailed.
  Progress Finish();
  // The body is given piece by piece and not kept.
  void HandOn() { hands_on_ = true; }

  HttpResponse& response() { return response_; }
  std::string_view piece() const { return piece_; }
  const base::Error& error() const { return error_; }
  // After a kComplete of Next: by this answer the connection may serve another call.
  bool keeps_connection() const { return keeps_connection_; }

 private:
  Progress TakeHead();
  Progress TakeBody(std::string_view piece);
  Progress Fail(base::ErrorCode code, std::string why);

  proto::http1::ResponseParser parser_;
  HttpResponse response_;
  std::string_view piece_;
  base::Error error_;
  size_t body_bytes_max_ = 0;
  bool head_is_enough_ = false;
  bool hands_on_ = false;
  bool keeps_connection_ = false;
};

}  // namespace leasehold::client

// HTTP/1 parser: every vector of the field cases and every thing llhttp takes that we must not, fed
// whole, byte by byte, and cut in two at each place.
#include "proto/http1.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "proto/http1_write.h"

namespace leasehold::proto::http1 {
namespace {

// What came out of a parser, as one comparable text.
struct Outcome {
  std::string text;  // "H B(abc) C T(name=value)" ...; "E400"
  std::string message;
  int status = 0;  // of the error; 0: none
  size_t consumed = 0;
};

template <typename P>
void Drive(P& parser, std::string_view piece, Outcome& out, bool& body_open) {
  for (;;) {
    const Step step = parser.Next(piece);
    piece.remove_prefix(step.consumed);
    out.consumed += step.consumed;
    switch (step.event) {
      case Event::kNeedMore: EXPECT_TRUE(piece.empty()); return;
      case Event::kHead: out.text += "H "; break;
      case Event::kBody:
        if (!body_open) out.text += "B:";
        out.text += step.body;
        body_open = true;
        continue;
      case Event::kComplete:
        for (const Header& t : parser.trailers()) {
          out.text += "T(" + std::string(t.name) + "=" + std::string(t.value) + ")";
        }
        out.text += body_open ? " C " : "C ";
        break;
      case Event::kError:
        out.status = parser.error().status;
        out.message = parser.error().message;
        out.text += "E" + std::to_string(out.status);
        return;
    }
    body_open = false;
  }
}

template <typename P>
Outcome Feed(P& parser, std::string_view bytes, size_t piece_size) {
  Outcome out;
  bool body_open = false;
  while (!bytes.empty() && out.status == 0) {
    const std::string piece(
        bytes.substr(0, piece_size));  // its own memory, so that ASan sees views
    bytes.remove_prefix(piece.size());
    Drive(parser, piece, out, body_open);
  }
  return out;
}

class Http1Test : public ::testing::Test {
 protected:
  void SetUp() override {
    limits_.head_bytes_max = 1024;
    limits_.target_bytes_max = 256;
  }

  Outcome Request(std::string_view bytes) {
    RequestParser whole(limits_);
    const Outcome expected = Feed(whole, bytes, bytes.size());
    for (const size_t size : {size_t{1}, size_t{2}, size_t{3}, size_t{7}}) {
      RequestParser parser(limits_);
      const Outcome got = Feed(parser, bytes, size);
      EXPECT_EQ(got.status, expected.status) << "in pieces of " << size << ": " << bytes;
      if (expected.status == 0) {
        EXPECT_EQ(got.text, expected.text) << "in pieces of " << size;
      }
    }
    return expected;
  }
  Outcome Response(std::string_view bytes, bool to_head = false) {
    ResponseParser whole(limits_);
    whole.ExpectAnswerToHead(to_head);
    const Outcome expected = Feed(whole, bytes, bytes.size());
    ResponseParser parser(limits_);
    parser.ExpectAnswerToHead(to_head);
    const Outcome got = Feed(parser, bytes, 1);
    EXPECT_EQ(got.status, expected.status) << bytes;
    if (expected.status == 0) {
      EXPECT_EQ(got.text, expected.text);
    }
    return expected;
  }
  // Request lines and headers without the framing under test.
  static std::string Post(const std::string& headers, const std::string& body = "") {
    return "POST /x HTTP/1.1\r\nHost: a\r\n" + headers + "\r\n" + body;
  }

  Limits limits_;
};

// ---- what is served ----

TEST_F(Http1Test, AGetIsAHeadAndAnEnd) {
  RequestParser parser(limits_);
  EXPECT_TRUE(parser.idle());
  const std::string bytes =
      "GET /a?b=c HTTP/1.1\r\nHost: example.org:80\r\nX-Y:  two words \t\r\n\r\n";
  const Step step = parser.Next(bytes);
  ASSERT_EQ(step.event, Event::kHead);
  EXPECT_EQ(step.consumed, bytes.size());
  EXPECT_EQ(parser.head().method, "GET");
  EXPECT_EQ(parser.head().target, "/a?b=c");
  EXPECT_EQ(parser.head().host, "example.org:80");
  EXPECT_EQ(parser.head().Find("x-y"), "two words");
  EXPECT_TRUE(parser.head().keep_alive);
  EXPECT_TRUE(parser.head().idempotent);
  EXPECT_EQ(parser.Next({}).event, Event::kComplete);
  EXPECT_EQ(parser.Next({}).event, Event::kNeedMore);
  EXPECT_TRUE(parser.idle());
}

TEST_F(Http1Test, AGetWithABodyKeepsIt) {
  EXPECT_EQ(Request("GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc").text,
            "H B:abc C ");
}

TEST_F(Http1Test, TwoPipelinedRequestsComeOutInOrder) {
  EXPECT_EQ(Request(Post("Content-Length: 2\r\n", "hi") + "GET / HTTP/1.1\r\nHost: b\r\n\r\n").text,
            "H B:hi C H C ");
}

TEST_F(Http1Test, ChunksAndTrailersAreTakenApart) {
  const std::string body = "3\r\nabc\r\nA;x=y\r\n0123456789\r\n0\r\nX-Sum: 7\r\nB: c\r\n\r\n";
  EXPECT_EQ(Request(Post("Transfer-Encoding: Chunked\r\n", body)).text,
            "H B:abc0123456789T(X-Sum=7)T(B=c) C ");
  EXPECT_EQ(Request(Post("Transfer-Encoding: chunked\r\n", "0\r\n\r\n")).text, "H C ");
}

TEST_F(Http1Test, ABlankLineBeforeARequestIsForgiven) {
  EXPECT_EQ(Request("\r\nGET / HTTP/1.1\r\nHost: b\r\n\r\n").text, "H C ");
  EXPECT_EQ(Request("\r\n\r\n\r\nGET / HTTP/1.1\r\nHost: b\r\n\r\n").status, 400);
}

TEST_F(Http1Test, Http10HasNoHostAndClosesUnlessItSaysOtherwise) {
  RequestParser parser(limits_);
  ASSERT_EQ(parser.Next("GET / HTTP/1.0\r\n\r\n").event, Event::kHead);
  EXPECT_FALSE(parser.head().keep_alive);
  parser.Next({});
  ASSERT_EQ(parser.Next("GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n").event, Event::kHead);
  EXPECT_TRUE(parser.head().keep_alive);
}

TEST_F(Http1Test, ConnectionTokensAreUnderstood) {
  RequestParser parser(limits_);
  ASSERT_EQ(parser.Next(Post("Connection: close , X-Secret\r\nX-Secret: 1\r\n")).event,
            Event::kHead);
  EXPECT_FALSE(parser.head().keep_alive);
  EXPECT_TRUE(parser.head().connection_names);
  EXPECT_TRUE(parser.head().NamedInConnection("x-secret"));
  EXPECT_FALSE(parser.head().NamedInConnection("secret"));
  parser.Next({});
  ASSERT_EQ(parser
                .Next("GET / HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\nConnection: keep-alive, "
                      "Upgrade\r\n\r\n")
                .event,
            Event::kHead);
  EXPECT_TRUE(parser.head().upgrade);
  EXPECT_FALSE(parser.head().connection_names);
}

TEST_F(Http1Test, LeaseHeadersAreRecognisedInEveryDisguise) {
  for (const char* name : {"Lease-Fencing-Token", "LEASE-fencing-TOKEN", "lease_fencing_token",
                           "Lease-Holder", "Lease_Name", "lease-sequence", "Lease.Fencing!Token"}) {
    EXPECT_EQ(ClassifyHeader(name), HeaderId::kLease) << name;
  }
  for (const char* name : {"Lease-Peer", "LEASE-peer", "lease_peer", "Lease.Peer"}) {
    EXPECT_EQ(ClassifyHeader(name), HeaderId::kLeasePeer) << name;
  }
  EXPECT_EQ(ClassifyHeader("Lease-Fencing-Tokens"), HeaderId::kOther);
  EXPECT_EQ(ClassifyHeader("LeasexFencing-Token"), HeaderId::kOther);
}

TEST_F(Http1Test, WhatSidecarsSayIsCountedAnewInEachMessage) {
  RequestParser parser(limits_);
  ASSERT_EQ(
      parser.Next("GET / HTTP/1.1\r\nHost: a\r\nLease-Peer: x\r\nlease_peer: y\r\n\r\n").event,
      Event::kHead);
  EXPECT_EQ(parser.head().lease_peers, 2);
  EXPECT_EQ(parser.head().lease_peer, "y");
  parser.Next({});
  ASSERT_EQ(parser.Next("GET / HTTP/1.1\r\nHost: a\r\n\r\n").event, Event::kHead);
  EXPECT_EQ(parser.head().lease_peers, 0);
  EXPECT_EQ(parser.head().lease_peer, "");
}

TEST_F(Http1Test, ExpectContinueIsSeenAndOtherExpectationsAreRefused) {
  RequestParser parser(limits_);
  ASSERT_EQ(parser.Next(Post("Expect: 100-Continue\r\nContent-Length: 5\r\n")).event, Event::kHead);
  EXPECT_TRUE(parser.head().expect_continue);
  EXPECT_EQ(Request(Post("Expect: the-unexpected\r\n")).status, 417);
}

TEST_F(Http1Test, AbsoluteFormIsTaken) {
  EXPECT_EQ(Request("GET http://a/b HTTP/1.1\r\nHost: a\r\n\r\n").text, "H C ");
  EXPECT_EQ(Request("OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n").text, "H C ");
}

// ---- what is refused: the vectors ----

TEST_F(Http1Test, TwoLengthsAreRefused) {
  const std::string chunked = "Transfer-Encoding: chunked\r\n";
  EXPECT_EQ(Request(Post("Content-Length: 3\r\n" + chunked, "abc")).status, 400);
  EXPECT_EQ(Request(Post(chunked + "Content-Length: 3\r\n", "abc")).status, 400);
  EXPECT_EQ(Request(Post("Content-Length: 3\r\nContent-Length: 4\r\n", "abc")).status, 400);
  EXPECT_EQ(Request(Post("Content-Length: 3\r\nContent-Length: 3\r\n", "abc")).status, 400);
  EXPECT_EQ(Request(Post("Content-Length: 3, 3\r\n", "abc")).status, 400);
}

TEST_F(Http1Test, LengthsThatAreNotDigitsAreRefused) {
  for (const char* value : {"+3", "-3", "0x3", "3 3", "3.0", "", "1e3", "9999999999999999999",
                            "18446744073709551619"}) {
    EXPECT_EQ(Request(Post("Content-Length: " + std::string(value) + "\r\n", "abc")).status, 400)
        << value;
  }
}

TEST_F(Http1Test, TransferEncodingsOtherThanChunkedAreRefused) {
  for (const char* value :
       {"chunked, gzip", "gzip, chunked", "xchunked", "chunked, chunked", "gzip", "identity", "",
        "chunked;q=1", "\vchunked", "chunked,", "\"chunked\""}) {
    const int status =
        Request(Post("Transfer-Encoding: " + std::string(value) + "\r\n", "0\r\n\r\n")).status;
    EXPECT_TRUE(status == 400 || status == 501) << value << " gave " << status;
  }
  EXPECT_EQ(Request(Post("Transfer-Encoding : chunked\r\n", "0\r\n\r\n")).status, 400);
  EXPECT_EQ(Request(Post("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n")).status,
            400);
}

TEST_F(Http1Test, TransferEncodingOnHttp10IsRefused) {
  EXPECT_EQ(Request("POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n").status, 400);
}

TEST_F(Http1Test, FoldedHeadersAreRefused) {
  EXPECT_EQ(Request(Post("X: a\r\n b\r\n")).status, 400);
  EXPECT_EQ(Request(Post("X: a\r\n\tb\r\n")).status, 400);
  EXPECT_EQ(Request(Post("X:\r\n b\r\n")).status, 400);
  EXPECT_EQ(Request("GET / HTTP/1.1\r\n Host: a\r\n\r\n").status, 400);
  EXPECT_EQ(Request(Post("Transfer-Encoding:\r\n chunked\r\n")).status, 400);
}

TEST_F(Http1Test, BareLineFeedsAndCarriageReturnsAreRefused) {
  EXPECT_EQ(Request("GET / HTTP/1.1\nHost: a\r\n\r\n").status, 400);
  EXPECT_EQ(Request("GET / HTTP/1.1\r\nHost: a\n\r\n").status, 400);
  EXPECT_EQ(Request("GET / HTTP/1.1\r\nHost: a\r\n\n").status, 400);
  EXPECT_EQ(Request("\nGET / HTTP/1.1\r\nHost: a\r\n\r\n").status, 400);
  EXPECT_EQ(Request(Post("X: a\rb\r\n")).status, 400);
  EXPECT_EQ(Request(Post("X: a\r\r\n")).status, 400);
  const std::string chunked = "Transfer-Encoding: chunked\r\n";
  EXPECT_EQ(Request(Post(chunked, "3\nabc\r\n0\r\n\r\n")).status, 400);
  EXPECT_EQ(Request(Post(chunked, "3\r\nabc\n0\r\n\r\n")).status, 400);
  EXPECT_EQ(Request(Post(chunked, "3;x\nabc\r\n0\r\n\r\n")).status, 400);
  EXPECT_EQ(Request(Post(chunked, "0\r\nX: y\n\r\n")).status, 400);
  EXPECT_EQ(Request(Post(chunked, "0\r\n\n")).status, 400);
}

TEST_F(Http1Test, ControlCharactersAreRefused) {
  using namespace std::string_literals;
  EXPECT_EQ(Request(Post("X: a\0b\r\n"s)).status, 400);
  EXPECT_EQ(Request(Post("X: a\x01"s + "b\r\n")).status, 400);
  EXPECT_EQ(Request(Post("X: a\x7f"s + "b\r\n")).status, 400);
  EXPECT_EQ(Request("GET /\0 HTTP/1.1\r\nHost: a\r\n\r\n"s).status, 400);
  EXPECT_EQ(Request("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"s).status, 400);  // a TLS hello
}

TEST_F(Http1Test, BadHeaderNamesAreRefused) {
  EXPECT_EQ(Request(Post(": no name\r\n")).status, 400);
  EXPECT_EQ(Request(Post("X : a\r\n")).status, 400);
  EXPECT_EQ(Request(Post("X Y: a\r\n")).status, 400);
  EXPECT_EQ(Request(Post("X\r\n")).status, 400);
  EXPECT_EQ(Request(Post("X(y): a\r\n")).status, 400);
}

TEST_F(Http1Test, BadChunksAreRefused) {
  for (const char* body :
       {"0x3\r\nabc\r\n0\r\n\r\n", "-3\r\nabc\r\n0\r\n\r\n", "\r\n", ";x\r\n",
        "00000000000000003\r\nabc\r\n0\r\n\r\n", "ffffffffffffffff0\r\n", "3 \r\nabc\r\n",
        " 3\r\nabc\r\n", "g\r\n", "3\r\nabcd\r\n", "3\r\nabc0\r\n\r\n", "3;\x01\r\nabc\r\n",
        "0\r\nX : y\r\n\r\n", "0\r\nX: y\r\n folded\r\n\r\n"}) {
    EXPECT_EQ(Request(Post("Transfer-Encoding: chunked\r\n", body)).status, 400) << body;
  }
}

TEST_F(Http1Test, ChunkExtensionsHaveAnEnd) {
  const std::string chunked = "Transfer-Encoding: chunked\r\n";
  EXPECT_EQ(Request(Post(chunked, "3;" + std::string(8192, 'x'))).status, 400);
  std::string many;
  for (int i = 0; i < 200; ++i) many += "1;" + std::string(100, 'x') + "\r\na\r\n";
  EXPECT_EQ(Request(Post(chunked, many)).status, 400);
}

TEST_F(Http1Test, HostIsDemandedOnceOnHttp11) {
  EXPECT_EQ(Request("GET / HTTP/1.1\r\n\r\n").status, 400);
  EXPECT_EQ(Request("GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n").status, 400);
  EXPECT_EQ(Request("GET / HTTP/1.0\r\nHost: a\r\nhost: b\r\n\r\n").status, 400);
  EXPECT_EQ(Request("GET / HTTP/1.1\r\nHost: a b\r\n\r\n").status, 400);
  EXPECT_EQ(Request("GET / HTTP/1.1\r\nHost: a, b\r\n\r\n").status, 400);
  EXPECT_EQ(Request("GET / HTTP/1.1\r\nHost: user@a\r\n\r\n").status, 400);
}

// Two sidecars repeat it; a head of it alone would outgrow the second one's limit.
TEST_F(Http1Test, AHostLongerThanAnyNameIsRefused) {
  limits_.head_bytes_max = limits_.target_bytes_max = 4096;
  const std::string longest(1024, 'h');
  EXPECT_EQ(Request("GET / HTTP/1.1\r\nHost: " + longest + "\r\n\r\n").status, 0);
  EXPECT_EQ(Request("GET / HTTP/1.1\r\nHost: " + longest + "h\r\n\r\n").status, 400);
  EXPECT_EQ(Request("GET http://" + longest + "h/ HTTP/1.1\r\nHost: a\r\n\r\n").status, 400);
}

TEST_F(Http1Test, OtherVersionsAndProtocolsAreRefused) {
  EXPECT_EQ(Request("GET /\r\n").status, 400);
  EXPECT_EQ(Request("GET / HTTP/0.9\r\nHost: a\r\n\r\n").status, 505);
  EXPECT_EQ(Request("GET / HTTP/2.0\r\nHost: a\r\n\r\n").status, 505);
  EXPECT_EQ(Request("GET / HTTP/1.2\r\nHost: a\r\n\r\n").status, 505);
  EXPECT_EQ(Request("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").status, 505);
  EXPECT_EQ(Request("GET / RTSP/1.0\r\nHost: a\r\n\r\n").status, 400);
  EXPECT_EQ(Request("SOURCE / ICE/1.0\r\nHost: a\r\n\r\n").status, 400);
  EXPECT_EQ(Request("GET / http/1.1\r\nHost: a\r\n\r\n").status, 400);
  EXPECT_EQ(Request("GET / HTTP/11\r\nHost: a\r\n\r\n").status, 400);
}

TEST_F(Http1Test, RequestLinesThatAreNotThatAreRefused) {
  for (const char* line :
       {"GET  / HTTP/1.1", "GET /  HTTP/1.1", "GET / HTTP/1.1 ", "GET HTTP/1.1", " GET / HTTP/1.1",
        "GET\t/ HTTP/1.1", "GET /a b HTTP/1.1", "GET /#x HTTP/1.1", "GET a HTTP/1.1",
        "GET * HTTP/1.1", "GET http:/// HTTP/1.1", "GET ftp://a/ HTTP/1.1"}) {
    const int status = Request(std::string(line) + "\r\nHost: a\r\n\r\n").status;
    EXPECT_TRUE(status == 400) << line << " gave " << status;
  }
}

TEST_F(Http1Test, UnknownMethodsAndConnectAreNotImplemented) {
  EXPECT_EQ(Request("FROB / HTTP/1.1\r\nHost: a\r\n\r\n").status, 501);
  EXPECT_EQ(Request("CONNECT a:80 HTTP/1.1\r\nHost: a\r\n\r\n").status, 501);
  for (const char* line :
       {"SETUP / HTTP/1.1", "DESCRIBE /x HTTP/1.1", "get / HTTP/1.1", "FLUSH / HTTP/1.1"}) {
    const int status = Request(std::string(line) + "\r\nHost: a\r\n\r\n").status;
    EXPECT_TRUE(status == 400 || status == 501) << line << " gave " << status;
  }
}

TEST_F(Http1Test, EachLimitHasItsStatus) {
  EXPECT_EQ(Request("GET /" + std::string(300, 'a') + " HTTP/1.1\r\nHost: a\r\n\r\n").status, 414);
  EXPECT_EQ(Request("GET /" + std::string(3000, 'a')).status, 414);  // no line end in sight
  EXPECT_EQ(Request(Post("X: " + std::string(2000, 'a') + "\r\n")).status, 431);
  EXPECT_EQ(Request(Post("X: " + std::string(2000, 'a'))).status, 431);
  limits_.headers_max = 3;
  EXPECT_EQ(Request(Post("A: b\r\nC: d\r\nE: f\r\n")).status, 431);
  limits_.body_bytes_max = 4;
  EXPECT_EQ(Request(Post("Content-Length: 5\r\n", "abcde")).status, 413);
  EXPECT_EQ(Request(Post("Content-Length: 4\r\n", "abcd")).status, 0);
  EXPECT_EQ(Request(Post("Transfer-Encoding: chunked\r\n", "3\r\nabc\r\n2\r\nde\r\n")).status, 413);
}

TEST_F(Http1Test, TrailersAreBoundedLikeHeads) {
  std::string body = "0\r\n";
  for (int i = 0; i < 100; ++i) body += "X-Trailer: something of a value\r\n";
  EXPECT_EQ(Request(Post("Transfer-Encoding: chunked\r\n", body + "\r\n")).status, 431);
}

TEST_F(Http1Test, AfterAnErrorThereIsOnlyTheError) {
  RequestParser parser(limits_);
  EXPECT_EQ(parser.Next("GET /\r\n").event, Event::kError);
  EXPECT_EQ(parser.Next("GET / HTTP/1.1\r\nHost: a\r\n\r\n").event, Event::kError);
  EXPECT_EQ(parser.Finish().event, Event::kError);
}

TEST_F(Http1Test, AnEndInTheMiddleOfAMessageIsAnError) {
  RequestParser between(limits_);
  EXPECT_EQ(between.Finish().event, Event::kNeedMore);
  RequestParser in_head(limits_);
  in_head.Next("GET / HT");
  EXPECT_EQ(in_head.Finish().event, Event::kError);
  RequestParser in_body(limits_);
  in_body.Next(Post("Content-Length: 3\r\n"));
  EXPECT_EQ(in_body.Finish().event, Event::kError);
}

TEST_F(Http1Test, ASteadyConnectionStopsGrowing) {
  RequestParser parser(limits_);
  Outcome out;
  bool open = false;
  const std::string request = Post("Transfer-Encoding: chunked\r\n", "1\r\na\r\n0\r\nX: y\r\n\r\n");
  Drive(parser, request, out, open);
  const size_t memory = parser.memory();
  for (int i = 0; i < 1000; ++i) Drive(parser, request, out, open);
  EXPECT_EQ(parser.memory(), memory);
}

// ---- answers ----

TEST_F(Http1Test, AnswersAreFramedByLengthChunksOrClose) {
  EXPECT_EQ(Response("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi").text, "H B:hi C ");
  EXPECT_EQ(
      Response("HTTP/1.1 200\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\nA: b\r\n\r\n")
          .text,
      "H B:hiT(A=b) C ");
  ResponseParser parser(limits_);
  EXPECT_EQ(parser.Next("HTTP/1.1 200 OK\r\n\r\n").event, Event::kHead);
  EXPECT_EQ(parser.head().framing, Framing::kUntilClose);
  EXPECT_FALSE(parser.head().keep_alive);
  EXPECT_EQ(parser.Next("hi").event, Event::kBody);
  EXPECT_EQ(parser.Finish().event, Event::kComplete);
}

TEST_F(Http1Test, AnswersWithoutABodyEndAtTheirHead) {
  EXPECT_EQ(Response("HTTP/1.1 304 Not Modified\r\nContent-Length: 7\r\n\r\n").text, "H C ");
  EXPECT_EQ(Response("HTTP/1.1 204 No Content\r\n\r\n").text, "H C ");
  EXPECT_EQ(Response("HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\n", true).text, "H C ");
  EXPECT_EQ(Response("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", true).text, "H C ");
}

TEST_F(Http1Test, InterimAnswersComeBeforeTheFinalOne) {
  EXPECT_EQ(Response("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n"
                     "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx")
                .text,
            "H C H C H B:x C ");
}

TEST_F(Http1Test, BadAnswersAreA502) {
  for (const char* bytes :
       {"HTTP/1.1 99 Low\r\n\r\n", "HTTP/1.1 099 Low\r\n\r\n", "HTTP/1.1 2000 High\r\n\r\n",
        "HTTP/2.0 200 OK\r\n\r\n", "SSH-2.0-OpenSSH_9.2\r\n", "HTTP/1.1 200 OK\nA: b\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n",
        "HTTP/1.1 200 OK\r\nA: b\r\n c\r\n\r\n",
        "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", "\r\nHTTP/1.1 200 OK\r\n\r\n",
        "HTTP/1.1  200 OK\r\n\r\n", "HTTP/1.1 200 O\x01K\r\n\r\n", "HTTP/1.1 2x0 OK\r\n\r\n",
        "ICE/1.0 200 OK\r\n\r\n"}) {
    EXPECT_EQ(Response(bytes).status, 502) << bytes;
  }
}

// ---- writers ----

TEST_F(Http1Test, WritersAppendWhatTheParserReads) {
  std::string out;
  AppendRequestLine(out, "GET", "/x");
  AppendHeader(out, "Host", "a");
  AppendHeader(out, "Content-Length", uint64_t{3});
  out += kCrlf;
  EXPECT_EQ(out, "GET /x HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\n");
  EXPECT_EQ(Request(out + "abc").text, "H B:abc C ");
  out.clear();
  AppendStatusLine(out, 503, ReasonPhrase(503));
  EXPECT_EQ(out, "HTTP/1.1 503 Service Unavailable\r\n");
}

}  // namespace
}  // namespace leasehold::proto::http1

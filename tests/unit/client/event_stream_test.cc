// Server-sent events out of bytes, and the call that brings the bytes.
#include "client/event_stream.h"

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "client/http_call.h"
#include "lib/raw_socket_fixture.h"
#include "lib/socket_peer.h"

namespace leasehold::client {
namespace {

class EventStreamParserTest : public ::testing::Test {
 protected:
  static constexpr size_t kMax = 64;
  base::Status Feed(std::string_view bytes) { return parser_.Feed(bytes); }
  std::string Got() {
    std::string out;
    for (const ServerEvent& event : events_) out += event.name + "=" + event.data + "|";
    events_.clear();
    return out;
  }
  std::vector<ServerEvent> events_;
  EventStreamParser parser_{kMax, [this](const ServerEvent& event) { events_.push_back(event); }};
};

TEST_F(EventStreamParserTest, EventsAreTakenApart) {
  ASSERT_TRUE(
      Feed("retry: 1000\n\nid: p.1\nevent: a\ndata: {}\n\n: quiet\n\ndata:x\ndata: y\n\n").ok());
  EXPECT_EQ(Got(), "a={}|message=x\ny|");
  EXPECT_EQ(parser_.last_id(), "p.1");
}

TEST_F(EventStreamParserTest, AnyCutAndAnyLineEndGivesTheSame) {
  for (const std::string end : {"\n", "\r\n", "\r"}) {
    std::string text;
    for (const char* line : {"\xef\xbb\xbf"
                             "id: p.1",
                             "event: a", "data: one", "", "id: p.2", "", "data: two", ""}) {
      text += line + end;
    }
    for (size_t cut = 0; cut <= text.size(); ++cut) {
      events_.clear();
      EventStreamParser parser(kMax, [this](const ServerEvent& e) { events_.push_back(e); });
      ASSERT_TRUE(parser.Feed(text.substr(0, cut)).ok());
      ASSERT_TRUE(parser.Feed(text.substr(cut)).ok());
      EXPECT_EQ(Got(), "a=one|message=two|") << cut;
      EXPECT_EQ(parser.last_id(), "p.2");
    }
  }
}

TEST_F(EventStreamParserTest, AnIdCountsWhenItsBlockEndsAndAnEventThatIsCutOffDoesNot) {
  ASSERT_TRUE(Feed("id: p.1\ndata: a\n\nid: p.2\ndata: b\n").ok());
  EXPECT_EQ(Got(), "message=a|");
  EXPECT_EQ(parser_.last_id(), "p.1");
}

TEST_F(EventStreamParserTest, ALineOrAnEventWithoutEndIsRefused) {
  EXPECT_TRUE(Feed("data: " + std::string(kMax - 6, 'x')).ok());
  EXPECT_EQ(Feed("x").error().code, base::ErrorCode::kLimit);
  EventStreamParser parser(kMax, [](const ServerEvent&) {});
  base::Status fed;
  for (int i = 0; i < 100 && fed.ok(); ++i) fed = parser.Feed("data: ten bytes.\n");
  EXPECT_FALSE(fed.ok());
}

class HttpStreamTest : public testing::RawSocketFixture {
 protected:
  void Start(base::Duration silence = base::Duration::Seconds(5)) {
    HttpRequest request;
    request.address = server_.address();
    HttpStreaming streaming;
    streaming.on_head = [this](const HttpResponse& head) { status_ = head.status; };
    streaming.on_body = [this](std::string_view bytes) { body_ += bytes; };
    streaming.silence_max = silence;
    call_ = StartHttpStream(loop_, request, streaming, [this](base::Result<HttpResponse> done) {
      done_.emplace(std::move(done));
      call_.reset();
    });
    ASSERT_TRUE(Eventually([&] { return (peer_ = server_.Accept()) != nullptr; }));
  }
  testing::RawServer server_{testing::TcpAddress("127.0.0.1", 0)};
  std::unique_ptr<testing::RawSocket> peer_;
  std::unique_ptr<HttpCall> call_;
  std::optional<base::Result<HttpResponse>> done_;
  int status_ = 0;
  std::string body_;
};

TEST_F(HttpStreamTest, PiecesAreHandedOnAsTheyComeAndNothingIsKept) {
  Start();
  peer_->Send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n");
  EXPECT_TRUE(Eventually([&] { return body_ == "abc"; }));
  EXPECT_EQ(status_, 200);
  EXPECT_FALSE(done_.has_value());
  peer_->Send("2\r\nde\r\n0\r\n\r\n");
  ASSERT_TRUE(Eventually([&] { return done_.has_value(); }));
  ASSERT_TRUE(done_->ok());
  EXPECT_EQ(body_, "abcde");
  EXPECT_EQ((*done_)->body, "");
}

TEST_F(HttpStreamTest, AStreamThatBreaksOrFallsSilentHasFailed) {
  Start(base::Duration::Millis(50));
  peer_->Send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n");
  ASSERT_TRUE(Eventually([&] { return done_.has_value(); }));
  EXPECT_EQ(done_->error().code, base::ErrorCode::kTimeout);
  done_.reset();
  Start();
  peer_->Send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nab");
  peer_->Close();
  ASSERT_TRUE(Eventually([&] { return done_.has_value(); }));
  EXPECT_FALSE(done_->ok());
}

TEST_F(HttpStreamTest, AnotherAnswerThanYesIsReadWhole) {
  Start();
  peer_->Send("HTTP/1.1 503 X\r\nContent-Length: 4\r\n\r\nbusy");
  ASSERT_TRUE(Eventually([&] { return done_.has_value(); }));
  EXPECT_EQ((*done_)->body, "busy");
  EXPECT_EQ(body_, "");
  EXPECT_EQ(status_, 0);
}

}  // namespace
}  // namespace leasehold::client

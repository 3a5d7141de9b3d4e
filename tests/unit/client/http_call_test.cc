// HttpCall against a server that says what the test wants, byte by byte.
#include "client/http_call.h"

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>

#include "lib/raw_socket_fixture.h"
#include "lib/socket_peer.h"

namespace leasehold::client {
namespace {

using base::Duration;
using base::ErrorCode;
using testing::RawServer;
using testing::RawSocket;

class HttpCallTest : public testing::RawSocketFixture {
 protected:
  void SetUp() override {
    server_ = std::make_unique<RawServer>(testing::TcpAddress("127.0.0.1", 0));
    request_.address = server_->address();
    request_.target = "/healthz";
  }
  void Start() {
    answer_.reset();
    call_ = StartHttpCall(loop_, request_, [this](base::Result<HttpResponse> answer) {
      answer_.emplace(std::move(answer));
      call_.reset();  // a caller may let go of it in its callback
    });
  }
  // Starts the call and waits until the server has read a whole request head.
  void StartAndReadRequest() {
    Start();
    ASSERT_TRUE(Eventually([&] {
      if (peer_ == nullptr) {
        peer_ = server_->Accept();
      }
      if (peer_ == nullptr) {
        return false;
      }
      peer_->Poll();
      return peer_->received().find("\r\n\r\n") != std::string::npos;
    }));
  }
  bool Answered() {
    return Eventually([&] { return answer_.has_value(); });
  }
  // Starts, answers with `bytes` and closes, waits for the outcome.
  void AnswerWith(const std::string& bytes) {
    StartAndReadRequest();
    ASSERT_NE(peer_, nullptr);
    peer_->Send(bytes);
    peer_->ShutdownWrite();
    ASSERT_TRUE(Answered());
  }
  void ExpectError(ErrorCode code, const std::string& part) {
    ASSERT_TRUE(answer_.has_value());
    ASSERT_FALSE(answer_->ok());
    EXPECT_EQ(answer_->error().code, code) << answer_->error().message;
    EXPECT_NE(answer_->error().message.find(part), std::string::npos) << answer_->error().message;
  }

  std::unique_ptr<RawServer> server_;
  std::unique_ptr<RawSocket> peer_;
  HttpRequest request_;
  std::optional<base::Result<HttpResponse>> answer_;
  std::unique_ptr<HttpCall> call_;
};

TEST_F(HttpCallTest, AGetSendsOneRequestAndBringsStatusHeadersAndBody) {
  AnswerWith("HTTP/1.1 200 OK\r\nContent-Length: 5\r\nX-A: b\r\n\r\nhello");
  ASSERT_TRUE(answer_->ok()) << answer_->error().message;
  EXPECT_EQ((*answer_)->status, 200);
  EXPECT_EQ((*answer_)->body, "hello");
  ASSERT_EQ((*answer_)->headers.size(), 2u);
  EXPECT_EQ((*answer_)->headers[1].first, "X-A");
  EXPECT_EQ((*answer_)->headers[1].second, "b");
  EXPECT_TRUE(peer_->received().starts_with(
      "GET /healthz HTTP/1.1\r\nHost: " + server_->address().ToString() + "\r\n"))
      << peer_->received();
  EXPECT_NE(peer_->received().find("Connection: close\r\n"), std::string::npos);
  EXPECT_EQ(peer_->received().find("Content-Length"), std::string::npos);
}

TEST_F(HttpCallTest, APostCarriesItsBodyAndHeaders) {
  request_.method = "POST";
  request_.body = "{\"a\":1}";
  request_.headers = {{"Authorization", "Bearer x"}};
  request_.host_header = "localhost:9090";
  AnswerWith("HTTP/1.1 204 No Content\r\n\r\n");
  ASSERT_TRUE(answer_->ok()) << answer_->error().message;
  EXPECT_EQ((*answer_)->status, 204);
  EXPECT_NE(peer_->received().find("\r\nHost: localhost:9090\r\n"), std::string::npos);
  EXPECT_NE(peer_->received().find("\r\nAuthorization: Bearer x\r\n"), std::string::npos);
  EXPECT_NE(peer_->received().find("\r\nContent-Length: 7\r\n"), std::string::npos);
  EXPECT_TRUE(peer_->received().ends_with("\r\n\r\n{\"a\":1}"));
}

TEST_F(HttpCallTest, AChunkedAnswerIsPutTogether) {
  AnswerWith(
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n");
  ASSERT_TRUE(answer_->ok()) << answer_->error().message;
  EXPECT_EQ((*answer_)->body, "abcde");
}

TEST_F(HttpCallTest, ABodyThatRunsUntilTheEndOfTheConnectionIsComplete) {
  AnswerWith("HTTP/1.0 200 OK\r\n\r\nall of it");
  ASSERT_TRUE(answer_->ok()) << answer_->error().message;
  EXPECT_EQ((*answer_)->body, "all of it");
}

TEST_F(HttpCallTest, InterimAnswersAreSkipped) {
  AnswerWith(
      "HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 200 OK\r\n"
      "Content-Length: 0\r\n\r\n");
  ASSERT_TRUE(answer_->ok()) << answer_->error().message;
  EXPECT_EQ((*answer_)->status, 200);
  EXPECT_EQ((*answer_)->headers.size(), 1u);
}

TEST_F(HttpCallTest, AnAnswerToHeadHasNoBody) {
  request_.method = "HEAD";
  StartAndReadRequest();
  peer_->Send("HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n");
  ASSERT_TRUE(Answered());
  ASSERT_TRUE(answer_->ok()) << answer_->error().message;
  EXPECT_EQ((*answer_)->body, "");
}

TEST_F(HttpCallTest, WhenTheHeadIsEnoughAnEndlessBodyDoesNotMatter) {
  request_.head_is_enough = true;
  StartAndReadRequest();
  peer_->Send("HTTP/1.1 503 Service Unavailable\r\nContent-Length: 1000000\r\n\r\nabc");
  ASSERT_TRUE(Answered());
  ASSERT_TRUE(answer_->ok()) << answer_->error().message;
  EXPECT_EQ((*answer_)->status, 503);
}

TEST_F(HttpCallTest, AnAnswerOverAUnixSocketHasALocalhostHost) {
  testing::TempDir dir;
  server_ = std::make_unique<RawServer>(testing::UnixAddress(dir.File("app.sock")));
  request_.address = server_->address();
  AnswerWith("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
  EXPECT_TRUE(answer_->ok());
  EXPECT_NE(peer_->received().find("\r\nHost: localhost\r\n"), std::string::npos);
}

TEST_F(HttpCallTest, ASilentServerIsGivenUpAtTheTimeout) {
  request_.timeout = Duration::Millis(60);
  const base::MonoTime start = loop::Loop::Now();
  StartAndReadRequest();
  ASSERT_TRUE(Answered());
  EXPECT_GE(loop::Loop::Now() - start, Duration::Millis(60));
  ExpectError(ErrorCode::kTimeout, "60ms");
}

TEST_F(HttpCallTest, ADripThatNeverEndsIsGivenUpAtTheTimeoutOfTheWholeCall) {
  request_.timeout = Duration::Millis(100);
  StartAndReadRequest();
  peer_->Send("HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n");
  ASSERT_TRUE(Eventually([&] {
    peer_->Send("x");
    return answer_.has_value();
  }));
  ExpectError(ErrorCode::kTimeout, "100ms");
}

TEST_F(HttpCallTest, ARefusedConnectIsAnErrorThatNamesTheAddress) {
  server_->Close();
  Start();
  ASSERT_TRUE(Answered());
  ExpectError(ErrorCode::kUnavailable, request_.address.ToString());
}

TEST_F(HttpCallTest, AnEndWithoutAnAnswerIsAnError) {
  AnswerWith("");
  ExpectError(ErrorCode::kClosed, "without an answer");
}

TEST_F(HttpCallTest, AnEndInsideTheAnswerIsAnError) {
  AnswerWith("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf");
  ExpectError(ErrorCode::kClosed, "inside the answer");
}

TEST_F(HttpCallTest, WhatIsNotHttpIsAnError) {
  AnswerWith("220 mail.example ESMTP\r\n\r\n");
  ExpectError(ErrorCode::kUnavailable, "not HTTP/1");
}

TEST_F(HttpCallTest, ABodyAboveTheLimitIsAnErrorThatNamesTheLimit) {
  request_.body_bytes_max = 4;
  AnswerWith("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello");
  ExpectError(ErrorCode::kLimit, "4B");
}

TEST_F(HttpCallTest, AHeaderThatWouldSplitTheRequestIsRefusedBeforeAnythingIsSent) {
  request_.headers = {{"Authorization", "Bearer secret\r\nX-Evil: 1"}};
  Start();
  EXPECT_FALSE(answer_.has_value()) << "never from inside the call";
  ASSERT_TRUE(Answered());
  ExpectError(ErrorCode::kInvalid, "Authorization");
  EXPECT_EQ(answer_->error().message.find("secret"), std::string::npos);
  EXPECT_EQ(server_->Accept(), nullptr);
}

TEST_F(HttpCallTest, ATargetOrMethodWithBlanksIsRefused) {
  request_.target = "/a b";
  Start();
  ASSERT_TRUE(Answered());
  ExpectError(ErrorCode::kInvalid, "/a b");
  request_.target = "/";
  request_.method = "GET /";
  Start();
  ASSERT_TRUE(Answered());
  ExpectError(ErrorCode::kInvalid, "GET /");
}

TEST_F(HttpCallTest, ACallThatIsDestroyedNeverCallsBack) {
  StartAndReadRequest();
  call_.reset();
  EXPECT_TRUE(Eventually([&] {
    peer_->Poll();
    return peer_->over();
  }));
  EXPECT_FALSE(answer_.has_value());
}

}  // namespace
}  // namespace leasehold::client

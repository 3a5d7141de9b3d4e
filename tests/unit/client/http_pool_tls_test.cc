// HttpPool over TLS, against a server of another make: what is kept, what is not trusted.
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "client/http_pool.h"
#include "lib/certificates.h"
#include "lib/https_server.h"
#include "lib/loop_fixture.h"

namespace leasehold::client {
namespace {

using base::ErrorCode;
using testing::Certificates;
using testing::HttpsServer;

class HttpPoolTlsTest : public testing::LoopFixture {
 protected:
  void SetUp() override {
    ASSERT_TRUE(Certificates::Get().ok()) << "the openssl command failed";
    request_.method = "POST";
  }
  void TearDown() override {
    call_.reset();
    pool_.reset();
    server_.reset();
  }
  void Serve(const std::string& certificate) {
    auto server = HttpsServer::Start(loop_, certificate);
    ASSERT_TRUE(server.ok()) << server.error().message;
    server_ = std::move(*server);
    ASSERT_TRUE(RunUntil([&] { return server_->port() != 0 || server_->ended(); }));
    ASSERT_NE(server_->port(), 0) << server_->last_words();
  }
  void MakePool(const std::string& authority, const std::string& name) {
    HttpPoolOptions options;
    options.address = testing::TcpAddress("127.0.0.1", server_->port());
    options.tls.emplace();
    options.tls->server_name = name;
    options.tls->ca_file = Certificates::Get().File(authority + ".pem");
    pool_ = std::make_unique<HttpPool>(loop_, options);
  }
  base::Result<HttpResponse> Ask() {
    std::optional<base::Result<HttpResponse>> answer;
    call_ = pool_->Start(request_, false,
                         [&](base::Result<HttpResponse> got) { answer.emplace(std::move(got)); });
    if (!RunUntil([&] { return answer.has_value(); })) {
      return base::Error{ErrorCode::kInternal, "the call was never told"};
    }
    return std::move(*answer);
  }
  std::string Body() {
    const base::Result<HttpResponse> answer = Ask();
    return answer ? answer->body : answer.error().message;
  }
  void ExpectDistrust(const std::string& words) {
    const base::Result<HttpResponse> answer = Ask();
    ASSERT_FALSE(answer.ok()) << "the server was trusted";
    EXPECT_EQ(answer.error().code, ErrorCode::kUnavailable);
    EXPECT_NE(answer.error().message.find(words), std::string::npos) << answer.error().message;
    EXPECT_EQ(pool_->connections(), 0u);
  }

  HttpRequest request_;
  std::unique_ptr<HttpsServer> server_;
  std::unique_ptr<HttpPool> pool_;
  std::unique_ptr<HttpCall> call_;
};

TEST_F(HttpPoolTlsTest, CallsShareOneHandshake) {
  Serve("good");
  MakePool("ca", "localhost");
  const std::string first = Body();
  EXPECT_TRUE(first.ends_with(" 0")) << first;
  for (int i = 0; i < 10; ++i) EXPECT_EQ(Body(), first);
  EXPECT_EQ(pool_->connects(), 1u);
}

TEST_F(HttpPoolTlsTest, AMegabyteIsSentWhole) {
  Serve("good");
  MakePool("ca", "127.0.0.1");
  request_.body = std::string(3 * 1024 * 1024 + 17, 't');
  EXPECT_TRUE(Body().ends_with(" " + std::to_string(request_.body.size())));
  EXPECT_TRUE(Body().ends_with(" " + std::to_string(request_.body.size())));
  EXPECT_EQ(pool_->connects(), 1u);
}

TEST_F(HttpPoolTlsTest, ACertificateForAnotherNameIsNotTrusted) {
  Serve("elsewhere");
  MakePool("ca", "localhost");
  ExpectDistrust("not for the name \"localhost\"");
}

TEST_F(HttpPoolTlsTest, AnotherAuthoritysCertificateIsNotTrusted) {
  Serve("good");
  MakePool("other-ca", "localhost");
  ExpectDistrust("not signed by a trusted authority");
}

TEST_F(HttpPoolTlsTest, AServerThatGoesTakesItsKeptConnectionsWithIt) {
  Serve("good");
  MakePool("ca", "localhost");
  Body();
  EXPECT_EQ(pool_->idle(), 1u);
  server_.reset();
  EXPECT_TRUE(RunUntil([&] { return pool_->connections() == 0; }));
}

TEST_F(HttpPoolTlsTest, ATlsPortThatIsAskedInPlainIsAnErrorThatNamesIt) {
  Serve("good");
  HttpPoolOptions options;
  options.address = testing::TcpAddress("127.0.0.1", server_->port());
  pool_ = std::make_unique<HttpPool>(loop_, options);  // plain, to a port that speaks TLS
  const base::Result<HttpResponse> answer = Ask();
  ASSERT_FALSE(answer.ok());
  EXPECT_NE(answer.error().message.find(options.address.ToString()), std::string::npos);
}

}  // namespace
}  // namespace leasehold::client

// ServiceFixture: a Service whose credentials and whose other side the test plays: it reads what
// arrived, checks the signature as a service does (by computing it again), and answers.
#pragma once

#include <gtest/gtest.h>

#include <ctime>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "aws/service.h"
#include "base/text.h"
#include "crypto/digest.h"
#include "lib/fake_credentials.h"
#include "lib/raw_http.h"
#include "lib/raw_socket_fixture.h"
#include "observe/log.h"
#include "proto/sigv4.h"

namespace leasehold::aws {

using testing::HeaderOf;

class ServiceFixture : public testing::RawSocketFixture {
 protected:
  struct Outcome {
    std::unique_ptr<Call> call;
    std::optional<base::Result<Response>> answer;
    int told = 0;
    std::function<void()> inside;
  };

  void SetUp() override {
    endpoint_.tls = false;
    endpoint_.address = server_.address();
    endpoint_.host_header = server_.address().ToString();
    endpoint_.region = "eu-central-1";
    endpoint_.service = "sqs";
    credentials_ = std::make_shared<testing::FakeCredentials>(loop_);
    log_ = observe::Log::Silent();
    MakeService();
  }
  void TearDown() override {
    outcomes_.clear();
    service_.reset();
    credentials_.reset();
  }
  void MakeService() {
    service_ = std::make_unique<Service>(loop_, endpoint_, credentials_, limits_, *log_);
  }

  Outcome& Start() {
    outcomes_.push_back(std::make_unique<Outcome>());
    Outcome* outcome = outcomes_.back().get();
    outcome->call = service_->Start(request_, [outcome](base::Result<Response> answer) {
      ++outcome->told;
      outcome->answer.emplace(std::move(answer));
      if (outcome->inside) outcome->inside();
    });
    return *outcome;
  }
  bool Told(const Outcome& outcome) {
    return Eventually([&] { return outcome.told > 0; });
  }

  // The next whole request that arrives, on whatever connection; empty: none came.
  std::string Arrived() {
    std::string request;
    EXPECT_TRUE(Eventually([&] {
      auto arrived = server_.Take();
      if (!arrived) return false;
      request = std::move(arrived->text);
      asked_ = arrived->from;
      return true;
    }));
    return request;
  }
  // To whoever asked last.
  void Answer(int status, const std::string& body, const std::string& headers = "") {
    asked_->Send("HTTP/1.1 " + std::to_string(status) + " X\r\n" + headers +
                 "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body);
  }
  // A call that is answered so.
  Outcome& Ask(int status, const std::string& body, const std::string& headers = "") {
    Outcome& outcome = Start();
    arrived_ = Arrived();
    if (asked_ != nullptr) Answer(status, body, headers);
    EXPECT_TRUE(Told(outcome));
    return outcome;
  }

  static std::string Between(const std::string& text, const std::string& from, char to) {
    const size_t at = text.find(from);
    if (at == std::string::npos) return {};
    const size_t start = at + from.size();
    return text.substr(start, text.find(to, start) - start);
  }

  // As a service does: only from what arrived and the secret.
  static bool SignedBy(const std::string& request, const std::string& secret,
                       const std::string& region, const std::string& service) {
    const size_t end = request.find("\r\n\r\n");
    const std::string line = request.substr(0, request.find("\r\n"));
    const std::string target = Between(line, " ", ' ');
    const std::string authorization = HeaderOf(request, "Authorization");
    const std::string signed_headers = Between(authorization, "SignedHeaders=", ',');
    std::vector<proto::sigv4::Header> headers;
    for (const std::string_view name : base::Split(signed_headers, ';')) {
      headers.emplace_back(name, HeaderOf(request, std::string(name)));
    }
    const std::string digest = crypto::Sha256Hex(request.substr(end + 4));
    const size_t mark = target.find('?');
    const std::string method = line.substr(0, line.find(' '));
    const std::string path = target.substr(0, mark);
    proto::sigv4::Request what;
    what.method = method;
    what.path = path;
    if (mark != std::string::npos) what.query = std::string_view(target).substr(mark + 1);
    what.headers = headers;
    what.payload_sha256_hex = digest;
    const std::string date = HeaderOf(request, "X-Amz-Date");
    const std::string to_sign =
        proto::sigv4::StringToSign(proto::sigv4::CanonicalRequest(what), {region, service},
                                   proto::sigv4::ParseAmzDate(date).value_or(0));
    std::string key = "AWS4" + secret;
    for (const std::string& part :
         {date.substr(0, 8), region, service, std::string("aws4_request")}) {
      key = crypto::AsText(crypto::HmacSha256(key, part));
    }
    return Between(authorization, "Signature=", '\n') == crypto::HmacSha256Hex(key, to_sign);
  }

  static std::string HttpDate(int64_t unix_seconds) {
    const std::time_t seconds = unix_seconds;
    std::tm parts{};
    gmtime_r(&seconds, &parts);
    char text[64];
    const size_t size = std::strftime(text, sizeof(text), "%a, %d %b %Y %H:%M:%S GMT", &parts);
    return {text, size};
  }
  static std::string DateHeader(int64_t unix_seconds) {
    return "Date: " + HttpDate(unix_seconds) + "\r\n";
  }
  static int64_t Now() { return loop::Loop::WallNow().unix_ms / 1000; }

  static void ExpectError(const Outcome& outcome, base::ErrorCode code, const std::string& part) {
    ASSERT_TRUE(outcome.answer.has_value());
    ASSERT_FALSE(outcome.answer->ok());
    const base::Error& error = outcome.answer->error();
    EXPECT_EQ(error.code, code) << error.message;
    EXPECT_NE(error.message.find(part), std::string::npos) << error.message;
    EXPECT_EQ(outcome.told, 1);
  }

  static constexpr const char* kSecret = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY";
  Endpoint endpoint_;
  ServiceLimits limits_;
  Request request_;
  testing::RawHttpServer server_;
  testing::RawSocket* asked_ = nullptr;
  std::string arrived_;
  std::shared_ptr<testing::FakeCredentials> credentials_;
  std::unique_ptr<observe::Log> log_;
  std::unique_ptr<Service> service_;
  std::vector<std::unique_ptr<Outcome>> outcomes_;
};

}  // namespace leasehold::aws

// SourceFixture: credential sources against an HTTP peer that the test scripts, with real files in
// a directory of its own and short time-outs. The peer answers whatever `answer` says of a request;
// "" is silence. What is logged lies in a file that the test can read.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <functional>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "aws/credentials_source.h"
#include "aws/profile.h"
#include "aws/source_context.h"
#include "lib/raw_http.h"
#include "lib/raw_socket_fixture.h"
#include "lib/socket_peer.h"
#include "observe/log.h"

namespace leasehold::aws {

using testing::HeaderOf;

class SourceFixture : public testing::RawSocketFixture {
 protected:
  using Answer = std::function<std::string(const std::string& request)>;

  void SetUp() override {
    const HttpPolicy quick{3, base::Duration::Millis(400), base::Duration::Millis(2)};
    context_.imds = context_.container = context_.sts = quick;
    context_.imds_endpoint = context_.container_endpoint = Url();
    Set("HOME", dir_.path());
    log_fd_ = open(dir_.File("log").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    log_ = observe::Log::ToDescriptor(observe::LogOptions{}, log_fd_);
  }
  void TearDown() override {
    fetching_.reset();
    log_.reset();
    close(log_fd_);
  }

  std::string Url() const { return "http://" + server_.address().ToString(); }
  void Set(const std::string& name, const std::string& value) {
    context_.environment.variables[name] = value;
  }
  std::string WriteFile(const std::string& name, const std::string& text) {
    const std::string path = dir_.File(name);
    std::ofstream(path, std::ios::trunc) << text;
    return path;
  }
  void WriteConfig(const std::string& text) { Set("AWS_CONFIG_FILE", WriteFile("config", text)); }
  void WriteCredentials(const std::string& text) {
    Set("AWS_SHARED_CREDENTIALS_FILE", WriteFile("credentials", text));
  }
  std::string Logged() const {
    std::ifstream file(dir_.File("log"));
    std::stringstream text;
    text << file.rdbuf();
    return text.str();
  }

  // Accepts, reads and answers what there is.
  void Pump() {
    while (auto request = server_.Take()) {
      requests_.push_back(std::move(request->text));
      const std::string said = answer_ ? answer_(requests_.back()) : "";
      if (!said.empty()) request->from->Send(said);
    }
  }
  bool EventuallyPumped(const std::function<bool()>& condition) {
    return Eventually([&] {
      Pump();
      return condition();
    });
  }

  static std::string Http(int status, const std::string& body) {
    return "HTTP/1.1 " + std::to_string(status) +
           " X\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
  }
  static std::string KeysJson(const std::string& id, const std::string& expiration,
                              const std::string& token_name = "Token") {
    return R"({"Code":"Success","AccessKeyId":")" + id + R"(","SecretAccessKey":")" + kSecret +
           R"(",")" + token_name + R"(":")" + kToken + R"(","Expiration":")" + expiration + "\"}";
  }
  static std::string TargetOf(const std::string& request) {
    const size_t from = request.find(' ') + 1;
    return request.substr(from, request.find(' ', from) - from);
  }

  // Runs one fetch to its end. `start` is given where to tell.
  void Fetch(const std::function<std::unique_ptr<Fetching>(FetchDone)>& start) {
    result_.reset();
    told_ = 0;
    fetching_ = start([this](base::Result<Fetched> result) {
      ++told_;
      result_.emplace(std::move(result));
      fetching_.reset();  // an owner may let go of it there
    });
    EXPECT_EQ(told_, 0) << "told from inside the call";
    EXPECT_TRUE(EventuallyPumped([&] { return result_.has_value(); }));
  }
  void ExpectKey(const std::string& id) {
    ASSERT_TRUE(result_.has_value());
    ASSERT_TRUE(result_->ok()) << result_->error().message;
    EXPECT_EQ((*result_)->credentials.key.access_key_id, id);
    EXPECT_EQ(told_, 1);
  }
  // An error of that kind, with that part, and with no secret of ours in it.
  void ExpectError(base::ErrorCode code, const std::string& part) {
    ASSERT_TRUE(result_.has_value());
    ASSERT_FALSE(result_->ok());
    const std::string& message = result_->error().message;
    EXPECT_EQ(result_->error().code, code) << message;
    EXPECT_NE(message.find(part), std::string::npos) << message;
    ExpectNoSecret(message);
  }
  static void ExpectNoSecret(const std::string& text) {
    for (const std::string secret : {kSecret, kToken, kBearer}) {
      EXPECT_EQ(text.find(secret), std::string::npos) << text;
    }
  }

  static constexpr const char* kSecret = "SECRETwJalrXUtnFEMI/K7MDENG+bPxRfi";
  static constexpr const char* kToken = "SESSIONTOKENIQoJb3JpZ2luX2VjEXAMPLE";
  static constexpr const char* kBearer = "BEARER.eyJhbGciOiJSUzI1NiJ9.EXAMPLE";
  static constexpr const char* kLater = "2099-01-01T00:00:00Z";

  testing::TempDir dir_;
  SourceContext context_{.loop = loop_,
                         .environment = {},
                         .profile = "",
                         .region = "eu-central-1",
                         .random = base::Random(7)};
  testing::RawHttpServer server_;
  std::vector<std::string> requests_;
  Answer answer_;
  std::unique_ptr<Fetching> fetching_;
  std::optional<base::Result<Fetched>> result_;
  int told_ = 0;
  int log_fd_ = -1;
  std::unique_ptr<observe::Log> log_;
};

}  // namespace leasehold::aws

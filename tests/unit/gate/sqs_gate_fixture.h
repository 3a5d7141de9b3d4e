// SqsGateFixture: an sqs gate over real sockets between clients and an SQS of the test's own, which
// answers what the test says, when it says. Both are plain sockets outside the loop.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "aws/endpoint.h"
#include "gate/sqs_gate.h"
#include "lib/fake_credentials.h"
#include "lib/permit_for_test.h"
#include "lib/raw_socket_fixture.h"
#include "lib/socket_peer.h"
#include "observe/log.h"
#include "observe/metrics.h"
#include "scripted_sqs.h"

namespace leasehold::gate {

class SqsGateFixture : public testing::RawSocketFixture {
 protected:
  using RawSocket = testing::RawSocket;
  static constexpr const char* kJobs = "http://127.0.0.1/123456789012/jobs";

  using Asked = ScriptedSqs::Asked;

  void SetUp() override {
    options_.name = "queue";
    options_.type = Type::kSqs;
    options_.outbound = true;
    options_.listen = testing::TcpAddress("127.0.0.1", 0);
    options_.hold_timeout = base::Duration::Seconds(30);
    options_.body_bytes_max = kSqsBodyBytesMax;
  }

  void Build() {
    credentials_ = std::make_shared<testing::FakeCredentials>(loop_);
    aws::Endpoint endpoint;
    endpoint.tls = false;
    endpoint.address = sqs_->address();
    endpoint.host_header = endpoint.address.ToString();
    endpoint.region = "eu-central-1";
    endpoint.service = "sqs";
    Host host{loop_,
              *log_,
              metrics_,
              permit_.permit,
              "orders",
              "node-1",
              "process-1",
              base::Duration::Millis(50),
              [this] { ++expired_; },
              [this] { ++empty_; },
              nullptr,
              [this] { return std::string_view(state_word_); }};
    host.step_down_grace = grace_;
    gate_ = MakeSqsGate(options_, std::move(host), credentials_, endpoint);
    ASSERT_TRUE(gate_->Start().ok());
  }
  void BuildOpen() {
    Build();
    Open();
  }
  void Open(uint64_t token = 7) {
    state_word_ = "active";
    permit_.Open(base::MonoTime::Never(), token);
    EXPECT_TRUE(gate_->SetValve({lease::Valve::kOpen, false, {}, ""}).ok());
  }
  void HoldValve() {
    permit_.Set(lease::Valve::kHolding, base::MonoTime::Never(), 7);
    EXPECT_TRUE(gate_->SetValve({lease::Valve::kHolding, false, {}, ""}).ok());
  }
  void Drain(base::Duration grace = base::Duration::Seconds(10)) {
    state_word_ = "draining";
    permit_.Set(lease::Valve::kDraining, base::MonoTime::Never(), 7);
    const base::MonoTime end = loop::Loop::Now() + grace;
    EXPECT_TRUE(gate_->SetValve({lease::Valve::kDraining, false, end, "requested"}).ok());
  }
  void CloseGate(bool lost) {
    state_word_ = "standby";
    permit_.Close();
    EXPECT_TRUE(gate_->SetValve({lease::Valve::kClosed, lost, {}, "expired"}).ok());
  }

  // ---- the application ----

  static std::string JsonRequest(std::string_view action, std::string_view body,
                                 std::string_view more = "") {
    return "POST / HTTP/1.1\r\nHost: 127.0.0.1:9324\r\nContent-Type: application/x-amz-json-1.0\r\n"
           "X-Amz-Target: AmazonSQS." +
           std::string(action) + "\r\n" + std::string(more) +
           "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + std::string(body);
  }
  static std::string Receive(std::string_view members = "\"WaitTimeSeconds\":20") {
    return JsonRequest("ReceiveMessage", "{\"QueueUrl\":\"" + std::string(kJobs) + "\"" +
                                             (members.empty() ? "" : ",") + std::string(members) +
                                             "}");
  }
  static std::string Delete(std::string_view handle) {
    return JsonRequest("DeleteMessage", "{\"QueueUrl\":\"" + std::string(kJobs) +
                                            "\",\"ReceiptHandle\":\"" + std::string(handle) +
                                            "\"}");
  }
  static std::string Send(std::string_view text = "hi") {
    return JsonRequest("SendMessage", "{\"QueueUrl\":\"" + std::string(kJobs) +
                                          "\",\"MessageBody\":\"" + std::string(text) + "\"}");
  }
  RawSocket* Client(std::string_view bytes = "") {
    auto address = base::ParseAddress(gate_->status().listen);
    RawSocket* client = sockets_.emplace_back(RawSocket::Connect(*address)).get();
    if (!bytes.empty()) client->Send(bytes);
    return client;
  }
  bool Gets(RawSocket* socket, std::string_view text) {
    return Eventually([&] {
      socket->Poll();
      return socket->received().find(text) != std::string::npos;
    });
  }
  bool IsOver(RawSocket* socket) {
    return Eventually([&] {
      socket->Poll();
      return socket->over();
    });
  }
  static bool Has(const RawSocket* socket, std::string_view text) {
    return socket->received().find(text) != std::string::npos;
  }
  // What the client got is that of an empty queue.
  bool GetsEmpty(RawSocket* socket) {
    return Eventually([&] {
      socket->Poll();
      return Has(socket, "HTTP/1.1 200 OK") && !Has(socket, "ReceiptHandle") &&
             socket->received().find('}') != std::string::npos;
    });
  }

  // ---- SQS ----

  // The next request that arrives.
  std::optional<Asked> Next() {
    const bool came = Eventually([&] {
      sqs_->Poll();
      return !sqs_->asked.empty();
    });
    EXPECT_TRUE(came) << "nothing was asked of SQS";
    if (!came) return std::nullopt;
    Asked asked = std::move(sqs_->asked.front());
    sqs_->asked.erase(sqs_->asked.begin());
    return asked;
  }
  // Nothing more has arrived at SQS although the loop has had its turns.
  bool NothingAsked() {
    for (int i = 0; i < 20; ++i) {
      loop::Timer tick(loop_, [] {});
      tick.StartAfter(base::Duration::Millis(2));
      RunUntil([&] { return !tick.armed(); });
      sqs_->Poll();
    }
    return sqs_->asked.empty();
  }
  static void Reply(const Asked& asked, std::string_view body, int status = 200,
                    std::string_view more = "") {
    ScriptedSqs::Reply(asked, body, status, more);
  }
  static std::string Messages(const std::vector<std::string>& handles) {
    std::string body = "{\"Messages\":[";
    for (const std::string& handle : handles) {
      if (body.back() != '[') body += ',';
      body += "{\"MessageId\":\"m-" + handle + "\",\"ReceiptHandle\":\"" + handle +
              "\",\"Body\":\"b\",\"MD5OfBody\":\"92eb5ffee6ae2fec3ad71c777531578f\"}";
    }
    return body + "]}";
  }
  // The application has received `handle` through the gate.
  void ReceiveOne(const std::string& handle) {
    RawSocket* client = Client(Receive());
    auto asked = Next();
    ASSERT_TRUE(asked && asked->Is("ReceiveMessage"));
    Reply(*asked, Messages({handle}));
    ASSERT_TRUE(Gets(client, handle));
  }
  uint64_t in_flight() const { return gate_->status().in_flight; }
  std::string Metric() const { return metrics_.Scrape(); }

  std::unique_ptr<observe::Log> log_ = observe::Log::Silent();
  observe::Metrics metrics_;
  lease::PermitForTest permit_;
  std::string state_word_ = "standby";
  int expired_ = 0;
  int empty_ = 0;
  base::Duration grace_ = base::Duration::Seconds(20);
  Options options_;
  std::unique_ptr<ScriptedSqs> sqs_ = std::make_unique<ScriptedSqs>();
  std::shared_ptr<testing::FakeCredentials> credentials_;
  std::vector<std::unique_ptr<RawSocket>> sockets_;
  std::unique_ptr<Gate> gate_;
};

}  // namespace leasehold::gate

// `events` against a scripted API: what it asks, what it prints, how it resumes and ends.
#include <gtest/gtest.h>

#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "cli/cli.h"
#include "fake_api.h"
#include "proto/json.h"

namespace leasehold::cli {
namespace {

constexpr const char* kHello =
    "retry: 1000\n\nid: p1.4\nevent: hello\ndata: "
    R"({"event":"hello","event_id":"p1.4","at":"2026-11-30T14:41:55.000Z","leases":[)"
    R"({"lease":"orders","state":"active","token":"7","holder":{"node_id":"node-a"}}]})"
    "\n\n";
constexpr const char* kDraining =
    "id: p1.5\nevent: lease.draining\ndata: "
    R"({"event":"lease.draining","id":5,"event_id":"p1.5","at":"2026-11-30T14:41:56.000Z",)"
    R"("lease":"orders","token":"7","holder":{"node_id":"node-a","process_id":"p1"},)"
    R"("reason":"requested","grace_ms":20000,"detail":"asked \u001b[31m for"})"
    "\n\n";

class EventsTest : public ::testing::Test {
 protected:
  static FakeApi::Answer Stream(const std::string& text) {
    return {200, text, FakeApi::Behaviour::kAnswer, "text/event-stream"};
  }
  int Run(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "events");
    arguments.insert(arguments.end(), {"--admin", api_->url()});
    const ParsedCommandLine parsed = ParseCommandLine(arguments);
    EXPECT_TRUE(parsed.command.has_value()) << parsed.err;
    if (!parsed.command) return parsed.exit_code;
    Console console{out_, err_, false, {}, {}};
    if (reader_gone_) {
      console.reader_gone = [this] { return api_->requests().size() > 0; };
    }
    return Dispatch(*parsed.command, loop_, console);
  }
  void ExpectErr(const std::string& part) {
    EXPECT_NE(err_.str().find(part), std::string::npos) << "err: " << err_.str();
  }

  loop::Loop loop_;
  std::unique_ptr<FakeApi> api_ = std::make_unique<FakeApi>(loop_);
  std::ostringstream out_;
  std::ostringstream err_;
  bool reader_gone_ = false;
};

TEST_F(EventsTest, WithoutFollowingItPrintsWhatIsKeptAndEnds) {
  api_->On("GET /v1/events?follow=false&since=start", Stream(kDraining));
  EXPECT_EQ(Run({"--no-follow"}), kOk);
  EXPECT_EQ(out_.str(),
            "2026-11-30T14:41:56.000Z  lease.draining     orders token=7 holder=node-a "
            "reason=requested grace=20s  asked \\x1b[31m for\n");
  EXPECT_EQ(err_.str(), "");
}

TEST_F(EventsTest, AHelloIsALinePerLease) {
  api_->On("GET /v1/events", Stream(kHello));
  api_->On("GET /v1/events", FakeApi::Problem(404, "not_found", "gone"));
  EXPECT_EQ(Run({}), kFailed);
  EXPECT_EQ(out_.str(),
            "2026-11-30T14:41:55.000Z  hello              orders state=active token=7 "
            "holder=node-a\n");
}

TEST_F(EventsTest, FiltersAndPlaceAreAskedForEscaped) {
  api_->On("GET /v1/events?lease=a%2Fb&event=lease.&event=gate.opened&since=p1.4&follow=false",
           Stream(""));
  EXPECT_EQ(Run({"--lease", "a/b", "--event", "lease.", "--event", "gate.opened", "--since", "p1.4",
                 "--no-follow"}),
            kOk);
}

TEST_F(EventsTest, JsonIsAnObjectALine) {
  api_->On("GET /v1/events?follow=false&since=start", Stream(std::string(kHello) + kDraining));
  EXPECT_EQ(Run({"--no-follow", "--json"}), kOk);
  const std::string out = out_.str();
  const size_t end = out.find('\n');
  EXPECT_EQ(proto::Json::Parse(out.substr(0, end))->String("event"), "hello");
  EXPECT_EQ(proto::Json::Parse(out.substr(end + 1))->String("event_id"), "p1.5");
}

TEST_F(EventsTest, ABrokenConnectionIsToldAndResumedWhereItWas) {
  api_->On("GET /v1/events", Stream(kHello));
  api_->On("GET /v1/events", {200, "", FakeApi::Behaviour::kHangUp, ""});
  api_->On("GET /v1/events", FakeApi::Problem(503, "limit", "too many"));
  api_->On("GET /v1/events", Stream(kDraining));
  api_->On("GET /v1/events", FakeApi::Problem(401, "unauthorized", "no"));
  EXPECT_EQ(Run({}), kFailed);
  const auto& requests = api_->requests();
  ASSERT_EQ(requests.size(), 5U);
  EXPECT_EQ(requests[0].head.find("Last-Event-ID"), std::string::npos);
  for (size_t i : {1U, 2U, 3U}) {
    EXPECT_NE(requests[i].head.find("Last-Event-ID: p1.4"), std::string::npos);
  }
  EXPECT_NE(requests[4].head.find("Last-Event-ID: p1.5"), std::string::npos);
  ExpectErr("has ended the stream; connecting again");
  ExpectErr("leasehold: connected to");
  // Three failures in a row are one outage.
  EXPECT_EQ(err_.str().find("too many"), std::string::npos);
}

TEST_F(EventsTest, WhatCannotBeReachedOrIsNoEventStreamEndsIt) {
  api_->On("GET /v1/events", {200, "{}"});
  EXPECT_EQ(Run({}), kNotReachable);
  ExpectErr("is it a Leasehold API?");
  api_ = std::make_unique<FakeApi>(loop_);
  api_->On("GET /v1/events", {200, "", FakeApi::Behaviour::kHangUp, ""});
  EXPECT_EQ(Run({"--json"}), kNotReachable);
  EXPECT_NE(out_.str().find("\"error\":\"not_reachable\""), std::string::npos);
  api_ = std::make_unique<FakeApi>(loop_);
  api_->On("GET /v1/events", Stream("data: junk\n\n"));
  EXPECT_EQ(Run({}), kNotReachable);
  api_ = std::make_unique<FakeApi>(loop_);
  api_->On("GET /v1/events", Stream("data: " + std::string(2 << 20, 'x') + "\n\n"));
  EXPECT_EQ(Run({}), kNotReachable);
}

TEST_F(EventsTest, AQuestionTheApiRefusesEndsItWithTheReason) {
  api_->On("GET /v1/events?since=x", FakeApi::Problem(400, "bad_request", "give an event_id"));
  EXPECT_EQ(Run({"--since", "x"}), kFailed);
  ExpectErr("give an event_id");
}

TEST_F(EventsTest, ItEndsWhenNobodyReadsItsOutputAnyMore) {
  reader_gone_ = true;
  api_->On("GET /v1/events", {200, "", FakeApi::Behaviour::kSilent, ""});
  EXPECT_EQ(Run({}), kOk);
}

}  // namespace
}  // namespace leasehold::cli

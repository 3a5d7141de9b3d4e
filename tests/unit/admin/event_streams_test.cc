// The event stream as its readers see it: greeting, history, resuming, filters, limits, slow and
// dead readers, the end.
#include "admin/event_streams.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "admin/http_server.h"
#include "admin/problem.h"
#include "base/text.h"
#include "lib/fake_control.h"
#include "lib/raw_socket_fixture.h"
#include "lib/socket_peer.h"
#include "proto/json.h"
#include "unit/admin/http_client.h"

namespace leasehold::admin {
namespace {

// What came of a stream: the chunks put together, blocks taken apart.
struct Block {
  std::string id;
  std::string event;
  proto::Json data;
};

class EventStreamsTest : public testing::RawSocketFixture {
 protected:
  void SetUp() override {
    log_ = observe::Log::Silent();
    bus_ = std::make_unique<observe::EventBus>();
  }
  void TearDown() override {
    if (streams_) streams_->EndAll();
    server_.reset();
    streams_.reset();
  }

  void Start() {
    streams_ = std::make_unique<EventStreams>(loop_, control_, *bus_, *log_, options_);
    auto server = HttpServer::Start(
        loop_, testing::TcpAddress("127.0.0.1", 0), http_,
        [this](const HttpRequest& request, const HttpReply& reply) {
          std::string authority;
          auto ask = ReadEventAsk(*ParseTarget(request.target, &authority), request.last_event_id);
          reply(ask.ok() ? streams_->Answer(*ask)
                         : ProblemAnswer(400, "bad_request", ask.error().message));
        },
        *log_);
    ASSERT_TRUE(server.ok()) << server.error().message;
    server_ = std::move(server).value();
  }
  std::unique_ptr<HttpClient> Ask(const std::string& request) {
    auto client = std::make_unique<HttpClient>(server_->bound());
    client->Send(request);
    EXPECT_TRUE(Eventually([&] { return !Head(*client).empty(); }));
    return client;
  }
  std::unique_ptr<HttpClient> Read(const std::string& query, const std::string& headers = "") {
    return Ask(Get("/v1/events" + query, headers));
  }
  static std::string Head(HttpClient& client) {
    client.socket().Poll();
    const std::string& text = client.socket().received();
    const size_t end = text.find("\r\n\r\n");
    return end == std::string::npos ? "" : text.substr(0, end + 4);
  }
  // The body so far, without chunk framing where there is one.
  static std::string Body(HttpClient& client) {
    const std::string head = Head(client);
    std::string rest = client.socket().received().substr(head.size());
    if (head.find("chunked") == std::string::npos) return rest;
    std::string body;
    while (true) {
      const size_t line = rest.find("\r\n");
      if (line == std::string::npos) return body;
      const size_t size = std::strtoull(rest.c_str(), nullptr, 16);
      if (size == 0 || rest.size() < line + 4 + size) return body;
      body += rest.substr(line + 2, size);
      rest.erase(0, line + 4 + size);
    }
  }
  static std::vector<Block> Blocks(HttpClient& client) {
    std::vector<Block> blocks;
    Block block;
    std::string data;
    const std::string body = Body(client);
    for (const std::string_view line : base::Split(body, '\n')) {
      if (line.starts_with("id: ")) block.id = line.substr(4);
      if (line.starts_with("event: ")) block.event = line.substr(7);
      if (line.starts_with("data: ")) data = line.substr(6);
      if (!line.empty() || data.empty()) continue;
      const auto json = proto::Json::Parse(data);
      EXPECT_TRUE(json.ok()) << data;
      if (json.ok()) block.data = *json;
      blocks.push_back(block);
      block = {};
      data.clear();
    }
    return blocks;
  }
  std::vector<Block> Wait(HttpClient& client, size_t n) {
    EXPECT_TRUE(Eventually([&] { return Blocks(client).size() >= n; })) << Body(client);
    return Blocks(client);
  }
  bool IsOver(HttpClient& client) {
    return Eventually([&] {
      client.socket().Poll();
      return client.socket().over();
    });
  }
  static std::string Ids(const std::vector<Block>& blocks) {
    std::string out;
    for (const Block& block : blocks) out += (out.empty() ? "" : " ") + block.id;
    return out;
  }
  void Tell(const std::string& name, const std::string& lease = "orders",
            const std::string& detail = "") {
    observe::Event event;
    event.name = name;
    event.lease = lease;
    event.token = 12;
    event.holder_node_id = "n1";
    event.holder_process_id = "p1";
    event.detail = detail;
    bus_->Publish(std::move(event));
  }

  testing::FakeControl control_;
  std::unique_ptr<observe::Log> log_;
  std::unique_ptr<observe::EventBus> bus_;
  EventStreamOptions options_;
  HttpServerOptions http_;
  std::unique_ptr<EventStreams> streams_;
  std::unique_ptr<HttpServer> server_;
};

TEST_F(EventStreamsTest, AFreshReaderIsGreetedWithEveryLeaseAndThenToldWhatHappens) {
  Tell("lease.acquired");
  Start();
  auto client = Read("");
  EXPECT_EQ(Head(*client).substr(0, 15), "HTTP/1.1 200 OK");
  EXPECT_NE(Head(*client).find("Content-Type: text/event-stream\r\n"), std::string::npos);
  EXPECT_NE(Head(*client).find("Cache-Control: no-store\r\n"), std::string::npos);
  Wait(*client, 1);
  Tell("lease.draining");
  const auto blocks = Wait(*client, 2);
  EXPECT_EQ(Ids(blocks), "p1.1 p1.2");
  EXPECT_EQ(blocks[0].event, "hello");
  EXPECT_EQ(blocks[0].data.String("event_id"), "p1.1");
  EXPECT_EQ(blocks[0].data.Find("leases")->At(0)->String("lease"), "orders");
  EXPECT_EQ(blocks[1].event, "lease.draining");
  EXPECT_EQ(blocks[1].data.String("event"), "lease.draining");
  EXPECT_EQ(blocks[1].data.String("event_id"), "p1.2");
  EXPECT_EQ(blocks[1].data.String("token"), "12");
}

TEST_F(EventStreamsTest, AReaderResumesAfterTheIdOfItsHeaderWhateverItsQuerySays) {
  for (int i = 0; i < 5; ++i) Tell("lease.acquired");
  Start();
  auto client = Read("?since=start", "Last-Event-ID: p1.3\r\n");
  Wait(*client, 2);
  Tell("lease.lost");
  EXPECT_EQ(Ids(Wait(*client, 3)), "p1.4 p1.5 p1.6");
  auto by_query = Read("?last_event_id=p1.5");
  EXPECT_EQ(Ids(Wait(*by_query, 1)), "p1.6");
  auto up_to_date = Read("", "Last-Event-ID: p1.6\r\n");
  Tell("lease.acquired");
  EXPECT_EQ(Ids(Wait(*up_to_date, 1)), "p1.7");
}

TEST_F(EventStreamsTest, SinceStartReplaysWhatIsKept) {
  Tell("lease.acquired");
  Tell("lease.lost");
  Start();
  auto client = Read("?since=start&follow=false");
  ASSERT_TRUE(IsOver(*client));
  EXPECT_TRUE(client->socket().ended());
  EXPECT_EQ(Ids(Blocks(*client)), "p1.1 p1.2");
  EXPECT_TRUE(client->socket().received().ends_with("0\r\n\r\n"));
  EXPECT_EQ(streams_->count(), 0U);
}

TEST_F(EventStreamsTest, WhatIsNotKeptAnyMoreIsToldAsMissed) {
  bus_ = std::make_unique<observe::EventBus>(2);
  for (int i = 0; i < 6; ++i) Tell("lease.acquired");
  Start();
  auto client = Read("", "Last-Event-ID: p1.1\r\n");
  const auto blocks = Wait(*client, 3);
  EXPECT_EQ(Ids(blocks), "p1.4 p1.5 p1.6");  // the first one's is where to resume if cut now
  EXPECT_EQ(blocks[0].event, "missed");
  EXPECT_EQ(blocks[0].data.String("why"), "history_exceeded");
  EXPECT_EQ(blocks[0].data.String("last_event_id"), "p1.1");
  EXPECT_EQ(blocks[0].data.Uint("first_missed_id"), 2U);
  EXPECT_EQ(blocks[0].data.Uint("last_missed_id"), 4U);
  auto at_the_edge = Read("?follow=false", "Last-Event-ID: p1.4\r\n");
  ASSERT_TRUE(IsOver(*at_the_edge));
  EXPECT_EQ(Ids(Blocks(*at_the_edge)), "p1.5 p1.6");
  auto from_start = Read("?since=start");
  EXPECT_EQ(Wait(*from_start, 1)[0].data.Uint("last_missed_id"), 4U);
}

TEST_F(EventStreamsTest, AnotherProcessOrAnIdNeverGivenIsToldAndAllThatIsKeptFollows) {
  Tell("lease.acquired");
  Tell("lease.lost");
  Start();
  const std::pair<const char*, const char*> asked[] = {{"p0.77", "process_changed"},
                                                       {"p1.77", "unknown_id"},
                                                       {"junk", "unknown_id"},
                                                       {"p1.-1", "unknown_id"}};
  for (const auto& [id, why] : asked) {
    auto client = Read("?follow=false", "Last-Event-ID: " + std::string(id) + "\r\n");
    ASSERT_TRUE(IsOver(*client));
    const auto blocks = Blocks(*client);
    EXPECT_EQ(Ids(blocks), "p1.0 p1.1 p1.2") << id;
    ASSERT_FALSE(blocks.empty());
    EXPECT_EQ(blocks[0].data.String("why"), why);
    EXPECT_EQ(blocks[0].data.String("process_id"), "p1");
    EXPECT_TRUE(blocks[0].data.Find("first_missed_id")->is_null());
  }
}

TEST_F(EventStreamsTest, FiltersShowWhatIsWantedAndNothingElse) {
  Tell("lease.acquired", "orders");
  Tell("gate.opened", "orders");
  Tell("lease.acquired", "other");
  Tell("store.degraded", "");
  Tell("lease.lost", "orders");
  Start();
  const std::pair<const char*, const char*> asked[] = {
      {"&lease=orders", "p1.1 p1.2 p1.5"},
      {"&event=lease.", "p1.1 p1.3 p1.5"},
      {"&event=gate.opened&event=store.", "p1.2 p1.4"},
      {"&event=lease.lost&lease=other", ""},
  };
  for (const auto& [query, ids] : asked) {
    auto client = Read("?since=start&follow=false" + std::string(query));
    ASSERT_TRUE(IsOver(*client));
    EXPECT_EQ(Ids(Blocks(*client)), ids) << query;
  }
}

TEST_F(EventStreamsTest, AHelloShowsOnlyTheLeaseThatIsAskedFor) {
  control_.lease_views.push_back(testing::FakeControl::Holding("other", 3));
  Start();
  auto client = Read("?lease=other");
  const proto::Json leases = *Wait(*client, 1)[0].data.Find("leases");
  ASSERT_EQ(leases.size(), 1U);
  EXPECT_EQ(leases.At(0)->String("lease"), "other");
}

TEST_F(EventStreamsTest, ABadQueryIsRefusedWithWhatWouldBeRight) {
  Start();
  for (const char* query :
       {"?event=lease", "?event=.x", "?event=lease.a.b", "?event=Lease.lost", "?event=", "?since=7",
        "?since=", "?last_event_id=start", "?last_event_id=p1.x", "?follow=no",
        "?since=start&last_event_id=p1.1"}) {
    auto client = Read(query);
    EXPECT_EQ(client->Answers().at(0).status, 400) << query;
  }
  EXPECT_EQ(streams_->count(), 0U);
}

TEST_F(EventStreamsTest, AnHttp10ReaderGetsTheStreamUnframed) {
  Tell("lease.acquired");
  Start();
  auto client = Ask("GET /v1/events?since=start&follow=false HTTP/1.0\r\nHost: localhost\r\n\r\n");
  ASSERT_TRUE(IsOver(*client));
  EXPECT_EQ(Head(*client).find("Transfer-Encoding"), std::string::npos);
  EXPECT_NE(Head(*client).find("Connection: close"), std::string::npos);
  EXPECT_EQ(Ids(Blocks(*client)), "p1.1");
}

TEST_F(EventStreamsTest, HeadShowsTheHeadersOpensNothingAndKeepsTheConnection) {
  Start();
  auto client = Ask("HEAD /v1/events HTTP/1.1\r\nHost: localhost\r\n\r\n");
  EXPECT_EQ(streams_->count(), 0U);
  EXPECT_NE(Head(*client).find("text/event-stream"), std::string::npos);
  const size_t first = client->socket().received().size();
  client->Send("HEAD /v1/events HTTP/1.1\r\nHost: localhost\r\n\r\n");
  EXPECT_TRUE(Eventually([&] {
    client->socket().Poll();
    return client->socket().received().size() == 2 * first;
  }));
}

TEST_F(EventStreamsTest, MoreReadersThanTheLimitAreRefusedAndNobodyElseIs) {
  options_.streams_max = 3;
  http_.max_connections = 2;
  Start();
  std::vector<std::unique_ptr<HttpClient>> readers;
  for (int i = 0; i < 3; ++i) readers.push_back(Read(""));
  EXPECT_EQ(streams_->count(), 3U);
  auto refused = Read("");
  EXPECT_EQ(refused->Answers().at(0).status, 503);
  EXPECT_NE(refused->Answers().at(0).Header("Retry-After"), "");
  EXPECT_EQ(Read("?event=bad")->Answers().at(0).status, 400);  // others are served beside them
  readers.pop_back();
  ASSERT_TRUE(Eventually([&] { return streams_->count() == 2; }));
  auto in = Read("");
  Tell("lease.lost");
  EXPECT_EQ(Wait(*in, 2)[1].event, "lease.lost");
  for (auto& reader : readers) EXPECT_EQ(Wait(*reader, 2)[1].event, "lease.lost");
}

TEST_F(EventStreamsTest, AReaderThatNeverReadsIsCutWhenTheHistoryOvertakesItAndOthersAreNot) {
  bus_ = std::make_unique<observe::EventBus>(64);
  Start();
  auto sleeper = Read("");
  auto reader = Read("");
  const std::string detail(16 * 1024, 'x');  // the kernel's buffers take some MiB
  int told = 0;
  while (streams_->count() == 2 && told < 4000) {
    Tell("store.degraded", "", detail);
    ++told;
    ASSERT_TRUE(Eventually([&] {
      reader->socket().Poll();
      return reader->socket().received().find("p1." + std::to_string(told) + "\n") !=
             std::string::npos;
    }));
  }
  EXPECT_EQ(streams_->count(), 1U);
  EXPECT_LT(told, 4000);
  EXPECT_EQ(Blocks(*reader).size(), static_cast<size_t>(told) + 1);
  EXPECT_TRUE(Eventually([&] {
    sleeper->socket().Poll();
    return sleeper->socket().reset();
  }));
}

TEST_F(EventStreamsTest, AReplayLargerThanTheQueueArrivesWholeAtASlowReader) {
  const std::string detail(8 * 1024, 'x');
  for (int i = 0; i < 1024; ++i) Tell("store.degraded", "", detail);
  Start();
  auto client = std::make_unique<HttpClient>(server_->bound());
  client->Send(Get("/v1/events?since=start&follow=false"));
  int turns = 0;
  EXPECT_TRUE(Eventually([&] { return ++turns > 20; }));  // it does not read meanwhile
  ASSERT_TRUE(IsOver(*client));
  const auto blocks = Blocks(*client);
  ASSERT_EQ(blocks.size(), 1024U);
  EXPECT_EQ(blocks.front().id, "p1.1");
  EXPECT_EQ(blocks.back().id, "p1.1024");
}

TEST_F(EventStreamsTest, AQuietReaderIsSentHeartbeatsThatMoveItsPlaceOn) {
  options_.heartbeat = base::Duration::Millis(20);
  Start();
  auto client = Read("?event=lease.");
  EXPECT_TRUE(Eventually([&] { return Body(*client).find("\n:\n\n") != std::string::npos; }));
  Tell("gate.opened");  // not wanted
  EXPECT_TRUE(
      Eventually([&] { return Body(*client).find("\n:\nid: p1.1\n\n") != std::string::npos; }));
  EXPECT_EQ(Blocks(*client).size(), 1U);
}

TEST_F(EventStreamsTest, AReaderThatStopsReadingIsCutAfterTwoBeats) {
  options_.heartbeat = base::Duration::Millis(30);
  Start();
  const std::string detail(64 * 1024, 'x');
  auto sleeper = Read("");
  for (int i = 0; i < 500; ++i) Tell("store.degraded", "", detail);
  EXPECT_EQ(streams_->count(), 1U);
  EXPECT_TRUE(Eventually([&] { return streams_->count() == 0; }));
}

TEST_F(EventStreamsTest, AReaderThatLeavesIsForgottenHoweverItLeaves) {
  Start();
  auto closes = Read("");
  auto resets = Read("");
  auto ends = Read("");
  auto chatters = Read("");
  ASSERT_EQ(streams_->count(), 4U);
  closes->socket().Close();
  resets->socket().CloseWithReset();
  ends->socket().ShutdownWrite();
  EXPECT_TRUE(Eventually([&] { return streams_->count() == 1; }));
  EXPECT_TRUE(IsOver(*ends));
  EXPECT_TRUE(ends->socket().received().ends_with("0\r\n\r\n"));
  chatters->Send(std::string(300 * 1024, 'x'));
  EXPECT_TRUE(Eventually([&] {
    chatters->Send(std::string(64 * 1024, 'x'));
    return streams_->count() == 0;
  }));
}

TEST_F(EventStreamsTest, ARequestWithItsFinIsAnsweredWithWhatThereIs) {
  Tell("lease.acquired");
  Start();
  auto client = std::make_unique<HttpClient>(server_->bound());
  client->Send(Get("/v1/events?since=start"));
  client->socket().ShutdownWrite();
  ASSERT_TRUE(IsOver(*client));
  EXPECT_TRUE(client->socket().ended());
  EXPECT_EQ(Ids(Blocks(*client)), "p1.1");
}

TEST_F(EventStreamsTest, TheEndComesInOrderAfterTheLastEvent) {
  Start();
  auto client = Read("");
  Wait(*client, 1);
  Tell("lease.released");
  streams_->EndAll();
  server_.reset();
  ASSERT_TRUE(IsOver(*client));
  EXPECT_TRUE(client->socket().ended());
  EXPECT_EQ(Blocks(*client).back().event, "lease.released");
  EXPECT_TRUE(client->socket().received().ends_with("0\r\n\r\n"));
}

TEST_F(EventStreamsTest, EndedStreamsThatNobodyClosesCountAsOrdinaryConnections) {
  http_.max_connections = 3;
  Start();
  std::vector<std::unique_ptr<HttpClient>> lingering;
  for (int i = 0; i < 10; ++i) {
    lingering.push_back(Read("?follow=false"));
    EXPECT_LE(server_->connections(), 3U);
  }
}

}  // namespace
}  // namespace leasehold::admin

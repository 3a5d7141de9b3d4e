// The http gate and the lease: reject, hold, drain, loss, expiry.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "http_gate_fixture.h"

namespace leasehold::gate {
namespace {

using base::Duration;

class HttpGateLeaseTest : public HttpGateFixture {
 protected:
  void BuildHolding(uint32_t max_held = 10) {
    options_.standby = StandbyPolicy::kHold;
    options_.max_held = max_held;
    Build();
  }
  bool Holds(uint64_t count) {
    return Eventually([&] { return gate_->status().held == count; });
  }
};

// ---- reject ----

TEST_F(HttpGateLeaseTest, AStandbyRejectsNamingLeaseAndState) {
  Build();
  CloseGate(false);
  RawSocket* client = Client(Get());
  EXPECT_TRUE(IsOver(client));
  EXPECT_TRUE(client->ended());
  EXPECT_EQ(client->received().find("HTTP/1.1 503 Service Unavailable\r\n"), 0u);
  for (const char* part :
       {"Retry-After: 1\r\n", "Connection: close\r\n", "application/problem+json",
        "\"lease\":\"orders\"", "\"state\":\"standby\"", "\"status\":503", "not_holding"}) {
    EXPECT_TRUE(Has(client, part)) << part << client->received();
  }
  EXPECT_TRUE(AppIsAlone());
}

TEST_F(HttpGateLeaseTest, AStandbyRejectsOnTheHeadAloneBeforeAnyContinue) {
  Build();
  RawSocket* client = Client(Post("Expect: 100-continue\r\nContent-Length: 999999\r\n"));
  EXPECT_TRUE(Gets(client, "HTTP/1.1 503 "));
  EXPECT_FALSE(Has(client, "100"));
}

TEST_F(HttpGateLeaseTest, TheRejectionOfHeadHasNoBody) {
  Build();
  RawSocket* client = Client("HEAD / HTTP/1.1\r\nHost: a\r\n\r\n");
  EXPECT_TRUE(IsOver(client));
  EXPECT_EQ(client->received().find("\r\n\r\n") + 4, client->received().size());
}

// ---- hold ----

TEST_F(HttpGateLeaseTest, HeldRequestsAreServedInOrderWhenTheLeaseComes) {
  BuildHolding();
  std::vector<RawSocket*> clients;
  for (int i = 1; i <= 3; ++i) {
    clients.push_back(Client(Get("", "/" + std::to_string(i))));
    EXPECT_TRUE(Holds(static_cast<uint64_t>(i)));
  }
  Open();
  for (int i = 1; i <= 3; ++i) {
    const std::string number = std::to_string(i);
    RawSocket* app = App();
    EXPECT_TRUE(Gets(app, "GET /" + number + " "));
    EXPECT_TRUE(Has(app, "Lease-Sequence: " + number + "\r\n"));
    app->Send(Ok("answer" + number));
  }
  for (int i = 1; i <= 3; ++i) {
    EXPECT_TRUE(Gets(clients[static_cast<size_t>(i - 1)], "answer" + std::to_string(i)));
  }
}

TEST_F(HttpGateLeaseTest, HeldRequestsAreRefusedWhenTheGateGoes) {
  BuildHolding();
  RawSocket* client = Client(Get());
  EXPECT_TRUE(Holds(1));
  gate_.reset();
  EXPECT_TRUE(Gets(client, "HTTP/1.1 503 "));
  EXPECT_TRUE(Has(client, "Connection: close\r\n"));
  EXPECT_TRUE(IsOver(client));
  EXPECT_FALSE(client->reset());
}

TEST_F(HttpGateLeaseTest, AnAnswerUnderWayIsCutNotEndedWhenTheGateGoes) {
  BuildOpen();
  Pair pair = Exchange("GET / HTTP/1.0\r\n\r\n", "HTTP/1.1 200 OK\r\n\r\nhalf");
  EXPECT_TRUE(Gets(pair.client, "half"));
  gate_.reset();
  EXPECT_TRUE(IsOver(pair.client));
  EXPECT_TRUE(pair.client->reset());
}

TEST_F(HttpGateLeaseTest, AHeldRequestKeepsItsBody) {
  BuildHolding();
  RawSocket* client = Client(Post("Content-Length: 4\r\n", "bo"));
  EXPECT_TRUE(Holds(1));
  client->Send("dy");
  RunFor(Duration::Millis(10));
  Open();
  RawSocket* app = App();
  EXPECT_TRUE(Gets(app, "\r\n\r\nbody"));
}

TEST_F(HttpGateLeaseTest, AFullQueueRefuses) {
  BuildHolding(1);
  Client(Get());
  EXPECT_TRUE(Holds(1));
  RawSocket* second = Client(Get());
  EXPECT_TRUE(Gets(second, "hold_full"));
  EXPECT_TRUE(Has(second, "HTTP/1.1 503 "));
}

TEST_F(HttpGateLeaseTest, AWaitInVainEndsInA503) {
  options_.hold_timeout = Duration::Millis(50);
  BuildHolding();
  RawSocket* client = Client(Get());
  EXPECT_TRUE(Gets(client, "hold_timeout"));
  EXPECT_EQ(gate_->status().held, 0u);
}

TEST_F(HttpGateLeaseTest, AClientThatLeavesFreesItsPlace) {
  BuildHolding();
  RawSocket* client = Client(Get());
  EXPECT_TRUE(Holds(1));
  client->Close();
  EXPECT_TRUE(Holds(0));
  RawSocket* other = Client(Get());
  EXPECT_TRUE(Holds(1));
  other->CloseWithReset();
  EXPECT_TRUE(Holds(0));
}

// ---- drain ----

TEST_F(HttpGateLeaseTest, ADrainFinishesWhatIsInFlightAndSaysCloseOnce) {
  BuildOpen();
  Pair pair = Exchange(Get(), Ok("one"));
  EXPECT_TRUE(Gets(pair.client, "one"));
  pair.client->Send(Get());
  EXPECT_TRUE(Gets(pair.app, "Lease-Sequence: 2"));
  Drain();
  EXPECT_FALSE(gate_->empty());
  EXPECT_EQ(empty_, 0);
  pair.app->Send(Ok("two"));
  EXPECT_TRUE(IsOver(pair.client));
  EXPECT_TRUE(pair.client->ended());
  EXPECT_TRUE(Has(pair.client, "\r\n\r\ntwo"));
  EXPECT_EQ(Count(pair.client->received(), "Connection: close"), 1u);
  EXPECT_TRUE(Eventually([&] { return empty_ == 1; }));
}

TEST_F(HttpGateLeaseTest, ABusyClientBetweenTwoRequestsIsToldOnItsNextAnswer) {
  BuildOpen();
  Pair pair = Exchange(Get(), Ok("one"));
  EXPECT_TRUE(Gets(pair.client, "one"));
  Drain();
  EXPECT_TRUE(Eventually([&] { return empty_ == 1; }));
  CloseGate(false);
  RunFor(Duration::Millis(20));
  EXPECT_FALSE(pair.client->Poll());
  pair.client->Send(Get());
  EXPECT_TRUE(IsOver(pair.client));
  EXPECT_EQ(Count(pair.client->received(), "Connection: close"), 1u);
  EXPECT_TRUE(Has(pair.client, "HTTP/1.1 503 "));
}

TEST_F(HttpGateLeaseTest, ABusyCrowdSeesExactlyOneCloseEachAndNoCutBody) {
  BuildOpen();
  struct Hot {
    RawSocket* socket = nullptr;
    size_t sent = 0;
  };
  std::vector<Hot> crowd(20);
  for (Hot& hot : crowd) hot.socket = Client();
  std::vector<std::pair<RawSocket*, size_t>> apps;
  // One round: the application answers what it got, each client that has its answer asks again.
  const auto round = [&] {
    while (auto socket = app_->Accept()) {
      apps.emplace_back(sockets_.emplace_back(std::move(socket)).get(), 0);
    }
    for (auto& [app, answered] : apps) {
      app->Poll();
      for (; answered < Count(app->received(), "\r\n\r\n"); ++answered) app->Send(Ok("body"));
    }
    for (Hot& hot : crowd) {
      hot.socket->Poll();
      const bool told = Has(hot.socket, "Connection: close");
      if (told || Count(hot.socket->received(), "HTTP/1.1 ") < hot.sent) continue;
      hot.socket->Send(Get());
      ++hot.sent;
    }
  };
  EXPECT_TRUE(Eventually([&] {
    round();
    return crowd.back().sent >= 5 && crowd.front().sent >= 5;
  }));
  Drain();
  bool closed = false;
  EXPECT_TRUE(Eventually([&] {
    round();
    if (!closed && empty_ == 1) CloseGate(false), closed = true;
    return std::all_of(crowd.begin(), crowd.end(),
                       [](const Hot& hot) { return hot.socket->over(); });
  }));
  EXPECT_TRUE(closed);
  for (const Hot& hot : crowd) {
    EXPECT_TRUE(hot.socket->ended());
    EXPECT_EQ(Count(hot.socket->received(), "Connection: close"), 1u);
    EXPECT_EQ(Count(hot.socket->received(), "200 OK"),
              Count(hot.socket->received(), "\r\n\r\nbody"));
    EXPECT_EQ(Count(hot.socket->received(), "HTTP/1.1 "), hot.sent);
  }
}

TEST_F(HttpGateLeaseTest, AnIdleClientIsClosedInOrderInADrain) {
  BuildOpen();
  Pair pair = Exchange(Get(), Ok("one"));
  EXPECT_TRUE(Gets(pair.client, "one"));
  Drain();
  EXPECT_TRUE(IsOver(pair.client));  // after its hot window
  EXPECT_TRUE(pair.client->ended());
}

TEST_F(HttpGateLeaseTest, NewRequestsInADrainAreRejectedOrHeldByPolicy) {
  BuildOpen();
  Exchange(Get(), "");  // keeps the drain going
  Drain();
  RawSocket* rejected = Client(Get());
  EXPECT_TRUE(Gets(rejected, "HTTP/1.1 503 "));
  EXPECT_TRUE(Has(rejected, "\"state\":\"draining\""));
  gate_.reset();
  options_.standby = StandbyPolicy::kHold;
  Build();
  Open();
  Drain();
  RawSocket* held = Client(Get("", "/held"));
  EXPECT_TRUE(Holds(1));
  CloseGate(false);
  EXPECT_EQ(gate_->status().held, 1u);
  Open(8);
  RawSocket* app = nullptr;
  EXPECT_TRUE(Eventually([&] {
    auto socket = app_->Accept();
    if (socket == nullptr) return false;
    app = sockets_.emplace_back(std::move(socket)).get();
    return true;
  }));
  EXPECT_TRUE(Gets(app, "GET /held"));
  app->Send(Ok());
  EXPECT_TRUE(Gets(held, "hi"));
}

TEST_F(HttpGateLeaseTest, TheEndOfGraceAnswers503WhereNothingWasSentAndCutsTheRest) {
  BuildOpen();
  RawSocket* silent = Client(Get());
  RawSocket* silent_app = App();
  Pair half = Exchange(Get(), "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf");
  EXPECT_TRUE(Gets(half.client, "half"));
  Drain();
  CloseGate(false);
  EXPECT_TRUE(Gets(silent, "HTTP/1.1 503 "));
  EXPECT_TRUE(IsOver(silent_app));
  EXPECT_TRUE(IsOver(half.client));
  EXPECT_TRUE(half.client->reset());
  EXPECT_TRUE(IsOver(half.app));
  EXPECT_EQ(gate_->status().in_flight, 0u);
}

TEST_F(HttpGateLeaseTest, AnUploadToAStoppedApplicationDoesNotGoOnAfterTheEndOfGrace) {
  BuildOpen();
  RawSocket* client = Client(Post("Content-Length: 99999999\r\n"));
  RawSocket* app = App();
  const std::string block(256 * 1024, 'y');
  for (size_t idle_rounds = 0; idle_rounds < 20;) {  // until each buffer on the way is full
    idle_rounds = client->Send(block) == 0 ? idle_rounds + 1 : 0;
    RunFor(Duration::Millis(2));
  }
  Drain();
  CloseGate(false);
  EXPECT_TRUE(Gets(client, "HTTP/1.1 503 "));
  EXPECT_TRUE(IsOver(app));
  EXPECT_TRUE(app->reset()) << "what the gate's socket had not sent yet went on to the application";
}

TEST_F(HttpGateLeaseTest, AnUploadDoesNotGoOnWhenItsClientHasGone) {
  BuildOpen();
  RawSocket* client = Client(Post("Content-Length: 99999999\r\n"));
  RawSocket* app = App();
  client->Send(std::string(1000, 'y'));
  EXPECT_TRUE(Gets(app, "yyyy"));
  client->CloseWithReset();
  EXPECT_TRUE(IsOver(app));
  EXPECT_TRUE(app->reset()) << "what the gate's socket had not sent yet could go on";
  EXPECT_EQ(gate_->status().in_flight, 0u);
}

TEST_F(HttpGateLeaseTest, ADrainThatIsCalledOffGoesOn) {
  BuildOpen();
  Pair pair = Exchange(Get(), Ok("one"));
  EXPECT_TRUE(Gets(pair.client, "one"));
  Drain();
  Open();
  pair.client->Send(Get());
  EXPECT_TRUE(Gets(pair.app, "Lease-Sequence: 2"));
  pair.app->Send(Ok("two"));
  EXPECT_TRUE(Gets(pair.client, "two"));
  EXPECT_FALSE(Has(pair.client, "Connection: close"));
}

TEST_F(HttpGateLeaseTest, TunnelsGetTheirPartOfTheGrace) {
  BuildOpen();
  Pair pair = Exchange(Get("Connection: Upgrade\r\nUpgrade: websocket\r\n"),
                       "HTTP/1.1 101 X\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n");
  EXPECT_TRUE(Gets(pair.client, "101"));
  Drain(Duration::Seconds(9));
  EXPECT_TRUE(IsOver(pair.client));
  EXPECT_TRUE(Eventually([&] { return empty_ == 1; }));
}

// ---- loss and expiry ----

TEST_F(HttpGateLeaseTest, ALossCutsBothSidesAtOnce) {
  BuildOpen();
  RawSocket* silent = Client(Get());
  RawSocket* silent_app = App();
  Pair half = Exchange(Get(), "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n");
  EXPECT_TRUE(Gets(half.client, "hi"));
  Pair idle = Exchange(Get(), Ok());
  EXPECT_TRUE(Gets(idle.client, "hi"));
  CloseGate(true);
  for (RawSocket* socket : {silent, silent_app, half.client, half.app, idle.client}) {
    EXPECT_TRUE(IsOver(socket));
  }
  EXPECT_EQ(silent->received(), "");
  EXPECT_TRUE(half.client->reset());
  EXPECT_FALSE(Has(half.client, "0\r\n\r\n"));
}

TEST_F(HttpGateLeaseTest, OnLossFinishLetsWhatIsInFlightFinish) {
  options_.on_loss = OnLoss::kFinish;
  BuildOpen();
  RawSocket* client = Client(Get());
  RawSocket* app = App();
  EXPECT_TRUE(Gets(app, "GET"));
  CloseGate(true);
  app->Send(Ok());
  EXPECT_TRUE(Gets(client, "\r\n\r\nhi"));
  EXPECT_TRUE(Has(client, "Connection: close"));
  RawSocket* next = Client(Get());
  EXPECT_TRUE(Gets(next, "HTTP/1.1 503 "));
}

TEST_F(HttpGateLeaseTest, AnExpiredPermitRefusesAlthoughNobodyToldTheGate) {
  BuildOpen();
  permit_.ExpireAt(loop::Loop::Now());
  RawSocket* client = Client(Get());
  EXPECT_TRUE(Gets(client, "HTTP/1.1 503 "));
  EXPECT_TRUE(Has(client, "expired"));
  EXPECT_TRUE(AppIsAlone());
  EXPECT_TRUE(Eventually([&] { return expired_ == 1; }));
}

TEST_F(HttpGateLeaseTest, AnExpiredPermitPassesNoAnswerEither) {
  BuildOpen();
  RawSocket* client = Client(Get());
  RawSocket* app = App();
  EXPECT_TRUE(Gets(app, "GET"));
  permit_.ExpireAt(loop::Loop::Now());
  app->Send(Ok());
  EXPECT_TRUE(IsOver(client));
  EXPECT_EQ(client->received(), "");
  EXPECT_TRUE(IsOver(app));
}

TEST_F(HttpGateLeaseTest, AnUploadThatWaitsInAQueueIsCutByAnExpiredPermitWithoutA502) {
  BuildOpen();
  RawSocket* client = Client(Post("Content-Length: 99999999\r\n"));
  RawSocket* app = App();
  const std::string block(256 * 1024, 'y');
  // An application that does not read: the kernel's buffers fill, then the gate's queue, which
  // the stream asks about before it goes on (stream_test: MayFlush).
  for (size_t idle_rounds = 0; idle_rounds < 20;) {
    idle_rounds = client->Send(block) == 0 ? idle_rounds + 1 : 0;
    RunFor(Duration::Millis(2));
  }
  permit_.ExpireAt(loop::Loop::Now());
  EXPECT_TRUE(IsOver(app));
  EXPECT_TRUE(IsOver(client));
  EXPECT_EQ(client->received(), "");
  EXPECT_GT(expired_, 0);
}

TEST_F(HttpGateLeaseTest, AnExpiredPermitPassesNoMoreOfABody) {
  BuildOpen();
  RawSocket* client = Client(Post("Content-Length: 8\r\n", "abc"));
  RawSocket* app = App();
  EXPECT_TRUE(Gets(app, "abc"));
  permit_.ExpireAt(loop::Loop::Now());
  client->Send("defgh");
  EXPECT_TRUE(IsOver(client));
  EXPECT_TRUE(IsOver(app));
  EXPECT_FALSE(Has(app, "defgh"));
}

TEST_F(HttpGateLeaseTest, AStallInOneBatchRefusesWhatCameWithIt) {
  BuildOpen();
  RawSocket* first = Client(Get("", "/1"));
  RawSocket* app = App();
  EXPECT_TRUE(Gets(app, "GET /1"));
  app->Send(Ok("one"));
  EXPECT_TRUE(Gets(first, "one"));
  RawSocket* second = Client();
  RunFor(Duration::Millis(20));  // accepted
  // Both requests are in the sockets before the loop looks; a callback ahead of them (here: before
  // the turn) stalls past expiry without any timer having had its chance.
  permit_.ExpireAt(loop::Loop::Now() + Duration::Millis(5));
  first->Send(Get("", "/2"));
  second->Send(Get("", "/3"));
  loop_.Post([] {
    const base::MonoTime until = loop::Loop::Now() + Duration::Millis(10);
    while (loop::Loop::Now() < until) {
    }
  });
  EXPECT_TRUE(Gets(first, "HTTP/1.1 503 "));
  EXPECT_TRUE(Gets(second, "HTTP/1.1 503 "));
  app->Poll();
  EXPECT_FALSE(Has(app, "/2"));
  EXPECT_FALSE(Has(app, "/3"));
}

TEST_F(HttpGateLeaseTest, WhileARenewalIsBeingConfirmedRequestsAreHeldAndNothingIsCut) {
  BuildOpen();
  RawSocket* flying = Client(Get("", "/1"));
  RawSocket* app = App();
  EXPECT_TRUE(Gets(app, "GET /1"));
  permit_.Set(lease::Valve::kHolding, base::MonoTime::Never(), 7);
  EXPECT_TRUE(gate_->SetValve({lease::Valve::kHolding, false, {}, ""}).ok());
  RawSocket* held = Client(Get("", "/2"));
  EXPECT_TRUE(Holds(1));
  app->Send(Ok("one"));
  EXPECT_TRUE(Gets(flying, "one"));
  Open();
  EXPECT_TRUE(Gets(app, "GET /2"));
  app->Send(Ok("two"));
  EXPECT_TRUE(Gets(held, "two"));
}

}  // namespace
}  // namespace leasehold::gate

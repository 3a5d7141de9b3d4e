// Forwarding of http, both sides together: what a standby's client sends is answered by the
// holder's application, as if the client had gone there.
#include <gtest/gtest.h>

#include <string>

#include "http_pair_fixture.h"

namespace leasehold::gate {
namespace {

using base::Duration;

using HttpForwardTest = HttpPairFixture;

TEST_F(HttpForwardTest, AStandbyAnswersFromTheHoldersApplication) {
  BuildBoth();
  RawSocket* client = Client(a_, Get("X-Forwarded-For: 192.0.2.9\r\n", "/x?y"));
  RawSocket* app = Accepted(*b_.app);
  EXPECT_TRUE(Gets(app, "\r\n\r\n"));
  EXPECT_EQ(app->received().find("GET /x?y HTTP/1.1\r\nHost: a\r\n"), 0u);
  EXPECT_EQ(Count(app->received(), "Via: "), 1u) << app->received();
  EXPECT_TRUE(Has(app, "X-Forwarded-For: 192.0.2.9, 127.0.0.1\r\n")) << app->received();
  EXPECT_EQ(Count(app->received(), "X-Forwarded-Proto: http\r\n"), 1u);
  EXPECT_EQ(Count(app->received(), "X-Forwarded-Host: a\r\n"), 1u);
  EXPECT_EQ(Count(app->received(), "Lease-Fencing-Token: 7\r\n"), 1u);
  EXPECT_TRUE(Has(app, "Lease-Holder: node/process-b\r\n"));
  EXPECT_TRUE(Has(app, "Lease-Sequence: 1\r\n"));
  EXPECT_FALSE(Has(app, "Lease-Peer"));
  app->Send(Ok("from b", "Lease-Peer: admitted\r\nX-App: 1\r\n"));
  EXPECT_TRUE(Gets(client, "from b"));
  EXPECT_EQ(client->received().find("HTTP/1.1 200 OK\r\n"), 0u) << client->received();
  EXPECT_EQ(Count(client->received(), "Via: "), 1u);
  EXPECT_TRUE(Has(client, "X-App: 1\r\n"));
  EXPECT_FALSE(Has(client, "Lease-Peer"));
  EXPECT_FALSE(Has(client, "Connection: close"));
  EXPECT_TRUE(IsAlone(*a_.app));
  EXPECT_EQ(a_.gate->status().in_flight, 0u);
}

TEST_F(HttpForwardTest, ABodyFollowsTheAdmissionAndArrivesWhole) {
  BuildBoth();
  RawSocket* client = Client(a_, Post("Content-Length: 4\r\n", "bo"));
  RawSocket* app = Accepted(*b_.app);
  EXPECT_TRUE(Gets(app, "\r\n\r\nbo"));
  client->Send("dy");
  EXPECT_TRUE(Gets(app, "\r\n\r\nbody"));
  EXPECT_TRUE(Has(app, "Content-Length: 4\r\n"));
  app->Send(Ok("done"));
  EXPECT_TRUE(Gets(client, "done"));
  EXPECT_FALSE(Has(client, "199"));
}

TEST_F(HttpForwardTest, APostWithoutBodyArrivesAsOne) {
  BuildBoth();
  for (const char* more : {"", "Content-Length: 0\r\n"}) {
    RawSocket* client = Client(a_, Post(more));
    RawSocket* app = Accepted(*b_.app);
    EXPECT_TRUE(Gets(app, "\r\n\r\n"));
    EXPECT_EQ(Count(app->received(), "Content-Length: 0\r\n"), 1u) << app->received();
    EXPECT_FALSE(Has(app, "chunked"));
    app->Send("HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n");
    EXPECT_TRUE(Gets(client, "HTTP/1.1 204 No Content\r\n"));
    EXPECT_FALSE(Has(client, "Connection: close"));
  }
}

}  // namespace
}  // namespace leasehold::gate

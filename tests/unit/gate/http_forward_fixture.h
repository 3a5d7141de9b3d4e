// HttpForwardPeerTest's and HttpForwardTroubleTest's common ground: a standby whose holder's gate
// is a raw server of the test, so that the test decides what that peer says and when, and a second
// one for the holder after it. Not for pairs of real gates: http_pair_fixture.h. Owned by the
// tests. Invariant: a_ believes peer_ to be the holder's gate until Move().
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "http_pair_fixture.h"

namespace leasehold::gate {

class HttpForwardFixture : public HttpPairFixture {
 protected:
  void SetUp() override {
    HttpPairFixture::SetUp();
    peer_ = std::make_unique<RawServer>(testing::TcpAddress("127.0.0.1", 0));
    next_ = std::make_unique<RawServer>(testing::TcpAddress("127.0.0.1", 0));
  }
  // a_ is a standby that believes peer_ to be the holder's gate.
  void BuildSender() {
    Build(a_);
    a_.gate->SetPeer(PeerAt(peer_->address()));
  }
  // The record now says that next_ is.
  void Move() { a_.gate->SetPeer(PeerAt(next_->address(), "process-y", 8)); }
  // One GET, so that all requests go from now on; the connection at the peer, kept.
  RawSocket* Prove() {
    RawSocket* client = Client(a_, Get("", "/prove"));
    RawSocket* peer = Accepted(*peer_);
    EXPECT_TRUE(Gets(peer, "\r\n\r\n"));
    peer->Send(std::string(kSaid) + PeerOk("proven"));
    EXPECT_TRUE(Gets(client, "proven"));
    client->Close();
    return peer;
  }
  // The request arrives at next_, is admitted and answered.
  void AnsweredByNext(RawSocket* client, std::string_view body = {}) {
    RawSocket* next = Accepted(*next_);
    EXPECT_TRUE(Gets(next, "to=process-y "));
    EXPECT_TRUE(Gets(next, "\r\n\r\n"));
    EXPECT_TRUE(body.empty() || !Has(next, body));
    next->Send(kSaid);
    EXPECT_TRUE(Gets(next, body));
    next->Send(PeerOk("from next"));
    EXPECT_TRUE(Gets(client, "from next"));
  }

  std::unique_ptr<RawServer> peer_;
  std::unique_ptr<RawServer> next_;
};

}  // namespace leasehold::gate

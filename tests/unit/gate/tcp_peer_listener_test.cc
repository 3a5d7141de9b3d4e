// The peer listener of a tcp gate, spoken to by hand: exactly one header, one verdict, then the
// client's bytes; whatever else comes is told so and sent away in bounded time.
#include <gtest/gtest.h>

#include <string>

#include "unit/gate/tcp_forward_fixture.h"

namespace leasehold::gate {
namespace {

using loop::Loop;

class TcpPeerListenerTest : public TcpForwardFixture {
 protected:
  const std::string kAdmitted = Verdict(0);
  const std::string kNotAdmitted = Verdict(1);
  const std::string kRefused = Verdict(2);

  // Sends `bytes` to the peer listener of "two" and expects this verdict and an end.
  void ExpectAway(const std::string& bytes, const std::string& verdict) {
    RawSocket* sidecar = Connect(two_.PeerListening());
    sidecar->Send(bytes);
    EXPECT_TRUE(ComesToBeOver(sidecar));
    EXPECT_EQ(sidecar->received(), verdict);
    EXPECT_TRUE(Eventually([&] { return two_.gate->status().connections == 0; }));
    EXPECT_TRUE(Nobody(two_));
  }
};

TEST_F(TcpPeerListenerTest, AHeaderThatComesByteByByteIsAdmittedWithItsLastByte) {
  Build();
  two_.Open();
  const std::string header = HeaderWith(HelloTo("process-2"));
  RawSocket* sidecar = Connect(two_.PeerListening());
  for (size_t i = 0; i + 1 < header.size(); ++i) {
    sidecar->Send(header.substr(i, 1));
    RunFor(Duration::Millis(1));
  }
  sidecar->Poll();
  EXPECT_EQ(sidecar->received(), "");
  EXPECT_TRUE(Nobody(two_));
  EXPECT_EQ(two_.gate->status().in_flight, 0u);
  sidecar->Send(header.substr(header.size() - 1));
  EXPECT_TRUE(ComesToReceive(sidecar, kAdmitted));
  RawSocket* upstream = Upstream(two_);
  sidecar->Send("question");
  EXPECT_TRUE(ComesToReceive(upstream, "question"));
  EXPECT_TRUE(two_.Logged("client=192.0.2.7:51234"));
}

TEST_F(TcpPeerListenerTest, BytesRightBehindTheHeaderAreTheClients) {
  Build();
  two_.Open();
  RawSocket* sidecar = Connect(two_.PeerListening());
  sidecar->Send(HeaderWith(HelloTo("process-2")) + "early");
  EXPECT_TRUE(ComesToReceive(Upstream(two_), "early"));
  EXPECT_TRUE(ComesToReceive(sidecar, kAdmitted));
}

TEST_F(TcpPeerListenerTest, AClosedDrainingOrRenewingGateAdmitsNoneAndHoldsNone) {
  Build();
  ExpectAway(HeaderWith(HelloTo("process-2")), kNotAdmitted);
  two_.Open();
  two_.Drain();
  ExpectAway(HeaderWith(HelloTo("process-2")), kNotAdmitted);
  two_.permit.Set(lease::Valve::kHolding, base::MonoTime::Never());
  ASSERT_TRUE(two_.gate->SetValve({lease::Valve::kHolding, false, {}, ""}).ok());
  ExpectAway(HeaderWith(HelloTo("process-2")), kNotAdmitted);
  EXPECT_EQ(two_.gate->status().held, 0u);
}

TEST_F(TcpPeerListenerTest, AnExpiredPermitAdmitsNone) {
  Build();
  two_.Open();
  two_.permit.ExpireAt(Loop::Now());
  ExpectAway(HeaderWith(HelloTo("process-2")), kNotAdmitted);
}

TEST_F(TcpPeerListenerTest, AHelloForAnotherProcessIsNotAdmitted) {
  Build();
  two_.Open();
  ExpectAway(HeaderWith(HelloTo("process-before")), kNotAdmitted);
}

TEST_F(TcpPeerListenerTest, AHelloForAnotherGateOrUnderNoSecretIsRefused) {
  two_.secret = "between us";
  Build();
  two_.Open();
  ExpectAway(HeaderWith(HelloTo("process-2", "other", "between us")), kRefused);
  ExpectAway(HeaderWith(HelloTo("process-2")), kRefused);
  ExpectAway(HeaderWith(HelloTo("process-2", "broker", "between them")), kRefused);
  EXPECT_TRUE(two_.Logged("gate.peer_refused"));
}

TEST_F(TcpPeerListenerTest, WhatIsNoHeaderIsRefusedAtOnce) {
  Build();
  two_.Open();
  ExpectAway("GET / HTTP/1.1\r\nHost: a\r\n\r\n", kRefused);
  ExpectAway("PROXY TCP4 192.0.2.7 192.0.2.1 1 2\r\n", kRefused);
  ExpectAway(HeaderWith(""), kRefused);  // a load balancer's
  EXPECT_TRUE(two_.Logged("sidecars of this gate only") || two_.Logged("PROXY protocol"));
}

TEST_F(TcpPeerListenerTest, AnOversizeHeaderIsRefusedFromItsLengthAlone) {
  Build();
  two_.Open();
  std::string bytes = HeaderWith(HelloTo("process-2"));
  bytes[14] = static_cast<char>(0xFF);
  ExpectAway(bytes.substr(0, 16), kRefused);
  EXPECT_TRUE(two_.Logged("longer than 1024 bytes"));
}

TEST_F(TcpPeerListenerTest, ADamagedHeaderIsRefused) {
  Build();
  two_.Open();
  std::string bytes = HeaderWith(HelloTo("process-2"));
  bytes[16] = static_cast<char>(bytes[16] ^ 1);
  ExpectAway(bytes, kRefused);
  EXPECT_TRUE(two_.Logged("CRC32C"));
}

TEST_F(TcpPeerListenerTest, WhoSaysNothingIsSentAwayAfter3Seconds) {
  Build();
  two_.Open();
  const base::MonoTime start = Loop::Now();
  RawSocket* quiet = Connect(two_.PeerListening());
  RawSocket* slow = Connect(two_.PeerListening());
  slow->Send(HeaderWith(HelloTo("process-2")).substr(0, 20));
  EXPECT_TRUE(ComesToBeOver(quiet));
  EXPECT_TRUE(ComesToBeOver(slow));
  EXPECT_GE(Loop::Now() - start, Duration::Seconds(3));
  EXPECT_LT(Loop::Now() - start, Duration::Millis(3500));
  EXPECT_EQ(slow->received(), "");
  EXPECT_EQ(two_.gate->status().connections, 0u);
}

TEST_F(TcpPeerListenerTest, WhoLeavesBeforeItsHeaderIsWholeIsForgottenWithoutAWord) {
  Build();
  two_.Open();
  RawSocket* probe = Connect(two_.PeerListening());
  ASSERT_TRUE(Eventually([&] { return two_.gate->status().connections == 1; }));
  probe->Close();
  EXPECT_TRUE(Eventually([&] { return two_.gate->status().connections == 0; }));
  EXPECT_FALSE(two_.Logged("gate.peer_refused"));
}

TEST_F(TcpPeerListenerTest, AGateThatDoesNotForwardStillServesWhoForwardsToIt) {
  two_.options.standby = StandbyPolicy::kRefuse;
  Scene();
  Connected(one_, two_);
}

TEST_F(TcpPeerListenerTest, ASidecarThatLeavesBeforeTheUpstreamAnsweredIsNoLongerInFlight) {
  two_.upstream = std::make_unique<RawServer>(testing::TcpAddress("127.0.0.1", 0), 0);
  for (int i = 0; i < 4; ++i) Connect(two_.upstream->address());
  two_.options.connect_timeout = Duration::Seconds(60);
  Build();
  two_.Open();
  RawSocket* sidecar = Connect(two_.PeerListening());
  sidecar->Send(HeaderWith(HelloTo("process-2")));
  ASSERT_TRUE(ComesToReceive(sidecar, kAdmitted));
  EXPECT_EQ(two_.gate->status().in_flight, 1u);
  sidecar->Close();
  EXPECT_TRUE(Eventually([&] { return two_.gate->status().in_flight == 0; }));
}

}  // namespace
}  // namespace leasehold::gate

// What sidecars say to each other's peer listeners, and who is believed.
#include "gate/peer_hello.h"

#include <gtest/gtest.h>

#include <string>

namespace leasehold::gate {
namespace {

class PeerHelloTest : public ::testing::Test {
 protected:
  static PeerCheck Check(PeerKey& key, const std::string& text) {
    bool say = false;
    return key.Check(text, &say);
  }
};

TEST_F(PeerHelloTest, WhatIsWrittenIsUnderstood) {
  PeerKey sender("", "orders", "web", "from-1");
  PeerHello hello;
  ASSERT_TRUE(ParsePeerHello(sender.HelloTo("to-1"), &hello));
  EXPECT_EQ(hello.gate, "web");
  EXPECT_EQ(hello.to, "to-1");
  EXPECT_EQ(hello.from, "from-1");
  EXPECT_EQ(hello.mac, "");
  EXPECT_FALSE(hello.say);
  const std::string asking = sender.HelloTo("to-2") + " say";
  ASSERT_TRUE(ParsePeerHello(asking, &hello));
  EXPECT_EQ(hello.to, "to-2");
  EXPECT_TRUE(hello.say);
}

TEST_F(PeerHelloTest, ASecretIsProvenAndNeverSaid) {
  PeerKey sender("s3cret", "orders", "web", "from-1");
  PeerKey holder("s3cret", "orders", "web", "to-1");
  PeerHello hello;
  ASSERT_TRUE(ParsePeerHello(sender.HelloTo("to-1"), &hello));
  EXPECT_EQ(hello.mac.size(), 64u);
  EXPECT_EQ(sender.HelloTo("to-1").find("s3cret"), std::string::npos);
  EXPECT_EQ(Check(holder, sender.HelloTo("to-1")), PeerCheck::kWelcome);
  EXPECT_EQ(Check(holder, sender.HelloTo("to-1")), PeerCheck::kWelcome);  // as remembered
}

TEST_F(PeerHelloTest, TheWishForAnAdmissionIsHeardEitherWay) {
  PeerKey sender("", "orders", "web", "from-1");
  PeerKey holder("", "orders", "web", "to-1");
  bool say = false;
  for (int i = 0; i < 2; ++i) {  // the second time from memory
    EXPECT_EQ(holder.Check(sender.HelloTo("to-1") + " say", &say), PeerCheck::kWelcome);
    EXPECT_TRUE(say);
    EXPECT_EQ(holder.Check(sender.HelloTo("to-1"), &say), PeerCheck::kWelcome);
    EXPECT_FALSE(say);
  }
}

TEST_F(PeerHelloTest, WhatIsMeantForOthersIsNotWelcome) {
  PeerKey holder("s3cret", "orders", "web", "to-1");
  PeerKey other_gate("s3cret", "orders", "api", "from-1");
  PeerKey other_lease("s3cret", "invoices", "web", "from-1");
  PeerKey other_secret("guess", "orders", "web", "from-1");
  PeerKey no_secret("", "orders", "web", "from-1");
  PeerKey sender("s3cret", "orders", "web", "from-1");
  EXPECT_EQ(Check(holder, other_gate.HelloTo("to-1")), PeerCheck::kOtherGate);
  EXPECT_EQ(Check(holder, other_lease.HelloTo("to-1")), PeerCheck::kWrongSecret);
  EXPECT_EQ(Check(holder, other_secret.HelloTo("to-1")), PeerCheck::kWrongSecret);
  EXPECT_EQ(Check(holder, no_secret.HelloTo("to-1")), PeerCheck::kWrongSecret);
  EXPECT_EQ(Check(holder, sender.HelloTo("to-2")), PeerCheck::kOtherProcess);
}

TEST_F(PeerHelloTest, AMacHoldsForOneReceiverAndOneSender) {
  PeerKey holder("s3cret", "orders", "web", "to-1");
  PeerKey sender("s3cret", "orders", "web", "from-1");
  PeerHello hello;
  const std::string line = sender.HelloTo("to-2");
  ASSERT_TRUE(ParsePeerHello(line, &hello));
  const std::string mac(hello.mac);
  EXPECT_EQ(Check(holder, "1 gate=web to=to-1 from=from-1 mac=" + mac), PeerCheck::kWrongSecret);
  EXPECT_EQ(Check(holder, "1 gate=web to=to-1 from=from-2 mac=" + mac), PeerCheck::kWrongSecret);
}

TEST_F(PeerHelloTest, WithoutASecretAMacIsNotLookedAt) {
  PeerKey holder("", "orders", "web", "to-1");
  PeerKey sender("s3cret", "orders", "web", "from-1");
  EXPECT_EQ(Check(holder, sender.HelloTo("to-1")), PeerCheck::kWelcome);
}

TEST_F(PeerHelloTest, AnythingElseIsMalformed) {
  PeerKey holder("", "orders", "web", "to-1");
  for (const char* text :
       {"", " ", " say", "1", "2 gate=web to=to-1 from=f", "1 gate=web to=to-1",
        "1 gate= to=to-1 from=f", "1 gate=web to=to-1 from=", "1 gate=web to=to-1 from=f extra",
        "1  gate=web to=to-1 from=f", "1 to=to-1 gate=web from=f",
        "1 gate=web to=to-1 from=f mac=", "1 gate=web to=to-1 from=f mac=a b",
        "1 gate=web to=to-1 from=f say say", "1 gate=web to=to-1 from=f SAY"}) {
    EXPECT_EQ(Check(holder, text), PeerCheck::kMalformed) << "\"" << text << "\"";
  }
  EXPECT_EQ(Check(holder, "1 gate=web to=to-1 from=f"), PeerCheck::kWelcome);
}

TEST_F(PeerHelloTest, NamesCannotBreakTheLine) {
  PeerKey sender("", "orders", "web", "from 1");
  const std::string line = sender.HelloTo("to\r\nX: y mac=z");
  EXPECT_EQ(line, "1 gate=web to=to??X:?y?mac=z from=from?1");
}

TEST_F(PeerHelloTest, EachVerdictHasItsSentence) {
  for (const PeerCheck check : {PeerCheck::kMalformed, PeerCheck::kOtherGate,
                                PeerCheck::kOtherProcess, PeerCheck::kWrongSecret}) {
    EXPECT_GT(PeerCheckSentence(check).size(), 20u);
  }
}

}  // namespace
}  // namespace leasehold::gate

// Addresses as configuration writes them: what is accepted reads the same when it is written again.
#include "base/address.h"

#include <gtest/gtest.h>

#include <string>

namespace leasehold::base {
namespace {

std::string Refusal(std::string_view text) {
  const Result<Address> address = ParseAddress(text);
  return address.ok() ? "" : address.error().message;
}

TEST(AddressTest, TheThreeFormsComeBackAsTheyWere) {
  for (const std::string text :
       {"127.0.0.1:8080", "redis.internal:6379", "[::1]:80", "[fe80::1%eth0]:80",
        "[::ffff:10.0.0.1]:0", "unix:/run/x.sock", "unix:relative.sock"}) {
    const Result<Address> address = ParseAddress(text);
    ASSERT_TRUE(address.ok()) << address.error().message;
    EXPECT_EQ(address->ToString(), text);
  }
}

// "[unix]:80" was the host "unix", and written again the Unix socket "80".
TEST(AddressTest, BracketsAreForIpAddressesOnly) {
  for (const std::string text : {"[unix]:80", "[localhost]:80", "[cafe]:80", "[*]:80", "[]:80",
                                 "[[::1]:80", "[::1]]:80", "[::1]x]:80"}) {
    EXPECT_NE(Refusal(text), "") << text;
  }
  EXPECT_NE(Refusal("[unix]:80").find("brackets are for IP addresses"), std::string::npos);
}

// "[${POD_IP}]:8081" is written for pods that may get either kind.
TEST(AddressTest, AnIpv4AddressInBracketsIsOneWithout) {
  const Result<Address> address = ParseAddress("[10.1.2.3]:80");
  ASSERT_TRUE(address.ok()) << address.error().message;
  EXPECT_EQ(address->ToString(), "10.1.2.3:80");
}

// "[x" was a host, and written again no address at all.
TEST(AddressTest, AHostHasNoBracketsAndOnlyAscii) {
  for (const std::string text : {"x[:80", "x]:80", "caf\xc3\xa9:80", "x\x7f:80", "a b:80"}) {
    EXPECT_NE(Refusal(text).find("no host name has"), std::string::npos) << text;
  }
}

// The kernel ends a path at a zero byte: another socket than the configuration names.
TEST(AddressTest, AUnixPathWithAZeroByteIsRefused) {
  EXPECT_NE(Refusal(std::string_view("unix:/run/x\0y", 13)).find("zero byte"), std::string::npos);
}

}  // namespace
}  // namespace leasehold::base

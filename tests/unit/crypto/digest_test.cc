#include "crypto/digest.h"

#include <gtest/gtest.h>

namespace leasehold::crypto {
namespace {

TEST(Digest, Sha256IsThatOfFips180) {
  EXPECT_EQ(Sha256Hex(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(Sha256Hex("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

TEST(Digest, HmacIsThatOfRfc4231) {
  EXPECT_EQ(HmacSha256Hex("Jefe", "what do ya want for nothing?"),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
  EXPECT_EQ(HmacSha256Hex(std::string(131, '\xaa'),
                          "Test Using Larger Than Block-Size Key - Hash Key First"),
            "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
}

TEST(Digest, AKeyMayHoldZeroBytes) {
  const std::string_view key("\0\0", 2);
  EXPECT_NE(HmacSha256Hex(key, "x"), HmacSha256Hex(std::string_view("\0\1", 2), "x"));
  EXPECT_EQ(AsText(HmacSha256(key, "x")).size(), 32u);
}

TEST(Digest, Md5IsThatOfRfc1321) {
  const std::string digest = Md5Hex("message digest");
  if (digest.empty()) GTEST_SKIP() << "OpenSSL refuses MD5 here (FIPS mode)";
  EXPECT_EQ(digest, "f96b697d7cb7938d525a2f31aaf161d0");
}

TEST(Digest, SecretsAreEqualByLengthAndBytes) {
  EXPECT_TRUE(EqualSecrets("", ""));
  EXPECT_TRUE(EqualSecrets("abc", "abc"));
  EXPECT_FALSE(EqualSecrets("abc", "abd"));
  EXPECT_FALSE(EqualSecrets("abc", "abcd"));
}

}  // namespace
}  // namespace leasehold::crypto

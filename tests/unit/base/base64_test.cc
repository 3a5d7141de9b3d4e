// Base64: RFC 4648's vectors, every length and byte there and back, and what is no base64.
#include "base/base64.h"

#include <gtest/gtest.h>

namespace leasehold::base {
namespace {

TEST(Base64Test, TheVectorsOfRfc4648) {
  const std::pair<std::string_view, std::string_view> vectors[] = {{"", ""},
                                                                   {"f", "Zg=="},
                                                                   {"fo", "Zm8="},
                                                                   {"foo", "Zm9v"},
                                                                   {"foob", "Zm9vYg=="},
                                                                   {"fooba", "Zm9vYmE="},
                                                                   {"foobar", "Zm9vYmFy"}};
  for (const auto& [bytes, text] : vectors) {
    EXPECT_EQ(Base64Encode(bytes), text);
    EXPECT_EQ(Base64Decode(text), bytes);
  }
}

TEST(Base64Test, EveryByteAtEveryPlaceGoesThereAndBack) {
  std::string bytes;
  for (int i = 0; i < 256 + 3; ++i) {
    bytes += static_cast<char>(i);
    EXPECT_EQ(Base64Decode(Base64Encode(bytes)), bytes);
  }
  EXPECT_EQ(Base64Encode("\xff\xff\xfe"), "///+");
}

TEST(Base64Test, WhatIsCutPaddedTwiceOrNotZeroBehindIsNone) {
  for (const std::string_view text : {"Z", "Zg", "Zg=", "Zh==", "Zm9=", "=", "====", "Z===",
                                      "Zg==Zg==", "Zm 9", "Zm9v\n", "Zm-_", "=Zg="}) {
    EXPECT_EQ(Base64Decode(text), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace leasehold::base

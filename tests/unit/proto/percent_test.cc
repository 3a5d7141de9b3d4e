// Percent-encoding: there and back for every byte, and what is not an encoding.
#include "proto/percent.h"

#include <gtest/gtest.h>

namespace leasehold::proto {
namespace {

TEST(PercentTest, EveryByteGoesThereAndBack) {
  std::string bytes;
  for (int i = 0; i < 256; ++i) bytes += static_cast<char>(i);
  EXPECT_EQ(PercentDecode(PercentEncode(bytes)), bytes);
  EXPECT_EQ(PercentDecode(PercentEncode(bytes, "/%+")), std::nullopt);  // a '%' that was kept
}

TEST(PercentTest, UnreservedBytesAndThoseToKeepStay) {
  const std::string_view unreserved =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~";
  EXPECT_EQ(PercentEncode(unreserved), unreserved);
  EXPECT_EQ(PercentEncode("a/b c", "/"), "a/b%20c");
  EXPECT_EQ(PercentEncode("a/b c"), "a%2Fb%20c");
  EXPECT_EQ(PercentEncode(std::string_view("\0\xFF", 2)), "%00%FF");
}

TEST(PercentTest, BothCasesAreDecodedAndAPlusIsAPlus) {
  EXPECT_EQ(PercentDecode("%2f%2F+%7e"), "//+~");
  EXPECT_EQ(PercentDecode(""), "");
}

TEST(PercentTest, AnEncodingThatIsCutOrWrongIsNone) {
  for (const std::string_view text : {"%", "%4", "a%", "a%4", "%zz", "%4z", "%z4", "%%41"}) {
    EXPECT_EQ(PercentDecode(text), std::nullopt) << text;
  }
}

TEST(PercentTest, HexadecimalDigits) {
  EXPECT_EQ(HexDigitValue('0'), 0);
  EXPECT_EQ(HexDigitValue('9'), 9);
  EXPECT_EQ(HexDigitValue('a'), 10);
  EXPECT_EQ(HexDigitValue('F'), 15);
  for (const char c : {'g', 'G', '/', ':', '@', '`', ' ', '\0'}) EXPECT_EQ(HexDigitValue(c), -1);
}

}  // namespace
}  // namespace leasehold::proto

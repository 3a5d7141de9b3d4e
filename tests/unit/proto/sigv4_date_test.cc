// The dates of signatures and of HTTP: every day of some centuries there and back, and what is no
// date.
#include <gtest/gtest.h>

#include <ctime>

#include "proto/sigv4.h"

namespace leasehold::proto::sigv4 {
namespace {

constexpr int64_t kDay = 86400;
constexpr int64_t kLast = 253402300799;  // 9999-12-31T23:59:59Z

std::string Formatted(int64_t seconds, const char* format) {
  const auto at = static_cast<std::time_t>(seconds);
  std::tm parts{};
  gmtime_r(&at, &parts);
  char text[64];
  std::strftime(text, sizeof text, format, &parts);
  return text;
}

TEST(SigV4DateTest, EveryDayUntil2400IsWhatTheSystemsCalendarSays) {
  for (int64_t day = 0; day < 157100; ++day) {
    const int64_t seconds = day * kDay + (day * 7919) % kDay;
    const std::string text = FormatAmzDate(seconds);
    ASSERT_EQ(text, Formatted(seconds, "%Y%m%dT%H%M%SZ"));
    ASSERT_EQ(ParseAmzDate(text), seconds) << text;
    ASSERT_EQ(ParseHttpDate(Formatted(seconds, "%a, %d %b %Y %H:%M:%S GMT")), seconds) << text;
  }
}

TEST(SigV4DateTest, TheEndsOfTheFourDigitYears) {
  EXPECT_EQ(FormatAmzDate(0), "19700101T000000Z");
  EXPECT_EQ(FormatAmzDate(-1), "19700101T000000Z");
  EXPECT_EQ(FormatAmzDate(INT64_MIN), "19700101T000000Z");
  EXPECT_EQ(FormatAmzDate(kLast), "99991231T235959Z");
  EXPECT_EQ(FormatAmzDate(kLast + 1), "99991231T235959Z");
  EXPECT_EQ(FormatAmzDate(INT64_MAX), "99991231T235959Z");
  EXPECT_EQ(ParseAmzDate("99991231T235959Z"), kLast);
  EXPECT_EQ(ParseAmzDate("00000101T000000Z"), -62167219200);
  EXPECT_EQ(ParseAmzDate("00000301T000000Z"), -62162035200);
  EXPECT_EQ(ParseHttpDate("Sat, 01 Jan 0000 00:00:00 GMT"), -62167219200);
}

TEST(SigV4DateTest, LeapDaysAndLeapSeconds) {
  EXPECT_EQ(ParseAmzDate("20240229T000000Z"), 1709164800);
  EXPECT_EQ(ParseAmzDate("20000229T000000Z"), 951782400);
  EXPECT_EQ(ParseAmzDate("21000229T000000Z"), std::nullopt);
  EXPECT_EQ(ParseAmzDate("20230229T000000Z"), std::nullopt);
  EXPECT_EQ(ParseAmzDate("20161231T235960Z"), ParseAmzDate("20170101T000000Z"));
}

TEST(SigV4DateTest, WhatIsNoDateOfASignature) {
  for (const std::string_view text : {"",
                                      "2",
                                      "20150830",
                                      "20150830T123600",
                                      "20150830T123600z",
                                      "20150830t123600Z",
                                      "20150830 123600Z",
                                      "20150830T123600ZZ",
                                      " 20150830T123600Z",
                                      "20150830T123600Z ",
                                      "2015083AT123600Z",
                                      "+2150830T123600Z",
                                      "-2150830T123600Z",
                                      "20151330T123600Z",
                                      "20150030T123600Z",
                                      "20150800T123600Z",
                                      "20150832T123600Z",
                                      "20150631T123600Z",
                                      "20150830T243600Z",
                                      "20150830T126000Z",
                                      "20150830T123661Z",
                                      "2015-08-30T12:36:00Z"}) {
    EXPECT_EQ(ParseAmzDate(text), std::nullopt) << text;
  }
}

TEST(SigV4DateTest, AnHttpDate) {
  EXPECT_EQ(ParseHttpDate("Sun, 06 Nov 1994 08:49:37 GMT"), 784111777);
  EXPECT_EQ(ParseHttpDate("Sun, 31 Dec 9999 23:59:59 GMT"), std::nullopt);  // it is a Friday
  EXPECT_EQ(ParseHttpDate("Fri, 31 Dec 9999 23:59:59 GMT"), kLast);
}

TEST(SigV4DateTest, WhatIsNoHttpDate) {
  for (const std::string_view text :
       {"", "Sun", "Sunday, 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994",
        "Sun, 06 Nov 1994 08:49:37", "Sun, 06 Nov 1994 08:49:37 UTC",
        "Sun, 06 Nov 1994 08:49:37 GMT ", "Sun, 6 Nov 1994 08:49:37 GMT",
        "sun, 06 Nov 1994 08:49:37 GMT", "Sun, 06 nov 1994 08:49:37 GMT",
        "Mon, 06 Nov 1994 08:49:37 GMT", "Sun, 06 Nov 1994 24:49:37 GMT",
        "Sun, 06 Nov 1994 08:60:37 GMT", "Sun, 31 Nov 1994 08:49:37 GMT",
        "Sun,  6 Nov 1994 08:49:37 GMT", "Sun, 06 Xyz 1994 08:49:37 GMT",
        "Sun, 06 Nov 199 08:49:37 GMT", "Sun, 06 Nov 1994 08.49.37 GMT"}) {
    EXPECT_EQ(ParseHttpDate(text), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace leasehold::proto::sigv4

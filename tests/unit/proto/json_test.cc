#include "proto/json.h"

#include <gtest/gtest.h>

#include <limits>

#include "base/json_writer.h"

namespace leasehold::proto {
namespace {

class JsonTest : public ::testing::Test {
 protected:
  void SetUp() override { limits_ = JsonLimits{}; }

  Json Parsed(std::string_view text) {
    base::Result<Json> value = Json::Parse(text, limits_);
    EXPECT_TRUE(value.ok()) << text << ": " << (value.ok() ? "" : value.error().message);
    return value.ok() ? *value : Json();
  }

  // The refusal's sentence; fails the test if `text` was taken.
  std::string Refusal(std::string_view text, base::ErrorCode code = base::ErrorCode::kInvalid) {
    const base::Result<Json> value = Json::Parse(text, limits_);
    EXPECT_FALSE(value.ok()) << text << " was taken";
    if (value.ok()) return "";
    EXPECT_EQ(value.error().code, code) << value.error().message;
    return value.error().message;
  }

  bool Starts(const std::string& text, const std::string& start) {
    return text.compare(0, start.size(), start) == 0;
  }

  JsonLimits limits_;
};

TEST_F(JsonTest, EveryTypeIsReadAsItself) {
  const Json v = Parsed(R"({"n":null,"b":true,"i":-3,"r":1.5,"s":"x","a":[1,2],"o":{}})");
  EXPECT_EQ(v.Find("n")->type(), Json::Type::kNull);
  EXPECT_EQ(v.Bool("b"), true);
  EXPECT_EQ(v.Int("i"), -3);
  EXPECT_EQ(v.Double("r"), 1.5);
  EXPECT_EQ(v.String("s"), "x");
  EXPECT_EQ(v.Find("a")->size(), 2U);
  EXPECT_TRUE(v.Find("o")->is_object());
  EXPECT_EQ(v.size(), 7U);
}

TEST_F(JsonTest, NothingIsConverted) {
  const Json v = Parsed(R"({"one":1,"text":"1","real":1.0,"yes":true})");
  EXPECT_FALSE(v.String("one").has_value());
  EXPECT_FALSE(v.Int("text").has_value());
  EXPECT_FALSE(v.Int("real").has_value());
  EXPECT_FALSE(v.Int("yes").has_value());
  EXPECT_FALSE(v.Bool("one").has_value());
  EXPECT_EQ(v.Double("one"), 1.0);
}

TEST_F(JsonTest, AMissingMemberIsAbsentNotNull) {
  const Json v = Parsed(R"({"here":null})");
  EXPECT_TRUE(v.Find("here").has_value());
  EXPECT_FALSE(v.Find("there").has_value());
  EXPECT_FALSE(Parsed("[1]").Find("0").has_value());
}

TEST_F(JsonTest, IntegersAreExactToTheLast) {
  const Json v = Parsed(R"({"max":9223372036854775807,"min":-9223372036854775808})");
  EXPECT_EQ(v.Int("max"), std::numeric_limits<int64_t>::max());
  EXPECT_EQ(v.Int("min"), std::numeric_limits<int64_t>::min());
  EXPECT_EQ(v.Uint("max"), 9223372036854775807ULL);
  EXPECT_FALSE(v.Uint("min").has_value());
}

TEST_F(JsonTest, AnIntegerThatWouldBeRoundedIsRefused) {
  EXPECT_TRUE(Starts(Refusal(R"({"n":9223372036854775808})"), "JSON line 1, column"));
  Refusal("-9223372036854775809");
}

TEST_F(JsonTest, TokensAreTakenFromDecimalStringsAndIntegers) {
  const Json v =
      Parsed(R"({"t":"18446744073709551615","n":5,"bad":"-1","over":"18446744073709551616",
                            "blank":" 1","zero":"0","lead":"01","neg":-1})");
  EXPECT_EQ(v.Token("t"), std::numeric_limits<uint64_t>::max());
  EXPECT_EQ(v.Token("n"), 5U);
  EXPECT_EQ(v.Token("zero"), 0U);
  EXPECT_FALSE(v.Token("bad").has_value());
  EXPECT_FALSE(v.Token("over").has_value());
  EXPECT_FALSE(v.Token("blank").has_value());
  EXPECT_FALSE(v.Token("lead").has_value());
  EXPECT_FALSE(v.Token("neg").has_value());
}

TEST_F(JsonTest, DuplicateKeysAreRefused) {
  const std::string why = Refusal("{\"a\":1,\n\"a\":2}");
  EXPECT_TRUE(Starts(why, "JSON line 2, column")) << why;
  EXPECT_NE(why.find("duplicate"), std::string::npos) << why;
  Refusal(R"({"x":{"a":1,"\u0061":2}})");
}

TEST_F(JsonTest, BadSyntaxIsRefusedWithLineAndColumn) {
  EXPECT_TRUE(Starts(Refusal("{\"a\":1,\n  x}"), "JSON line 2, column 3"));
  for (const char* text :
       {"",       " ",     "{",       "[1,]",    "{\"a\":1,}", "{'a':1}", "nul", "01",
        "+1",     "1.",    ".5",      "NaN",     "Infinity",   "1 2",     "{}x", "\"abc",
        "\"\t\"", "[1 2]", "{\"a\"}", "// c\n1", "\"\\x\"",    "1e999"}) {
    Refusal(text);
  }
}

TEST_F(JsonTest, ANullViewIsRefusedNotCrashed) { Refusal(std::string_view()); }

TEST_F(JsonTest, TextMustBeUtf8WithoutNul) {
  EXPECT_EQ(Parsed("\"\xc3\xa4\\u00e4\\ud83d\\ude00\"").AsString(),
            "\xc3\xa4\xc3\xa4\xf0\x9f\x98\x80");
  Refusal("\"\xff\"");
  Refusal("\"\xc0\xaf\"");      // overlong
  Refusal("\"\xed\xa0\x80\"");  // a surrogate half
  Refusal("\"\\ud800\"");
  Refusal("\"\\u0000\"");
  Refusal("{\"a\\u0000b\":1}");
  Refusal(std::string_view("1\0", 2));
  Refusal(std::string_view("{\"a\":1}\0{\"a\":2}", 15));
}

TEST_F(JsonTest, RefusalsShowUntrustedBytesPrintably) {
  const std::string why = Refusal("[\x01\x02]");
  for (const char c : why) EXPECT_TRUE(c >= 0x20 && c < 0x7f) << why;
}

TEST_F(JsonTest, DepthIsBoundedAndBracketsInStringsDoNotCount) {
  limits_.depth_max = 3;
  Parsed("[[[1],[2]]]");
  Parsed(R"(["[[[[[[\"[[[","{{{{{"])");
  const std::string why = Refusal("[[\n[[1]]]]", base::ErrorCode::kLimit);
  EXPECT_TRUE(Starts(why, "JSON line 2, column 2")) << why;
  Refusal(std::string(100000, '['), base::ErrorCode::kLimit);
}

TEST_F(JsonTest, LengthIsBounded) {
  limits_.bytes_max = 8;
  Parsed("\"abcdef\"");
  const std::string why = Refusal("\"abcdefg\"", base::ErrorCode::kLimit);
  EXPECT_NE(why.find("9 bytes"), std::string::npos) << why;
}

TEST_F(JsonTest, DumpedMembersParseToTheSame) {
  const std::string text =
      R"({"z":[1,-2,"\u00e4\"\\\n",null,true],"a":{"deep":{"big":9223372036854775807}},"r":0.1})";
  const Json v = Parsed(text);
  EXPECT_EQ(v.Find("z")->Dump(), "[1,-2,\"\xc3\xa4\\\"\\\\\\n\",null,true]");
  EXPECT_EQ(Parsed(v.Find("a")->Dump()).Dump(), R"({"deep":{"big":9223372036854775807}})");
  EXPECT_EQ(Parsed(v.Find("r")->Dump()).AsDouble(), 0.1);
  EXPECT_EQ(Parsed("\"x\"").Dump(), "\"x\"");
  EXPECT_EQ(Json().Dump(), "null");
}

TEST_F(JsonTest, KeysKeepTheirOrder) {
  EXPECT_EQ(Parsed(R"({"z":1,"a":2,"m":3})").Keys(), (std::vector<std::string>{"z", "a", "m"}));
  EXPECT_TRUE(Parsed("3").Keys().empty());
}

TEST_F(JsonTest, ElementsEndWhereTheArrayEnds) {
  const Json v = Parsed("[10,20]");
  EXPECT_EQ(v.At(1)->AsInt(), 20);
  EXPECT_FALSE(v.At(2).has_value());
  EXPECT_EQ(v.Elements().size(), 2U);
  EXPECT_TRUE(Parsed("{}").Elements().empty());
}

TEST_F(JsonTest, APartOutlivesItsDocument) {
  Json part;
  {
    const Json whole = Parsed(R"({"a":{"b":"text"}})");
    part = *whole.Find("a");
  }
  EXPECT_EQ(part.String("b"), "text");
  const Json copy = part;
  part = Json();
  EXPECT_EQ(copy.String("b"), "text");
}

TEST_F(JsonTest, WhatTheWriterWritesIsReadBack) {
  std::string text;
  base::JsonWriter writer(text);
  writer.BeginObject().Key("token").Token(18446744073709551615ULL);
  writer.Member("name", "a\"\\\n\x01\xff").Key("n").Int(-7).EndObject();
  const Json v = Parsed(text);
  EXPECT_EQ(v.Token("token"), 18446744073709551615ULL);
  EXPECT_EQ(v.String("name"), "a\"\\\n\x01\xef\xbf\xbd");
  EXPECT_EQ(v.Int("n"), -7);
}

}  // namespace
}  // namespace leasehold::proto

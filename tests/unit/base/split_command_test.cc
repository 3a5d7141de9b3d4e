// A command's text and its words (app.check's exec:, hooks): no shell, so what is not a blank or a
// quote is a letter.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/text.h"

namespace leasehold::base {
namespace {

std::vector<std::string> Words(std::string_view text) {
  const auto words = SplitCommand(text);
  EXPECT_TRUE(words.ok()) << words.error().message;
  return words.ok() ? *words : std::vector<std::string>{};
}

std::string Refusal(std::string_view text) {
  const auto words = SplitCommand(text);
  return words.ok() ? "" : words.error().message;
}

TEST(SplitCommandTest, BlanksAndTabsPartWords) {
  EXPECT_EQ(Words("  /bin/tool\ta  b "), (std::vector<std::string>{"/bin/tool", "a", "b"}));
}

TEST(SplitCommandTest, QuotesKeepBlanksAndEachOtherInOneWord) {
  EXPECT_EQ(Words("sh -c 'exit  \"1\"' a\"b c\"d"),
            (std::vector<std::string>{"sh", "-c", "exit  \"1\"", "ab cd"}));
}

TEST(SplitCommandTest, AnEmptyPairOfQuotesIsAnEmptyWord) {
  EXPECT_EQ(Words("echo '' \"\""), (std::vector<std::string>{"echo", "", ""}));
}

TEST(SplitCommandTest, NothingElseIsSpecial) {
  EXPECT_EQ(Words("echo $HOME \\n *;|&"),
            (std::vector<std::string>{"echo", "$HOME", "\\n", "*;|&"}));
}

TEST(SplitCommandTest, AnOpenQuoteIsRefused) {
  EXPECT_EQ(Refusal("sh -c 'x"), "the quote ' is not closed");
  EXPECT_EQ(Refusal("sh \"x'"), "the quote \" is not closed");
}

TEST(SplitCommandTest, ATextWithoutACommandIsRefused) {
  for (const char* text : {"", "  \t ", "''", "\"\" x"}) {
    EXPECT_EQ(Refusal(text), "it names no command") << text;
  }
}

TEST(SplitCommandTest, AZeroByteIsRefused) {
  EXPECT_EQ(Refusal(std::string_view("a\0b", 3)), "it has a zero byte");
}

}  // namespace
}  // namespace leasehold::base

// Forms: fields in their order, every byte there and back, and what is refused.
#include "proto/form.h"

#include <gtest/gtest.h>

namespace leasehold::proto {
namespace {

using Fields = std::vector<FormField>;

TEST(FormTest, FieldsAreReadInOrder) {
  const auto fields = ParseForm("b=2&a=1+%2B&c&d=&&e=x=y&");
  ASSERT_TRUE(fields.ok());
  EXPECT_EQ(*fields, (Fields{{"b", "2"}, {"a", "1 +"}, {"c", ""}, {"d", ""}, {"e", "x=y"}}));
  EXPECT_TRUE(ParseForm("")->empty());
  EXPECT_EQ(*ParseForm("="), (Fields{{"", ""}}));
}

TEST(FormTest, EveryByteGoesThereAndBack) {
  std::string bytes;
  for (int i = 0; i < 256; ++i) bytes += static_cast<char>(i);
  const Fields fields = {{bytes, bytes}, {"a b", "&=+"}};
  EXPECT_EQ(*ParseForm(WriteForm(fields)), fields);
}

TEST(FormTest, ABrokenEncodingIsNamedByItsPlace) {
  for (const std::string_view text : {"a=1&b=%2", "a=1&%zz=2", "x&y=+%"}) {
    const auto fields = ParseForm(text);
    ASSERT_FALSE(fields.ok()) << text;
    EXPECT_EQ(fields.error().code, base::ErrorCode::kInvalid);
    EXPECT_TRUE(fields.error().message.starts_with("field 2 ")) << fields.error().message;
  }
}

TEST(FormTest, TooManyFieldsAreRefused) {
  EXPECT_TRUE(ParseForm("a&b&&", 2).ok());
  EXPECT_EQ(ParseForm("a&b&c", 2).error().code, base::ErrorCode::kLimit);
}

}  // namespace
}  // namespace leasehold::proto

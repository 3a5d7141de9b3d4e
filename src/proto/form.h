// Form: application/x-www-form-urlencoded ("a=1&b=two+words"), as AWS's Query protocol uses it in
// bodies and in query strings. Values are bytes; order is kept. Percent-encoding itself is
// percent.h. Pure functions. Invariant: ParseForm(WriteForm(fields)) == fields.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace leasehold::proto {

struct FormField {
  std::string name;
  std::string value;
  bool operator==(const FormField&) const = default;
};

// An SQS batch of 10 messages with 10 attributes of 3 parameters each has 350.
inline constexpr size_t kFormFieldsMax = 4096;

// "a", "a=" and "a=b" are fields; nothing between two '&' is none. kInvalid names the field with a
// broken %XX by its place; kLimit: too many of them.
base::Result<std::vector<FormField>> ParseForm(std::string_view text,
                                               size_t fields_max = kFormFieldsMax);
std::string WriteForm(const std::vector<FormField>& fields);

}  // namespace leasehold::proto

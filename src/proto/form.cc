#include "proto/form.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "proto/percent.h"

namespace leasehold::proto {
namespace {

// A '+' is a blank, which percent-encoding itself does not know.
std::optional<std::string> Decode(std::string_view part) {
  if (part.find('+') == std::string_view::npos) return PercentDecode(part);
  std::string blanks(part);
  std::replace(blanks.begin(), blanks.end(), '+', ' ');
  return PercentDecode(blanks);
}

}  // namespace

base::Result<std::vector<FormField>> ParseForm(std::string_view text, size_t fields_max) {
  std::vector<FormField> fields;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find('&', begin), text.size());
    const std::string_view field = text.substr(begin, end - begin);
    begin = end + 1;
    if (field.empty()) continue;
    if (fields.size() == fields_max) {
      return base::Error{base::ErrorCode::kLimit,
                         "a form of more than " + std::to_string(fields_max) + " fields"};
    }
    const size_t equals = std::min(field.find('='), field.size());
    std::optional<std::string> name = Decode(field.substr(0, equals));
    std::optional<std::string> value = Decode(field.substr(std::min(equals + 1, field.size())));
    if (!name || !value) {
      return base::Error{base::ErrorCode::kInvalid,
                         "field " + std::to_string(fields.size() + 1) +
                             " of the form: a '%' without two hexadecimal digits behind it"};
    }
    fields.push_back({std::move(*name), std::move(*value)});
  }
  return fields;
}

std::string WriteForm(const std::vector<FormField>& fields) {
  std::string text;
  for (const FormField& field : fields) {
    if (!text.empty()) text += '&';
    text += PercentEncode(field.name);
    text += '=';
    text += PercentEncode(field.value);
  }
  return text;
}

}  // namespace leasehold::proto

// Where the members of an object and the elements of an array stand in a JSON text: so that one
// value can be replaced and the rest stay byte for byte (numbers unrounded, order kept, texts
// whatever they hold), and a message of 1 MiB is passed over and not copied. Values themselves are
// read by json.h. Used by sqs_* alone; pure.
//
// Invariant: what was told is the reading of every correct parser: malformed text anywhere within,
// and a member that stands twice, are refused.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace leasehold::proto::sqs {

// A part of a text, in bytes.
struct Span {
  size_t begin = 0;
  size_t end = 0;
  std::string_view Of(std::string_view text) const { return text.substr(begin, end - begin); }
};

struct JsonMember {
  std::string key;  // decoded
  Span value;
};
inline constexpr size_t kJsonDepthMax = 32;  // SQS's nest 6 deep
// Members of an object, elements of an array: a batch has 10, a queue some 30 attributes.
inline constexpr size_t kJsonPartsMax = 4096;

// Of the value that is all of `where` in `text`, with blanks around it; offsets are those of
// `text`. kInvalid: no object (no array), or malformed, with the offset; kLimit: too deep or too
// many.
base::Result<std::vector<JsonMember>> JsonMembers(std::string_view text, Span where);
base::Result<std::vector<Span>> JsonElements(std::string_view text, Span where);

// nullptr: none of that name, or null.
const JsonMember* FindMember(std::string_view text, const std::vector<JsonMember>& members,
                             std::string_view key);
// The value's text, if it is a string that can be read.
std::optional<std::string> JsonText(std::string_view text, Span value);

// `text` with each span replaced; the spans stand in order and do not overlap.
std::string Splice(std::string_view text, const std::vector<std::pair<Span, std::string>>& parts);

}  // namespace leasehold::proto::sqs

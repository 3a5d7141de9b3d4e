// Xml: reads one XML document, bounded, and tells a visitor what stands where. The one door to
// expat. Reading only; no tree is built, so that a long text is not copied. Not a general parser:
// no document type declaration and so no entities but XML's own five, nothing external, UTF-8 (or
// ASCII) only. Names come without their namespace prefix, attributes are not told. Used by sqs_*
// for the answers of AWS's Query protocol; pure functions.
//
// Invariant: what a visitor was told before an error stands for nothing.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/result.h"

namespace leasehold::proto {

struct XmlLimits {
  // SQS gives 10 messages of 1 MiB at a time, which grow to six times that where each byte is
  // escaped ("&quot;"), and have some KiB of handles around them.
  size_t bytes_max = size_t{64} * 1024 * 1024;
  size_t depth_max = 16;  // elements in one another; SQS's answers nest 6 deep
  // 10 messages with 10 attributes each make some 400.
  size_t elements_max = 100000;
};

class XmlVisitor {
 public:
  virtual ~XmlVisitor() = default;
  // `at` is the offset of the first byte behind the tag: where the content begins.
  virtual void OnStart(std::string_view name, size_t at) = 0;
  // Decoded text inside of the innermost open element; a long one comes in several pieces.
  virtual void OnText(std::string_view piece) = 0;
  // `at` is the offset of the closing tag: where the content ends. Of "<a/>" both are behind it.
  virtual void OnEnd(std::string_view name, size_t at) = 0;
};

// Offsets count bytes of `text`. kInvalid (line and column, and what is wrong), kLimit.
base::Status ReadXml(std::string_view text, XmlVisitor& visitor, const XmlLimits& limits = {});

// `text` as content or as an attribute's value. What XML 1.0 cannot carry (most control characters,
// bytes that are not UTF-8) becomes U+FFFD.
std::string XmlEscape(std::string_view text);

}  // namespace leasehold::proto

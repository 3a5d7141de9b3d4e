#include "proto/xml.h"

#include <expat.h>

#include <memory>
#include <optional>
#include <utility>

#include "base/utf8.h"

namespace leasehold::proto {
namespace {

using base::Error;
using base::ErrorCode;

std::string_view LocalName(const XML_Char* name) {
  const std::string_view whole = name;
  const size_t colon = whole.rfind(':');
  return colon == std::string_view::npos ? whole : whole.substr(colon + 1);
}

class Reader {
 public:
  Reader(XML_Parser parser, XmlVisitor& visitor, const XmlLimits& limits)
      : parser_(parser), visitor_(visitor), limits_(limits) {
    XML_SetUserData(parser_, this);
    XML_SetElementHandler(parser_, &Reader::OnStart, &Reader::OnEnd);
    XML_SetCharacterDataHandler(parser_, &Reader::OnText);
    XML_SetStartDoctypeDeclHandler(parser_, &Reader::OnDoctype);
    XML_SetParamEntityParsing(parser_, XML_PARAM_ENTITY_PARSING_NEVER);
  }

  base::Status Read(std::string_view text) {
    const auto length = static_cast<int>(text.size());  // ReadXml looked at the size
    if (XML_Parse(parser_, text.data(), length, XML_TRUE) == XML_STATUS_OK) return {};
    if (refused_) return Error{refused_->code, Place() + refused_->message};
    return Error{ErrorCode::kInvalid, Place() + XML_ErrorString(XML_GetErrorCode(parser_))};
  }

 private:
  static Reader& Of(void* self) { return *static_cast<Reader*>(self); }

  static void XMLCALL OnStart(void* self, const XML_Char* name, const XML_Char** /*attributes*/) {
    Reader& reader = Of(self);
    if (reader.refused_) return;  // expat may still tell what it had at hand
    if (++reader.elements_ > reader.limits_.elements_max) {
      return reader.Refuse(
          ErrorCode::kLimit,
          "more than " + std::to_string(reader.limits_.elements_max) + " elements");
    }
    if (++reader.depth_ > reader.limits_.depth_max) {
      return reader.Refuse(ErrorCode::kLimit, "elements are nested deeper than " +
                                                  std::to_string(reader.limits_.depth_max));
    }
    reader.visitor_.OnStart(
        LocalName(name),
        reader.Offset() + static_cast<size_t>(XML_GetCurrentByteCount(reader.parser_)));
  }
  static void XMLCALL OnEnd(void* self, const XML_Char* name) {
    Reader& reader = Of(self);
    if (reader.refused_) return;
    --reader.depth_;
    reader.visitor_.OnEnd(LocalName(name), reader.Offset());
  }
  static void XMLCALL OnText(void* self, const XML_Char* piece, int length) {
    Reader& reader = Of(self);
    if (reader.refused_) return;
    reader.visitor_.OnText({piece, static_cast<size_t>(length)});
  }
  // With it go entities, their expansion and everything external.
  static void XMLCALL OnDoctype(void* self, const XML_Char* /*name*/, const XML_Char* /*system*/,
                                const XML_Char* /*public*/, int /*internal*/) {
    Of(self).Refuse(ErrorCode::kInvalid, "a document type declaration, which is not taken");
  }

  size_t Offset() const { return static_cast<size_t>(XML_GetCurrentByteIndex(parser_)); }
  std::string Place() const {
    return "XML line " + std::to_string(XML_GetCurrentLineNumber(parser_)) + ", column " +
           std::to_string(XML_GetCurrentColumnNumber(parser_) + 1) + ": ";
  }
  void Refuse(ErrorCode code, std::string why) {
    if (refused_) return;
    refused_ = Error{code, std::move(why)};
    XML_StopParser(parser_, XML_FALSE);
  }

  XML_Parser parser_;
  XmlVisitor& visitor_;
  const XmlLimits limits_;
  size_t depth_ = 0;
  size_t elements_ = 0;
  std::optional<Error> refused_;
};

// XML 1.0, production "Char", below U+0080 and of the two that UTF-8 can write but XML cannot.
bool IsXmlCharacter(std::string_view sequence) {
  const auto lead = static_cast<unsigned char>(sequence[0]);
  if (lead < 0x20) return lead == '\t' || lead == '\n' || lead == '\r';
  return sequence != "\xef\xbf\xbe" && sequence != "\xef\xbf\xbf";
}

}  // namespace

base::Status ReadXml(std::string_view text, XmlVisitor& visitor, const XmlLimits& limits) {
  // expat counts a piece in an int; nothing of ours comes near.
  constexpr size_t kPieceMax = size_t{1} << 30;
  if (text.size() > limits.bytes_max || text.size() > kPieceMax) {
    return Error{ErrorCode::kLimit, "XML of " + std::to_string(text.size()) +
                                        " bytes, but at most " + std::to_string(limits.bytes_max) +
                                        " are taken"};
  }
  // The encoding is ours to say: a declaration of UTF-16 or Latin-1 would give offsets and text
  // that are not the document's bytes.
  const std::unique_ptr<XML_ParserStruct, decltype(&XML_ParserFree)> parser(
      XML_ParserCreate("UTF-8"), &XML_ParserFree);
  if (parser == nullptr) return Error{ErrorCode::kInternal, "expat: out of memory"};
  return Reader(parser.get(), visitor, limits).Read(text);
}

std::string XmlEscape(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size();) {
    const size_t length = base::Utf8Length(text, i);
    const std::string_view sequence = text.substr(i, length == 0 ? 1 : length);
    i += sequence.size();
    if (length == 0 || !IsXmlCharacter(sequence)) {
      out += "\xef\xbf\xbd";
    } else if (sequence == "&") {
      out += "&amp;";
    } else if (sequence == "<") {
      out += "&lt;";
    } else if (sequence == ">") {
      out += "&gt;";
    } else if (sequence == "\"") {
      out += "&quot;";
    } else if (sequence == "\r") {
      out += "&#xD;";  // a bare one would be read as a line feed
    } else {
      out += sequence;
    }
  }
  return out;
}

}  // namespace leasehold::proto

#include "proto/http1_syntax.h"

namespace leasehold::proto::http1 {

// llhttp calls these with its own struct; `data` is our Syntax.
struct SyntaxCallbacks {
  static Syntax& Self(llhttp_t* parser) { return *static_cast<Syntax*>(parser->data); }
  static int Url(llhttp_t* parser, const char* at, size_t size) {
    Self(parser).target = std::string_view(at, size);
    return 0;
  }
  static int Field(llhttp_t* parser, const char* at, size_t size) {
    return Self(parser).AddName(std::string_view(at, size));
  }
  static int Value(llhttp_t* parser, const char* at, size_t size) {
    return Self(parser).AddValue(std::string_view(at, size));
  }
  // 1: "this message has no body", so that llhttp never frames anything: that is our business.
  static int HeadersComplete(llhttp_t* parser) {
    Self(parser).headers_complete_ = true;
    return 1;
  }
  static llhttp_settings_t Make() {
    llhttp_settings_t settings;
    llhttp_settings_init(&settings);
    settings.on_url = Url;
    settings.on_header_field = Field;
    settings.on_header_value = Value;
    settings.on_headers_complete = HeadersComplete;
    return settings;
  }
};

namespace {

const llhttp_settings_t kSettings = SyntaxCallbacks::Make();

// Trailers have the syntax of headers; this stands in for the head before them.
constexpr std::string_view kTrailerPreface = "GET / HTTP/1.1\r\n";

}  // namespace

Syntax::Syntax(bool request) : request_(request) {}

int Syntax::AddName(std::string_view name) {
  if (name.empty()) return HPE_USER;
  if (!fields_->empty() && !value_begun_ &&
      fields_->back().name.data() + fields_->back().name.size() == name.data()) {
    std::string_view& last = fields_->back().name;
    last = std::string_view(last.data(), last.size() + name.size());
    return 0;
  }
  if (fields_->size() >= fields_max_) {
    too_many_ = true;
    return HPE_USER;
  }
  fields_->push_back(Header{name, {}, HeaderId::kOther});
  value_begun_ = false;
  return 0;
}

int Syntax::AddValue(std::string_view piece) {
  if (fields_->empty()) return HPE_USER;
  std::string_view& value = fields_->back().value;
  if (!value_begun_) {
    value = piece;
    value_begun_ = true;
    return 0;
  }
  if (piece.empty()) return 0;
  // A second piece that does not follow the first is a folded line.
  if (value.data() + value.size() != piece.data()) return HPE_USER;
  value = std::string_view(value.data(), value.size() + piece.size());
  return 0;
}

int Syntax::Run(llhttp_type_t type, std::string_view preface, std::string_view block) {
  llhttp_init(&llhttp_, type, &kSettings);
  llhttp_.data = this;
  headers_complete_ = value_begun_ = too_many_ = false;
  target = {};
  llhttp_errno_t error = HPE_OK;
  if (!preface.empty()) error = llhttp_execute(&llhttp_, preface.data(), preface.size());
  if (error == HPE_OK) error = llhttp_execute(&llhttp_, block.data(), block.size());
  if (error == HPE_OK || error == HPE_PAUSED_UPGRADE) {
    if (headers_complete_) return 0;
    why = "the head does not end where its empty line is";
    return 400;
  }
  return Explain(error);
}

int Syntax::Explain(llhttp_errno_t error) {
  if (too_many_) {
    why = "too many header fields";
    return 431;
  }
  if (error == HPE_USER) {
    why = "a header field has no name or runs over several lines";
    return 400;
  }
  if (error == HPE_INVALID_VERSION) {
    why = "only HTTP/1.1 and HTTP/1.0 are spoken here";
    return 505;
  }
  if (error == HPE_INVALID_METHOD) {
    why = "the method is not known here";
    return 501;
  }
  const char* reason_text = llhttp_get_error_reason(&llhttp_);  // static text
  why = reason_text != nullptr ? reason_text : "malformed HTTP";
  return 400;
}

int Syntax::CheckHead(std::string_view block, std::vector<Header>& fields, size_t fields_max) {
  fields_ = &fields;
  fields_max_ = fields_max;
  return Run(request_ ? HTTP_REQUEST : HTTP_RESPONSE, {}, block);
}

int Syntax::CheckTrailers(std::string_view block, std::vector<Header>& fields, size_t fields_max) {
  fields_ = &fields;
  fields_max_ = fields_max;
  return Run(HTTP_REQUEST, kTrailerPreface, block);
}

}  // namespace leasehold::proto::http1

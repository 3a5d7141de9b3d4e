#include "proto/sqs_json.h"

#include <algorithm>
#include <functional>

#include "base/utf8.h"
#include "proto/json.h"
#include "proto/percent.h"

namespace leasehold::proto::sqs {
namespace {

using base::Error;
using base::ErrorCode;

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

// Passes over values, strictly (RFC 8259). Every function answers false once something was wrong;
// `error` then says what.
class Scanner {
 public:
  Scanner(std::string_view text, Span where) : text_(text.substr(0, where.end)), at_(where.begin) {}

  void SkipBlanks() {
    while (at_ < text_.size() && std::string_view(" \t\r\n").find(text_[at_]) < 4) ++at_;
  }
  bool Take(char c) {
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  bool Expect(char c) { return Take(c) || Fail(std::string("no '") + c + "'"); }
  bool Fail(std::string what, ErrorCode code = ErrorCode::kInvalid) {
    if (error_.message.empty()) {
      error_ = {code, "JSON at byte " + std::to_string(at_) + ": " + std::move(what)};
    }
    return false;
  }

  bool SkipString();
  bool SkipValue(size_t depth);
  // `part` is told where each stands; a name is empty in an array.
  using Part = std::function<bool(Span name, Span value)>;
  bool Walk(bool object, size_t depth, const Part& part);
  bool End() {
    SkipBlanks();
    return at_ == text_.size() || Fail("something behind the value");
  }

  size_t at() const { return at_; }
  const Error& error() const { return error_; }

 private:
  bool SkipEscape();
  bool SkipNumber();
  bool SkipDigits() {
    const size_t begin = at_;
    while (at_ < text_.size() && IsDigit(text_[at_])) ++at_;
    return at_ > begin || Fail("a number without a digit");
  }
  bool SkipWord(std::string_view word) {
    if (!text_.substr(at_).starts_with(word)) return Fail("no value");
    at_ += word.size();
    return true;
  }

  std::string_view text_;
  size_t at_;
  Error error_;
};

bool Scanner::SkipEscape() {
  ++at_;
  if (at_ >= text_.size()) return Fail("a text without its end");
  const char c = text_[at_++];
  if (std::string_view("\"\\/bfnrt").find(c) != std::string_view::npos) return true;
  if (c != 'u') return Fail("an unknown escape");
  for (int i = 0; i < 4; ++i, ++at_) {
    if (at_ >= text_.size() || HexDigitValue(text_[at_]) < 0) return Fail("\\u without 4 digits");
  }
  return true;
}

bool Scanner::SkipString() {
  if (!Expect('"')) return false;
  while (at_ < text_.size()) {
    const auto c = static_cast<unsigned char>(text_[at_]);
    if (c == '"') {
      ++at_;
      return true;
    }
    if (c == '\\') {
      if (!SkipEscape()) return false;
    } else if (c < 0x20) {
      return Fail("a control character in a text");
    } else if (c < 0x80) {
      ++at_;
    } else {
      const size_t length = base::Utf8Length(text_, at_);
      if (length == 0) return Fail("bytes that are not UTF-8");
      at_ += length;
    }
  }
  return Fail("a text without its end");
}

bool Scanner::SkipNumber() {
  Take('-');
  if (!Take('0') && !SkipDigits()) return false;
  if (Take('.') && !SkipDigits()) return false;
  if (!Take('e') && !Take('E')) return true;
  if (!Take('+')) Take('-');
  return SkipDigits();
}

// NOLINTNEXTLINE(misc-no-recursion): as deep as kJsonDepthMax
bool Scanner::SkipValue(size_t depth) {
  if (at_ >= text_.size()) return Fail("no value");
  switch (text_[at_]) {
    case '"': return SkipString();
    case '{': return Walk(true, depth, nullptr);
    case '[': return Walk(false, depth, nullptr);
    case 't': return SkipWord("true");
    case 'f': return SkipWord("false");
    case 'n': return SkipWord("null");
    default: return SkipNumber();
  }
}

// NOLINTNEXTLINE(misc-no-recursion): as deep as kJsonDepthMax
bool Scanner::Walk(bool object, size_t depth, const Part& part) {
  if (depth >= kJsonDepthMax) {
    return Fail("nested deeper than " + std::to_string(kJsonDepthMax), ErrorCode::kLimit);
  }
  const char close = object ? '}' : ']';
  if (!Expect(object ? '{' : '[')) return false;
  SkipBlanks();
  if (Take(close)) return true;
  do {
    Span name;
    SkipBlanks();
    if (object) {
      name.begin = at_;
      if (!SkipString()) return false;
      name.end = at_;
      SkipBlanks();
      if (!Expect(':')) return false;
      SkipBlanks();
    }
    Span value{at_, at_};
    if (!SkipValue(depth + 1)) return false;
    value.end = at_;
    if (part && !part(name, value)) return false;
    SkipBlanks();
  } while (Take(','));
  return Expect(close);
}

bool WalkWhole(Scanner& scanner, bool object, const Scanner::Part& part) {
  scanner.SkipBlanks();
  return scanner.Walk(object, 0, part) && scanner.End();
}

}  // namespace

base::Result<std::vector<JsonMember>> JsonMembers(std::string_view text, Span where) {
  std::vector<JsonMember> members;
  Scanner scanner(text, where);
  const bool ok = WalkWhole(scanner, true, [&](Span name, Span value) {
    std::optional<std::string> key = JsonText(text, name);
    if (!key) return scanner.Fail("a name that cannot be read");
    if (members.size() == kJsonPartsMax) {
      return scanner.Fail("more than " + std::to_string(kJsonPartsMax) + " members",
                          ErrorCode::kLimit);
    }
    members.push_back({std::move(*key), value});
    return true;
  });
  if (!ok) return scanner.error();
  std::vector<std::string_view> keys;
  keys.reserve(members.size());
  for (const JsonMember& member : members) keys.push_back(member.key);
  std::sort(keys.begin(), keys.end());
  if (std::adjacent_find(keys.begin(), keys.end()) != keys.end()) {
    return Error{ErrorCode::kInvalid, "JSON: a member that stands twice in one object"};
  }
  return members;
}

base::Result<std::vector<Span>> JsonElements(std::string_view text, Span where) {
  std::vector<Span> elements;
  Scanner scanner(text, where);
  const bool ok = WalkWhole(scanner, false, [&](Span, Span value) {
    if (elements.size() == kJsonPartsMax) {
      return scanner.Fail("more than " + std::to_string(kJsonPartsMax) + " elements",
                          ErrorCode::kLimit);
    }
    elements.push_back(value);
    return true;
  });
  if (!ok) return scanner.error();
  return elements;
}

const JsonMember* FindMember(std::string_view text, const std::vector<JsonMember>& members,
                             std::string_view key) {
  for (const JsonMember& member : members) {
    if (member.key == key) return member.value.Of(text) == "null" ? nullptr : &member;
  }
  return nullptr;
}

std::optional<std::string> JsonText(std::string_view text, Span value) {
  const std::string_view quoted = value.Of(text);
  if (quoted.size() < 2 || quoted.front() != '"') return std::nullopt;
  if (quoted.find('\\') == std::string_view::npos) {
    return std::string(quoted.substr(1, quoted.size() - 2));
  }
  JsonLimits limits;
  limits.bytes_max = quoted.size();
  const base::Result<Json> json = Json::Parse(quoted, limits);
  if (!json) return std::nullopt;
  const std::optional<std::string_view> decoded = json->AsString();
  if (!decoded) return std::nullopt;
  return std::string(*decoded);
}

std::string Splice(std::string_view text, const std::vector<std::pair<Span, std::string>>& parts) {
  std::string out;
  size_t added = 0;
  for (const auto& part : parts) added += part.second.size();
  out.reserve(text.size() + added);
  size_t at = 0;
  for (const auto& [span, replacement] : parts) {
    out.append(text.substr(at, span.begin - at)).append(replacement);
    at = span.end;
  }
  return out.append(text.substr(at));
}

}  // namespace leasehold::proto::sqs

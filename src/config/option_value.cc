#include "config/option_value.h"

#include <algorithm>
#include <charconv>
#include <limits>

#include "base/text.h"

namespace leasehold::config {
namespace {

using base::Duration;
using Sentence = std::optional<std::string>;

constexpr std::string_view kMasked = "***";
constexpr std::string_view kAuto = "auto";
constexpr size_t kTextBytesMax = 4096;  // a path's longest; nothing else comes near
constexpr size_t kListMax = 256;        // hosts or user ids

struct Range {
  std::string_view low;
  std::string_view high;
};

std::optional<Range> RangeOf(const Option& option) {
  const size_t dots = option.range.find("..");
  if (dots == std::string_view::npos) return std::nullopt;
  return Range{option.range.substr(0, dots), option.range.substr(dots + 2)};
}

std::string MustBeFrom(const Range& range) {
  return "must be from " + std::string(range.low) + " to " + std::string(range.high);
}

template <typename T, typename Parse>
Sentence OutOfRange(const Option& option, T value, Parse parse) {
  const std::optional<Range> range = RangeOf(option);
  if (!range || (parse(range->low) <= value && value <= parse(range->high))) return std::nullopt;
  return MustBeFrom(*range);
}

double ToNumber(std::string_view text) {
  double number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}
int64_t ToInteger(std::string_view text) {
  int64_t number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}
Duration ToDuration(std::string_view text) { return base::ParseDuration(text).value(); }
uint64_t ToSize(std::string_view text) { return base::ParseSize(text).value(); }

// What to write for an option of this kind, as the end of "must be ...".
std::string Wanted(const Option& option) {
  switch (option.kind) {
    case Kind::kText: return "text in quotes, like \"orders\"";
    case Kind::kWord: return "one of its words, in quotes";
    case Kind::kInteger: return "a whole number without quotes, like 3";
    case Kind::kNumber: return "a number without quotes, like 0.001";
    case Kind::kBoolean: return "true or false, without quotes";
    case Kind::kDuration: return "a duration in quotes, like \"250ms\", \"10s\" or \"5m\"";
    case Kind::kDurationOrAuto:
      return "a duration in quotes, like \"250ms\" or \"10s\", or \"auto\"";
    case Kind::kSize: return "a size in quotes, like \"64KiB\"";
    case Kind::kAddress:
      return "an address in quotes: \"host:port\", \"[v6]:port\" or \"unix:/path\"";
    case Kind::kTextList: return "a list of texts, like [\"a\", \"b\"]";
    case Kind::kIntegerList: return "a list of whole numbers, like [0, 1000]";
  }
  return "something else";
}

std::string WrongType(const Option& option, const TomlValue& value) {
  return "is " + std::string(TomlKindName(value.kind)) + "; must be " + Wanted(option);
}

// Numbers and booleans may come as text, because ${VAR} is replaced inside text only.
TomlValue FromText(const Option& option, const TomlValue& value) {
  if (value.kind != TomlValue::Kind::kString || value.text.empty()) return value;
  TomlValue converted = value;
  const char* const end = value.text.data() + value.text.size();
  if (option.kind == Kind::kBoolean && (value.text == "true" || value.text == "false")) {
    converted.kind = TomlValue::Kind::kBoolean;
    converted.boolean = value.text == "true";
  } else if (option.kind == Kind::kInteger) {
    const auto [at, error] = std::from_chars(value.text.data(), end, converted.integer);
    if (error == std::errc() && at == end) converted.kind = TomlValue::Kind::kInteger;
  } else if (option.kind == Kind::kNumber) {
    const auto [at, error] = std::from_chars(value.text.data(), end, converted.real);
    if (error == std::errc() && at == end) converted.kind = TomlValue::Kind::kFloat;
  }
  return converted;
}

Sentence AssignText(const TomlValue& value, const Slot& slot) {
  if (value.text.size() > kTextBytesMax) return "is longer than 4096 bytes";
  for (const char c : value.text) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) return "contains a control character";
  }
  *std::get<std::string*>(slot) = value.text;
  return std::nullopt;
}

std::string ListOf(const std::vector<std::string_view>& words) {
  std::string out;
  for (const std::string_view word : words) {
    if (word.empty()) continue;
    out += (out.empty() ? "" : ", ") + base::JsonQuote(word);
  }
  return out;
}

Sentence AssignWord(const Option& option, const TomlValue& value, const Slot& slot) {
  const std::vector<std::string_view> words = Words(option.range);
  for (size_t i = 0; i < words.size(); ++i) {
    if (words[i].empty() || words[i] != value.text) continue;
    if (const auto* text = std::get_if<std::string*>(&slot)) **text = value.text;
    if (const auto* flag = std::get_if<bool*>(&slot)) **flag = i == 1;
    if (const auto* word = std::get_if<WordSlot>(&slot)) {
      word->set(word->field, static_cast<int>(i));
    }
    return std::nullopt;
  }
  for (const std::string_view word : Words(option.later)) {
    if (word == value.text) {
      return "is not in this version of Leasehold; what there is now: " + ListOf(words);
    }
  }
  return "must be one of " + ListOf(words);
}

Sentence AssignInteger(const Option& option, const TomlValue& value, const Slot& slot) {
  if (Sentence wrong = OutOfRange(option, value.integer, ToInteger)) return wrong;
  if (const auto* small = std::get_if<int*>(&slot)) **small = static_cast<int>(value.integer);
  if (const auto* word = std::get_if<uint32_t*>(&slot)) {
    **word = static_cast<uint32_t>(value.integer);
  }
  if (const auto* large = std::get_if<uint64_t*>(&slot)) {
    **large = static_cast<uint64_t>(value.integer);
  }
  return std::nullopt;
}

Sentence AssignNumber(const Option& option, const TomlValue& value, const Slot& slot) {
  const bool whole = value.kind == TomlValue::Kind::kInteger;
  const double number = whole ? static_cast<double>(value.integer) : value.real;
  if (Sentence wrong = OutOfRange(option, number, ToNumber)) return wrong;
  *std::get<double*>(slot) = number;
  return std::nullopt;
}

Sentence AssignDuration(const Option& option, const TomlValue& value, const Slot& slot) {
  const bool derived = option.kind == Kind::kDurationOrAuto && value.text == kAuto;
  Duration duration = Duration::Zero();
  if (!derived) {
    const base::Result<Duration> parsed = base::ParseDuration(value.text);
    if (!parsed) return "must be " + Wanted(option);
    if (Sentence wrong = OutOfRange(option, *parsed, ToDuration)) return wrong;
    duration = *parsed;
  }
  if (const auto* plain = std::get_if<Duration*>(&slot)) **plain = duration;
  if (const auto* perhaps = std::get_if<std::optional<Duration>*>(&slot)) {
    **perhaps = derived ? std::nullopt : std::optional<Duration>(duration);
  }
  return std::nullopt;
}

Sentence AssignSize(const Option& option, const TomlValue& value, const Slot& slot) {
  const base::Result<uint64_t> size = base::ParseSize(value.text);
  if (!size) return "must be " + Wanted(option);
  if (Sentence wrong = OutOfRange(option, *size, ToSize)) return wrong;
  *std::get<uint64_t*>(slot) = *size;
  return std::nullopt;
}

Sentence AssignAddress(const Option& option, const TomlValue& value, const Slot& slot) {
  if (auto* const* text = std::get_if<std::string*>(&slot); text && value.text.empty()) {
    (*text)->clear();
    return std::nullopt;
  }
  if (value.text.empty() && option.default_text == "\"\"") {
    *std::get<base::Address*>(slot) = {};
    return std::nullopt;
  }
  const base::Result<base::Address> address = base::ParseAddress(value.text);
  if (!address) {
    // "... is not an address: why; write ...": the value is shown already.
    const size_t why = address.error().message.find(" is not an address: ");
    if (why == std::string::npos) return "must be " + Wanted(option);
    return address.error().message.substr(why + 1);
  }
  if (const auto* text = std::get_if<std::string*>(&slot)) **text = value.text;
  if (const auto* field = std::get_if<base::Address*>(&slot)) **field = *address;
  return std::nullopt;
}

Sentence AssignList(const Option& option, const TomlValue& value, const Slot& slot) {
  if (value.elements.size() > kListMax) return "has more than 256 elements";
  std::vector<std::string> texts;
  std::vector<int64_t> integers;
  const bool of_text = option.kind == Kind::kTextList;
  const TomlValue::Kind wanted = of_text ? TomlValue::Kind::kString : TomlValue::Kind::kInteger;
  for (const TomlValue& element : value.elements) {
    if (element.kind != wanted || (of_text && element.text.empty())) {
      return "holds " + element.Literal() + "; must be " + Wanted(option);
    }
    if (of_text) {
      texts.push_back(element.text);
      continue;
    }
    if (Sentence wrong = OutOfRange(option, element.integer, ToInteger)) {
      return "holds " + element.Literal() + "; each " + *wrong;
    }
    integers.push_back(element.integer);
  }
  if (of_text) *std::get<std::vector<std::string>*>(slot) = std::move(texts);
  if (!of_text) *std::get<std::vector<int64_t>*>(slot) = std::move(integers);
  return std::nullopt;
}

bool RightType(Kind kind, TomlValue::Kind found) {
  switch (kind) {
    case Kind::kInteger: return found == TomlValue::Kind::kInteger;
    case Kind::kNumber:
      return found == TomlValue::Kind::kInteger || found == TomlValue::Kind::kFloat;
    case Kind::kBoolean: return found == TomlValue::Kind::kBoolean;
    case Kind::kTextList:
    case Kind::kIntegerList: return found == TomlValue::Kind::kArray;
    default: return found == TomlValue::Kind::kString;
  }
}

}  // namespace

std::optional<std::string> Assign(const Option& option, const TomlValue& given,
                                  const Scope& scope) {
  const TomlValue value = FromText(option, given);
  if (!RightType(option.kind, value.kind)) return WrongType(option, value);
  const Slot slot = option.slot(scope);
  switch (option.kind) {
    case Kind::kText: return AssignText(value, slot);
    case Kind::kWord: return AssignWord(option, value, slot);
    case Kind::kInteger: return AssignInteger(option, value, slot);
    case Kind::kNumber: return AssignNumber(option, value, slot);
    case Kind::kBoolean: *std::get<bool*>(slot) = value.boolean; return std::nullopt;
    case Kind::kDuration:
    case Kind::kDurationOrAuto: return AssignDuration(option, value, slot);
    case Kind::kSize: return AssignSize(option, value, slot);
    case Kind::kAddress: return AssignAddress(option, value, slot);
    case Kind::kTextList:
    case Kind::kIntegerList: return AssignList(option, value, slot);
  }
  return std::nullopt;
}

TomlValue DefaultValue(const Option& option) {
  const std::string_view text = option.default_text;
  CHECK(!text.empty(), "a required option has no default");
  TomlValue value;
  if (text.front() == '"') {
    value.kind = TomlValue::Kind::kString;
    value.text = std::string(text.substr(1, text.size() - 2));
  } else if (text == "true" || text == "false") {
    value.kind = TomlValue::Kind::kBoolean;
    value.boolean = text == "true";
  } else if (text == "[]") {
    value.kind = TomlValue::Kind::kArray;
  } else if (option.kind == Kind::kNumber) {
    value.kind = TomlValue::Kind::kFloat;
    value.real = ToNumber(text);
  } else {
    value.kind = TomlValue::Kind::kInteger;
    value.integer = ToInteger(text);
  }
  return value;
}

namespace {

// One overload per kind of field; `option` says how the same field is to be read.
struct Writer {
  const Option& option;
  base::JsonWriter& out;

  void operator()(const std::string* f) const {
    out.String(option.secret && !f->empty() ? std::string(kMasked) : MaskUrlPassword(*f));
  }
  void operator()(const bool* f) const {
    if (option.kind == Kind::kWord) {
      out.String(Words(option.range)[*f ? 1 : 0]);
    } else {
      out.Bool(*f);
    }
  }
  void operator()(const int* f) const { out.Int(*f); }
  void operator()(const uint32_t* f) const { out.Uint(*f); }
  void operator()(const uint64_t* f) const {
    if (option.kind == Kind::kSize) {
      out.String(base::FormatSize(*f));
    } else {
      out.Uint(*f);
    }
  }
  void operator()(const double* f) const {
    char text[32];
    const auto end = std::to_chars(text, text + sizeof text, *f).ptr;
    out.Raw(std::string_view(text, static_cast<size_t>(end - text)));
  }
  void operator()(const Duration* f) const {
    const bool derived = option.kind == Kind::kDurationOrAuto && *f == Duration::Zero();
    out.String(derived ? std::string(kAuto) : base::FormatDuration(*f));
  }
  void operator()(const std::optional<Duration>* f) const {
    out.String(*f ? base::FormatDuration(**f) : std::string(kAuto));
  }
  void operator()(const base::Address* f) const { out.String(f->empty() ? "" : f->ToString()); }
  void operator()(const std::vector<std::string>* f) const {
    out.BeginArray();
    for (const std::string& text : *f) out.String(text);
    out.EndArray();
  }
  void operator()(const std::vector<int64_t>* f) const {
    out.BeginArray();
    for (const int64_t number : *f) out.Int(number);
    out.EndArray();
  }
  void operator()(const WordSlot& f) const {
    out.String(Words(option.range)[static_cast<size_t>(f.get(f.field))]);
  }
};

}  // namespace

void WriteValue(const Option& option, const Scope& scope, base::JsonWriter& out) {
  std::visit(Writer{option, out}, option.slot(scope));
}

std::string MaskUrlPassword(std::string_view text) {
  const size_t scheme = text.find("://");
  if (scheme == std::string_view::npos) return std::string(text);
  const size_t user = scheme + 3;
  // The last '@' of all: a password with a '/' that should have been %2F is a secret all the same.
  const size_t at = text.rfind('@');
  const size_t colon = text.find(':', user);
  if (at == std::string_view::npos || at < user || colon >= at) return std::string(text);
  // http://127.0.0.1:8000/@x: a port and a path. A store's URL has no '@' in its path.
  const size_t rest = std::min(text.find_first_not_of("0123456789", colon + 1), text.size());
  const bool port = rest > colon + 1 && text.substr(rest).starts_with('/');
  if (port && text.starts_with("http")) return std::string(text);
  return std::string(text.substr(0, colon + 1)) + std::string(kMasked) +
         std::string(text.substr(at));
}

std::string ShownValue(const Option& option, const TomlValue& value) {
  if (option.secret) return base::JsonQuote(kMasked);
  if (value.kind != TomlValue::Kind::kString) return value.Literal();
  TomlValue shown = value;
  shown.text = MaskUrlPassword(value.text);
  return shown.Literal();
}

}  // namespace leasehold::config

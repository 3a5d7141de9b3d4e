#include "config/toml.h"

#include <toml++/toml.h>

#include <algorithm>
#include <cstdio>
#include <optional>
#include <sstream>

#include "base/json_writer.h"
#include "base/text.h"

namespace leasehold::config {
namespace {

constexpr size_t kDocumentBytesMax = size_t{1} << 20;  // 1 MiB: the reference has 20 KiB

// Ours have three at most, store.redis.url. toml++ bounds nested values, but not the parts of a
// key, each of which is a table in a table: a long one would overflow the stack when it is taken
// down.
constexpr size_t kKeyPartsMax = 16;

// Behind the string that begins at `at`; of one that is not closed, where its line, or the text,
// ends. A long string may end with two quotes of its own before the three that close it.
size_t EndOfString(std::string_view text, size_t at) {
  const char quote = text[at];
  const std::string_view three(quote == '"' ? "\"\"\"" : "'''");
  const bool is_long = text.substr(at).starts_with(three);
  for (at += is_long ? 3 : 1; at < text.size(); ++at) {
    if (text[at] == '\\' && quote == '"') {
      ++at;
    } else if (is_long && text.substr(at).starts_with(three)) {
      at += 3;
      for (int own = 0; own < 2 && at < text.size() && text[at] == quote; ++own) ++at;
      return at;
    } else if (!is_long && (text[at] == quote || text[at] == '\n')) {
      return at + 1;
    }
  }
  return text.size();
}

// The line of a key with too many parts.
std::optional<int> DeepKeyLine(std::string_view text) {
  size_t parts = 1;
  for (size_t at = 0; at < text.size();) {
    const char c = text[at];
    if (c == '"' || c == '\'') {
      at = EndOfString(text, at);
      continue;
    }
    if (c == '#') {
      at = std::min(text.find('\n', at), text.size());
      continue;
    }
    if (c == '.' && ++parts > kKeyPartsMax) {
      return 1 +
             static_cast<int>(std::count(text.begin(), text.begin() + static_cast<int>(at), '\n'));
    }
    if (std::string_view("\n=,[]{}").find(c) != std::string_view::npos) parts = 1;
    ++at;
  }
  return std::nullopt;
}

int LineOf(const toml::node& node) { return static_cast<int>(node.source().begin.line); }

TomlValue Convert(const toml::node& node);

TomlValue ConvertTable(const toml::table& table) {
  TomlValue value;
  value.kind = TomlValue::Kind::kTable;
  for (const auto& [key, member] : table) {
    value.members.emplace_back(std::string(key.str()), Convert(member));
    if (key.source().begin.line > 0) {
      value.members.back().second.line = static_cast<int>(key.source().begin.line);
    }
  }
  std::stable_sort(value.members.begin(), value.members.end(),
                   [](const auto& a, const auto& b) { return a.second.line < b.second.line; });
  return value;
}

TomlValue ConvertScalar(const toml::node& node) {
  TomlValue value;
  if (const auto* text = node.as_string()) {
    value.kind = TomlValue::Kind::kString;
    value.text = text->get();
  } else if (const auto* integer = node.as_integer()) {
    value.kind = TomlValue::Kind::kInteger;
    value.integer = integer->get();
  } else if (const auto* real = node.as_floating_point()) {
    value.kind = TomlValue::Kind::kFloat;
    value.real = real->get();
  } else if (const auto* boolean = node.as_boolean()) {
    value.kind = TomlValue::Kind::kBoolean;
    value.boolean = boolean->get();
  } else {
    value.kind = TomlValue::Kind::kDateTime;
    std::ostringstream out;
    if (const auto* date = node.as_date()) out << date->get();
    if (const auto* time = node.as_time()) out << time->get();
    if (const auto* instant = node.as_date_time()) out << instant->get();
    value.text = out.str();
  }
  return value;
}

// Recursion is bounded by toml++'s own limit on nested values (256).
TomlValue Convert(const toml::node& node) {
  TomlValue value;
  if (const auto* table = node.as_table()) {
    value = ConvertTable(*table);
  } else if (const auto* array = node.as_array()) {
    value.kind = TomlValue::Kind::kArray;
    for (const toml::node& element : *array) value.elements.push_back(Convert(element));
  } else {
    value = ConvertScalar(node);
  }
  value.line = LineOf(node);
  return value;
}

std::string ListLiteral(const std::vector<TomlValue>& elements) {
  std::string out = "[";
  for (const TomlValue& element : elements) {
    if (out.size() > 1) out += ", ";
    out += element.Literal();
  }
  return out + "]";
}

// An address or a word without quotes is taken for the kind of value that it begins like.
std::string_view Remedy(std::string_view description) {
  for (const std::string_view kind :
       {"parsing time", "parsing date", "parsing integer", "parsing floating-point",
        "parsing boolean", "parsing value", "parsing decimal", "parsing key-value"}) {
    if (description.find(kind) != std::string_view::npos) {
      return "; text stands in quotes, like \"127.0.0.1:8080\"";
    }
  }
  return "";
}

}  // namespace

TomlValue::TomlValue() = default;

const TomlValue* TomlValue::Find(std::string_view key) const {
  for (const auto& [name, member] : members) {
    if (name == key) return &member;
  }
  return nullptr;
}

std::string TomlValue::Literal() const {
  switch (kind) {
    case Kind::kString: return base::JsonQuote(base::Printable(text));
    case Kind::kInteger: return std::to_string(integer);
    case Kind::kFloat: {
      char number[40];
      std::snprintf(number, sizeof number, "%g", real);
      return number;
    }
    case Kind::kBoolean: return boolean ? "true" : "false";
    case Kind::kDateTime: return text;
    case Kind::kArray: return ListLiteral(elements);
    case Kind::kTable: return "{...}";
  }
  return "?";
}

std::string_view TomlKindName(TomlValue::Kind kind) {
  switch (kind) {
    case TomlValue::Kind::kString: return "a string";
    case TomlValue::Kind::kInteger: return "an integer";
    case TomlValue::Kind::kFloat: return "a number with a point";
    case TomlValue::Kind::kBoolean: return "a boolean";
    case TomlValue::Kind::kDateTime: return "a date or time";
    case TomlValue::Kind::kArray: return "an array";
    case TomlValue::Kind::kTable: return "a table";
  }
  return "nothing";
}

std::variant<TomlValue, TomlError> ParseToml(std::string_view text) {
  if (text.size() > kDocumentBytesMax) {
    return TomlError{0, 0, "the file is larger than 1 MiB; no configuration needs that"};
  }
  if (const std::optional<int> line = DeepKeyLine(text)) {
    return TomlError{*line, 0,
                     "a key has more than " + std::to_string(kKeyPartsMax) +
                         " parts; no option has more than three"};
  }
  try {
    return Convert(toml::parse(text));
  } catch (const toml::parse_error& error) {
    return TomlError{static_cast<int>(error.source().begin.line),
                     static_cast<int>(error.source().begin.column),
                     base::Printable(error.description(), 300).append(Remedy(error.description()))};
  }
}

}  // namespace leasehold::config

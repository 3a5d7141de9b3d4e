#include "config/toml.h"

#include <toml++/toml.h>

#include <algorithm>
#include <cstdio>
#include <sstream>

#include "base/json_writer.h"
#include "base/text.h"

namespace leasehold::config {
namespace {

constexpr size_t kDocumentBytesMax = size_t{1} << 20;  // 1 MiB: the reference has 20 KiB

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
  try {
    return Convert(toml::parse(text));
  } catch (const toml::parse_error& error) {
    return TomlError{static_cast<int>(error.source().begin.line),
                     static_cast<int>(error.source().begin.column),
                     base::Printable(error.description(), 300).append(Remedy(error.description()))};
  }
}

}  // namespace leasehold::config

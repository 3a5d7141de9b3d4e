// TomlValue: a parsed TOML document as plain values with their line numbers. toml.cc is the one
// door to toml++, so nothing else of the program sees its types or its exceptions. Knows nothing of
// our options. Invariant: members of a table are in the order they were written.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace leasehold::config {

struct TomlValue {
  TomlValue();  // out of line: clang needs the type whole before it can default the vectors
  enum class Kind { kString, kInteger, kFloat, kBoolean, kDateTime, kArray, kTable };
  Kind kind = Kind::kTable;
  std::string text;  // kString; kDateTime as written
  int64_t integer = 0;
  double real = 0;
  bool boolean = false;
  std::vector<TomlValue> elements;                         // kArray
  std::vector<std::pair<std::string, TomlValue>> members;  // kTable
  int line = 0;                                            // 1 is the first; 0: none

  const TomlValue* Find(std::string_view key) const;  // kTable; nullptr: no such member
  // As it would be written in TOML, on one line, for messages: "\"10s\"", "3", "[1, 2]".
  std::string Literal() const;
};

std::string_view TomlKindName(TomlValue::Kind kind);  // "a string", "an integer", ...

struct TomlError {
  int line = 0;
  int column = 0;
  std::string message;
};

// The parser stops at the first error of syntax (a TOML document has no meaning beyond it).
// Documents over 1 MiB are refused: no configuration is.
std::variant<TomlValue, TomlError> ParseToml(std::string_view text);

}  // namespace leasehold::config

// Json: an immutable JSON value and its strict, bounded parser. The one door to jansson. Reading
// only; writing is base/json_writer.h. A Json is a counted reference: copies are cheap and share
// the document, which nobody can change. Invariant: a value that Parse gave is complete, not deeper
// and not longer than its limits, has no duplicate keys, no text but UTF-8, and no integer that was
// rounded.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

struct json_t;  // jansson's

namespace leasehold::proto {

struct JsonLimits {
  size_t bytes_max = size_t{1} << 20;  // 1 MiB: far above any record, request or answer of ours
  size_t depth_max = 32;               // nested arrays and objects; ours nest 4 deep at most
};

class Json {
 public:
  enum class Type { kNull, kBool, kInt, kReal, kString, kArray, kObject };

  // One JSON value and nothing after it (RFC 8259). Refused with kInvalid, line and column: bad
  // syntax, duplicate keys, "\u0000", bytes that are not UTF-8, integers outside -2^63..2^63-1 (a
  // larger one belongs in a string). Refused with kLimit: longer or deeper than `limits`.
  static base::Result<Json> Parse(std::string_view text, const JsonLimits& limits = {});

  Json() = default;  // null
  Json(const Json& other);
  Json(Json&& other) noexcept;
  Json& operator=(Json other) noexcept;
  ~Json();

  Type type() const;
  bool is_null() const { return type() == Type::kNull; }
  bool is_object() const { return type() == Type::kObject; }
  bool is_array() const { return type() == Type::kArray; }

  // The value, if it is of that type exactly (AsDouble also takes integers): nothing is converted.
  // Text stays valid as long as this value, or one that contains it, does.
  std::optional<bool> AsBool() const;
  std::optional<int64_t> AsInt() const;
  std::optional<uint64_t> AsUint() const;  // an integer that is not negative
  std::optional<double> AsDouble() const;
  std::optional<std::string_view> AsString() const;
  // A 64-bit number as JsonWriter::Token writes it, a decimal string; a plain integer is taken too.
  std::optional<uint64_t> AsToken() const;

  // Members of an object; nullopt if this is no object or has no such member. `Find` tells an
  // absent member from one of the wrong type, the typed getters do not.
  std::optional<Json> Find(std::string_view key) const;
  std::optional<bool> Bool(std::string_view key) const;
  std::optional<int64_t> Int(std::string_view key) const;
  std::optional<uint64_t> Uint(std::string_view key) const;
  std::optional<double> Double(std::string_view key) const;
  std::optional<std::string> String(std::string_view key) const;
  std::optional<uint64_t> Token(std::string_view key) const;
  std::vector<std::string> Keys() const;  // in the order they were written; empty for others

  // Elements of an array: 0 and nullopt for other types and beyond the end.
  size_t size() const;  // of an object: how many members
  std::optional<Json> At(size_t index) const;
  std::vector<Json> Elements() const;

  // The value as compact JSON text that parses to an equal value: for keeping what we do not know.
  std::string Dump() const;

 private:
  explicit Json(json_t* owned) : node_(owned) {}  // takes over one reference
  static std::optional<Json> Borrowed(json_t* node);

  json_t* node_ = nullptr;  // nullptr: null
};

// "null", "a boolean", "an integer", ...: for messages that say what was found.
std::string_view JsonTypeName(Json::Type type);

}  // namespace leasehold::proto

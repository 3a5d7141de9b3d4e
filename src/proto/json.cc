#include "proto/json.h"

#include <jansson.h>

#include <cstdlib>
#include <memory>
#include <utility>

#include "base/text.h"

namespace leasehold::proto {
namespace {

// Where the text goes deeper than `depth_max`, or npos. Runs before jansson, whose own limit (2048)
// is not ours to set. Malformed text may be counted wrongly; jansson then refuses it anyway.
size_t TooDeepAt(std::string_view text, size_t depth_max) {
  size_t depth = 0;
  bool in_string = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\') {
        ++i;
      } else if (c == '"') {
        in_string = false;
      }
    } else if (c == '"') {
      in_string = true;
    } else if (c == '[' || c == '{') {
      if (++depth > depth_max) return i;
    } else if ((c == ']' || c == '}') && depth > 0) {
      --depth;
    }
  }
  return std::string_view::npos;
}

std::string Place(int line, int column) {
  return "JSON line " + std::to_string(line) + ", column " + std::to_string(column) + ": ";
}

base::Error ErrorAt(std::string_view text, size_t at, base::ErrorCode code, std::string_view what) {
  int line = 1;
  int column = 1;
  for (size_t i = 0; i < at; ++i) {
    column = text[i] == '\n' ? 1 : column + 1;
    line += text[i] == '\n' ? 1 : 0;
  }
  return {code, Place(line, column).append(what)};
}

template <typename T, typename Getter>
std::optional<T> Member(const Json& object, std::string_view key, Getter getter) {
  const std::optional<Json> member = object.Find(key);
  if (!member) return std::nullopt;
  return getter(*member);
}

}  // namespace

base::Result<Json> Json::Parse(std::string_view text, const JsonLimits& limits) {
  if (text.size() > limits.bytes_max) {
    return base::Error{base::ErrorCode::kLimit,
                       "JSON of " + std::to_string(text.size()) + " bytes, but at most " +
                           std::to_string(limits.bytes_max) + " are taken"};
  }
  // jansson takes a NUL after the value for the end of the text, whatever follows it.
  if (const size_t nul = text.find('\0'); nul != std::string_view::npos) {
    return ErrorAt(text, nul, base::ErrorCode::kInvalid, "a NUL byte, which JSON has none of");
  }
  if (const size_t deep = TooDeepAt(text, limits.depth_max); deep != std::string_view::npos) {
    return ErrorAt(text, deep, base::ErrorCode::kLimit,
                   "arrays and objects are nested deeper than " + std::to_string(limits.depth_max));
  }
  json_error_t error;
  // jansson refuses a null pointer as a misuse; an empty view may be one.
  json_t* node = json_loadb(text.empty() ? "" : text.data(), text.size(),
                            JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &error);
  if (node == nullptr) {
    return base::Error{base::ErrorCode::kInvalid,
                       Place(error.line, error.column) + base::Printable(error.text)};
  }
  return Json(node);
}

Json::Json(const Json& other) : node_(json_incref(other.node_)) {}
Json::Json(Json&& other) noexcept : node_(std::exchange(other.node_, nullptr)) {}
Json& Json::operator=(Json other) noexcept {
  std::swap(node_, other.node_);
  return *this;
}
Json::~Json() { json_decref(node_); }

std::optional<Json> Json::Borrowed(json_t* node) {
  if (node == nullptr) return std::nullopt;
  return Json(json_incref(node));
}

Json::Type Json::type() const {
  if (node_ == nullptr) return Type::kNull;
  switch (json_typeof(node_)) {
    case JSON_OBJECT: return Type::kObject;
    case JSON_ARRAY: return Type::kArray;
    case JSON_STRING: return Type::kString;
    case JSON_INTEGER: return Type::kInt;
    case JSON_REAL: return Type::kReal;
    case JSON_TRUE:
    case JSON_FALSE: return Type::kBool;
    case JSON_NULL: return Type::kNull;
  }
  CHECK(false, "a jansson type outside its list");
}

std::optional<bool> Json::AsBool() const {
  if (type() != Type::kBool) return std::nullopt;
  return json_is_true(node_);
}

std::optional<int64_t> Json::AsInt() const {
  if (type() != Type::kInt) return std::nullopt;
  return json_integer_value(node_);
}

std::optional<uint64_t> Json::AsUint() const {
  const std::optional<int64_t> value = AsInt();
  if (!value || *value < 0) return std::nullopt;
  return static_cast<uint64_t>(*value);
}

std::optional<double> Json::AsDouble() const {
  if (type() == Type::kInt) return static_cast<double>(json_integer_value(node_));
  if (type() != Type::kReal) return std::nullopt;
  return json_real_value(node_);
}

std::optional<std::string_view> Json::AsString() const {
  if (type() != Type::kString) return std::nullopt;
  return std::string_view(json_string_value(node_), json_string_length(node_));
}

std::optional<uint64_t> Json::AsToken() const {
  const std::optional<std::string_view> text = AsString();
  if (!text) return AsUint();
  const base::Result<uint64_t> value = base::ParseUint64(*text);
  if (!value.ok()) return std::nullopt;
  return *value;
}

std::optional<Json> Json::Find(std::string_view key) const {
  if (!is_object()) return std::nullopt;
  return Borrowed(json_object_getn(node_, key.data(), key.size()));
}

std::optional<bool> Json::Bool(std::string_view key) const {
  return Member<bool>(*this, key, [](const Json& v) { return v.AsBool(); });
}
std::optional<int64_t> Json::Int(std::string_view key) const {
  return Member<int64_t>(*this, key, [](const Json& v) { return v.AsInt(); });
}
std::optional<uint64_t> Json::Uint(std::string_view key) const {
  return Member<uint64_t>(*this, key, [](const Json& v) { return v.AsUint(); });
}
std::optional<double> Json::Double(std::string_view key) const {
  return Member<double>(*this, key, [](const Json& v) { return v.AsDouble(); });
}
std::optional<std::string> Json::String(std::string_view key) const {
  return Member<std::string>(*this, key, [](const Json& v) -> std::optional<std::string> {
    const std::optional<std::string_view> text = v.AsString();
    if (!text) return std::nullopt;
    return std::string(*text);
  });
}
std::optional<uint64_t> Json::Token(std::string_view key) const {
  return Member<uint64_t>(*this, key, [](const Json& v) { return v.AsToken(); });
}

std::vector<std::string> Json::Keys() const {
  std::vector<std::string> keys;
  if (!is_object()) return keys;
  keys.reserve(json_object_size(node_));
  for (void* member = json_object_iter(node_); member != nullptr;
       member = json_object_iter_next(node_, member)) {
    keys.emplace_back(json_object_iter_key(member), json_object_iter_key_len(member));
  }
  return keys;
}

size_t Json::size() const {
  if (is_array()) return json_array_size(node_);
  return is_object() ? json_object_size(node_) : 0;
}

std::optional<Json> Json::At(size_t index) const {
  if (!is_array()) return std::nullopt;
  return Borrowed(json_array_get(node_, index));
}

std::vector<Json> Json::Elements() const {
  std::vector<Json> elements;
  if (!is_array()) return elements;
  elements.reserve(size());
  for (size_t i = 0; i < size(); ++i) elements.push_back(*At(i));
  return elements;
}

std::string Json::Dump() const {
  if (node_ == nullptr) return "null";
  const std::unique_ptr<char, decltype(&std::free)> text(
      json_dumps(node_, JSON_COMPACT | JSON_ENCODE_ANY), &std::free);
  CHECK(text != nullptr, "jansson cannot write a value that it parsed");
  return text.get();
}

std::string_view JsonTypeName(Json::Type type) {
  switch (type) {
    case Json::Type::kNull: return "null";
    case Json::Type::kBool: return "a boolean";
    case Json::Type::kInt: return "an integer";
    case Json::Type::kReal: return "a number with a fraction or exponent";
    case Json::Type::kString: return "a string";
    case Json::Type::kArray: return "an array";
    case Json::Type::kObject: return "an object";
  }
  CHECK(false, "a Json::Type outside its list");
}

}  // namespace leasehold::proto

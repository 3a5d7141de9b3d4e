// JsonWriter: appends well-formed JSON to a string. Writing only; reading is proto/json.h.
// Commas and escapes are its business; balanced Begin/End and a Key before each member value are
// the caller's.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace leasehold::base {

class JsonWriter {
 public:
  // Appends to `out`, which must outlive the writer.
  explicit JsonWriter(std::string& out) : out_(out) {}

  JsonWriter& BeginObject();
  JsonWriter& EndObject();
  JsonWriter& BeginArray();
  JsonWriter& EndArray();
  JsonWriter& Key(std::string_view key);
  // Text is taken as UTF-8; bytes that are not are replaced by U+FFFD.
  JsonWriter& String(std::string_view value);
  JsonWriter& Int(int64_t value);
  JsonWriter& Uint(uint64_t value);
  JsonWriter& Double(double value);  // three decimals; not finite becomes null
  JsonWriter& Bool(bool value);
  JsonWriter& Null();
  JsonWriter& Raw(std::string_view json);  // must itself be well-formed
  // A 64-bit number as a decimal string, so that no reader rounds it (fencing tokens, beats).
  JsonWriter& Token(uint64_t value);

  JsonWriter& Member(std::string_view key, std::string_view value) {
    return Key(key).String(value);
  }
  JsonWriter& Member(std::string_view key, const char* value) { return Key(key).String(value); }
  JsonWriter& Member(std::string_view key, bool value) { return Key(key).Bool(value); }

 private:
  void Separate();
  std::string& out_;
  bool need_comma_ = false;
};

// `text` as a JSON string with its quotes.
std::string JsonQuote(std::string_view text);

}  // namespace leasehold::base

// ConfigChoices: a sidecar.conf out of the option table, each byte of the input one choice: how
// many leases and gates, and of each option whether it is left out and which of its values it has:
// its default, an end of its range, one between, one that others have to agree with. Most values
// are right by themselves, so that what is judged is how they go together. Made by whoever asks for
// the text; the same bytes give the same text.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "config/option_table.h"

namespace leasehold::fuzz {

class ConfigChoices {
 public:
  explicit ConfigChoices(std::string_view bytes) : bytes_(bytes) {}

  std::string Text() {
    for (const std::string_view section : config::Sections()) {
      const bool repeated = config::IsRepeated(section);
      const size_t tables = section == "lease"  ? 1 + Below(3) / 2
                            : section == "gate" ? Below(4)
                                                : 1;
      for (size_t i = 0; i < tables; ++i) {
        text_ += repeated ? "[[" : "[";
        text_.append(section).append(repeated ? "]]\n" : "]\n");
        Table(section, i);
      }
    }
    return text_;
  }

 private:
  using Values = std::span<const std::string_view>;

  // 0 when the bytes are used up.
  size_t Below(size_t bound) {
    if (bytes_.empty()) return 0;
    const auto byte = static_cast<unsigned char>(bytes_[0]);
    bytes_.remove_prefix(1);
    return byte % bound;
  }
  std::string_view OneOf(Values values) { return values[Below(values.size())]; }

  void Table(std::string_view section, size_t index) {
    std::string_view type;
    if (section == "store") type = OneOf(kStores);
    if (section == "gate") type = OneOf(kGates);
    if (!type.empty()) text_.append("type = \"").append(type).append("\"\n");
    for (const config::Option& option : config::Options()) {
      if (option.section != section || option.key == "type") continue;
      if (!config::AppliesTo(option, type)) continue;
      const bool must = option.default_text.empty();
      // Those of a lease and a gate depend on one another; most of the rest stand alone.
      const size_t seldom = section == "lease" ? 3 : section == "gate" ? 4 : 12;
      if (!must && Below(seldom) != 1) continue;
      text_.append(option.key).append(" = ").append(Value(option, index)).append("\n");
    }
  }

  std::string Value(const config::Option& option, size_t index) {
    using config::Kind;
    switch (option.kind) {
      case Kind::kText: return Quoted(Text(option, index));
      case Kind::kWord: return Quoted(Word(option));
      case Kind::kInteger: return Integer(option);
      case Kind::kNumber: return std::string(OneOf(kNumbers));
      case Kind::kBoolean: return Below(2) == 0 ? "false" : "true";
      case Kind::kDuration: return Quoted(Duration(option));
      case Kind::kDurationOrAuto: return Quoted(Below(4) == 0 ? "auto" : Duration(option));
      case Kind::kSize: return Quoted(OneOf(kSizes));
      case Kind::kAddress: return Quoted(OneOf(kAddresses));
      case Kind::kTextList: return std::string(OneOf(kTextLists));
      case Kind::kIntegerList: return std::string(OneOf(kIntegerLists));
    }
    return "0";
  }

  static std::string Quoted(std::string_view text) { return '"' + std::string(text) + '"'; }

  std::string Duration(const config::Option& option) {
    const size_t dots = option.range.find("..");
    const size_t way = Below(8);
    if (dots != std::string_view::npos && way == 0)
      return std::string(option.range.substr(0, dots));
    if (dots != std::string_view::npos && way == 1)
      return std::string(option.range.substr(dots + 2));
    if (way > 3) return std::string(OneOf(kDurations));
    const size_t high = Below(256);
    return std::to_string((high * 256 + Below(256)) * (way == 2 ? 1 : 10)) + "ms";
  }

  // An empty word stands for one that does not apply.
  std::string_view Word(const config::Option& option) {
    std::vector<std::string_view> words = config::Words(option.range);
    std::erase(words, std::string_view());
    return OneOf(words);
  }

  std::string Integer(const config::Option& option) {
    const size_t dots = option.range.find("..");
    switch (Below(4)) {
      case 0: return std::string(option.range.substr(0, dots));
      case 1: return std::string(option.range.substr(dots + 2));
      case 2: return std::string(option.default_text);
      default: return std::to_string(1 + Below(64));
    }
  }

  std::string Text(const config::Option& option, size_t index) {
    if (option.key == "name") return Below(16) == 1 ? "a" : std::string(1, "abcd"[index % 4]);
    if (option.key == "lease") return std::string(OneOf(kLeases));
    if (option.key == "redis.url") return std::string(OneOf(kRedisUrls));
    if (option.key == "check") return std::string(OneOf(kChecks));
    if (option.key.starts_with("on_")) return std::string(OneOf(kCommands));
    return std::string(OneOf(kTexts));
  }

  static constexpr std::string_view kStores[] = {"file", "redis", "dynamodb"};
  static constexpr std::string_view kGates[] = {"http", "tcp", "sqs"};
  static constexpr std::string_view kNumbers[] = {"0.001", "0", "0.05", "0.0123", "0.0499", "1e-9"};
  static constexpr std::string_view kSizes[] = {"64KiB", "1KiB",  "4KiB", "64B",
                                                "1MiB",  "16MiB", "0B"};
  static constexpr std::string_view kDurations[] = {
      "10s",  "1s",   "2s",   "500ms", "5s",    "20s",  "100ms",  "20ms", "30s",
      "1ms",  "50ms", "10ms", "250ms", "333ms", "62s",  "1001ms", "1.5s", "0s",
      "300s", "1h",   "24h",  "9s",    "625ms", "99ms", "125ms"};
  static constexpr std::string_view kAddresses[] = {
      "127.0.0.1:8080", "127.0.0.1:8081", "127.0.0.1:0",    "0.0.0.0:8080", "[::1]:8080",
      "[::]:8081",      "10.0.0.7:8081",  "localhost:8080", "unix:/x.sock", "unix:/y.sock",
      "*:9090",         "db.internal:1",  "${POD_IP}:8081"};
  static constexpr std::string_view kTextLists[] = {"[]", "[\"api.internal\"]",
                                                    "[\"a\", \"[::1]:1\"]"};
  static constexpr std::string_view kIntegerLists[] = {"[]", "[0]", "[1000, 4294967294]"};
  static constexpr std::string_view kLeases[] = {"", "a", "", "b", "a"};
  static constexpr std::string_view kRedisUrls[] = {"redis://127.0.0.1:6379/0",
                                                    "rediss://redis.internal/3", "redis://u:pw@h:1",
                                                    "rediss://[::1]:2", "redis://u@h"};
  static constexpr std::string_view kChecks[] = {"", "http://127.0.0.1:8000/healthz", "tcp://h:1",
                                                 "exec:/bin/true --x", "tcp://unix:/x"};
  static constexpr std::string_view kCommands[] = {"", "/bin/true", "sh -c 'a | b'", "nothere --x"};
  static constexpr std::string_view kTexts[] = {"",          "/x/y",        "word",
                                                "${SECRET}", "${EMPTY:-z}", "n-1"};

  std::string_view bytes_;
  std::string text_;
};

}  // namespace leasehold::fuzz

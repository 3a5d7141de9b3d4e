#include "config/expand.h"

#include "base/text.h"

namespace leasehold::config {
namespace {

// Of what comes out. No option takes more than 4 KiB (option_value.cc), but a file may name a large
// variable again and again.
constexpr size_t kExpandedBytesMax = size_t{64} * 1024;

bool IsName(std::string_view name) {
  if (name.empty() || (name[0] >= '0' && name[0] <= '9')) return false;
  for (const char c : name) {
    const bool good = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    if (!good && c != '_') return false;
  }
  return true;
}

base::Error Bad(std::string sentence) { return {base::ErrorCode::kInvalid, std::move(sentence)}; }

// `inside` is what stands between "${" and "}".
base::Result<std::string> Lookup(std::string_view inside, const Environment& environment) {
  const size_t split = inside.find(":-");
  const std::string name(inside.substr(0, split));
  if (!IsName(name)) {
    return Bad(
        "\"${" + base::Printable(inside) +
        "}\" names no environment variable; write ${NAME} or ${NAME:-default}, and $${ for a "
        "literal ${");
  }
  const char* value = environment(name.c_str());
  if (split == std::string_view::npos) {
    if (value != nullptr) return std::string(value);
    return Bad("the environment variable " + name + " is not set; set it, or write ${" + name +
               ":-default}");
  }
  if (value != nullptr && *value != '\0') return std::string(value);
  const std::string_view fallback = inside.substr(split + 2);
  if (fallback.find("${") != std::string_view::npos) {
    return Bad("the default of ${" + name + "} contains another ${; one level is all there is");
  }
  return std::string(fallback);
}

}  // namespace

base::Result<std::string> Expand(std::string_view text, const Environment& environment) {
  std::string out;
  size_t at = 0;
  while (at < text.size()) {
    const size_t open = text.find("${", at);
    if (open == std::string_view::npos) break;
    if (open > at && text[open - 1] == '$') {
      out.append(text.substr(at, open - 1 - at)).append("${");
      at = open + 2;
      continue;
    }
    const size_t close = text.find('}', open);
    if (close == std::string_view::npos) {
      return Bad(
          "\"${\" has no closing \"}\"; write ${NAME} or ${NAME:-default}, and $${ for a "
          "literal ${");
    }
    out.append(text.substr(at, open - at));
    base::Result<std::string> value = Lookup(text.substr(open + 2, close - open - 2), environment);
    if (!value) return value.error();
    if (out.size() + value->size() > kExpandedBytesMax) {
      return Bad("with its environment variables in place it is longer than 64KiB");
    }
    out += *value;
    at = close + 1;
  }
  return out.append(text.substr(at));
}

}  // namespace leasehold::config

#include "admin/target.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/text.h"

namespace leasehold::admin {
namespace {

int HexValue(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

base::Result<std::string> Decode(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      out += text[i];
      continue;
    }
    const int high = i + 2 < text.size() ? HexValue(text[i + 1]) : -1;
    const int low = i + 2 < text.size() ? HexValue(text[i + 2]) : -1;
    if (high < 0 || low < 0) {
      return base::Error{
          base::ErrorCode::kInvalid,
          "\"" + base::Printable(text) +
              "\" in the request target has a \"%\" without two hex digits after it"};
    }
    out += static_cast<char>(high * 16 + low);
    i += 2;
  }
  return out;
}

base::Status ParseQuery(std::string_view query, std::multimap<std::string, std::string>& out) {
  for (const std::string_view pair : base::Split(query, '&')) {
    if (pair.empty()) continue;
    const size_t equals = pair.find('=');
    auto key = Decode(pair.substr(0, equals));
    auto value = Decode(equals == std::string_view::npos ? "" : pair.substr(equals + 1));
    if (!key.ok()) return key.error();
    if (!value.ok()) return value.error();
    const bool repeatable = std::ranges::find(kRepeatable, *key) != std::end(kRepeatable);
    if (!repeatable && out.contains(*key)) {
      return base::Error{base::ErrorCode::kInvalid, "the query gives \"" + base::Printable(*key) +
                                                        "\" more than once; give it once"};
    }
    out.emplace(*std::move(key), *std::move(value));
  }
  return {};
}

}  // namespace

base::Result<Target> ParseTarget(std::string_view target, std::string* authority) {
  const size_t scheme = target.find("://");
  if (!target.starts_with('/') && scheme != std::string_view::npos) {
    target.remove_prefix(scheme + 3);
    const size_t slash = std::min(target.find_first_of("/?"), target.size());
    *authority = target.substr(0, slash);
    target.remove_prefix(slash);
  }
  Target out;
  const size_t question = target.find('?');
  if (question != std::string_view::npos) {
    if (auto status = ParseQuery(target.substr(question + 1), out.query); !status.ok()) {
      return status.error();
    }
  }
  std::string_view path = target.substr(0, question);
  if (path.starts_with('/')) path.remove_prefix(1);
  for (const std::string_view segment : base::Split(path, '/')) {
    auto decoded = Decode(segment);
    if (!decoded.ok()) return decoded.error();
    out.segments.push_back(std::move(decoded).value());
  }
  return out;
}

}  // namespace leasehold::admin

// Target: a request target of the API taken apart: decoded path segments and query. Not a general
// URL (no relative references; no repeated parameters but those of kRepeatable). A segment may hold
// any decoded byte, so that a lease with a slash in its name can be asked for as "%2F".
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace leasehold::admin {

struct Target {
  std::vector<std::string> segments;              // "/v1/leases/a%2Fb" -> v1, leases, a/b
  std::multimap<std::string, std::string> query;  // "?lease=orders"

  // A parameter that is given at most once; nullopt: not given.
  std::optional<std::string> One(const std::string& key) const {
    const auto at = query.find(key);
    return at == query.end() ? std::nullopt : std::optional(at->second);
  }
  std::vector<std::string> All(const std::string& key) const {
    std::vector<std::string> values;
    for (auto [at, end] = query.equal_range(key); at != end; ++at) values.push_back(at->second);
    return values;
  }
};

// Two of anything else is two clients' worth of opinion in one request.
inline constexpr std::string_view kRepeatable[] = {"event"};

// Takes "/path?query" and "http://authority/path?query" (the authority is then in `authority`, and
// counts as the Host: RFC 9112 3.2.2). Errors say which escape or parameter is wrong.
base::Result<Target> ParseTarget(std::string_view target, std::string* authority);

}  // namespace leasehold::admin

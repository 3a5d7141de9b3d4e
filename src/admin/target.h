// Target: a request target of the API taken apart: decoded path segments and query. Not a general
// URL (no relative references, no repeated parameters). A segment may hold any decoded byte, so
// that a lease with a slash in its name can be asked for as "%2F".
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace leasehold::admin {

struct Target {
  std::vector<std::string> segments;         // "/v1/leases/a%2Fb" -> v1, leases, a/b
  std::map<std::string, std::string> query;  // "?lease=orders"
};

// Takes "/path?query" and "http://authority/path?query" (the authority is then in `authority`, and
// counts as the Host: RFC 9112 3.2.2). Errors say which escape or parameter is wrong.
base::Result<Target> ParseTarget(std::string_view target, std::string* authority);

}  // namespace leasehold::admin

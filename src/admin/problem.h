// Problem: an error of the API as application/problem+json (RFC 9457): {type,title,status,detail}.
// `type` is "urn:leasehold:problem:<code>", a closed list that programs may compare; `detail` is
// for people: object, value, what would be right.
#pragma once

#include <string>
#include <string_view>

#include "admin/http_message.h"

namespace leasehold::admin {

// `code` as in "not_found"; the title is made of it ("Not found").
std::string ProblemJson(int status, std::string_view code, std::string_view detail);
HttpAnswer ProblemAnswer(int status, std::string_view code, std::string_view detail);

}  // namespace leasehold::admin

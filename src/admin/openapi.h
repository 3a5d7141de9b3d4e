// The OpenAPI 3.1 description of the localhost API: openapi.json, the one source of truth, put into
// the program at build time (embed_openapi.cmake) with the program's version. Never copied: it lies
// among the program's constants. tests/integration/test_openapi.py holds it against the live API.
#pragma once

#include <string_view>

namespace leasehold::admin {

std::string_view OpenApiDocument();

}  // namespace leasehold::admin

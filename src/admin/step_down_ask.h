// The body of a step-down request, the same over the API and the signal socket, into a StepDownAsk.
// Strict: a member nobody knows is an error, because a mistyped "take_back" would do the opposite
// of what was meant.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>

#include "admin/control.h"
#include "base/result.h"
#include "proto/json.h"

namespace leasehold::admin {

// Takes expected_node_id, expected_token (a decimal string, or a number that is exact) and
// take_back (optional). `others` are members that the caller reads itself. `lease` is left alone.
base::Status ReadStepDownAsk(const proto::Json& body,
                             std::initializer_list<std::string_view> others, StepDownAsk& ask);
// A boolean member that may be absent; an error names what was found instead.
base::Status ReadOptionalBool(const proto::Json& body, std::string_view key, bool& value);

}  // namespace leasehold::admin

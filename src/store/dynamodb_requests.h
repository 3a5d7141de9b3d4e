// What the adapter asks of DynamoDB: the bodies of its calls (AWS JSON 1.0). Pure. Every attribute
// goes by a placeholder, #name and :value with the attribute's own name, because many of ours
// (state, token, format) are reserved words of its expressions.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "aws/service.h"
#include "base/result.h"
#include "base/time.h"
#include "lease/record.h"

namespace leasehold::store {

// All that is ever asked for; the last one only with create_table.
inline constexpr std::string_view kGetItem = "GetItem";
inline constexpr std::string_view kUpdateItem = "UpdateItem";
inline constexpr std::string_view kCreateTable = "CreateTable";

// Consistent.
std::string GetItemBody(std::string_view table, std::string_view key);

// One conditional UpdateItem. Not PutItem: that drops whatever somebody else wrote beside our
// attributes since we last read them, and answers nothing that proves which attempt it carried out.
// An update touches only what is ours; what is unknown is written only where there was no item.
// The condition is the expected version (process id, token and beat), our lease and a format that
// is not higher than ours; or that there is no item. kInvalid: `record` cannot be kept exactly.
base::Result<std::string> CompareAndSetBody(std::string_view table, std::string_view key,
                                            const std::optional<lease::Version>& expected,
                                            const lease::Record& record);

// A conditional UpdateItem that can never take (its key would have to be another than it is): who
// is told that the condition failed had credentials, permission, table, key schema and capacity for
// the write. It costs one write unit, as any write does.
std::string ProbeBody(std::string_view table, std::string_view key);

// Billed per request, so that there is no capacity to choose.
std::string CreateTableBody(std::string_view table);

// `operation`: one of those. `repeatable`: may go out again if its connection turns out to be
// closed.
aws::Request DynamoDbRequest(std::string_view operation, std::string body, bool repeatable,
                             base::Duration timeout);

}  // namespace leasehold::store

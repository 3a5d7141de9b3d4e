// How a lease lies in DynamoDB: the key of its item and the item's attributes, in DynamoDB's JSON
// ({"S": "text"}, {"N": "12"}). Pure. Invariants: two different (prefix, lease) pairs never share a
// key; what EncodeItem gives, DecodeItem reads back equal; attributes this program does not know
// come back as they are. Token and beat are strings, though DynamoDB's own numbers would hold 64
// bits: most of its clients (and emulators) turn a number into a double, and compare it as one.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "lease/record.h"
#include "proto/json.h"

namespace leasehold::store {

inline constexpr std::string_view kDynamoDbKey = "pk";

// "<prefix>:lease:<name>". ':' and '%' in a prefix are written %3A and %25, so that the first ':'
// of a key always ends its prefix.
std::string DynamoDbKeyOf(std::string_view prefix, std::string_view lease);
// An item of nobody's, to ask for where only the answer's being one matters: "<prefix>:check".
std::string DynamoDbCheckKey(std::string_view prefix);

// Attribute name -> value in DynamoDB's JSON.
using DynamoDbAttributes = std::vector<std::pair<std::string, std::string>>;

// format (N), lease, node_id, process_id, token, beat (S), ttl_ms (N), state (S),
// acquired_at_unix_ms (N), former (S) and peers (M of S) where there are any; not the key.
// kInvalid: it cannot be kept exactly (text that is not UTF-8 or has a zero byte).
base::Result<DynamoDbAttributes> EncodeItem(const lease::Record& record);
// The unknown ones; kInvalid if one bears a name of ours.
base::Result<DynamoDbAttributes> EncodeUnknown(const lease::Record& record);

// kInvalid: not a record of this key; the sentence names the attribute. A format above
// lease::kRecordFormat is no error: it is read as far as it can be, so that the engine can refuse
// it; what is not understood is at its default.
base::Result<lease::Record> DecodeItem(std::string_view key, std::string_view lease,
                                       const proto::Json& item);

}  // namespace leasehold::store

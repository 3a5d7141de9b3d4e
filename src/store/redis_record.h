// How a lease lies in Redis: names of its key, hint channel and probe key, and the hash's fields.
// Pure. Invariant: two different (prefix, lease) pairs never share a key; every number is a decimal
// string; fields this program does not know pass through unchanged.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "lease/record.h"
#include "proto/resp.h"

namespace leasehold::store {

struct RedisNames {
  std::string key;      // "<prefix>:lease:<name>": the record, a hash
  std::string channel;  // "<prefix>:hint:<name>": "hands" or "beat"
  std::string probe;    // "<prefix>:probe:<name>": a short-lived string
};
// ':' and '%' in a lease's name are written %3A and %25, so that the last "lease:" of a key always
// ends its prefix.
RedisNames NamesOf(std::string_view prefix, std::string_view lease);

using RedisFields = std::vector<std::pair<std::string, std::string>>;

// format, lease, node_id, process_id, token, beat, ttl_ms, state, acquired_at_unix_ms,
// former (where there is one), "peer:<gate>" for each peer, then the unknown ones.
RedisFields EncodeRecord(const lease::Record& record);
// From an HGETALL reply that is not empty. kInvalid: not a record; the sentence names the field.
base::Result<lease::Record> DecodeRecord(std::string_view key, const proto::Reply& hash);

}  // namespace leasehold::store

// RedisAnswer: what came back for one command, and what it means for a lease: the answers of the
// two scripts and of WAIT into ReadResult and CasResult. Pure. Invariants: every answer has an
// outcome; applied is only what has exactly the form of the script's yes, and a conflict its no;
// what nobody has seen before is ambiguous.
#pragma once

#include <optional>
#include <string_view>

#include "lease/record.h"
#include "proto/resp.h"
#include "store/lease_store.h"
#include "store/redis_errors.h"

namespace leasehold::store {

struct RedisAnswer {
  std::optional<proto::Reply> reply;  // error replies are replies
  RedisFailure failure;               // if there is none
};

// The server does not know the script of an EVALSHA: nothing ran.
bool IsNoScript(const RedisAnswer& answer);
// OOM and MISCONF: what DESIGN 3 calls store_full.
bool IsStoreFull(const RedisFailure& failure);

// Why an answer is none that was hoped for. `server` names it: "redis at 10.0.0.7:6379/0".
RedisFailure FailureOf(std::string_view server, const RedisAnswer& answer);
CasResult CasFailed(const RedisFailure& failure);

// The answer of ReadScript() for the record at `key`.
ReadResult JudgeRead(std::string_view server, std::string_view key, const RedisAnswer& answer);
// The answer of CompareAndSetScript(); `version` is the written record's.
CasResult JudgeCas(std::string_view server, std::string_view key, const lease::Version& version,
                   const RedisAnswer& answer);
// The answer of WAIT behind a compare-and-set that gave `applied`: the same, or ambiguous where
// fewer than `wanted` replicas are known to have the write.
CasResult JudgeReplicas(std::string_view server, int wanted, CasResult applied,
                        const RedisAnswer& answer);

}  // namespace leasehold::store

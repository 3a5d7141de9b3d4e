// The eviction policy of a server, from INFO: whether it may throw a lease record away when memory
// is short (DESIGN 3). Pure. volatile-* policies cannot: they only touch keys with an expiry, and a
// record has none.
#pragma once

#include <string>
#include <string_view>

#include "proto/resp.h"

namespace leasehold::store {

struct RedisPolicy {
  enum class Verdict {
    kSafe,
    kEvicts,   // allkeys-*
    kUnknown,  // INFO not permitted, not answered, or without the field
  };
  Verdict verdict = Verdict::kUnknown;
  std::string sentence;  // for kEvicts and kUnknown: what is wrong, and the remedy
};

// `info`: the answer to INFO memory. `server`: its name, for the sentence.
RedisPolicy JudgePolicy(std::string_view server, const proto::Reply& info);

// The answer says something lasting about the policy: it is INFO's text, or INFO is not permitted
// or not known there (some managed services). Other errors pass, and say nothing.
bool TellsOfPolicy(const proto::Reply& info);

}  // namespace leasehold::store

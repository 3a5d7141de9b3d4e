// RedisFailure: why a call got no useful answer, classified as DESIGN 2.1 wants it: refused (it did
// not happen, and repeats until repaired) only for what is known to be so; everything else, unknown
// errors included, is ambiguous. Pure.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace leasehold::store {

struct RedisFailure {
  enum class Kind {
    kAmbiguous,  // may or may not have happened; may pass
    kRefused,    // did not happen; repeats until repaired
  };
  Kind kind = Kind::kAmbiguous;
  std::string code;      // the server's error word ("OOM"), or "" when the server said nothing
  std::string sentence;  // object, value, what would be right

  bool refused() const { return kind == Kind::kRefused; }
};

// `server` names it in the sentence: "redis at 10.0.0.7:6379/0". `error` is the text of an error
// reply, without its '-'.
RedisFailure ClassifyRedisError(std::string_view server, std::string_view error);
// The error word of an error reply: "WRONGTYPE"; looks into script errors of Redis 6, which wrap
// it.
std::string RedisErrorCode(std::string_view error);
// The server at this address will not serve us any more, another one behind the name may: connect
// again, with the name resolved and the credentials read again.
bool WantsReconnect(std::string_view code);

// A failure of our own side: no connection, no answer in time, closed.
RedisFailure AmbiguousFailure(std::string sentence);
// What loop::Connect reported: bad files and certificates repeat until repaired.
RedisFailure ConnectFailure(std::string_view server, const base::Error& error);

}  // namespace leasehold::store

#include "store/redis_errors.h"

#include <algorithm>
#include <array>
#include <optional>

#include "base/text.h"

namespace leasehold::store {
namespace {

using Kind = RedisFailure::Kind;

struct KnownError {
  std::string_view code;
  Kind kind;
  std::string_view remedy;
  bool reconnect = false;
};

// The words are Redis' own (src/server.c createSharedObjects, src/acl.c, src/cluster.c). READONLY
// did not happen, but passes when the fail-over is over, so it is ambiguous, not refused.
constexpr std::array<KnownError, 18> kKnownErrors = {{
    {"LOADING", Kind::kAmbiguous, "it is still loading its data set; this passes"},
    {"BUSY", Kind::kAmbiguous, "a script of somebody runs too long there; this passes"},
    {"TRYAGAIN", Kind::kAmbiguous, "this passes"},
    {"CLUSTERDOWN", Kind::kAmbiguous, "its cluster has lost a part; this passes"},
    {"MASTERDOWN", Kind::kAmbiguous, "it is a replica without its primary", true},
    {"NOREPLICAS", Kind::kAmbiguous, "too few of its replicas follow (min-replicas-to-write)"},
    {"UNBLOCKED", Kind::kAmbiguous, "its role changed during the call", true},
    {"READONLY", Kind::kAmbiguous,
     "it is a replica: nothing was written; redis.url must lead to the primary", true},
    {"OOM", Kind::kRefused, "its memory is full; raise maxmemory or remove data"},
    {"MISCONF", Kind::kRefused,
     "it cannot save to its disk and so takes no writes; repair its disk or its persistence"},
    {"NOPERM", Kind::kRefused,
     "the user lacks a permission; grant what the README lists (ACL SETUSER)"},
    {"WRONGPASS", Kind::kRefused,
     "user name or password is wrong; correct redis.username, redis.password or the content of "
     "redis.password_file",
     true},
    {"NOAUTH", Kind::kRefused,
     "it wants a password; set redis.password_file or redis.password (and redis.username)", true},
    {"DENIED", Kind::kRefused,
     "it runs in protected mode; give it a password and redis.password_file here", true},
    {"WRONGTYPE", Kind::kRefused,
     "the lease's key holds something that is not a lease; it is left alone: rename or remove that "
     "key, or choose another store.prefix"},
    {"MOVED", Kind::kRefused,
     "it is a node of a Redis Cluster and another one has this key; point redis.url at a server "
     "that is no cluster"},
    {"CROSSSLOT", Kind::kRefused, "point redis.url at a server that is no cluster"},
    {"ASK", Kind::kAmbiguous, "its cluster is moving this key; this passes"},
}};

// How Redis up to 7.0 says NOPERM inside a script: command, key or channel.
constexpr std::string_view kScriptDenied = "The user executing the script can't";

const KnownError* Find(std::string_view code) {
  const auto* const found = std::find_if(kKnownErrors.begin(), kKnownErrors.end(),
                                         [code](const KnownError& e) { return e.code == code; });
  return found == kKnownErrors.end() ? nullptr : found;
}

}  // namespace

std::string RedisErrorCode(std::string_view error) {
  const std::string_view first = error.substr(0, error.find(' '));
  if (Find(first) != nullptr || first == "NOSCRIPT") return std::string(first);
  if (error.find(kScriptDenied) != std::string_view::npos) return "NOPERM";
  for (const KnownError& known : kKnownErrors) {
    const std::string wrapped = "-" + std::string(known.code) + " ";
    if (error.find(wrapped) != std::string_view::npos) return std::string(known.code);
  }
  return std::string(first);
}

RedisFailure ClassifyRedisError(std::string_view server, std::string_view error) {
  RedisFailure failure;
  failure.code = RedisErrorCode(error);
  failure.sentence = std::string(server) + " answers \"" + base::Printable(error) + "\"";
  if (const KnownError* known = Find(failure.code); known != nullptr) {
    failure.kind = known->kind;
    failure.sentence += ": " + std::string(known->remedy);
  }
  return failure;
}

bool WantsReconnect(std::string_view code) {
  const KnownError* known = Find(code);
  return known != nullptr && known->reconnect;
}

RedisFailure AmbiguousFailure(std::string sentence) {
  return {Kind::kAmbiguous, "", std::move(sentence)};
}

RedisFailure ConnectFailure(std::string_view server, const base::Error& error) {
  const bool repeats = error.code == base::ErrorCode::kInvalid ||
                       error.code == base::ErrorCode::kUnsupported ||
                       error.code == base::ErrorCode::kNotFound;
  return {repeats ? Kind::kRefused : Kind::kAmbiguous, "",
          std::string(server) + ": " + error.message};
}

}  // namespace leasehold::store

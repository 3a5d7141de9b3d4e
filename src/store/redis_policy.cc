#include "store/redis_policy.h"

#include "base/text.h"
#include "store/redis_errors.h"

namespace leasehold::store {
namespace {

// "maxmemory_policy:noeviction\r\n" -> "noeviction"; "" if there is no such line.
std::string_view FieldOf(std::string_view info, std::string_view name) {
  for (std::string_view line : base::Split(info, '\n')) {
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.size() > name.size() && line.starts_with(name) && line[name.size()] == ':') {
      return line.substr(name.size() + 1);
    }
  }
  return {};
}

}  // namespace

bool TellsOfPolicy(const proto::Reply& info) {
  return !info.is_error() || RedisErrorCode(info.text()) == "NOPERM" ||
         info.text().starts_with("ERR unknown command");
}

RedisPolicy JudgePolicy(std::string_view server, const proto::Reply& info) {
  using Verdict = RedisPolicy::Verdict;
  const std::string_view policy = FieldOf(info.text(), "maxmemory_policy");
  if (info.is_error() || policy.empty()) {
    return {Verdict::kUnknown, std::string(server) + " does not tell its maxmemory-policy (" +
                                   (info.is_error() ? base::Printable(info.text())
                                                    : std::string("INFO memory lacks it")) +
                                   "); make sure that it is not allkeys-*, which can evict leases"};
  }
  if (policy.starts_with("allkeys-")) {
    return {Verdict::kEvicts,
            std::string(server) + " has maxmemory-policy " + base::Printable(policy) +
                ", which can evict lease records; set it to noeviction (or volatile-*), or set "
                "redis.allow_eviction = true to accept that a lease may vanish"};
  }
  return {Verdict::kSafe, ""};
}

}  // namespace leasehold::store

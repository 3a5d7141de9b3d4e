// RedisScript: the two Lua scripts of the adapter and how they are called: EVALSHA with the digest
// that the server's own SCRIPT LOAD gave, EVAL with the text where there is none. Pure: formats
// commands, sends nothing. They run on Redis 5 and newer.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "proto/resp.h"

namespace leasehold::store {

class RedisScript {
 public:
  explicit RedisScript(std::string_view text) : text_(text) {}

  std::string LoadCommand() const;
  // The answer to LoadCommand. An error (no permission, say) leaves the script to EVAL.
  void OnLoaded(const proto::Reply& reply);
  bool loaded() const { return !digest_.empty(); }
  // EVALSHA if `by_digest` (and loaded), else EVAL, which also makes the server keep the script.
  std::string RunCommand(bool by_digest, std::string_view key,
                         std::span<const std::string> arguments) const;

 private:
  std::string_view text_;
  std::string digest_;
};

// KEYS[1] the record. Answers like HGETALL, and an error on a read-only replica.
RedisScript ReadScript();
// KEYS[1] the record; ARGV: the expected version ("" = absent), the hint channel, then fields and
// values. Answers {"applied"} or {"conflict", {fields and values of what is there}}.
RedisScript CompareAndSetScript();

}  // namespace leasehold::store

#include "store/redis_scripts.h"

#include <vector>

namespace leasehold::store {
namespace {

// A read must not come from a replica, which may be behind. ROLE is not allowed in scripts and INFO
// costs much, but every write command tells: PERSIST changes nothing, since a lease record has no
// expiry (and if somebody gave it one, it goes). Only READONLY counts here: a full memory or disk
// does not make what is read less true.
constexpr std::string_view kRead = R"lua(
local able = redis.pcall('PERSIST', KEYS[1])
if type(able) == 'table' and able.err and string.find(able.err, 'READONLY', 1, true) then
  return able
end
return redis.pcall('HGETALL', KEYS[1])
)lua";

// The version is computed from the fields as lease::MakeVersion does, so that a record edited by
// hand is a change too. PERSIST before HSET on a record that is there: the first write of a script
// decides whether a full memory stops it, and a renewal, which takes no memory, must not be
// stopped; a new record is. pcall everywhere: an error comes back under its own name.
// Every answer tells this server's clock where the user may ask it: the caller compares it only
// with itself, to notice time its machine lost (DESIGN 2.2).
constexpr std::string_view kCompareAndSet = R"lua(
local clock = redis.pcall('TIME')
local ms = ''
if not clock.err then ms = clock[1] .. string.format('%03d', math.floor(clock[2] / 1000)) end
local current = redis.pcall('HGETALL', KEYS[1])
if current.err then return current end
local old = {}
for i = 1, #current, 2 do old[current[i]] = current[i + 1] end
local version = ''
if #current > 0 then
  version = (old.process_id or '') .. '/' .. (old.token or '') .. '/' .. (old.beat or '')
end
if version ~= ARGV[1] then return {'conflict', current, ms} end
if #current > 0 then
  local able = redis.pcall('PERSIST', KEYS[1])
  if type(able) == 'table' and able.err then return able end
end
local wrote = redis.pcall('HSET', KEYS[1], unpack(ARGV, 3))
if type(wrote) == 'table' and wrote.err then return wrote end
local new = {}
for i = 3, #ARGV, 2 do new[ARGV[i]] = ARGV[i + 1] end
for field in pairs(old) do
  if string.sub(field, 1, 5) == 'peer:' and not new[field] then
    redis.pcall('HDEL', KEYS[1], field)
  end
end
local hint = 'beat'
if old.process_id ~= new.process_id or old.token ~= new.token or old.state ~= new.state then
  hint = 'hands'
end
redis.pcall('PUBLISH', ARGV[2], hint)
return {'applied', ms}
)lua";

constexpr size_t kDigestBytes = 40;  // SHA-1 in hex

}  // namespace

std::string RedisScript::LoadCommand() const {
  return proto::FormatRespCommand(std::vector<std::string_view>{"SCRIPT", "LOAD", text_});
}

void RedisScript::OnLoaded(const proto::Reply& reply) {
  digest_ = reply.is_string() && reply.text().size() == kDigestBytes ? reply.text() : "";
}

std::string RedisScript::RunCommand(bool by_digest, std::string_view key,
                                    std::span<const std::string> arguments) const {
  std::vector<std::string_view> command;
  command.reserve(arguments.size() + 4);
  const bool digest = by_digest && loaded();
  command.emplace_back(digest ? std::string_view("EVALSHA") : std::string_view("EVAL"));
  command.emplace_back(digest ? std::string_view(digest_) : text_);
  command.emplace_back("1");
  command.emplace_back(key);
  for (const std::string& argument : arguments) command.emplace_back(argument);
  return proto::FormatRespCommand(command);
}

RedisScript ReadScript() { return RedisScript(kRead); }
RedisScript CompareAndSetScript() { return RedisScript(kCompareAndSet); }

}  // namespace leasehold::store

// Record: what a store keeps for a lease, and Version: the store's compare-and-set value for it
// (DESIGN 2.1). Pure data: adapters turn a Record into their store's form and back; nothing here
// knows a store.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/time.h"

namespace leasehold::lease {

inline constexpr uint32_t kRecordFormat =
    1;  // the highest format this program writes and takes over
// ttl_ms outside this range is refused and never overwritten: a window from it would be absurd.
inline constexpr int64_t kTtlMillisMin = 500;  // DESIGN 2.3: TTL is 500 ms at least
inline constexpr int64_t kTtlMillisMax =
    24 * 3600 * 1000;  // a day: no human waits longer for a takeover

// draining counts as held. A released record keeps its token; records are never deleted.
enum class RecordState { kHeld, kDraining, kReleased };
std::string_view RecordStateName(RecordState state);  // "held", "draining", "released"
std::optional<RecordState> ParseRecordState(std::string_view name);

struct Record {
  uint32_t format = kRecordFormat;
  std::string lease;
  std::string node_id;
  std::string process_id;  // random per process; THE identity of a holder
  uint64_t token = 0;      // fencing token: +1 per acquisition, never reset, never reused
  uint64_t beat = 0;       // +1 with every attempt of a process, never restarts within it
  int64_t ttl_ms = 0;
  RecordState state = RecordState::kHeld;
  std::map<std::string, std::string> peers;  // gate name -> advertised peer address
  int64_t acquired_at_unix_ms = 0;           // for people only
  std::string former;                        // who had it before; for people only (MakeFormer)
  // Members this program does not know: name -> value in the adapter's own encoding. Kept on every
  // write.
  std::map<std::string, std::string> unknown;

  bool held() const { return state != RecordState::kReleased; }
  // Zero for a ttl_ms out of range (ValidateRecord refuses it), which could overflow a Duration.
  base::Duration ttl() const {
    const bool usable = ttl_ms >= kTtlMillisMin && ttl_ms <= kTtlMillisMax;
    return base::Duration::Millis(usable ? ttl_ms : 0);
  }
  bool operator==(const Record&) const = default;
};

// "<process id>/<token>/<beat>": never repeats, even if a store loses writes and counts again
// (DESIGN 2.1). Adapters that must store a version of their own use this; others (etcd, S3) may use
// the store's.
using Version = std::string;
Version MakeVersion(const Record& record);

// Whose term came before a record's own, as its holder found it: for the audit, so that who did not
// look at the right moment tells a planned move from a failover all the same. Decides nothing.
struct Former {
  std::string node_id;
  std::string process_id;
  uint64_t token = 0;
  bool released = false;  // given back, rather than run out or its holder proven dead
  bool operator==(const Former&) const = default;
};
// Record::former of the term `token` that follows on `before`:
// "<token>/<former token>/<released|held>/<process id>/<node id>". Empty when a name is longer than
// ours can be: somebody else's record must not make ours too long.
std::string MakeFormer(uint64_t token, const Former& before);
// nullopt: nobody is known to have had it before, or the text is not of this record's term (a
// writer that does not know the member leaves an older one in place).
std::optional<Former> ParseFormer(const Record& record);

// A record nobody may act on or overwrite: a higher format, ttl_ms out of range, empty identity.
// The error is a sentence naming the field, its value and the range.
base::Status ValidateRecord(const Record& record);

}  // namespace leasehold::lease

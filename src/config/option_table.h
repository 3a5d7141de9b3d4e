// The option table: every option of `sidecar.conf` once, with its section, key, type, default,
// range and a line of why. It feeds the parser, `leasehold check --reference`, the masking of
// secrets in ToJson, and the test that holds sidecar.conf and this table equal. Adding an option is
// one row here, its field in the room's options.h, and its line in sidecar.conf.
//
// Invariant: the default of an option is here and nowhere else; options.h of the rooms repeat it
// for their own tests, and a test compares them.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "config/config.h"

namespace leasehold::config {

enum class Kind {
  kText,
  kWord,            // one of a closed list
  kInteger,         // in its range
  kNumber,          // with a point allowed
  kBoolean,         // true, false
  kDuration,        // "250ms", "10s", "5m", in its range
  kDurationOrAuto,  // the same, or "auto": derived from other options
  kSize,            // "64KiB"
  kAddress,         // "host:port", "[v6]:port", "unix:/path"; empty only where the default is
  kTextList,
  kIntegerList,
};
std::string_view KindName(Kind kind);  // "text", "duration", ...

// The options that are being filled in; `lease` and `gate` point to the current table's.
struct Scope {
  Config* config = nullptr;
  lease::Options* lease = nullptr;
  gate::Options* gate = nullptr;
};

// An enum field as an index into the option's words.
struct WordSlot {
  void* field = nullptr;
  int (*get)(const void*) = nullptr;
  void (*set)(void*, int) = nullptr;
};
using Slot = std::variant<std::string*, bool*, int*, uint32_t*, uint64_t*, double*, base::Duration*,
                          std::optional<base::Duration>*, base::Address*, std::vector<std::string>*,
                          std::vector<int64_t>*, WordSlot>;

struct Option {
  std::string_view section;     // "store"
  std::string_view key;         // "redis.url"
  std::string_view applies_to;  // types of store or gate, "http|tcp"; empty: all
  Kind kind = Kind::kText;
  std::string_view default_text;  // a TOML literal; empty: must be given
  std::string_view range;  // kWord: "a|b"; numbers, durations, sizes: "low..high"; empty: any
  std::string_view why;
  Slot (*slot)(const Scope&) = nullptr;
  std::string_view later = {};  // kWord: "a|b" that a later version brings
  bool secret = false;
};

bool AppliesTo(const Option& option, std::string_view type);
// "\"http\" or \"tcp\"": the types that an option is for.
std::string TypesOf(const Option& option, std::string_view between);

std::span<const Option> Options();
// "node", "store", "lease", ... in the order of sidecar.conf.
std::span<const std::string_view> Sections();
bool IsRepeated(std::string_view section);  // [[lease]], [[gate]]

// The row of a section's key that applies to `type`; nullptr: none.
const Option* FindOption(std::string_view section, std::string_view key, std::string_view type);
// The words of an "a|b|c" range, empty ones (which cannot be chosen) included.
std::vector<std::string_view> Words(std::string_view range);

}  // namespace leasehold::config

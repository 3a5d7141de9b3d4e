// StateNote: what a sidecar notes in node.state_dir, as a value and as text (JSON). Pure: reading
// and writing the file is state_dir.cc's. Invariant: a note is read whole or not at all: text that
// is not exactly such a note is an error, never an empty or a lower memory.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "lease/engine.h"

namespace leasehold::app {

struct StateNote {
  std::string process_id;                       // who wrote it
  std::vector<std::string> former;              // its predecessors, newest first
  std::map<std::string, lease::Memory> leases;  // by name; last_ttl zero: none was seen
};

// One line with a newline at its end.
std::string StateNoteText(const StateNote& note);
// kInvalid: a clause that says what is wrong with the text. Members it does not know are skipped.
base::Result<StateNote> ParseStateNote(std::string_view text);

// Can a lease record have this TTL? One that cannot is of a record that nobody may act on.
bool IsRecordTtl(base::Duration ttl);

}  // namespace leasehold::app

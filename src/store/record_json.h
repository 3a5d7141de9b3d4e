// Record <-> JSON text, for stores that keep a record as one document (the file store now). Pure:
// no I/O. Members this program does not know are kept as JSON text in Record::unknown and written
// back. Invariant: what RecordToJson writes, RecordFromJson reads back equal; token and beat are
// decimal strings, so that no other reader rounds them.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "lease/record.h"

namespace leasehold::store {

// A record is a few hundred bytes; one with a hundred peers stays below 16 KiB. Longer text is
// something else.
inline constexpr size_t kRecordBytesMax = size_t{64} * 1024;

// One line with a newline at its end. kInvalid if the record cannot be kept exactly: text that is
// not UTF-8, an unknown member that is not JSON or bears a name of ours, longer than
// kRecordBytesMax.
base::Result<std::string> RecordToJson(const lease::Record& record);

// kInvalid, with a sentence that names the member, its value and what would be right, for text that
// is no record. A format above lease::kRecordFormat is no error here: it is read as far as it can
// be, so that the engine can refuse it by lease::ValidateRecord; members that are not understood
// are at their defaults. Ranges (ttl_ms) are the engine's to judge as well.
base::Result<lease::Record> RecordFromJson(std::string_view text);

}  // namespace leasehold::store
